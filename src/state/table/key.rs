//! Keys as bytes whose order is the order of the values.

use std::borrow::Cow;

/// A type that can be the key of a table.
///
/// Encoded keys are compared as bytes, so the encoding must sort like the values do. Implemented for the integers,
/// `bool`, `String`, `Vec<u8>`, `[u8; N]`, tuples of two to four keys, and `uuid::Uuid` with the feature `uuid`.
///
/// For a newtype, delegate to what is inside and give it a name of its own:
///
/// ```
/// use counterfoil::{AsKey, KeyError, KeyReader, KeyWriter, TableKey};
/// use std::borrow::Cow;
///
/// struct OrderId(u64);
///
/// impl AsKey<OrderId> for OrderId {
///     fn write_key(&self, key: &mut KeyWriter) {
///         self.0.write_key(key);
///     }
/// }
///
/// impl TableKey for OrderId {
///     fn type_name() -> Cow<'static, str> {
///         "order-id".into()
///     }
///
///     fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
///         u64::read_key(key).map(Self)
///     }
/// }
/// ```
pub trait TableKey: AsKey<Self> + Sized + 'static {
    /// The name of this type in the table's declaration. It is stored and compared at every open, so it stays the same
    /// as long as the encoding does; it has nothing to do with Rust's name of the type.
    fn type_name() -> Cow<'static, str>;

    /// Reads what [`AsKey::write_key`] wrote.
    ///
    /// # Errors
    ///
    /// If the bytes are not a key of this type.
    fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError>;
}

/// A value that can stand for a key of type `K`: `K` itself, a reference to it, `str` for `String`, `[u8]` for
/// `Vec<u8>`, and tuples of such.
pub trait AsKey<K: ?Sized> {
    /// Appends the encoding of the key.
    fn write_key(&self, key: &mut KeyWriter);
}

impl<K, Q: AsKey<K> + ?Sized> AsKey<K> for &Q {
    fn write_key(&self, key: &mut KeyWriter) {
        (**self).write_key(key);
    }
}

/// The bytes are not a key of the declared type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a key of type {expected}: {problem}")]
pub struct KeyError {
    expected: Cow<'static, str>,
    problem: &'static str,
}

impl KeyError {
    /// Says what is wrong with the bytes of a key of the named type.
    #[must_use]
    pub fn new(expected: impl Into<Cow<'static, str>>, problem: &'static str) -> Self {
        Self { expected: expected.into(), problem }
    }
}

/// In a tuple, a zero byte of a string is followed by this, and the string's end is two zeros: so the end sorts below
/// every continuation, and `("a", ..)` below `("a\0", ..)` below `("aa", ..)`.
const ESCAPED_ZERO: u8 = 0xFF;

/// Where a key is written to.
#[derive(Debug, Default)]
pub struct KeyWriter {
    bytes: Vec<u8>,
    in_tuple: bool,
}

impl KeyWriter {
    /// Appends bytes that are as many for every key of this type.
    pub fn write_fixed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes of any length. Alone they are stored as they are; within a tuple they are escaped and end with a
    /// mark that sorts below everything, so that what follows them cannot disturb their order.
    pub fn write_variable(&mut self, bytes: &[u8]) {
        if !self.in_tuple {
            return self.bytes.extend_from_slice(bytes);
        }
        for (index, run) in bytes.split(|byte| *byte == 0).enumerate() {
            if index > 0 {
                self.bytes.extend_from_slice(&[0, ESCAPED_ZERO]);
            }
            self.bytes.extend_from_slice(run);
        }
        self.bytes.extend_from_slice(&[0, 0]);
    }

    /// Writes the parts of a tuple.
    pub(super) fn tuple(&mut self, write: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.in_tuple, true);
        write(self);
        self.in_tuple = outer;
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Encodes a key.
pub(super) fn encode<K: ?Sized>(key: &(impl AsKey<K> + ?Sized)) -> Vec<u8> {
    // Enough for most keys, so that there is one allocation.
    let mut writer = KeyWriter { bytes: Vec::with_capacity(48), in_tuple: false };
    key.write_key(&mut writer);
    writer.into_bytes()
}

/// Decodes a key, which must fill the bytes.
pub(super) fn decode<K: TableKey>(bytes: &[u8]) -> Result<K, KeyError> {
    let mut reader = KeyReader { rest: bytes, in_tuple: false };
    let key = K::read_key(&mut reader)?;
    if reader.rest.is_empty() { Ok(key) } else { Err(KeyError::new(K::type_name(), "bytes are left over")) }
}

/// Where a key is read from.
#[derive(Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
    in_tuple: bool,
}

impl<'a> KeyReader<'a> {
    /// Reads a key that must fill the bytes.
    pub(super) fn over<T>(bytes: &'a [u8], read: impl FnOnce(&mut Self) -> Result<T, KeyError>) -> Result<T, KeyError> {
        let mut reader = Self { rest: bytes, in_tuple: false };
        let key = read(&mut reader)?;
        if reader.rest.is_empty() { Ok(key) } else { Err(KeyError::new("key", "bytes are left over")) }
    }
}

impl KeyReader<'_> {
    /// Reads what [`KeyWriter::write_fixed`] wrote. `None` if there are fewer bytes.
    pub fn read_fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*bytes)
    }

    /// Reads what [`KeyWriter::write_variable`] wrote. `None` if its end is missing.
    pub fn read_variable(&mut self) -> Option<Vec<u8>> {
        if !self.in_tuple {
            return Some(std::mem::take(&mut self.rest).to_vec());
        }
        let mut bytes = Vec::new();
        loop {
            let zero = self.rest.iter().position(|byte| *byte == 0)?;
            bytes.extend_from_slice(&self.rest[..zero]);
            let mark = *self.rest.get(zero + 1)?;
            self.rest = &self.rest[zero + 2..];
            match mark {
                0 => return Some(bytes),
                ESCAPED_ZERO => bytes.push(0),
                _ => return None,
            }
        }
    }

    /// Reads the parts of a tuple.
    pub(super) fn tuple<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, KeyError>) -> Result<T, KeyError> {
        let outer = std::mem::replace(&mut self.in_tuple, true);
        let result = read(self);
        self.in_tuple = outer;
        result
    }
}
