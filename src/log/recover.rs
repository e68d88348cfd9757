//! Opening the log: what counts, what does not, and a new epoch in which only the former exists.

use std::sync::Arc;

use super::StoreId;
use super::appender::Appender;
use super::error::LogError;
use super::frame::{FrameHeader, FrameKind, Seed, encode};
use super::limits::{HEADER_BYTES, MARK_BYTES, ZERO_CHUNK_BYTES, segment_bytes};
use super::mutation;
use super::name::{LOG_DIR, Listing, SegmentName};
use super::orphans::without_orphans;
use super::reader::LogReader;
use super::renew::{finish_renewals, renew};
use super::scan::{Scanned, SegmentReader};
use super::segment::{Draft, SegmentHeader};
use super::tail::{Tail, Unproven};
use super::walk::{Walk, WalkedSegment, oldest_sequence};
use crate::base::mutant::{self, Mutant};
use crate::disk::{Disk, OpenMode};

/// What the state's last checkpoint says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointState {
    /// The epoch of the opening that wrote it. 0 only while the store is being created: an empty log is then right,
    /// and an error ever after.
    pub(crate) epoch: u64,
    /// S: every operation up to this one is in the state.
    pub(crate) applied_sequence: u64,
    /// The smallest sequence that the log must hold; at most the one after `applied_sequence`.
    pub(crate) log_floor: u64,
}

/// What the opening decides about the epoch that it begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewEpoch {
    pub(crate) created_ms: u64,
    /// The planned size of its first segment.
    pub(crate) segment_bytes_first: u64,
}

/// A log that is open.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Takes the operations after `durable`.
    pub(crate) appender: Appender,
    /// This opening's epoch.
    pub(crate) epoch: u64,
    /// The last operation that counts, durable by now.
    pub(crate) durable: u64,
    /// Begins with the first operation that the state lacks. Read it up to `durable`.
    pub(crate) reader: LogReader,
    /// The smallest sequence that reading can begin with.
    pub(crate) oldest: u64,
    /// Bytes of all segments.
    pub(crate) bytes: u64,
    pub(crate) report: RecoveryReport,
}

/// What recovery found, for the trace and the stats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecoveryReport {
    /// Operations that were read and not proven durable, and so were written again.
    pub(crate) copied_frames: u64,
    /// Bytes behind the last operation that are no part of the log.
    pub(crate) discarded_bytes: u64,
    /// Files under temporary names, removed.
    pub(crate) leftovers_removed: u64,
    /// The same that the disk did not let us remove; the next opening tries again.
    pub(crate) leftovers_kept: u64,
}

/// Recovers the log and begins a new epoch. The caller holds the store's lock.
///
/// # Errors
/// Nothing that any earlier opening wrote was changed or removed, and the next try finds the same.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    store_id: StoreId,
    state: &CheckpointState,
    new: NewEpoch,
) -> Result<Recovered, LogError> {
    if state.epoch == 0 {
        disk.create_dir(LOG_DIR).map_err(LogError::io(LOG_DIR))?;
        disk.sync_dir("").map_err(LogError::io(LOG_DIR))?;
    }
    finish_renewals(&**disk)?;
    let listing = Listing::read(&**disk)?;
    let highest = listing.epoch_max().max(state.epoch);
    let leftovers = listing.temporary.clone();
    let Found { listing, needed, mut tail } = find_tail(disk, store_id, state, listing)?;
    tail.check()?;
    // A name may exist in the cache only, left by a process that died before it could sync it or take it back.
    renew(&**disk, &needed)?;
    if mutant::is(Mutant::TailNotCopied) {
        tail.trust();
    }

    let epoch = highest.checked_add(1).ok_or(LogError::EpochsExhausted { epoch: highest })?;
    let next = state.applied_sequence.saturating_add(1);
    let oldest = oldest_sequence(&**disk, store_id, &listing)?.unwrap_or(next);
    let appender = begin_epoch(disk, store_id, epoch, &tail, new)?;
    let (leftovers_removed, leftovers_kept) = remove_leftovers(&**disk, &leftovers);

    Ok(Recovered {
        epoch: appender.epoch(),
        appender,
        durable: tail.last,
        reader: LogReader::open(Arc::clone(disk), store_id, next)?,
        oldest,
        bytes: total_bytes(&**disk)?,
        report: RecoveryReport {
            copied_frames: tail.unproven.len() as u64,
            discarded_bytes: tail.discarded_bytes,
            leftovers_removed,
            leftovers_kept,
        },
    })
}

