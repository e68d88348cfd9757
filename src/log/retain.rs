//! Giving back the space of operations that are in the state and past the history policy.

use std::collections::{BTreeMap, VecDeque};
use std::io;

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
    /// The smallest sequence that may count in it; none if nothing in it says so.
    begins: Option<u64>,
    /// The time of its first operation, which may be dead.
    began_ms: Option<u64>,
}

/// How much history stays behind what the next opening needs. A segment goes when neither asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) bytes: u64,
    pub(crate) age_ms: u64,
}

/// What is to be removed, and where the log begins from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The smallest sequence that the log must hold.
    pub(crate) floor: u64,
    /// Oldest first.
    pub(crate) segments: VecDeque<Removable>,
}

/// Finds what is past the policy. Remembers what it read of old segments, which never change, so that the work depends
/// on what came and went.
#[derive(Debug, Default)]
pub(crate) struct Retention {
    known: BTreeMap<SegmentName, Removable>,
}

impl Retention {
    /// What may go once a checkpoint that contains `applied` is durable. `now_ms` is a time that nobody doubts.
    ///
    /// # Errors
    /// An old segment that cannot be read stays, and all after it, as evidence.
    pub(crate) fn plan(
        &mut self,
        disk: &dyn Disk,
        store_id: StoreId,
        applied: u64,
        now_ms: u64,
        keep: Keep,
    ) -> Result<Option<Removal>, LogError> {
        // Whoever keeps everything pays for nothing. Before the first operation there is nothing to go either.
        if keep.bytes == u64::MAX || applied == 0 {
            return Ok(None);
        }
        let Unneeded { segments, next } = self.unneeded(disk, store_id, applied)?;
        self.known = segments.iter().map(|segment| (segment.name, *segment)).collect();
        Ok(past_policy(segments, next, now_ms, keep))
    }

    /// The segments before the one that operation `from` lies in, oldest first (L10).
    fn unneeded(&self, disk: &dyn Disk, store_id: StoreId, from: u64) -> Result<Unneeded, LogError> {
        let listing = Listing::read(disk)?;
        let walk = Walk::back_to(disk, store_id, &listing, from)?
            .map_err(|known| LogError::NotRetained { sequence: from, oldest: known.oldest })?;
        let none = Unneeded { segments: Vec::new(), next: Next { begins: walk.expected, began_ms: None } };
        let Some(first) = walk.segments.first() else { return Ok(none) };
        let before = listing.segments.iter().take_while(|&&name| name < first.name);
        let segments = before
            .map(|&name| self.known.get(&name).map_or_else(|| look_at(disk, store_id, name), |known| Ok(*known)))
            .collect::<Result<Vec<_>, _>>()?;
        let began_ms = look_at(disk, store_id, first.name)?.began_ms;
        Ok(Unneeded { segments, next: Next { begins: walk.expected, began_ms } })
    }
}

/// Segments that reading does not need, and what follows them.
struct Unneeded {
    segments: Vec<Removable>,
    next: Next,
}

/// The first segment that is needed.
#[derive(Clone, Copy)]
struct Next {
    begins: u64,
    began_ms: Option<u64>,
}

fn past_policy(segments: Vec<Removable>, next: Next, now_ms: u64, keep: Keep) -> Option<Removal> {
    // From the newest to the oldest, since each is judged by what stays behind it.
    let Next { begins: mut floor, mut began_ms } = next;
    let mut kept_bytes = 0_u64;
    let mut kept = 0;
    for segment in segments.iter().rev() {
        // Everything in it is older than what comes after it.
        let is_old = keep.age_ms == 0 || began_ms.is_some_and(|ended| ended.saturating_add(keep.age_ms) <= now_ms);
        if kept_bytes >= keep.bytes && is_old {
            break;
        }
        kept += 1;
        kept_bytes = kept_bytes.saturating_add(segment.bytes);
        // One that begins with a dead operation begins with what follows it.
        floor = segment.begins.map_or(floor, |begins| begins.min(floor));
        began_ms = segment.began_ms.or(began_ms);
    }
    let mut segments = VecDeque::from(segments);
    segments.truncate(segments.len() - kept);
    (!segments.is_empty()).then_some(Removal { floor, segments })
}

fn look_at(disk: &dyn Disk, store_id: StoreId, name: SegmentName) -> Result<Removable, LogError> {
    let mut reader = SegmentReader::open(disk, store_id, name)?;
    let first = reader.first_entry()?;
    let begins = match reader.header().continues_after {
        Some(after) => Some(after.saturating_add(1)),
        None => first.map(|header| header.sequence),
    };
    Ok(Removable { name, bytes: reader.file_bytes(), begins, began_ms: first.map(|header| header.time_ms) })
}

/// Why a segment was not removed. It was not needed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoveError {
    /// It is still there.
    #[error("{file} cannot be removed: {source}")]
    Kept { file: String, source: io::Error },
    /// Nobody knows whether it stays away after a loss of power, and a later sync need not mend that. Removing the next
    /// one could leave a hole in the log (L10).
    #[error("{LOG_DIR} could not be synced after {file} was removed: {source}")]
    Unsure { file: String, source: io::Error },
}

/// Removes one segment, which must be the oldest: after a loss of power, no younger one may be missing.
pub(crate) fn remove_oldest(disk: &dyn Disk, segment: SegmentName) -> Result<(), RemoveError> {
    let is_younger = |listing: Listing| listing.segments.first().is_some_and(|&oldest| oldest < segment);
    debug_assert!(!Listing::read(disk).is_ok_and(is_younger), "L10: {segment} is not the oldest");
    let file = segment.file();
    match disk.remove(&file) {
        Ok(()) => {}
        // Somebody else's hand was quicker; the name's absence is still to be made durable.
        Err(source) if source.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(RemoveError::Kept { file, source }),
    }
    disk.sync_dir(LOG_DIR).map_err(|source| RemoveError::Unsure { file, source })
}

/// The segments before the one that operation `from` lies in, by name, oldest first.
#[cfg(test)]
pub(super) fn removable(disk: &dyn Disk, store_id: StoreId, from: u64) -> Result<Vec<Removable>, LogError> {
    Retention::default().unneeded(disk, store_id, from).map(|unneeded| unneeded.segments)
}
