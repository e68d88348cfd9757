//! Reads the whole log and lists everything that is wrong with it. Changes nothing.

use super::StoreId;
use super::error::LogError;
use super::frame::FrameHeader;
use super::limits::FRAME_ALIGN;
use super::name::{Listing, SegmentName};
use super::orphans::without_orphans;
use super::scan::{End, EndReason, Scanned, SegmentReader};
use crate::disk::Disk;

/// Up to where the log must be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The store is open: up to what its appender knows to be durable. What lies behind is being written.
    Live { durable: u64 },
    /// The store is closed: up to what its checkpoint contains and what the log proves about itself.
    Closed { applied: u64 },
}

/// What the log contains.
#[derive(Debug, Default)]
pub(crate) struct CheckReport {
    pub(crate) segments: u64,
    /// Operations that count.
    pub(crate) entries: u64,
    /// Good frames that do not count: discarded by a later epoch, or beyond the extent.
    pub(crate) ignored: u64,
    pub(crate) marks: u64,
    pub(crate) bytes: u64,
    pub(crate) first_sequence: Option<u64>,
    pub(crate) last_sequence: Option<u64>,
    pub(crate) problems: Vec<LogError>,
}

/// Walks every segment from the oldest on. What must be there begins at `floor`: segments that were removed and came
/// back are counted and not read.
///
/// # Errors
/// Only if the directory cannot be listed; everything else is among the report's problems.
pub(crate) fn check_all(
    disk: &dyn Disk,
    store_id: StoreId,
    extent: Extent,
    floor: u64,
) -> Result<CheckReport, LogError> {
    let mut report = CheckReport::default();
    let all = Listing::read(disk)?;
    let listing = without_orphans(disk, store_id, all.clone(), floor).unwrap_or_else(|name| {
        report.problems.push(LogError::MissingSegment { file: name.file() });
        all.clone()
    });
    for &orphan in all.segments.iter().filter(|name| !listing.segments.contains(name)) {
        report.segments += 1;
        report.bytes += SegmentReader::open(disk, store_id, orphan).map_or(0, |reader| reader.file_bytes());
    }
    let mut readers = Vec::new();
    for &name in &listing.segments {
        report.segments += 1;
        match SegmentReader::open(disk, store_id, name) {
            Ok(reader) => {
                report.bytes += reader.file_bytes();
                readers.push(reader);
            }
            Err(problem) => report.problems.push(problem),
        }
    }
    let mut checker = Checker { report, floor, expected: None, suspects: Vec::new(), proven: 0 };
    for epoch in epochs(readers) {
        checker.epoch(epoch, extent);
    }
    Ok(checker.report)
}

/// One epoch's readable segments, and where the next readable epoch takes over.
struct Epoch {
    segments: Vec<SegmentReader>,
    live_max: Option<u64>,
}

fn epochs(readers: Vec<SegmentReader>) -> Vec<Epoch> {
    let mut epochs: Vec<Epoch> = Vec::new();
    for reader in readers {
        match epochs.last_mut() {
            Some(epoch) if epoch.segments.iter().any(|known| known.name().epoch == reader.name().epoch) => {
                epoch.segments.push(reader);
            }
            _ => epochs.push(Epoch { segments: vec![reader], live_max: None }),
        }
    }
    let mut live_max = None;
    for epoch in epochs.iter_mut().rev() {
        epoch.live_max = live_max;
        live_max = epoch.segments.first().and_then(|reader| reader.header().continues_after).or(live_max);
    }
    epochs
}

/// Something that is wrong if its operation counts; that is known at the end of the epoch.
struct Suspect {
    /// 0: wrong in any case.
    sequence: u64,
    problem: LogError,
}

struct Checker {
    report: CheckReport,
    /// The smallest sequence that must be there.
    floor: u64,
    /// The next operation; `None` until the first one was seen.
    expected: Option<u64>,
    suspects: Vec<Suspect>,
    proven: u64,
}

