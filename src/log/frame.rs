//! One frame: a header of 48 bytes, the payload, zeros up to a multiple of 8.
//!
//! ```text
//! 0  header crc      u32   over bytes 4..48
//! 4  payload crc     u32
//! 8  payload length  u32
//! 12 kind            u8    1 entry, 2 mark
//! 13 version         u8    1
//! 14 reserved        u16   0
//! 16 epoch           u64   where the operation got its position; a copy keeps it
//! 24 sequence        u64
//! 32 time            u64   milliseconds
//! 40 durable before  u64   the last sequence known to be synced when the frame was written
//! ```
//!
//! Both checksums begin with store, segment and offset (L2), so bytes are a frame only where they were written as one.

use std::fmt;

use super::StoreId;
use super::limits::{FRAME_ALIGN, FRAME_ALIGN_LEN, FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX};
use super::name::SegmentName;
use crate::base::mutant::{self, Mutant};

const VERSION: u8 = 1;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An operation.
    Entry,
    /// Proof that the operations before it are durable; repeats the last sequence and carries nothing.
    Mark,
}

impl FrameKind {
    fn code(self) -> u8 {
        match self {
            Self::Entry => 1,
            Self::Mark => 2,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Entry),
            2 => Some(Self::Mark),
            _ => None,
        }
    }
}

/// What a frame says about its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) epoch: u64,
    pub(crate) sequence: u64,
    pub(crate) time_ms: u64,
    pub(crate) durable_before: u64,
    pub(crate) payload_len: u32,
}

impl FrameHeader {
    /// The whole frame on disk.
    pub(crate) fn frame_bytes(&self) -> u64 {
        encoded_frame_bytes(u64::from(self.payload_len))
    }

    /// What holds for every frame ever written (L4); a header that breaks it is not one, whatever its checksum says.
    fn is_sound(&self, segment_epoch: u64) -> bool {
        let kind_is_sound = match self.kind {
            FrameKind::Entry => self.durable_before < self.sequence,
            FrameKind::Mark => self.durable_before <= self.sequence && self.payload_len == 0,
        };
        kind_is_sound && (1..=segment_epoch).contains(&self.epoch) && self.payload_len <= FRAME_PAYLOAD_BYTES_MAX
    }
}

/// An operation as read from the log.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) header: FrameHeader,
    pub(crate) payload: Vec<u8>,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads are users' data: never in a message.
        f.debug_struct("Frame").field("header", &self.header).finish_non_exhaustive()
    }
}

/// How many bytes of a segment a payload takes.
pub(crate) const fn encoded_frame_bytes(payload_len: u64) -> u64 {
    (FRAME_HEADER_BYTES as u64).saturating_add(payload_len.next_multiple_of(FRAME_ALIGN))
}

/// Begins every checksum of one segment (L2).
#[derive(Clone)]
pub(crate) struct Seed {
    prefix: crc32fast::Hasher,
    epoch: u64,
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Seed {
    pub(crate) fn new(store_id: StoreId, segment: SegmentName) -> Self {
        let mut prefix = crc32fast::Hasher::new();
        prefix.update(&store_id.0);
        if !mutant::is(Mutant::EpochNotInChecksum) {
            prefix.update(&segment.epoch.to_le_bytes());
        }
        prefix.update(&segment.ordinal.to_le_bytes());
        Self { prefix, epoch: segment.epoch }
    }

    fn checksum(&self, offset: u64, bytes: &[u8]) -> u32 {
        let mut hasher = self.prefix.clone();
        hasher.update(&offset.to_le_bytes());
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// Appends one frame to `buf`, which will be written so that the frame lies at `offset` of its segment.
pub(crate) fn encode(buf: &mut Vec<u8>, seed: &Seed, offset: u64, header: &FrameHeader, payload: &[u8]) {
    debug_assert!(offset.is_multiple_of(FRAME_ALIGN), "frames are aligned");
    debug_assert!(header.is_sound(seed.epoch), "L4: {header:?}");
    debug_assert_eq!(payload.len(), header.payload_len as usize, "the length is the payload's");
    let start = buf.len();
    buf.extend_from_slice(&[0; 4]);
    buf.extend_from_slice(&seed.checksum(offset, payload).to_le_bytes());
    buf.extend_from_slice(&header.payload_len.to_le_bytes());
    buf.extend_from_slice(&[header.kind.code(), VERSION, 0, 0]);
    buf.extend_from_slice(&header.epoch.to_le_bytes());
    buf.extend_from_slice(&header.sequence.to_le_bytes());
    buf.extend_from_slice(&header.time_ms.to_le_bytes());
    buf.extend_from_slice(&header.durable_before.to_le_bytes());
    let crc = seed.checksum(offset, &buf[start + 4..]);
    buf[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    buf.extend_from_slice(payload);
    let padding = payload.len().next_multiple_of(FRAME_ALIGN_LEN) - payload.len();
    buf.extend_from_slice(&[0; FRAME_ALIGN_LEN][..padding]);
}

/// Why bytes are not the header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAHeader {
    /// Nothing was written here.
    Zeros,
    /// Torn, stale, foreign or damaged.
    Bad,
    /// The checksum is right and the version or kind unknown.
    Newer { version: u8, kind: u8 },
}

/// A header whose checksum is right, and the checksum of the payload that must follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedHeader {
    pub(crate) header: FrameHeader,
    payload_crc: u32,
}

impl CheckedHeader {
    /// Whether the bytes behind the header are its payload and padding.
    pub(crate) fn accepts(&self, seed: &Seed, offset: u64, padded: &[u8]) -> bool {
        let Some((payload, padding)) = padded.split_at_checked(self.header.payload_len as usize) else {
            return false;
        };
        padding.iter().all(|&byte| byte == 0) && seed.checksum(offset, payload) == self.payload_crc
    }
}

/// Reads the header of a frame at `offset` in a segment that is `segment_len` bytes long.
pub(crate) fn decode_header(
    bytes: &[u8; FRAME_HEADER_BYTES],
    seed: &Seed,
    offset: u64,
    segment_len: u64,
) -> Result<CheckedHeader, NotAHeader> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Err(NotAHeader::Zeros);
    }
    if seed.checksum(offset, &bytes[4..]) != u32_at(bytes, 0) {
        return Err(NotAHeader::Bad);
    }
    let (kind, version) = (bytes[12], bytes[13]);
    let Some(kind) = FrameKind::from_code(kind).filter(|_| version == VERSION && bytes[14..16] == [0, 0]) else {
        return Err(NotAHeader::Newer { version, kind });
    };
    let header = FrameHeader {
        kind,
        epoch: u64_at(bytes, 16),
        sequence: u64_at(bytes, 24),
        time_ms: u64_at(bytes, 32),
        durable_before: u64_at(bytes, 40),
        payload_len: u32_at(bytes, 8),
    };
    // Before anything is allocated for the payload: the length must be possible and the bytes must be there.
    let fits = offset.checked_add(header.frame_bytes()).is_some_and(|end| end <= segment_len);
    if header.is_sound(seed.epoch) && fits {
        Ok(CheckedHeader { header, payload_crc: u32_at(bytes, 4) })
    } else {
        Err(NotAHeader::Bad)
    }
}

