//! `IDENTITY`: who the store is. Written first under a temporary name, renamed last when a store is created, so a store
//! has it if and only if its creation was finished.

use std::fmt;
use std::io;

use crate::disk::{Disk, DiskFile, OpenMode};

use super::open_error::OpenError;

pub(super) const IDENTITY: &str = "IDENTITY";
pub(super) const IDENTITY_NEW: &str = "IDENTITY.new";

const MAGIC: [u8; 8] = *b"CFOILIDY";
/// The format of the whole directory.
pub(super) const FORMAT: u16 = 1;
/// Feature bits that this version knows. A store with others was written by a newer one.
const FEATURES_KNOWN: u64 = 0;
const FILE_BYTES: usize = 8 + 2 + 8 + 16 + 32 + 8 + 4;

/// What `IDENTITY` says.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) store_id: [u8; 16],
    /// The secret under which scopes and requests are hashed.
    pub(super) secret: [u8; 32],
    pub(super) created_ms: u64,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("created_ms", &self.created_ms).finish_non_exhaustive()
    }
}

impl Identity {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&FEATURES_KNOWN.to_le_bytes());
        bytes.extend_from_slice(&self.store_id);
        bytes.extend_from_slice(&self.secret);
        bytes.extend_from_slice(&self.created_ms.to_le_bytes());
        let crc = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, OpenError> {
        let damaged = |reason: &str| OpenError::Damaged { file: IDENTITY.to_owned(), reason: reason.to_owned() };
        if !bytes.starts_with(&MAGIC) {
            return Err(damaged("it does not begin with the mark of an identity file"));
        }
        let mut fields = Fields(&bytes[MAGIC.len()..]);
        let format = fields.next().map(u16::from_le_bytes).ok_or_else(|| damaged("it is cut short"))?;
        if format > FORMAT {
            return Err(OpenError::NewerFormat { found: format, supported: FORMAT });
        }
        if bytes.len() != FILE_BYTES {
            return Err(damaged("it has the wrong length"));
        }
        let body = &bytes[..FILE_BYTES - 4];
        if crc32fast::hash(body).to_le_bytes() != bytes[FILE_BYTES - 4..] {
            return Err(damaged("its checksum is wrong"));
        }
        let read = |fields: &mut Fields<'_>| {
            Some((
                u64::from_le_bytes(fields.next()?),
                fields.next()?,
                fields.next()?,
                u64::from_le_bytes(fields.next()?),
            ))
        };
        let (features, store_id, secret, created_ms) = read(&mut fields).ok_or_else(|| damaged("it is cut short"))?;
        if features & !FEATURES_KNOWN != 0 {
            return Err(OpenError::NewerFeatures { unknown: features & !FEATURES_KNOWN });
        }
        Ok(Self { store_id, secret, created_ms })
    }

    /// Writes the temporary file and makes it and its name durable.
    pub(super) fn write_new(&self, disk: &dyn Disk) -> io::Result<()> {
        let file = disk.open(IDENTITY_NEW, OpenMode::Create)?;
        file.write_all_at(0, &self.to_bytes())?;
        file.sync_data()?;
        disk.sync_dir("")
    }

    /// Finishes the creation.
    pub(super) fn publish(disk: &dyn Disk) -> io::Result<()> {
        disk.rename(IDENTITY_NEW, IDENTITY)?;
        disk.sync_dir("").inspect_err(|_| {
            // The name may never become durable, whatever a later sync says: the creation is not finished.
            if let Err(error) = disk.rename(IDENTITY, IDENTITY_NEW) {
                tracing::error!(%error, "a creation that failed at its last step could not be taken back");
            }
        })
    }

    /// Makes a second file of the same content and gives it the name, which is never absent meanwhile. A name that a
    /// failed sync of the directory left in the cache alone is made durable by no later sync; a new one is.
    pub(super) fn renew(&self, disk: &dyn Disk) -> io::Result<()> {
        let file = disk.open(IDENTITY_NEW, OpenMode::Create)?;
        file.write_all_at(0, &self.to_bytes())?;
        file.sync_data()?;
        disk.rename(IDENTITY_NEW, IDENTITY)?;
        disk.sync_dir("")
    }

    pub(super) fn read(disk: &dyn Disk) -> Result<Self, OpenError> {
        let file = disk.open(IDENTITY, OpenMode::Read).map_err(OpenError::io("open", IDENTITY))?;
        Self::from_bytes(&read_small(&*file).map_err(OpenError::io("read", IDENTITY))?)
    }
}

/// Takes fixed-width fields off the front.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }
}

/// Reads a small file whole, however long it claims to be.
pub(super) fn read_small(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    const SMALL_BYTES_MAX: u64 = 4096;
    let len = usize::try_from(file.len()?.min(SMALL_BYTES_MAX)).expect("4096 fits");
    let mut bytes = vec![0; len];
    file.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity { store_id: [1; 16], secret: [2; 32], created_ms: 3 }
    }

    #[test]
    fn an_identity_reads_back() {
        assert_eq!(Identity::from_bytes(&identity().to_bytes()).unwrap(), identity());
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = identity().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Identity::from_bytes(&damaged).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Identity::from_bytes(&bytes[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn a_newer_format_is_named_and_not_called_damage() {
        let mut bytes = identity().to_bytes();
        bytes[8] = 2;
        bytes.extend_from_slice(b"whatever format 2 adds");
        assert!(matches!(Identity::from_bytes(&bytes), Err(OpenError::NewerFormat { found: 2, supported: 1 })));
    }

    #[test]
    fn debug_shows_no_secret() {
        assert!(!format!("{:?}", identity()).contains("secret"));
    }
}
