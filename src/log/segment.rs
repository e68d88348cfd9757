//! Segment headers, and how a segment comes to be (L1).

use std::io;
use std::sync::Arc;

use super::StoreId;
use super::error::{LogError, PrepareError};
use super::limits::{HEADER_LEN, ZERO_CHUNK_BYTES, index};
use super::name::{LOG_DIR, SegmentName};
use crate::base::mutant::{self, Mutant};
use crate::disk::{Disk, DiskFile, OpenMode};

const MAGIC: [u8; 8] = *b"CFSEGMNT";
const FORMAT: u16 = 1;
/// Every bit that this version understands. None is in use yet.
const FEATURES_KNOWN: u64 = 0;
/// Where the checksum lies; magic, format and checksum keep their places in every format.
const CRC_AT: usize = 72;

/// The first sector of a segment.
///
/// ```text
/// 0  magic  8 | 8  format u16, zeros | 16 feature bits u64 | 24 store id 16 | 40 epoch u64 | 48 ordinal u32
/// 52 has continues-after u8, zeros | 56 continues after u64 | 64 created ms u64 | 72 crc u32 over all the rest | zeros
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) name: SegmentName,
    /// Only in an epoch's first segment: the last operation of earlier epochs that counts.
    pub(crate) continues_after: Option<u64>,
    pub(crate) created_ms: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self, store_id: StoreId) -> [u8; HEADER_LEN] {
        debug_assert_eq!(self.continues_after.is_some(), self.name.ordinal == 0, "L3");
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&0_u64.to_le_bytes());
        bytes[24..40].copy_from_slice(&store_id.0);
        bytes[40..48].copy_from_slice(&self.name.epoch.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.name.ordinal.to_le_bytes());
        bytes[52] = u8::from(self.continues_after.is_some());
        bytes[56..64].copy_from_slice(&self.continues_after.unwrap_or(0).to_le_bytes());
        bytes[64..72].copy_from_slice(&self.created_ms.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header of the segment that has this name.
    pub(crate) fn decode(bytes: &[u8; HEADER_LEN], store_id: StoreId, name: SegmentName) -> Result<Self, LogError> {
        let bad = |reason| LogError::BadHeader { file: name.file(), reason };
        if bytes[..8] != MAGIC {
            return Err(bad("it does not begin as a segment does"));
        }
        if checksum(bytes).to_le_bytes() != bytes[CRC_AT..CRC_AT + 4] {
            return Err(bad("its checksum is wrong"));
        }
        let format = u16::from_le_bytes([bytes[8], bytes[9]]);
        if format != FORMAT {
            return Err(LogError::NewerFormat { file: name.file(), what: format!("format {format}") });
        }
        let unknown = u64_at(bytes, 16) & !FEATURES_KNOWN;
        if unknown != 0 {
            return Err(LogError::NewerFormat { file: name.file(), what: format!("feature bits {unknown:#x}") });
        }
        let found = StoreId(bytes[24..40].try_into().expect("a slice of sixteen bytes"));
        if found != store_id {
            return Err(LogError::ForeignStore { file: name.file(), found });
        }
        let ordinal = u32::from_le_bytes(bytes[48..52].try_into().expect("a slice of four bytes"));
        if (SegmentName { epoch: u64_at(bytes, 40), ordinal }) != name {
            return Err(bad("it is the header of another segment"));
        }
        let continues_after = match (bytes[52], ordinal) {
            (1, 0) => Some(u64_at(bytes, 56)),
            (0, 1..) => None,
            _ => return Err(bad("only an epoch's first segment continues another epoch")),
        };
        Ok(Self { name, continues_after, created_ms: u64_at(bytes, 64) })
    }
}

fn checksum(bytes: &[u8; HEADER_LEN]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..CRC_AT]);
    hasher.update(&bytes[CRC_AT + 4..]);
    hasher.finalize()
}

fn u64_at(bytes: &[u8; HEADER_LEN], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice of eight bytes"))
}

/// What the next segment must be; enough for another thread to prepare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSpec {
    pub(crate) name: SegmentName,
    /// The whole file, header included.
    pub(crate) bytes: u64,
}

/// A segment that is durable, has its final name and holds no frame yet.
#[must_use = "an unused segment is handed to `Appender::close` or stays on the disk"]
#[derive(Debug)]
pub(crate) struct PreparedSegment {
    pub(crate) name: SegmentName,
    pub(crate) bytes: u64,
    pub(super) file: Arc<dyn DiskFile>,
}

/// Prepares a segment that is not an epoch's first. It takes the place of one that was prepared under this name and is
/// not used, without the name ever being absent.
///
/// # Errors
/// Nothing depends on the segment yet. What was begun is removed if the disk lets us; otherwise the next recovery
/// removes it.
pub(crate) fn prepare_segment(
    disk: &dyn Disk,
    store_id: StoreId,
    spec: &SegmentSpec,
    created_ms: u64,
) -> Result<PreparedSegment, PrepareError> {
    let header = SegmentHeader { name: spec.name, continues_after: None, created_ms };
    Draft::create(disk, store_id, &header, spec.bytes)?.publish()
}

