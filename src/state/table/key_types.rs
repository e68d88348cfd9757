//! The types that are keys.

use std::borrow::Cow;

use super::key::{AsKey, KeyError, KeyReader, KeyWriter, TableKey};

const SHORT: &str = "too few bytes";

/// Big-endian, so that bytes sort like numbers.
macro_rules! unsigned_keys {
    ($($type:ident),*) => {$(
        impl AsKey<$type> for $type {
            fn write_key(&self, key: &mut KeyWriter) {
                key.write_fixed(&self.to_be_bytes());
            }
        }

        impl TableKey for $type {
            fn type_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
                let bytes = key.read_fixed().ok_or_else(|| KeyError::new(stringify!($type), SHORT))?;
                Ok($type::from_be_bytes(bytes))
            }
        }
    )*};
}

/// Big-endian with the sign bit turned around, so that negative numbers sort first.
macro_rules! signed_keys {
    ($($type:ident),*) => {$(
        impl AsKey<$type> for $type {
            fn write_key(&self, key: &mut KeyWriter) {
                key.write_fixed(&(self ^ $type::MIN).to_be_bytes());
            }
        }

        impl TableKey for $type {
            fn type_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
                let bytes = key.read_fixed().ok_or_else(|| KeyError::new(stringify!($type), SHORT))?;
                Ok($type::from_be_bytes(bytes) ^ $type::MIN)
            }
        }
    )*};
}

unsigned_keys!(u8, u16, u32, u64, u128);
signed_keys!(i8, i16, i32, i64, i128);

impl AsKey<bool> for bool {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_fixed(&[u8::from(*self)]);
    }
}

impl TableKey for bool {
    fn type_name() -> Cow<'static, str> {
        "bool".into()
    }

    fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
        match key.read_fixed() {
            Some([0]) => Ok(false),
            Some([1]) => Ok(true),
            Some(_) => Err(KeyError::new("bool", "neither 0 nor 1")),
            None => Err(KeyError::new("bool", SHORT)),
        }
    }
}

impl AsKey<String> for str {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_variable(self.as_bytes());
    }
}

impl AsKey<String> for String {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_variable(self.as_bytes());
    }
}

/// Sorts by bytes of UTF-8, which is by code point.
impl TableKey for String {
    fn type_name() -> Cow<'static, str> {
        "string".into()
    }

    fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
        let bytes = key.read_variable().ok_or_else(|| KeyError::new("string", "its end is missing"))?;
        Self::from_utf8(bytes).map_err(|_| KeyError::new("string", "not UTF-8"))
    }
}

impl AsKey<Vec<u8>> for [u8] {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_variable(self);
    }
}

impl AsKey<Vec<u8>> for Vec<u8> {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_variable(self);
    }
}

/// So that `b"literal"` can stand for a `Vec<u8>`.
impl<const N: usize> AsKey<Vec<u8>> for [u8; N] {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_variable(self);
    }
}

impl TableKey for Vec<u8> {
    fn type_name() -> Cow<'static, str> {
        "bytes".into()
    }

    fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
        key.read_variable().ok_or_else(|| KeyError::new("bytes", "its end is missing"))
    }
}

impl<const N: usize> AsKey<[u8; N]> for [u8; N] {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_fixed(self);
    }
}

impl<const N: usize> TableKey for [u8; N] {
    fn type_name() -> Cow<'static, str> {
        format!("bytes[{N}]").into()
    }

    fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
        key.read_fixed().ok_or_else(|| KeyError::new(Self::type_name(), SHORT))
    }
}

#[cfg(feature = "uuid")]
impl AsKey<uuid::Uuid> for uuid::Uuid {
    fn write_key(&self, key: &mut KeyWriter) {
        key.write_fixed(self.as_bytes());
    }
}

#[cfg(feature = "uuid")]
impl TableKey for uuid::Uuid {
    fn type_name() -> Cow<'static, str> {
        "uuid".into()
    }

    fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
        key.read_fixed().map(Self::from_bytes).ok_or_else(|| KeyError::new("uuid", SHORT))
    }
}

/// Part after part; each ends where the next cannot be mistaken for it.
macro_rules! tuple_keys {
    ($(($($part:ident $query:ident $index:tt),+))*) => {$(
        impl<$($part, $query: AsKey<$part>),+> AsKey<($($part,)+)> for ($($query,)+) {
            fn write_key(&self, key: &mut KeyWriter) {
                key.tuple(|key| {
                    $(self.$index.write_key(key);)+
                });
            }
        }

        impl<$($part: TableKey),+> TableKey for ($($part,)+) {
            fn type_name() -> Cow<'static, str> {
                let parts = [$($part::type_name()),+];
                format!("({})", parts.join(",")).into()
            }

            fn read_key(key: &mut KeyReader<'_>) -> Result<Self, KeyError> {
                key.tuple(|key| Ok(($($part::read_key(key)?,)+)))
            }
        }
    )*};
}

tuple_keys! {
    (A QA 0, B QB 1)
    (A QA 0, B QB 1, C QC 2)
    (A QA 0, B QB 1, C QC 2, D QD 3)
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