/// What reading found.
struct Found {
    /// The segments that belong together.
    listing: Listing,
    /// Those of them that hold what the state lacks.
    needed: Vec<SegmentName>,
    tail: Tail,
}

/// Steps 1 and 2: reads everything that the state lacks and finds L and D. Changes nothing.
fn find_tail(
    disk: &Arc<dyn Disk>,
    store_id: StoreId,
    state: &CheckpointState,
    listing: Listing,
) -> Result<Found, LogError> {
    let missing = |name: SegmentName| LogError::MissingSegment { file: name.file() };
    let Some(&newest) = listing.segments.last() else {
        return match *state {
            CheckpointState { epoch: 0, applied_sequence: 0, .. } => {
                Ok(Found { listing, needed: Vec::new(), tail: Tail::default() })
            }
            CheckpointState { epoch, .. } => Err(missing(SegmentName { epoch: epoch.max(1), ordinal: 0 })),
        };
    };
    if state.epoch > newest.epoch {
        return Err(missing(SegmentName { epoch: state.epoch, ordinal: 0 }));
    }
    let listing = without_orphans(&**disk, store_id, listing, state.log_floor).map_err(missing)?;
    let next = state.applied_sequence.saturating_add(1);
    let walk = Walk::back_to(&**disk, store_id, &listing, next)?.map_err(|known| LogError::MissingBefore {
        file: known.segment.file(),
        sequence: next,
        oldest: known.oldest,
    })?;
    check_history(state, &walk)?;
    let needed = walk.segments.iter().map(|segment| segment.name).collect();

    let (older, last): (Vec<WalkedSegment>, Vec<WalkedSegment>) =
        walk.segments.iter().partition(|segment| segment.name.epoch < newest.epoch);
    let continues_after = last.first().and_then(|segment| segment.continues_after);
    let mut expected = walk.expected;
    if let Some(after) = continues_after
        && !older.is_empty()
    {
        // Every epoch but the last must reach the next one's `continues_after`: the reader insists on it (L6).
        let mut reader = LogReader::over(Arc::clone(disk), store_id, walk, expected);
        while reader.next(after)?.is_some() {}
        expected = after.saturating_add(1);
    }
    let proven = state.applied_sequence.max(continues_after.unwrap_or(0));
    let tail = Tail::read(&**disk, store_id, &last, expected, proven)?;
    Ok(Found { listing, needed, tail })
}

/// An epoch continues after everything that its opening found in the state. If one continues before what the state
/// contains, the state has operations that the log has given up.
fn check_history(state: &CheckpointState, walk: &Walk) -> Result<(), LogError> {
    for segment in walk.segments.iter().filter(|segment| segment.name.epoch > state.epoch) {
        if let Some(continues_after) = segment.continues_after.filter(|&after| after < state.applied_sequence) {
            return Err(LogError::Diverged {
                file: segment.name.file(),
                epoch: state.epoch,
                applied: state.applied_sequence,
                continues_after,
            });
        }
    }
    Ok(())
}