/// A segment under its temporary name. Dropped before it was published, it is removed.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    disk: &'a dyn Disk,
    name: SegmentName,
    bytes: u64,
    file: Arc<dyn DiskFile>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Temporary,
    Renamed,
    Published,
}

impl<'a> Draft<'a> {
    /// Makes the file at its full size with real zeros, so that appending changes no metadata, and writes the header.
    pub(super) fn create(
        disk: &'a dyn Disk,
        store_id: StoreId,
        header: &SegmentHeader,
        bytes: u64,
    ) -> Result<Self, PrepareError> {
        let name = header.name;
        let failed = |source| PrepareError::from_io(name.temporary(), source);
        let file = disk.open(&name.temporary(), OpenMode::Create).map_err(failed)?;
        let draft = Self { disk, name, bytes, file, stage: Stage::Temporary };
        draft.fill().map_err(failed)?;
        draft.file.write_all_at(0, &header.encode(store_id)).map_err(failed)?;
        Ok(draft)
    }

    fn fill(&self) -> io::Result<()> {
        let zeros = vec![0; index(self.bytes.min(ZERO_CHUNK_BYTES as u64))];
        let mut offset = 0;
        while offset < self.bytes {
            let len = (self.bytes - offset).min(zeros.len() as u64);
            self.file.write_all_at(offset, &zeros[..index(len)])?;
            offset += len;
        }
        Ok(())
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), PrepareError> {
        debug_assert!(offset + bytes.len() as u64 <= self.bytes, "a draft was made large enough");
        let failed = |source| PrepareError::from_io(self.name.temporary(), source);
        self.file.write_all_at(offset, bytes).map_err(failed)
    }

    /// Content first, then the name, then the directory (L1).
    pub(super) fn publish(mut self) -> Result<PreparedSegment, PrepareError> {
        let failed = |source| PrepareError::from_io(self.name.temporary(), source);
        self.file.sync_data().map_err(failed)?;
        self.disk.rename(&self.name.temporary(), &self.name.file()).map_err(failed)?;
        self.stage = Stage::Renamed;
        if !mutant::is(Mutant::DirectoryNotSynced) {
            self.disk.sync_dir(LOG_DIR).map_err(|source| PrepareError::from_io(self.name.file(), source))?;
        }
        self.stage = Stage::Published;
        Ok(PreparedSegment { name: self.name, bytes: self.bytes, file: Arc::clone(&self.file) })
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        let file = match self.stage {
            Stage::Temporary => self.name.temporary(),
            // Its name may exist in the cache only, and a later sync of the directory need not mend that.
            Stage::Renamed => self.name.file(),
            Stage::Published => return,
        };
        if let Err(error) = self.disk.remove(&file) {
            tracing::debug!(%file, %error, "an unfinished segment stays until the next recovery");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: StoreId = StoreId([3; 16]);

    fn header(ordinal: u32) -> SegmentHeader {
        let name = SegmentName { epoch: 6, ordinal };
        SegmentHeader { name, continues_after: (ordinal == 0).then_some(17), created_ms: 99 }
    }

    #[test]
    fn a_header_is_read_back() {
        for ordinal in [0, 1, u32::MAX] {
            let header = header(ordinal);
            assert_eq!(SegmentHeader::decode(&header.encode(ID), ID, header.name).expect("good"), header);
        }
    }

    #[test]
    fn a_header_with_one_flipped_bit_is_damaged() {
        let good = header(0).encode(ID);
        for bit in 0..good.len() * 8 {
            let mut flipped = good;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let read = SegmentHeader::decode(&flipped, ID, header(0).name);
            assert!(matches!(read, Err(LogError::BadHeader { .. })), "bit {bit}");
        }
    }

    #[test]
    fn a_header_of_another_store_segment_format_or_feature_is_told_apart() {
        let good = header(0).encode(ID);
        let read = SegmentHeader::decode(&good, StoreId([4; 16]), header(0).name);
        assert!(matches!(read, Err(LogError::ForeignStore { found: ID, .. })));
        let read = SegmentHeader::decode(&good, ID, SegmentName { epoch: 7, ordinal: 0 });
        assert!(matches!(read, Err(LogError::BadHeader { .. })));
        for at in [8, 16] {
            let mut newer = good;
            newer[at] ^= 2;
            let crc = checksum(&newer);
            newer[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
            let read = SegmentHeader::decode(&newer, ID, header(0).name);
            assert!(matches!(read, Err(LogError::NewerFormat { .. })));
        }
    }
}
