//! Reading the log of a store that another process has open: without its lock, without its help, and without showing
//! anything that it might still lose or that was erased.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::position::Position;
use crate::disk::{Disk, StdDisk};
use crate::log::record::{Body, EraseRecord, EraseTarget, Record, SlotRecord};
use crate::log::{Ahead, Frame, Frontier, LogError, LogReader, StoreId};

use super::follow::{Entry, LogReadError, LogStart, entry_of};
use super::identity::Identity;

/// Reads committed entries of a store that another process has open.
///
/// It takes no lock and writes nothing. An entry is shown once the log itself proves that it is durable, which is when
/// the next batch is written, or about 100 ms after the last one. For what was erased see [`Store::erase`]: an entry is
/// [`EntryKind::Erased`] from the moment the erasure is in the log. It knows neither retention nor access guards: whoever
/// may read the files sees all the rest.
///
/// ```
/// # use counterfoil::{DetachedLog, LogStart, Store, Table};
/// # const T: Table<u64, u64> = Table::new("t");
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("s");
/// let store = Store::builder().table(&T).open(&path)?;
/// store.write(|tx| Ok(tx.table(&T)?.put(1, &1)?))?;
/// store.write(|tx| Ok(tx.table(&T)?.put(2, &2)?))?;
/// // As another process does it, which cannot open the store.
/// let mut log = DetachedLog::open(&path, LogStart::Oldest)?;
/// while let Some(entry) = log.try_next()? {
///     println!("{} {:?}", entry.position, entry.kind);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Store::erase`]: crate::Store::erase
/// [`EntryKind::Erased`]: crate::EntryKind::Erased
#[derive(Debug)]
pub struct DetachedLog {
    disk: Arc<dyn Disk>,
    store_id: StoreId,
    frontier: Frontier,
    erased: Erasures,
    /// None when the writer began another epoch since: segments are to be found anew.
    reader: Option<LogReader>,
    /// The sequence of the entry that comes next; none if it is whichever is the oldest.
    next: Option<u64>,
    /// Read, and not given out since it cannot be decoded: it is not skipped.
    stuck: Option<Frame>,
}

impl DetachedLog {
    /// Looks into a store's directory. It reads the whole log once, for erasures.
    ///
    /// # Errors
    ///
    /// [`LogReadError::NoStore`]; as [`Store::log`](crate::Store::log) for positions that cannot be gone on from; and
    /// [`LogReadError::Damaged`] if any part of the log is: what was erased there is not known, so nothing is shown.
    pub fn open(directory: impl AsRef<Path>, start: LogStart) -> Result<Self, LogReadError> {
        Self::open_on(Arc::new(StdDisk::new(directory.as_ref().to_path_buf())), start)
    }

    pub(crate) fn open_on(disk: Arc<dyn Disk>, start: LogStart) -> Result<Self, LogReadError> {
        let identity = Identity::read(&*disk).map_err(|error| LogReadError::NoStore(error.to_string()))?;
        let store_id = StoreId(identity.store_id);
        let frontier = Frontier::open(Arc::clone(&disk), store_id)?;
        let mut log =
            Self { disk, store_id, frontier, erased: Erasures::default(), reader: None, next: None, stuck: None };
        log.look_ahead()?;
        log.next = match start {
            LogStart::Oldest => log.frontier.first(),
            LogStart::Now => log.frontier.first().map(|_| log.frontier.proven().saturating_add(1)),
            LogStart::After(position) => {
                log.check(position)?;
                Some(position.sequence.saturating_add(1))
            }
        };
        Ok(log)
    }

