//! The key of a row in memory: table and key bytes, ordered as one string of bytes.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::limits::TABLES_MAX;

/// A table's number in this process. It is never stored: files name tables in full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct TableId(u16);

const _: () = assert!(TABLES_MAX < u16::MAX as usize, "`TableId::next` must have room above the last table");

impl TableId {
    /// The `index`-th table, or `None` above [`TABLES_MAX`].
    pub(crate) fn from_index(index: usize) -> Option<Self> {
        if index < TABLES_MAX { u16::try_from(index).ok().map(Self) } else { None }
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The id that sorts right after this one: the exclusive end of a table's rows.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Bytes of the table id in front of the key.
const PREFIX: usize = 2;

/// The longest key, prefix included, that needs no allocation.
///
/// A receipt's key is a 16-byte scope and the caller's own key, most often a UUID as text (36 bytes): with the prefix
/// 54, which also makes a [`RowKey`] exactly 56 bytes, seven words.
const INLINE_MAX: usize = 54;

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Heap(Arc<[u8]>),
}

/// Table and key of a row.
///
/// Both are kept as one string (table id big-endian, then the key), so that comparing two keys is comparing bytes;
/// short ones live inside the map's nodes, which spares an allocation and, at each comparison, a cache miss.
#[derive(Clone)]
pub(crate) struct RowKey(Repr);

impl RowKey {
    pub(crate) fn new(table: TableId, key: &[u8]) -> Self {
        let prefix = table.0.to_be_bytes();
        let len = PREFIX + key.len();
        match u8::try_from(len) {
            Ok(inline_len) if len <= INLINE_MAX => {
                let mut bytes = [0; INLINE_MAX];
                bytes[..PREFIX].copy_from_slice(&prefix);
                bytes[PREFIX..len].copy_from_slice(key);
                Self(Repr::Inline { len: inline_len, bytes })
            }
            _ => Self(Repr::Heap(prefix.iter().chain(key).copied().collect())),
        }
    }

    /// The smallest key of a table, which is also the exclusive end of the table before it.
    pub(crate) fn table_start(table: TableId) -> Self {
        Self::new(table, &[])
    }

    pub(crate) fn table(&self) -> TableId {
        let bytes = self.as_slice();
        TableId(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.as_slice()[PREFIX..]
    }

    /// Bytes held outside of the map's nodes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Inline { .. } => 0,
            Repr::Heap(bytes) => bytes.len(),
        }
    }

    fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Repr::Heap(bytes) => bytes,
        }
    }
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for RowKey {}

impl PartialOrd for RowKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RowKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.table().0, KeyText::new(self.key()))
    }
}

/// A key as text for error messages: printable ASCII as it is, anything else in hex, cut after 64 bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyText(String);

impl KeyText {
    pub(crate) fn new(key: &[u8]) -> Self {
        const SHOWN_MAX: usize = 64;
        let shown = &key[..key.len().min(SHOWN_MAX)];
        let mut text = match std::str::from_utf8(shown) {
            Ok(ascii) if !shown.is_empty() && ascii.bytes().all(|byte| byte.is_ascii_graphic()) => format!("{ascii:?}"),
            _ => format!("0x{}", shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        };
        if shown.len() < key.len() {
            text.push_str(&format!(".. ({} bytes)", key.len()));
        }
        Self(text)
    }
}

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(index: usize) -> TableId {
        TableId::from_index(index).unwrap()
    }

    #[test]
    fn a_key_is_seven_words() {
        assert_eq!(size_of::<RowKey>(), 56);
    }

    #[test]
    fn ids_end_at_the_limit() {
        assert!(TableId::from_index(TABLES_MAX - 1).is_some());
        assert!(TableId::from_index(TABLES_MAX).is_none());
    }

    #[test]
    fn keys_in_messages_are_readable_and_short() {
        assert_eq!(KeyText::new(b"order-7").to_string(), "\"order-7\"");
        assert_eq!(KeyText::new(&[0, 255]).to_string(), "0x00ff");
        assert_eq!(KeyText::new(&[]).to_string(), "0x");
        assert!(KeyText::new(&[1; 1000]).to_string().ends_with(".. (1000 bytes)"));
    }

    proptest! {
        #[test]
        fn row_keys_sort_by_table_then_key_wherever_they_are_stored(
            a in (0..600usize, prop::collection::vec(any::<u8>(), 0..80)),
            b in (0..600usize, prop::collection::vec(any::<u8>(), 0..80)),
        ) {
            let left = RowKey::new(table(a.0), &a.1);
            let right = RowKey::new(table(b.0), &b.1);
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.table(), table(a.0));
            prop_assert_eq!(left.key(), &a.1[..]);
        }
    }
}
