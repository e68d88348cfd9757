//! Names that may exist in the cache only.
//!
//! When the sync of a directory fails, the system may take its names for clean without having written them. The cache
//! goes on to show them, later syncs succeed, and they are not made durable by any of those. A process that sees the
//! failure takes such a name back; one that is killed before it can leaves it to the next opening, which cannot tell.
//! So recovery makes each name that it is going to rest on anew: a rename is a new change, which a sync covers.
//!
//! It is safe at every step. A rename happens or does not, and the two of a segment happen in order, so after a loss of
//! power the segment has its own name, or the other one, or it never had a durable one and nothing was built on it.

use super::error::LogError;
use super::name::{LOG_DIR, Listing, SegmentName};
use crate::base::mutant::{self, Mutant};
use crate::disk::Disk;

/// Gives segments their own names back that an earlier [`renew`] was interrupted with. Returns whether there were any.
pub(crate) fn finish_renewals(disk: &dyn Disk) -> Result<bool, LogError> {
    let listing = Listing::read(disk)?;
    for &name in listing.moved.iter().filter(|name| !listing.segments.contains(name)) {
        disk.rename(&name.moved(), &name.file()).map_err(LogError::io(name.file()))?;
    }
    Ok(!listing.moved.is_empty())
}

/// Makes the names of these segments anew, and all names of the directory durable.
///
/// # Errors
/// Every segment is there, maybe under its other name: the next opening finds it.
pub(super) fn renew(disk: &dyn Disk, segments: &[SegmentName]) -> Result<(), LogError> {
    for name in segments.iter().filter(|_| !mutant::is(Mutant::SegmentNamesTrusted)) {
        let renamed = disk.rename(&name.file(), &name.moved()).and_then(|()| disk.rename(&name.moved(), &name.file()));
        renamed.map_err(LogError::io(name.file()))?;
    }
    disk.sync_dir(LOG_DIR).map_err(LogError::io(LOG_DIR))
}
