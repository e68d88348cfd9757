//! The memory map: rows that are in the log but not yet folded into redb.

use std::fmt;
use std::ops::Bound;

use imbl::OrdMap;

use super::row_key::RowKey;
use crate::base::bytes::Bytes;

/// What a row costs beside its bytes: its place in a node (key, pointer, slack of a node that is on average three
/// quarters full) and the counters of its shared bytes.
const ROW_BYTES_OVERHEAD: usize = 128;

/// A persistent ordered map from row to value, `None` being a mark that the row is deleted.
///
/// A clone is one counter, so every view, batch and transaction has its own; writing to a clone copies only the path
/// to the row. It is the only place that names imbl.
#[derive(Clone, Default)]
pub(crate) struct MemoryMap {
    rows: OrdMap<RowKey, Option<Bytes>>,
    bytes: usize,
}

impl MemoryMap {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// What this map says about a row: nothing (`None`), that it is deleted (`Some(None)`), or its value.
    pub(crate) fn get(&self, key: &RowKey) -> Option<Option<&Bytes>> {
        self.rows.get(key).map(Option::as_ref)
    }

    #[cfg(test)]
    pub(crate) fn insert(&mut self, key: RowKey, value: Bytes) {
        self.set(key, Some(value));
    }

    /// Marks a row as deleted, whether or not a lower layer has it.
    #[cfg(test)]
    pub(crate) fn remove_mark(&mut self, key: RowKey) {
        self.set(key, None);
    }

    /// Sets the final state of a row.
    pub(crate) fn set(&mut self, key: RowKey, value: Option<Bytes>) {
        let key_bytes = key.heap_bytes();
        self.bytes += value_bytes(value.as_ref());
        match self.rows.insert(key, value) {
            Some(old) => self.bytes -= value_bytes(old.as_ref()),
            None => self.bytes += key_bytes + ROW_BYTES_OVERHEAD,
        }
    }

    /// Rows between two bounds, deletion marks included.
    pub(crate) fn range(
        &self,
        lower: Bound<&RowKey>,
        upper: Bound<&RowKey>,
    ) -> impl DoubleEndedIterator<Item = (&RowKey, &Option<Bytes>)> {
        self.rows.range::<_, RowKey>((lower, upper))
    }

    /// All rows in order, deletion marks included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&RowKey, Option<&Bytes>)> {
        self.rows.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// Rows, deletion marks included.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// About how much memory the rows take; for deciding when to fold, not for accounting to the byte.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for MemoryMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {} bytes", self.len(), self.bytes)
    }
}

fn value_bytes(value: Option<&Bytes>) -> usize {
    value.map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::row_key::TableId;
    use super::*;

    fn key(bytes: &[u8]) -> RowKey {
        RowKey::new(TableId::from_index(3).unwrap(), bytes)
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut map = MemoryMap::new();
        map.insert(key(b"a"), b"1".as_slice().into());
        let before = map.clone();
        map.insert(key(b"a"), b"2".as_slice().into());
        map.remove_mark(key(b"b"));
        assert_eq!(before.get(&key(b"a")).flatten().map(|v| v.to_vec()), Some(b"1".to_vec()));
        assert!(before.get(&key(b"b")).is_none());
        assert_eq!(map.get(&key(b"b")), Some(None));
    }

    #[test]
    fn bytes_follow_replacement_and_deletion() {
        let mut map = MemoryMap::new();
        assert_eq!(map.bytes(), 0);
        map.insert(key(b"a"), vec![0; 1000].into());
        let with_large = map.bytes();
        map.insert(key(b"a"), vec![0; 10].into());
        assert_eq!(map.bytes(), with_large - 990);
        map.remove_mark(key(b"a"));
        assert_eq!(map.bytes(), with_large - 1000);
        assert_eq!(map.len(), 1, "the mark itself stays");
        map.insert(key(&[7; 200]), vec![0; 10].into());
        assert_eq!(map.bytes(), with_large - 1000 + ROW_BYTES_OVERHEAD + 202 + 10);
    }
}
