//! Segments that were removed and came back.
//!
//! When the sync after a removal fails, the system may take the directory for clean and keep the name on the disk,
//! while the cache shows it as gone. A later opening, which cannot see it, removes the segments after it for good; after
//! a loss of power the old one is there again, and they are not. The hole between them is below the floor: the
//! checkpoint said before the first of these removals that nothing there is needed.

use super::StoreId;
use super::name::{Listing, SegmentName};
use super::walk::first_live;
use crate::base::mutant::{self, Mutant};
use crate::disk::Disk;

/// The listing without the segments before a hole, if what follows the hole reaches down to `floor`. What is left out
/// is still on the disk, and retention removes it as it removes every old segment.
///
/// # Errors
/// The name that is missing, if it may be needed.
pub(super) fn without_orphans(
    disk: &dyn Disk,
    store_id: StoreId,
    mut listing: Listing,
    floor: u64,
) -> Result<Listing, SegmentName> {
    let Some(hole) = listing.hole() else { return Ok(listing) };
    let segments = listing.segments.split_off(hole.next);
    // The first one may be blank, or hold nothing that counts. One that cannot be read says nothing.
    let reaches = |at: usize| matches!(first_live(disk, store_id, &segments[at..]), Ok(Some(first)) if first <= floor);
    if mutant::is(Mutant::FloorIgnored) || !(0..segments.len()).any(reaches) {
        return Err(hole.missing);
    }
    let removed = listing.segments.len();
    tracing::warn!(removed, floor, "log segments that were removed are there again; they are not needed");
    Ok(Listing { segments, ..listing })
}