    /// The next entry that is proven to be durable, if there is one now. It never blocks: whoever follows asks again after
    /// a while.
    ///
    /// # Errors
    ///
    /// As [`LogFollower::try_next`](crate::LogFollower::try_next). It stays where it is.
    pub fn try_next(&mut self) -> Result<Option<Entry>, LogReadError> {
        self.look_ahead()?;
        let frame = match self.stuck.take() {
            Some(frame) => frame,
            None => match self.read()? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        let sequence = frame.header.sequence;
        let entry = entry_of(&frame, |body| self.erased.hides(sequence, body));
        match entry {
            Ok(_) => self.next = Some(sequence.saturating_add(1)),
            Err(_) => self.stuck = Some(frame),
        }
        entry.map(Some)
    }

    fn read(&mut self) -> Result<Option<Frame>, LogReadError> {
        let proven = self.frontier.proven();
        let Some(next) = self.next.or(self.frontier.first()).filter(|next| *next <= proven) else { return Ok(None) };
        let disk = Arc::clone(&self.disk);
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => LogReader::open(disk, self.store_id, next).map_err(|error| self.removed_or(next, error))?,
        };
        // A reader that failed is made anew by the next call.
        let frame = reader.next(proven).map_err(|error| self.removed_or(next, error))?;
        self.reader = Some(reader);
        Ok(frame)
    }

    /// Whoever has the store open removes old segments, which is no damage.
    fn removed_or(&self, next: u64, error: LogError) -> LogReadError {
        let oldest = Frontier::open(Arc::clone(&self.disk), self.store_id);
        match oldest.map(|oldest| oldest.first()) {
            Ok(Some(oldest)) if oldest > next => {
                LogReadError::NotRetained { after: Position { epoch: 0, sequence: next.saturating_sub(1) }, oldest }
            }
            Ok(_) | Err(_) => error.into(),
        }
    }

    /// Reads what was written since the last time.
    fn look_ahead(&mut self) -> Result<(), LogReadError> {
        while let Some(ahead) = self.frontier.next()? {
            match ahead {
                Ahead::Entry(frame) => {
                    let sequence = frame.header.sequence;
                    // One that cannot be decoded may be an erasure, of a newer version: nothing is shown any more.
                    let record = Record::from_bytes(&frame.payload)
                        .map_err(|error| LogReadError::Newer(format!("entry {sequence}: {error}")))?;
                    if let Body::Erase(erase) = record.body {
                        self.erased.written(sequence, erase);
                    }
                }
                Ahead::Epoch { after } => {
                    self.erased.fell_short(after);
                    self.reader = None;
                }
            }
            self.erased.proven(self.frontier.proven());
        }
        self.erased.proven(self.frontier.proven());
        Ok(())
    }

    /// Whether a position is one that this history gave.
    fn check(&self, position: Position) -> Result<(), LogReadError> {
        let Some(first) = self.frontier.first() else { return Ok(()) };
        if position.sequence == 0 && first == 1 {
            return Ok(());
        }
        if position.sequence > self.frontier.proven() {
            return Err(LogReadError::OtherHistory { position });
        }
        if position.sequence.saturating_add(1) < first {
            return Err(LogReadError::NotRetained { after: position, oldest: first });
        }
        if position.sequence < first {
            // The entry itself is gone while all after it are there: its epoch cannot be compared.
            return Ok(());
        }
        let mut reader = LogReader::open(Arc::clone(&self.disk), self.store_id, position.sequence)?;
        match reader.next(position.sequence)? {
            Some(frame) if frame.header.epoch == position.epoch => Ok(()),
            Some(_) | None => Err(LogReadError::OtherHistory { position }),
        }
    }
}

/// What the log says was erased.
#[derive(Debug, Default)]
struct Erasures {
    /// Entries, as ranges that neither overlap nor touch: first and last.
    ranges: BTreeMap<u64, u64>,
    /// Up to which entry a tenant, an actor or an operation is erased.
    decided: BTreeMap<Named, u64>,
    /// Erasures that are written and may still be lost. They hide already, and may come to nothing.
    unproven: Vec<(u64, EraseRecord)>,
}

/// Tenant; actor; operation and key: as many as were named.
type Named = (String, Option<String>, Option<(String, Vec<u8>)>);

impl Erasures {
    fn written(&mut self, sequence: u64, erase: EraseRecord) {
        self.unproven.push((sequence, erase));
    }

