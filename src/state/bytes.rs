//! Shared immutable bytes: the value of a row.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes that any number of maps, views and iterators share. A clone costs one counter.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bytes(Arc<[u8]>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for Bytes {
    /// The length only: values are the users' data and do not belong in a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}
