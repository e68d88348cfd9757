//! Which segments hold the operations from some sequence on, found from the newest backwards.

use super::StoreId;
use super::error::LogError;
use super::name::{Listing, SegmentName};
use super::scan::SegmentReader;
use crate::disk::Disk;

/// A segment on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkedSegment {
    pub(crate) name: SegmentName,
    /// As in its header.
    pub(crate) continues_after: Option<u64>,
    /// Operations above this are dead here: a later epoch continues after it (L6).
    pub(crate) live_max: u64,
}

/// The segments that must be read, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) segments: Vec<WalkedSegment>,
    /// The sequence that the first of them begins with; at most the one that was looked for.
    pub(crate) expected: u64,
}

/// Where a walk ended that did not find its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotRetained {
    pub(crate) segment: SegmentName,
    pub(crate) oldest: u64,
}

impl Walk {
    /// Walks back to the newest segment whose first live operation is at most `from`. Segments before it are not
    /// opened: the time this takes depends on what must be read, not on what is kept.
    pub(crate) fn back_to(
        disk: &dyn Disk,
        store_id: StoreId,
        listing: &Listing,
        from: u64,
    ) -> Result<Result<Self, NotRetained>, LogError> {
        let mut walked = Vec::new();
        let mut live_max = u64::MAX;
        let mut oldest = None;
        for &name in listing.segments.iter().rev() {
            let mut reader = SegmentReader::open(disk, store_id, name)?;
            let continues_after = reader.header().continues_after;
            walked.push(WalkedSegment { name, continues_after, live_max });
            let begins = match continues_after {
                Some(after) if after > live_max => {
                    let reason = "it continues after an operation that a later epoch declares dead";
                    return Err(LogError::BadHeader { file: name.file(), reason });
                }
                Some(after) => {
                    live_max = after;
                    Some(after.saturating_add(1))
                }
                None => reader.first_sequence()?.filter(|&first| first <= live_max),
            };
            if let Some(begins) = begins {
                if begins <= from {
                    walked.reverse();
                    return Ok(Ok(Self { segments: walked, expected: begins }));
                }
                oldest = Some(NotRetained { segment: name, oldest: begins });
            }
        }
        Self::from_oldest(disk, store_id, walked, from, oldest)
    }

    /// No segment begins early enough. If nobody can say what the oldest one begins with because its first frame is
    /// unreadable, it may still be the one: retention removes only what is not needed any more.
    fn from_oldest(
        disk: &dyn Disk,
        store_id: StoreId,
        mut walked: Vec<WalkedSegment>,
        from: u64,
        oldest: Option<NotRetained>,
    ) -> Result<Result<Self, NotRetained>, LogError> {
        let Some(&last) = walked.last() else {
            return Ok(Err(NotRetained { segment: SegmentName { epoch: 0, ordinal: 0 }, oldest: 0 }));
        };
        let known = match oldest {
            Some(known) if known.segment == last.name => Some(known),
            Some(known) => SegmentReader::open(disk, store_id, last.name)?.begins_blank()?.then_some(known),
            None => None,
        };
        if let Some(known) = known {
            return Ok(Err(known));
        }
        if from > last.live_max {
            return Ok(Err(NotRetained { segment: last.name, oldest: last.live_max.saturating_add(1) }));
        }
        walked.reverse();
        Ok(Ok(Self { segments: walked, expected: from }))
    }
}

/// The smallest sequence that reading can begin with; `None` if the log holds no sign of one. Segments that cannot be
/// read are passed over: nobody may need them, and whoever does is told by reading.
pub(crate) fn oldest_sequence(disk: &dyn Disk, store_id: StoreId, listing: &Listing) -> Result<Option<u64>, LogError> {
    for at in 0..listing.segments.len() {
        match first_live(disk, store_id, &listing.segments[at..]) {
            Ok(None) => {}
            Ok(first) => return Ok(first),
            Err(error) => tracing::warn!(%error, "an old segment cannot be read; run verify"),
        }
    }
    Ok(None)
}

/// What the first of these segments begins with, unless that is dead.
pub(super) fn first_live(
    disk: &dyn Disk,
    store_id: StoreId,
    segments: &[SegmentName],
) -> Result<Option<u64>, LogError> {
    let Some(&name) = segments.first() else { return Ok(None) };
    let mut reader = SegmentReader::open(disk, store_id, name)?;
    if let Some(after) = reader.header().continues_after {
        return Ok(Some(after.saturating_add(1)));
    }
    let Some(first) = reader.first_sequence()? else { return Ok(None) };
    let live_max = match segments.iter().find(|later| later.epoch > name.epoch) {
        Some(&next) => SegmentReader::open(disk, store_id, next)?.header().continues_after,
        None => None,
    };
    Ok(Some(first).filter(|first| live_max.is_none_or(|live_max| *first <= live_max)))
}
