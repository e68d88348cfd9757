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

/// How large segments are planned: the first of an epoch, and what later ones grow to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSizes {
    pub(crate) first: u64,
    pub(crate) max: u64,
}

impl SegmentSizes {
    /// The planned size of the segment with this ordinal; a larger batch gets a larger one.
    pub(crate) fn of(self, ordinal: u32) -> u64 {
        let doubled = 1_u64.checked_shl(ordinal).map_or(self.max, |factor| self.first.saturating_mul(factor));
        doubled.min(self.max)
    }
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
        const MAX: u64 = 32 * 1024 * 1024;
        let of = |first, ordinal| SegmentSizes { first, max: MAX }.of(ordinal);
        assert_eq!(of(4096, 0), 4096);
        assert_eq!(of(4096, 1), 8192);
        assert_eq!(of(256 * 1024, 7), MAX);
        assert_eq!(of(MAX - 1, 1), MAX);
        assert_eq!(of(4096, 64), MAX);
        assert_eq!(of(4096, u32::MAX), MAX);
    }
}
