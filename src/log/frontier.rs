//! How far a log is proven that somebody else is writing: every frame once, from the oldest on, then what is added.

use std::sync::Arc;

use super::StoreId;
use super::error::LogError;
use super::frame::Frame;
use super::name::{Listing, SegmentName};
use super::scan::{Scanned, SegmentReader};
use crate::disk::Disk;

/// How often the oldest segment may be removed between listing and opening it. Each time a whole segment has gone.
const BEGINNINGS_MAX: u32 = 100;

/// What a reader meets on its way.
#[derive(Debug)]
pub(crate) enum Ahead {
    /// An operation that was written. Whether it is durable says [`Frontier::proven`], now or later.
    Entry(Frame),
    /// Another opening goes on after this operation: what was read above it never counted.
    Epoch { after: u64 },
}

/// Reads beside the process that has the lock, and believes nothing that is merely written: an operation is proven by a
/// later frame that says so (L5), or by an opening that goes on after it (L8).
#[derive(Debug)]
pub(crate) struct Frontier {
    disk: Arc<dyn Disk>,
    store_id: StoreId,
    reader: SegmentReader,
    /// The oldest operation that can be read, if there is one yet.
    first: Option<u64>,
    /// The last one that was read and counts.
    last: Option<u64>,
    proven: u64,
    /// The beginning of an epoch that was not told yet.
    epoch: Option<u64>,
}

impl Frontier {
    /// Begins with the oldest segment.
    pub(crate) fn open(disk: Arc<dyn Disk>, store_id: StoreId) -> Result<Self, LogError> {
        let mut tries = 0;
        let mut reader = loop {
            let listing = Listing::read(&*disk)?;
            let Some(&oldest) = listing.segments.first() else {
                return Err(LogError::NotRetained { sequence: 1, oldest: 1 });
            };
            tries += 1;
            match SegmentReader::open(&*disk, store_id, oldest) {
                Err(LogError::MissingSegment { .. }) if tries < BEGINNINGS_MAX => {}
                opened => break opened?,
            }
        };
        let continues_after = reader.header().continues_after;
        let first = match continues_after {
            Some(after) => Some(after.saturating_add(1)),
            None => reader.first_sequence()?,
        };
        let proven = continues_after.unwrap_or(0);
        Ok(Self { disk, store_id, reader, first, last: continues_after, proven, epoch: None })
    }

    /// The oldest operation that could be read when this was opened; none if nothing came since the rest was removed.
    pub(crate) const fn first(&self) -> Option<u64> {
        self.first
    }

    /// The last operation that is known to be durable.
    pub(crate) const fn proven(&self) -> u64 {
        self.proven
    }

    /// What comes next, of what was written so far.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if frames are missing in the middle: nobody knows what they said.
    pub(crate) fn next(&mut self) -> Result<Option<Ahead>, LogError> {
        loop {
            if let Some(after) = self.epoch.take() {
                return Ok(Some(Ahead::Epoch { after }));
            }
            let offset = self.reader.offset();
            match self.reader.next()? {
                Scanned::Entry(frame) => {
                    let sequence = frame.header.sequence;
                    if self.last.is_some_and(|last| last.saturating_add(1) != sequence) {
                        return Err(self.damaged(offset));
                    }
                    self.last = Some(sequence);
                    self.first.get_or_insert(sequence);
                    self.proven = self.proven.max(frame.header.durable_before);
                    return Ok(Some(Ahead::Entry(frame)));
                }
                Scanned::Mark(mark) => self.proven = self.proven.max(mark.durable_before),
                // Nothing, or half of what is being written; unless the writer is elsewhere by now.
                Scanned::End(_) => match self.following()? {
                    Some(next) => self.go_on(next, offset)?,
                    None => return Ok(None),
                },
            }
        }
    }

    /// The segment after this one, once this one is read to its end.
    fn following(&mut self) -> Result<Option<SegmentName>, LogError> {
        let name = self.reader.name();
        let listing = Listing::read(&*self.disk)?;
        let mut later = listing.segments.iter().copied().filter(|later| *later > name);
        // The next segment is there ahead of its time, and stays blank where its opening ended before it. It is begun when
        // nothing comes here any more, so it is looked into first, and then here again.
        let next = match later.clone().next() {
            Some(next) if next.epoch == name.epoch => {
                let begun = SegmentReader::open(&*self.disk, self.store_id, next)?.first_entry()?.is_some();
                if begun { Some(next) } else { later.find(|later| later.epoch > name.epoch) }
            }
            next => next,
        };
        let Some(next) = next else { return Ok(None) };
        let offset = self.reader.offset();
        let more = !matches!(self.reader.next()?, Scanned::End(_));
        self.reader.seek(offset);
        Ok(if more { Some(name) } else { Some(next) })
    }

    /// Goes on with another segment; with the same one if there is more in it.
    fn go_on(&mut self, next: SegmentName, offset: u64) -> Result<(), LogError> {
        if next == self.reader.name() {
            return Ok(());
        }
        let reader = SegmentReader::open(&*self.disk, self.store_id, next)?;
        if let Some(after) = reader.header().continues_after {
            if self.last.is_some_and(|last| last < after) {
                return Err(self.damaged(offset));
            }
            self.last = Some(after);
            self.proven = self.proven.max(after);
            self.epoch = Some(after);
        }
        self.reader = reader;
        Ok(())
    }

    fn damaged(&self, offset: u64) -> LogError {
        let sequence = self.last.map_or(self.first.unwrap_or(1), |last| last.saturating_add(1));
        LogError::Damaged { file: self.reader.name().file(), offset, sequence }
    }
}