    /// Another opening goes on after this entry.
    fn fell_short(&mut self, after: u64) {
        self.unproven.retain(|(sequence, _)| *sequence <= after);
    }

    fn proven(&mut self, proven: u64) {
        let count = self.unproven.iter().take_while(|(sequence, _)| *sequence <= proven).count();
        for (sequence, erase) in self.unproven.drain(..count) {
            if erase.sequences.is_empty() {
                self.decided.insert(named(erase.target), sequence);
            }
            for (first, last) in erase.sequences {
                add_range(&mut self.ranges, first, last);
            }
        }
    }

    fn hides(&self, sequence: u64, body: &Body) -> bool {
        let in_range = self.ranges.range(..=sequence).next_back().is_some_and(|(_, last)| sequence <= *last);
        let slot = slot_of(body);
        in_range
            || slot.is_some_and(|slot| {
                let actor = Some(slot.actor.clone());
                let operation = Some((slot.operation.clone(), slot.key.clone()));
                let names = |actor, operation| (slot.tenant.clone(), actor, operation);
                let all = [names(None, None), names(actor.clone(), None), names(actor, operation)];
                all.iter().any(|name| self.decided.get(name).is_some_and(|through| sequence <= *through))
            })
            || self.unproven.iter().any(|(at, erase)| {
                erase.sequences.iter().any(|(first, last)| (*first..=*last).contains(&sequence))
                    || (erase.sequences.is_empty()
                        && sequence <= *at
                        && slot.is_some_and(|slot| is_meant(&erase.target, slot)))
            })
    }
}

fn slot_of(body: &Body) -> Option<&SlotRecord> {
    match body {
        Body::Operation(operation) => Some(&operation.slot),
        Body::Resolve(resolve) => Some(&resolve.slot),
        Body::Claim(claim) => Some(&claim.slot),
        Body::Write(_)
        | Body::TableDeclared(_)
        | Body::ClockAccepted(_)
        | Body::Sweep(_)
        | Body::Erase(_)
        | Body::Restore(_)
        | Body::Effect(_)
        | Body::Callback(_)
        | Body::Follower(_)
        | Body::Activity(_) => None,
    }
}

fn named(target: EraseTarget) -> Named {
    match target {
        EraseTarget::Operation(slot) => (slot.tenant, Some(slot.actor), Some((slot.operation, slot.key))),
        EraseTarget::Actor { tenant, actor } => (tenant, Some(actor), None),
        EraseTarget::Tenant { tenant } => (tenant, None, None),
    }
}

fn is_meant(target: &EraseTarget, slot: &SlotRecord) -> bool {
    match target {
        EraseTarget::Operation(erased) => erased == slot,
        EraseTarget::Actor { tenant, actor } => *tenant == slot.tenant && *actor == slot.actor,
        EraseTarget::Tenant { tenant } => *tenant == slot.tenant,
    }
}

/// Adds a range, and joins those that then overlap or touch.
fn add_range(ranges: &mut BTreeMap<u64, u64>, first: u64, last: u64) {
    let (mut first, mut last) = (first, last);
    while let Some((&begins, &ends)) = ranges.range(..=last.saturating_add(1)).next_back()
        && ends.saturating_add(1) >= first
    {
        ranges.remove(&begins);
        (first, last) = (first.min(begins), last.max(ends));
    }
    ranges.insert(first, last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_where_they_overlap_or_touch() {
        let mut ranges = BTreeMap::new();
        for (first, last) in [(10, 12), (20, 25), (1, 1), (13, 14), (16, 18), (15, 15), (11, 12)] {
            add_range(&mut ranges, first, last);
        }
        assert_eq!(ranges.into_iter().collect::<Vec<_>>(), [(1, 1), (10, 18), (20, 25)]);
        let mut ranges = BTreeMap::from([(3, 4), (6, 7), (9, 12)]);
        add_range(&mut ranges, 1, 8);
        assert_eq!(ranges.into_iter().collect::<Vec<_>>(), [(1, 12)]);
    }
}
