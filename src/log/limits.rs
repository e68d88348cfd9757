//! Every size of the log, with its reason.

/// A segment's header: one sector, so that it is written whole or not at all. Frames start behind it.
pub(crate) const HEADER_LEN: usize = 512;

/// The same, as an offset.
pub(crate) const HEADER_BYTES: u64 = HEADER_LEN as u64;

/// A frame's header.
pub(crate) const FRAME_HEADER_BYTES: usize = 48;

/// Frames start at multiples of this, so that a search for them need not look at every byte.
pub(crate) const FRAME_ALIGN: u64 = FRAME_ALIGN_LEN as u64;

/// The same, in memory.
pub(crate) const FRAME_ALIGN_LEN: usize = 8;

/// A mark on disk: a header without a payload.
pub(crate) const MARK_BYTES: u64 = FRAME_HEADER_BYTES as u64;

/// An epoch's first segment. Small, because every opening writes one, and a new store should stay small.
pub(crate) const SEGMENT_BYTES_FIRST: u64 = 256 * 1024;

/// What segments grow to by doubling. Large enough that rolling is rare (about once in 60,000 operations), small
/// enough that removing whole segments follows the retention policy closely and a recovery reads little.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The largest payload of one frame. A length above it is not a length, so a damaged one never becomes an allocation.
/// The slack keeps a frame with all its headers within 64 MiB.
pub(crate) const FRAME_PAYLOAD_BYTES_MAX: u32 = 64 * 1024 * 1024 - 4096;

/// Zeros are written in pieces of this size: few calls, and no buffer as large as a segment.
pub(crate) const ZERO_CHUNK_BYTES: usize = 256 * 1024;

/// Segments are read in pieces of at least this size.
pub(crate) const READ_CHUNK_BYTES: usize = 64 * 1024;

/// The encoding buffer is given back to the allocator when one large batch has made it larger than this.
pub(crate) const SCRATCH_BYTES_KEPT: usize = 4 * 1024 * 1024;

const _: () = assert!(HEADER_BYTES.is_multiple_of(FRAME_ALIGN));
const _: () = assert!(MARK_BYTES.is_multiple_of(FRAME_ALIGN));
const _: () = assert!(SEGMENT_BYTES_FIRST <= SEGMENT_BYTES_MAX);
const _: () = assert!(SEGMENT_BYTES_FIRST > HEADER_BYTES + 2 * MARK_BYTES);

/// The planned size of the segment with this ordinal; a larger batch gets a larger one.
pub(crate) fn segment_bytes(ordinal: u32) -> u64 {
    let doublings = ordinal.min(SEGMENT_BYTES_MAX.ilog2() - SEGMENT_BYTES_FIRST.ilog2());
    (SEGMENT_BYTES_FIRST << doublings).min(SEGMENT_BYTES_MAX)
}

/// A length that was checked against a bound or a file's length, as an index.
pub(crate) fn index(bounded: u64) -> usize {
    usize::try_from(bounded).expect("lengths in memory are bounded by the limits above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_double_up_to_the_largest_and_stay_there() {
        assert_eq!(segment_bytes(0), SEGMENT_BYTES_FIRST);
        assert_eq!(segment_bytes(1), 2 * SEGMENT_BYTES_FIRST);
        assert_eq!(segment_bytes(7), SEGMENT_BYTES_MAX);
        assert_eq!(segment_bytes(u32::MAX), SEGMENT_BYTES_MAX);
    }
}
