//! Live operations in order, across segments and epochs: for recovery, followers and whoever takes a backup.

use std::collections::VecDeque;
use std::sync::Arc;

use super::StoreId;
use super::error::LogError;
use super::frame::Frame;
use super::name::{Listing, SegmentName};
use super::scan::{Scanned, SegmentReader};
use super::walk::{Walk, WalkedSegment};
use crate::disk::Disk;

/// Reads operations one after the other. It may run beside the [`Appender`](super::Appender) and goes on with each new
/// segment, because it never looks beyond the bound given to [`next`](Self::next), which its caller knows to be synced.
#[derive(Debug)]
pub(crate) struct LogReader {
    disk: Arc<dyn Disk>,
    store_id: StoreId,
    /// The segment being read, and what is live in it.
    current: Option<(SegmentReader, WalkedSegment)>,
    /// What follows it.
    segments: VecDeque<WalkedSegment>,
    /// The sequence that the next frame must have.
    expected: u64,
    /// The sequence that the caller gets next; frames before it are only checked.
    wanted: u64,
    /// Where frames ended without going on, until they do.
    gap: Option<Gap>,
    /// Whether the directory was read again since an operation was last given.
    relisted: bool,
}

#[derive(Debug)]
struct Gap {
    segment: SegmentName,
    offset: u64,
    /// Something unreadable is here, as opposed to nothing, or to a good frame that comes too early.
    is_bad: bool,
}

impl LogReader {
    /// Begins with operation `from`, which need not exist yet.
    ///
    /// # Errors
    /// [`LogError::NotRetained`] if its segment was removed.
    pub(crate) fn open(disk: Arc<dyn Disk>, store_id: StoreId, from: u64) -> Result<Self, LogError> {
        let walk = find(&*disk, store_id, from)?;
        Ok(Self::over(disk, store_id, walk, from))
    }

    pub(super) fn over(disk: Arc<dyn Disk>, store_id: StoreId, walk: Walk, from: u64) -> Self {
        Self {
            disk,
            store_id,
            current: None,
            segments: walk.segments.into(),
            expected: walk.expected,
            wanted: from,
            gap: None,
            relisted: false,
        }
    }

    /// The sequence of the operation that comes next.
    #[cfg(test)]
    pub(crate) fn position(&self) -> u64 {
        self.wanted
    }

    /// The next operation, or `None` once all up to `bound` were given. Everything up to `bound` must be known to be
    /// durable, and a later call may come with a higher one.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if an operation up to `bound` cannot be read. The reader stays where it was.
    pub(crate) fn next(&mut self, bound: u64) -> Result<Option<Frame>, LogError> {
        while self.wanted <= bound {
            let frame = self.next_in_segments()?;
            if frame.header.sequence == self.wanted {
                self.wanted += 1;
                self.relisted = false;
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// The frame of `expected`, wherever it is.
    fn next_in_segments(&mut self) -> Result<Frame, LogError> {
        loop {
            self.open_next()?;
            let Some((reader, segment)) = &mut self.current else {
                self.relist()?;
                continue;
            };
            let name = segment.name;
            if self.expected > segment.live_max {
                self.current = None;
                self.segments.retain(|later| later.name.epoch > name.epoch);
                continue;
            }
            if segment.continues_after.is_some_and(|after| after >= self.expected) {
                // The epoch before fell short of this one (L6), and nothing here can make up for it.
                self.current = None;
                self.segments.clear();
                continue;
            }
            let offset = reader.offset();
            let is_bad = match reader.next()? {
                Scanned::Entry(frame) if frame.header.sequence == self.expected => {
                    self.expected += 1;
                    self.gap = None;
                    return Ok(frame);
                }
                Scanned::Mark(mark) if mark.sequence + 1 == self.expected => continue,
                Scanned::Entry(_) | Scanned::Mark(_) => false,
                Scanned::End(end) => !end.is_clean(),
            };
            self.leave(Gap { segment: name, offset, is_bad });
        }
    }

    /// Opens the next segment, if none is being read and there is one.
    fn open_next(&mut self) -> Result<(), LogError> {
        if self.current.is_none()
            && let Some(&segment) = self.segments.front()
        {
            let reader = SegmentReader::open(&*self.disk, self.store_id, segment.name)?;
            self.segments.pop_front();
            self.current = Some((reader, segment));
        }
        Ok(())
    }

    /// Goes on to the next segment. If the operation is not there either, the first place with something unreadable
    /// is where it was lost, or else the first place where frames ended.
    fn leave(&mut self, gap: Gap) {
        let is_better = self.gap.as_ref().is_none_or(|known| !known.is_bad && gap.is_bad);
        if is_better {
            self.gap = Some(gap);
        }
        self.current = None;
    }

    /// Segments may have come since the directory was last read.
    fn relist(&mut self) -> Result<(), LogError> {
        if self.relisted {
            // Once more from the directory, if the caller tries again.
            self.relisted = false;
            let gap = self.gap.take();
            return Err(match gap {
                Some(gap) => {
                    LogError::Damaged { file: gap.segment.file(), offset: gap.offset, sequence: self.expected }
                }
                None => LogError::NotRetained { sequence: self.expected, oldest: self.expected },
            });
        }
        let walk = find(&*self.disk, self.store_id, self.wanted)?;
        self.segments = walk.segments.into();
        self.expected = walk.expected;
        self.relisted = true;
        Ok(())
    }
}

fn find(disk: &dyn Disk, store_id: StoreId, from: u64) -> Result<Walk, LogError> {
    let listing = Listing::read(disk)?;
    let walk = Walk::back_to(disk, store_id, &listing, from)?;
    walk.map_err(|known| LogError::NotRetained { sequence: from, oldest: known.oldest })
}