impl Checker {
    fn epoch(&mut self, mut epoch: Epoch, extent: Extent) {
        let continues_after = epoch.segments.first().and_then(|reader| reader.header().continues_after);
        if let Some(after) = continues_after {
            self.proven = self.proven.max(after);
            self.expected = Some(after.saturating_add(1));
        }
        let is_last = epoch.live_max.is_none();
        let live_max = match (epoch.live_max, extent) {
            (Some(live_max), _) => live_max,
            (None, Extent::Live { durable }) => durable,
            (None, Extent::Closed { applied }) => {
                self.proven = self.proven.max(applied);
                u64::MAX
            }
        };
        let mut place = None;
        let mut cut = None;
        for reader in &mut epoch.segments {
            let known = self.expected;
            let outcome = self.segment(reader, live_max, &mut place);
            if let Err(problem) = outcome {
                self.report.problems.push(problem);
            }
            if self.expected != known {
                cut = None;
            }
            if cut.is_none() && reader.is_cut_short().unwrap_or(false) {
                cut = Some((reader.name(), reader.offset()));
            }
        }
        if !is_last && live_max < self.floor {
            // Nothing of it is needed. Its last segments may have been removed and these have come back.
            self.suspects.clear();
            return;
        }
        // What was cut off may have held more. Where something else is wrong already, that says enough.
        if let (Some((name, offset)), true, Extent::Closed { .. }) = (cut, is_last, extent)
            && self.report.problems.is_empty()
            && self.suspects.is_empty()
        {
            self.report.problems.push(damaged(name, offset, self.expected.unwrap_or(1)));
            return;
        }
        // A closed log's last epoch must reach what it proves itself, every other what it is known to have reached.
        let must_reach = if is_last && live_max == u64::MAX { self.proven } else { live_max };
        for suspect in self.suspects.drain(..).filter(|suspect| suspect.sequence <= must_reach) {
            self.report.problems.push(suspect.problem);
        }
        if let (Some(expected), Some((name, offset))) = (self.expected, place)
            && expected <= must_reach
        {
            self.report.problems.push(damaged(name, offset, expected));
        }
    }

    /// Reads every frame of a segment; goes on behind what is bad. `place` becomes where its good frames end.
    fn segment(
        &mut self,
        reader: &mut SegmentReader,
        live_max: u64,
        place: &mut Option<(SegmentName, u64)>,
    ) -> Result<(), LogError> {
        let mut hole = None;
        loop {
            let offset = reader.offset();
            match reader.next()? {
                Scanned::Entry(frame) => {
                    self.entry(&frame.header, live_max, (reader.name(), hole.take().unwrap_or(offset)), offset);
                }
                Scanned::Mark(mark) => {
                    hole = None;
                    self.report.marks += 1;
                    self.proven = self.proven.max(mark.durable_before);
                }
                Scanned::End(end) => {
                    if hole.is_none() {
                        hole = Some(offset);
                        *place = Some((reader.name(), offset));
                    }
                    if !self.skip_bad(reader, end)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Moves the reader to the next good header, if there is one.
    fn skip_bad(&mut self, reader: &mut SegmentReader, end: End) -> Result<bool, LogError> {
        let from = match end.reason {
            EndReason::BadPayload(header) => {
                self.proven = self.proven.max(header.durable_before);
                end.offset + FRAME_ALIGN
            }
            EndReason::Exhausted => return Ok(false),
            EndReason::Zeros | EndReason::BadHeader => end.offset,
        };
        let found = reader.search(from)?.found;
        if let Some((offset, _)) = found {
            reader.seek(offset);
        }
        Ok(found.is_some())
    }

    /// Counts an operation. `place` is where the one before it ended, `offset` where this one lies.
    fn entry(&mut self, header: &FrameHeader, live_max: u64, place: (SegmentName, u64), offset: u64) {
        self.proven = self.proven.max(header.durable_before);
        if header.sequence > live_max {
            self.report.ignored += 1;
            return;
        }
        let (name, at) = place;
        let expected = self.expected.unwrap_or(header.sequence);
        if header.sequence > expected {
            self.suspects.push(Suspect { sequence: expected, problem: damaged(name, at, expected) });
        } else if header.sequence < expected || at != offset {
            // Out of order, or behind something bad that was no operation: see `Tail`.
            self.suspects.push(Suspect { sequence: 0, problem: damaged(name, at, expected) });
        }
        self.report.entries += 1;
        self.report.first_sequence.get_or_insert(header.sequence);
        self.report.last_sequence = self.report.last_sequence.max(Some(header.sequence));
        self.expected = Some(header.sequence.max(expected).saturating_add(1));
    }
}

fn damaged(segment: SegmentName, offset: u64, sequence: u64) -> LogError {
    LogError::Damaged { file: segment.file(), offset, sequence }
}