/// Step 3: the new epoch's first segment, with everything in it that was only read so far (L8).
fn begin_epoch(
    disk: &Arc<dyn Disk>,
    store_id: StoreId,
    epoch: u64,
    tail: &Tail,
    new: NewEpoch,
) -> Result<Appender, LogError> {
    if mutant::is(Mutant::AppendedInPlace)
        && let Some(appender) = mutation::append_in_place(disk, store_id, tail, new.segment_bytes_first)?
    {
        return Ok(appender);
    }
    let name = SegmentName { epoch, ordinal: 0 };
    let copied: u64 = tail.unproven.iter().map(|frame| frame.bytes).sum();
    // One mark of recovery's own, and one for the first batch.
    let NewEpoch { created_ms, segment_bytes_first } = new;
    let bytes = segment_bytes(segment_bytes_first, 0).max(HEADER_BYTES + copied + 2 * MARK_BYTES);
    let header = SegmentHeader { name, continues_after: Some(tail.proven), created_ms };
    let draft = Draft::create(&**disk, store_id, &header, bytes)?;

    let seed = Seed::new(store_id, name);
    let mut copier = Copier { draft: &draft, offset: HEADER_BYTES, buf: Vec::new() };
    let mut source: Option<SegmentReader> = None;
    for unproven in &tail.unproven {
        let reader = match source.take().filter(|reader| reader.name() == unproven.segment) {
            Some(reader) => source.insert(reader),
            None => source.insert(SegmentReader::open(&**disk, store_id, unproven.segment)?),
        };
        copier.copy(reader, unproven, &seed)?;
    }
    let mark = FrameHeader {
        kind: FrameKind::Mark,
        epoch,
        sequence: tail.last,
        time_ms: created_ms,
        durable_before: tail.last,
        payload_len: 0,
    };
    copier.put(&seed, &mark, &[])?;
    let offset = copier.finish()?;
    Ok(Appender::new(Arc::clone(disk), store_id, draft.publish()?, offset, tail.last, segment_bytes_first))
}

/// Writes frames into a draft, a large piece at a time.
struct Copier<'a, 'disk> {
    draft: &'a Draft<'disk>,
    /// Where `buf` goes.
    offset: u64,
    buf: Vec<u8>,
}

impl Copier<'_, '_> {
    /// The copy keeps everything but its checksums.
    fn copy(&mut self, source: &mut SegmentReader, unproven: &Unproven, seed: &Seed) -> Result<(), LogError> {
        source.seek(unproven.offset);
        match source.next()? {
            Scanned::Entry(frame) if frame.header.sequence == unproven.sequence => {
                self.put(seed, &frame.header, &frame.payload)
            }
            // It was there a moment ago.
            Scanned::Entry(_) | Scanned::Mark(_) | Scanned::End(_) => Err(LogError::Damaged {
                file: unproven.segment.file(),
                offset: unproven.offset,
                sequence: unproven.sequence,
            }),
        }
    }

    fn put(&mut self, seed: &Seed, header: &FrameHeader, payload: &[u8]) -> Result<(), LogError> {
        let offset = self.offset + self.buf.len() as u64;
        encode(&mut self.buf, seed, offset, header, payload);
        if self.buf.len() >= ZERO_CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), LogError> {
        self.draft.write(self.offset, &self.buf)?;
        self.offset += self.buf.len() as u64;
        self.buf.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<u64, LogError> {
        self.flush()?;
        Ok(self.offset)
    }
}

/// What the segments take, judged by their lengths alone: damage in an old one is for `verify` to find.
fn total_bytes(disk: &dyn Disk) -> Result<u64, LogError> {
    let mut bytes = 0;
    for name in Listing::read(disk)?.segments {
        let file = name.file();
        let len = disk.open(&file, OpenMode::Read).and_then(|segment| segment.len());
        bytes += len.map_err(LogError::io(file))?;
    }
    Ok(bytes)
}

/// Leftovers are harmless, so failing to remove one does not keep the store from opening.
fn remove_leftovers(disk: &dyn Disk, leftovers: &[SegmentName]) -> (u64, u64) {
    let (mut removed, mut kept) = (0, 0);
    for name in leftovers {
        match disk.remove(&name.temporary()) {
            Ok(()) => removed += 1,
            Err(error) => {
                tracing::warn!(file = %name.temporary(), %error, "a leftover segment cannot be removed");
                kept += 1;
            }
        }
    }
    (removed, kept)
}