/// A cheap test that all headers pass, and almost nothing else does: it makes the search past a bad frame fast.
pub(crate) fn may_be_header(bytes: &[u8; FRAME_HEADER_BYTES]) -> bool {
    bytes[13] == VERSION && FrameKind::from_code(bytes[12]).is_some() && bytes[14..16] == [0, 0]
}

fn u32_at(bytes: &[u8; FRAME_HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a slice of four bytes"))
}

fn u64_at(bytes: &[u8; FRAME_HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a slice of eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: SegmentName = SegmentName { epoch: 9, ordinal: 2 };

    fn seed() -> Seed {
        Seed::new(StoreId([7; 16]), SEGMENT)
    }

    fn header(len: u32) -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Entry,
            epoch: 9,
            sequence: 41,
            time_ms: 1_000,
            durable_before: 40,
            payload_len: len,
        }
    }

    fn decode(bytes: &[u8], seed: &Seed, offset: u64) -> Option<FrameHeader> {
        let (head, rest) = bytes.split_first_chunk().expect("a whole header");
        let checked = decode_header(head, seed, offset, offset + bytes.len() as u64).ok()?;
        checked.accepts(seed, offset, rest).then_some(checked.header)
    }

    #[test]
    fn a_frame_of_every_small_length_is_read_back() {
        for len in 0..40_u32 {
            let mut bytes = Vec::new();
            encode(&mut bytes, &seed(), 512, &header(len), &vec![5; len as usize]);
            assert_eq!(bytes.len() as u64, encoded_frame_bytes(u64::from(len)));
            assert_eq!(decode(&bytes, &seed(), 512), Some(header(len)));
        }
    }

    #[test]
    fn a_frame_with_one_flipped_bit_is_not_a_frame() {
        let mut bytes = Vec::new();
        encode(&mut bytes, &seed(), 512, &header(13), b"thirteen byte");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&flipped, &seed(), 512), None, "bit {bit}");
        }
    }

    #[test]
    fn a_frame_elsewhere_is_not_a_frame() {
        let mut bytes = Vec::new();
        encode(&mut bytes, &seed(), 512, &header(8), b"a stowaw");
        let elsewhere = [
            (StoreId([8; 16]), SEGMENT, 512),
            (StoreId([7; 16]), SegmentName { epoch: 10, ordinal: 2 }, 512),
            (StoreId([7; 16]), SegmentName { epoch: 9, ordinal: 3 }, 512),
            (StoreId([7; 16]), SEGMENT, 520),
        ];
        for (store_id, segment, offset) in elsewhere {
            assert_eq!(decode(&bytes, &Seed::new(store_id, segment), offset), None);
        }
    }

    #[test]
    fn zeros_are_not_a_frame_under_any_seed_or_offset() {
        for offset in (512..8192).step_by(8) {
            let read = decode_header(&[0; FRAME_HEADER_BYTES], &seed(), offset, u64::MAX);
            assert_eq!(read.map(|read| read.header), Err(NotAHeader::Zeros));
        }
    }

    #[test]
    fn a_length_beyond_the_file_is_refused_before_it_is_used() {
        let mut bytes = Vec::new();
        encode(&mut bytes, &seed(), 512, &header(8), b"12345678");
        let head = bytes.first_chunk().expect("a whole header");
        assert!(decode_header(head, &seed(), 512, 568).is_ok());
        assert_eq!(decode_header(head, &seed(), 512, 567).err(), Some(NotAHeader::Bad));
    }

    #[test]
    fn a_good_header_of_an_unknown_version_is_newer_and_not_garbage() {
        let mut bytes = Vec::new();
        encode(&mut bytes, &seed(), 512, &header(0), b"");
        bytes[13] = 2;
        let crc = seed().checksum(512, &bytes[4..48]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        let read = decode_header(bytes.first_chunk().expect("a whole header"), &seed(), 512, 560);
        assert_eq!(read.err(), Some(NotAHeader::Newer { version: 2, kind: 1 }));
    }
}
