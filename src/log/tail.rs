//! The last epoch: how far it reads (L), and how far it is proven (D).

use std::collections::VecDeque;

use super::StoreId;
use super::error::LogError;
use super::frame::{FrameHeader, FrameKind};
use super::limits::{FRAME_ALIGN, HEADER_BYTES};
use super::name::SegmentName;
use super::scan::{Scanned, SegmentReader};
use super::walk::WalkedSegment;
use crate::base::mutant::{self, Mutant};
use crate::disk::Disk;

/// A frame that was read and is not proven to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unproven {
    pub(super) segment: SegmentName,
    pub(super) offset: u64,
    pub(super) sequence: u64,
    pub(super) bytes: u64,
}

/// Where frames end, and so where the next one would be if it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stop {
    segment: SegmentName,
    offset: u64,
    /// Something unreadable is here, as opposed to nothing, or to a good frame that comes too early.
    is_bad: bool,
    /// The end of the file is missing, and with it whatever it proved.
    is_cut: bool,
}

/// What the last epoch holds.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// L: the last operation up to which every frame is good.
    pub(super) last: u64,
    /// D: the last operation that is proven to be durable.
    pub(super) proven: u64,
    /// The frames of D+1..=L, in order. Never more than one batch, since each batch proves those before it.
    pub(super) unproven: VecDeque<Unproven>,
    /// Bytes behind L that are no part of the log: a torn batch, or what a failed write left.
    pub(super) discarded_bytes: u64,
    /// The first place without a good frame after each run of them; all since the last good one.
    stops: Vec<Stop>,
    /// A frame behind the first bad one that could only be written after everything before it was synced.
    contradicted: bool,
}

impl Tail {
    /// Reads the last epoch's segments.
    ///
    /// `segments` are the walked ones of the last epoch, `next` is the first sequence expected in them, `proven` what
    /// checkpoint and header already prove.
    pub(super) fn read(
        disk: &dyn Disk,
        store_id: StoreId,
        segments: &[WalkedSegment],
        next: u64,
        proven: u64,
    ) -> Result<Self, LogError> {
        let mut tail = Self { last: next.saturating_sub(1), proven, ..Self::default() };
        for segment in segments {
            let mut reader = SegmentReader::open(disk, store_id, segment.name)?;
            tail.read_in_order(&mut reader)?;
        }
        for stop in tail.stops.clone() {
            let mut reader = SegmentReader::open(disk, store_id, stop.segment)?;
            tail.search_behind(&mut reader, stop.offset)?;
        }
        Ok(tail)
    }

    /// Takes what was read for durable.
    pub(super) fn trust(&mut self) {
        self.proven = self.last;
        self.unproven.clear();
    }

    /// L7: an error if anything that was proven durable cannot be read, or if what could have proven it was cut off.
    pub(super) fn check(&self) -> Result<(), LogError> {
        let is_cut = self.stops.iter().any(|stop| stop.is_cut);
        if self.last >= self.proven && !self.contradicted && !is_cut {
            return Ok(());
        }
        let stop = self.stops.iter().find(|stop| stop.is_bad).or(self.stops.first());
        let (segment, offset) =
            stop.map_or((SegmentName { epoch: 0, ordinal: 0 }, HEADER_BYTES), |stop| (stop.segment, stop.offset));
        Err(LogError::Damaged { file: segment.file(), offset, sequence: self.last.saturating_add(1) })
    }

    fn read_in_order(&mut self, reader: &mut SegmentReader) -> Result<(), LogError> {
        loop {
            let (segment, offset) = (reader.name(), reader.offset());
            let is_bad = match reader.next()? {
                Scanned::Entry(frame) if Some(frame.header.sequence) == self.last.checked_add(1) => {
                    self.take(segment, offset, &frame.header);
                    continue;
                }
                Scanned::Mark(mark) if mark.sequence == self.last => {
                    self.stops.clear();
                    self.prove(mark.durable_before);
                    continue;
                }
                Scanned::Entry(_) | Scanned::Mark(_) => false,
                Scanned::End(end) => !end.is_clean(),
            };
            // Behind a good frame that comes too early the reader has moved on.
            reader.seek(offset);
            let is_cut = reader.is_cut_short()?;
            self.stops.push(Stop { segment, offset, is_bad: is_bad || is_cut, is_cut });
            return Ok(());
        }
    }

    fn take(&mut self, segment: SegmentName, offset: u64, header: &FrameHeader) {
        self.stops.clear();
        self.last = header.sequence;
        let bytes = header.frame_bytes();
        self.unproven.push_back(Unproven { segment, offset, sequence: header.sequence, bytes });
        self.prove(header.durable_before.max(self.proven));
    }

    /// Where the last good frame ends, if there is a segment at all.
    pub(super) fn end(&self) -> Option<(SegmentName, u64)> {
        self.stops.first().map(|stop| (stop.segment, stop.offset))
    }

    fn prove(&mut self, through: u64) {
        let through = if mutant::is(Mutant::DurableBeforeIgnored) { self.proven } else { through };
        self.proven = self.proven.max(through);
        while self.unproven.front().is_some_and(|frame| frame.sequence <= self.proven) {
            self.unproven.pop_front();
        }
    }

    /// What lies behind a stop proves what it says by its header alone: its payload may be torn, its `durable_before`
    /// was true all the same.
    fn search_behind(&mut self, reader: &mut SegmentReader, stop: u64) -> Result<(), LogError> {
        let (mut at, mut written_to) = (stop, stop);
        loop {
            let search = reader.search(at)?;
            if search.written_to > at {
                written_to = search.written_to;
            }
            let Some((offset, header)) = search.found else { break };
            // A batch is written after the one before was synced, so a bad frame hides only later frames of its own
            // batch. If the very next operation is found behind one, what is bad was a mark, or lies before the
            // checkpoint in a segment that begins with it: durable in any case.
            let hides_nothing = header.kind == FrameKind::Entry && header.sequence <= self.last.saturating_add(1);
            self.contradicted |= hides_nothing && offset > stop;
            self.prove(header.durable_before);
            let is_whole = reader.is_whole(offset)?;
            at = offset + if is_whole { header.frame_bytes() } else { FRAME_ALIGN };
            written_to = at;
        }
        self.discarded_bytes += written_to - stop;
        Ok(())
    }
}
