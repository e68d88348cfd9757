//! The bytes of a file, shared between generations until one of them changes them.

use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

/// Bytes with their digest, which is computed once however many images share them.
#[derive(Debug, Default)]
pub(super) struct Content {
    bytes: Vec<u8>,
    digest: OnceLock<[u8; 32]>,
}

impl Content {
    /// Equal bytes have equal digests.
    pub(super) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| *blake3::hash(&self.bytes).as_bytes())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, digest: OnceLock::new() }
    }
}

/// A copy is made in order to change it.
impl Clone for Content {
    fn clone(&self) -> Self {
        self.bytes.clone().into()
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Deref for Content {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Content {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        self.digest.take();
        &mut self.bytes
    }
}
