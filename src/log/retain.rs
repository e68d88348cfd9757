//! Giving back the space of operations that are in the state and past the history policy.

use super::StoreId;
use super::error::LogError;
use super::name::{LOG_DIR, Listing, SegmentName};
use super::scan::SegmentReader;
use super::walk::Walk;
use crate::disk::Disk;

/// A segment that reading from some sequence on does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removable {
    pub(crate) name: SegmentName,
    pub(crate) bytes: u64,
    /// When it was prepared: a little earlier than its first operation.
    pub(crate) created_ms: u64,
}

/// The segments before the one that operation `from` lies in, oldest first. `from` is at most one more than what a
/// checkpoint contains whose sync this process saw succeed, and than what any follower still needs (L10).
pub(crate) fn removable(disk: &dyn Disk, store_id: StoreId, from: u64) -> Result<Vec<Removable>, LogError> {
    let listing = Listing::read(disk)?;
    let walk = Walk::back_to(disk, store_id, &listing, from)?
        .map_err(|known| LogError::NotRetained { sequence: from, oldest: known.oldest })?;
    let Some(first) = walk.segments.first() else { return Ok(Vec::new()) };
    let before = listing.segments.iter().take_while(|&&name| name < first.name);
    before
        .map(|&name| {
            let reader = SegmentReader::open(disk, store_id, name)?;
            Ok(Removable { name, bytes: reader.file_bytes(), created_ms: reader.header().created_ms })
        })
        .collect()
}

/// Removes one segment, which must be the oldest: after a loss of power, no younger one may be missing.
///
/// # Errors
/// Whether the segment is gone is not known. It was not needed.
pub(crate) fn remove_oldest(disk: &dyn Disk, segment: SegmentName) -> Result<(), LogError> {
    debug_assert_eq!(Listing::read(disk).ok().and_then(|listing| listing.segments.first().copied()), Some(segment));
    disk.remove(&segment.file()).map_err(LogError::io(segment.file()))?;
    disk.sync_dir(LOG_DIR).map_err(LogError::io(LOG_DIR))
}
