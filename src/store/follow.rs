//! Reading the log: committed entries in order, then new ones as they become durable.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::base::name::Slot;
use crate::base::position::{Position, TimestampMs};
use crate::base::receipt::Outcome;
use crate::base::reply::Reply;
use crate::log::record::{Body, Record, RowChange, TableChanges};
use crate::log::{Frame, LogError, LogReader};
use crate::state::{Rows, open_sealed};

use super::published::Moved;
use super::reentry;
use super::rows::{System, sequence_key};
use super::shared::Shared;

/// Where reading the log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// At the oldest entry that is retained.
    Oldest,
    /// Right after an entry that was seen before. What a follower keeps is the position of the last entry it has dealt
    /// with.
    After(Position),
    /// With the next entry that is committed.
    Now,
}

/// Why the log cannot be read from a position, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogReadError {
    /// Entries after the position are no longer retained. Take a snapshot of the tables, then follow from its position.
    #[error(
        "entries after {after} are no longer retained; the oldest is sequence {oldest}: take a snapshot of the tables and follow from there"
    )]
    NotRetained {
        /// Where reading was to begin.
        after: Position,
        /// The oldest sequence that can be read.
        oldest: u64,
    },
    /// The position was given by another history of this store, such as one from before a restore, or by another store.
    #[error(
        "position {position} is of another history of this store: take a snapshot of the tables and follow from there"
    )]
    OtherHistory {
        /// The position.
        position: Position,
    },
    /// An entry cannot be read. Run verify; the message names the place.
    #[error("the log cannot be read: {0}; run verify")]
    Damaged(String),
    /// An entry was written by a newer version of this crate. Read it with that one.
    #[error("{0}: use a newer version of the crate")]
    Newer(String),
    /// The position was given by the store that this one was restored after the loss of: what it stood for is not here.
    #[error(
        "{position} is from after the backup that this store was restored from, which ends at {from}; follow again from \
         there, and undo what came after it"
    )]
    LostInRestore {
        /// The position.
        position: Position,
        /// The last entry that the backup had.
        from: Position,
    },
    /// There is no store in the directory, or one that cannot be read from outside. The message says what is wrong.
    #[error("its log cannot be read from outside: {0}")]
    NoStore(String),
    /// A blocking call from within a closure, guard or waker of the same store.
    #[error("a blocking call of the store from inside one of its own closures, guards or wakers")]
    Reentrant,
}

impl From<LogError> for LogReadError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::NewerFormat { .. } => Self::Newer(error.to_string()),
            LogError::Io { .. }
            | LogError::Prepare(_)
            | LogError::ForeignStore { .. }
            | LogError::BadHeader { .. }
            | LogError::MissingSegment { .. }
            | LogError::MissingBefore { .. }
            | LogError::Damaged { .. }
            | LogError::Diverged { .. }
            | LogError::NotRetained { .. }
            | LogError::EpochsExhausted { .. } => Self::Damaged(error.to_string()),
        }
    }
}

/// One committed entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Where it stands.
    pub position: Position,
    /// When it was committed, by the store's time.
    pub time: TimestampMs,
    /// When it was committed, by the wall clock of that moment.
    pub wall: TimestampMs,
    /// What it is.
    pub kind: EntryKind,
    /// The rows of business tables that it changed, one final value each.
    pub changes: Vec<Change>,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryKind {
    /// An operation and its receipt.
    Operation {
        /// Whose.
        slot: Slot,
        /// The version under which it ran.
        version: u32,
        /// How it ended.
        outcome: Outcome,
        /// What it answered.
        reply: Reply,
        /// Which attempt of the caller executed.
        attempt: u32,
        /// The trace id of that attempt.
        trace_id: Option<String>,
    },
    /// A change without a receipt.
    Write,
    /// A table was declared.
    TableDeclared {
        /// Its name.
        table: String,
        /// The version of its values.
        version: u32,
    },
    /// Replies and receipts that had expired were deleted.
    Swept {
        /// How many rows of the two tiers.
        rows: u64,
    },
    /// A person accepted the clock; the entry's time is the accepted one.
    ClockAccepted {
        /// Who.
        decided_by: Option<String>,
        /// Why.
        reason: String,
    },
    /// Its content was erased; that it happened is all that is told.
    Erased,
    /// Something the store did for itself.
    Maintenance {
        /// Its name.
        name: &'static str,
    },
}

/// A row that an entry changed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The table.
    pub table: String,
    /// The encoded key: its byte order is the order of the keys.
    pub key: Vec<u8>,
    /// The encoded value, in the table's codec; none if the row was removed.
    pub value: Option<Vec<u8>>,
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("table", &self.table)
            .field("key", &self.key.escape_ascii().to_string())
            .field("value_bytes", &self.value.as_ref().map(Vec::len))
            .finish()
    }
}

/// Reads entries in order. As an iterator it blocks for new ones, and ends when the store is closed or has stopped;
/// [`LogFollower::try_next`] never blocks, and [`LogFollower::next_entry`] awaits without any runtime.
///
/// ```
/// # use counterfoil::{LogStart, Store, Table};
/// # const T: Table<u64, u64> = Table::new("t");
/// # let directory = tempfile::tempdir()?;
/// # let store = Store::builder().table(&T).open(directory.path().join("s"))?;
/// store.write(|tx| Ok(tx.table(&T)?.put(1, &1)?))?;
/// let mut log = store.log(LogStart::Oldest)?;
/// while let Some(entry) = log.try_next()? {
///     println!("{} {:?} {:?}", entry.position, entry.kind, entry.changes);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a follower reads nothing until it is asked"]
pub struct LogFollower {
    shared: Arc<Shared>,
    /// Under which it waits without blocking.
    number: u64,
    reader: LogReader,
    /// The last entry that was given out; epoch 0 where nobody said.
    seen: Position,
    /// Read, and not given out since it cannot be decoded: it is not skipped.
    stuck: Option<Frame>,
}

impl Drop for LogFollower {
    fn drop(&mut self) {
        self.shared.publisher.leave(self.number);
    }
}

impl fmt::Debug for LogFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogFollower").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl LogFollower {
    pub(super) fn open(shared: &Arc<Shared>, start: LogStart) -> Result<Self, LogReadError> {
        let durable = shared.publisher.load().position;
        loop {
            let floor = shared.history.floor();
            let seen = match start {
                LogStart::Now => durable,
                LogStart::Oldest => Position { epoch: 0, sequence: floor.saturating_sub(1) },
                LogStart::After(position) => check_position(shared, position, durable)?,
            };
            match LogReader::open(Arc::clone(&shared.disk), shared.store_id, seen.sequence.saturating_add(1)) {
                Ok(reader) => {
                    let number = shared.publisher.enter();
                    return Ok(Self { shared: Arc::clone(shared), number, reader, seen, stuck: None });
                }
                // What was the oldest a moment ago has been removed since.
                Err(_) if start == LogStart::Oldest && shared.history.floor() > floor => {}
                Err(error) => return Err(read_error(shared, seen, error)),
            }
        }
    }

    /// The next entry if there is one now.
    ///
    /// # Errors
    ///
    /// [`LogReadError::Damaged`] or [`LogReadError::Newer`] if it cannot be read, [`LogReadError::NotRetained`] if the
    /// follower fell so far behind that its next entry was removed; it stays where it is.
    pub fn try_next(&mut self) -> Result<Option<Entry>, LogReadError> {
        let durable = self.shared.publisher.load().position.sequence;
        let frame = match self.stuck.take() {
            Some(frame) => frame,
            None => match self.reader.next(durable).map_err(|error| read_error(&self.shared, self.seen, error))? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        match self.entry(&frame) {
            Ok(entry) => {
                self.seen = entry.position;
                Ok(Some(entry))
            }
            Err(error) => {
                self.stuck = Some(frame);
                Err(error)
            }
        }
    }

    /// The next entry, as a future that needs no runtime; none when the store is closed or has stopped.
    ///
    /// # Errors
    ///
    /// As [`LogFollower::try_next`].
    pub async fn next_entry(&mut self) -> Result<Option<Entry>, LogReadError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// The same for whoever writes a stream: `futures::stream::poll_fn(|cx| follower.poll_next(cx).map(Result::transpose))`.
    ///
    /// # Errors
    ///
    /// As [`LogFollower::try_next`].
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Entry>, LogReadError>> {
        loop {
            if let Some(entry) = self.try_next()? {
                return Poll::Ready(Ok(Some(entry)));
            }
            match ready!(self.shared.publisher.poll_beyond(self.number, self.seen.sequence, context)) {
                Moved::Up(_) => {}
                Moved::Ended => return Poll::Ready(self.try_next()),
            }
        }
    }

    fn next_blocking(&mut self) -> Result<Option<Entry>, LogReadError> {
        if reentry::inside(self.shared.number) {
            return Err(LogReadError::Reentrant);
        }
        loop {
            if let Some(entry) = self.try_next()? {
                return Ok(Some(entry));
            }
            match self.shared.publisher.wait_beyond(self.seen.sequence) {
                Moved::Up(_) => {}
                Moved::Ended => return self.try_next(),
            }
        }
    }

    fn entry(&self, frame: &Frame) -> Result<Entry, LogReadError> {
        let erased = self.is_erased(frame.header.sequence);
        let position = Position { epoch: frame.header.epoch, sequence: frame.header.sequence };
        let erased = erased.map_err(|reason| LogReadError::Damaged(format!("entry {position}: {reason}")))?;
        entry_of(frame, |_| erased)
    }

    /// Whether the entry is on the list of erased ones, which is kept as ranges by their first sequence.
    fn is_erased(&self, sequence: u64) -> Result<bool, String> {
        let published = self.shared.publisher.load();
        let upto = sequence_key(sequence);
        let bounds = (std::ops::Bound::Unbounded, std::ops::Bound::Included(&upto[..]));
        let mut range = published.view.range(System::Erased.id(), bounds).map_err(|error| error.to_string())?;
        let Some(row) = range.next_back() else { return Ok(false) };
        let (key, value) = row.map_err(|error| error.to_string())?;
        let last: u64 = super::rows::open_row(System::Erased, key.key(), &value).map_err(|error| error.to_string())?;
        Ok(sequence <= last)
    }
}

impl Iterator for LogFollower {
    type Item = Result<Entry, LogReadError>;

    /// Blocks until there is another entry; none when the store is closed or has stopped.
    fn next(&mut self) -> Option<Self::Item> {
        self.next_blocking().transpose()
    }
}

/// What a frame says, unless that is erased.
pub(super) fn entry_of(frame: &Frame, is_erased: impl FnOnce(&Body) -> bool) -> Result<Entry, LogReadError> {
    let header = frame.header;
    let position = Position { epoch: header.epoch, sequence: header.sequence };
    let damaged = |reason: String| LogReadError::Damaged(format!("entry {position}: {reason}"));
    let record = Record::from_bytes(&frame.payload)
        .map_err(|error| LogReadError::Newer(format!("entry {position}: {error}")))?;
    let wall = TimestampMs(record.wall_ms);
    let time = TimestampMs(header.time_ms);
    if is_erased(&record.body) {
        return Ok(Entry { position, time, wall, kind: EntryKind::Erased, changes: Vec::new() });
    }
    let (kind, tables) = kind(record.body).map_err(damaged)?;
    Ok(Entry { position, time, wall, kind, changes: changes(tables).map_err(damaged)? })
}

/// Whether a position is one that this history gave. Returns it.
fn check_position(shared: &Shared, position: Position, durable: Position) -> Result<Position, LogReadError> {
    if position.sequence == 0 {
        return Ok(position);
    }
    if position.sequence > durable.sequence {
        return Err(LogReadError::OtherHistory { position });
    }
    let floor = shared.history.floor();
    if position.sequence.saturating_add(1) < floor {
        return Err(LogReadError::NotRetained { after: position, oldest: floor });
    }
    let entry = LogReader::open(Arc::clone(&shared.disk), shared.store_id, position.sequence)
        .and_then(|mut reader| reader.next(durable.sequence));
    match entry {
        Ok(Some(frame)) if frame.header.epoch == position.epoch => Ok(position),
        Ok(Some(_) | None) => Err(LogReadError::OtherHistory { position }),
        // The entry itself is gone on purpose while all after it are there: its epoch cannot be compared.
        Err(error) if is_absence(&error) && position.sequence.saturating_add(1) == shared.history.floor() => {
            Ok(position)
        }
        Err(error) => Err(read_error(shared, position, error)),
    }
}

/// Why the entry after `seen` cannot be read: if it lies below the floor, it was removed on purpose.
fn read_error(shared: &Shared, seen: Position, error: LogError) -> LogReadError {
    let oldest = shared.history.floor();
    if is_absence(&error) && seen.sequence.saturating_add(1) < oldest {
        return LogReadError::NotRetained { after: seen, oldest };
    }
    error.into()
}

/// Whether an error is what one meets where segments are gone.
fn is_absence(error: &LogError) -> bool {
    match error {
        LogError::MissingSegment { .. }
        | LogError::MissingBefore { .. }
        | LogError::Damaged { .. }
        | LogError::NotRetained { .. } => true,
        LogError::Io { .. }
        | LogError::Prepare(_)
        | LogError::NewerFormat { .. }
        | LogError::ForeignStore { .. }
        | LogError::BadHeader { .. }
        | LogError::Diverged { .. }
        | LogError::EpochsExhausted { .. } => false,
    }
}

fn kind(body: Body) -> Result<(EntryKind, Vec<TableChanges>), String> {
    Ok(match body {
        Body::Operation(operation) => {
            let names = operation.slot;
            let slot = Slot::new(&names.tenant, &names.actor, &names.operation, &names.key)
                .map_err(|fault| fault.to_string())?;
            let kind = EntryKind::Operation {
                slot,
                version: operation.operation_version,
                outcome: operation.completion.outcome,
                reply: operation.completion.reply,
                attempt: operation.attempt,
                trace_id: operation.trace_id,
            };
            (kind, operation.changes)
        }
        Body::Write(write) => (EntryKind::Write, write.changes),
        Body::TableDeclared(table) => {
            (EntryKind::TableDeclared { table: table.name, version: table.version }, Vec::new())
        }
        Body::Resolve(resolve) => (EntryKind::Maintenance { name: "resolve" }, resolve.changes),
        Body::Sweep(sweep) => (EntryKind::Swept { rows: sweep.rows }, Vec::new()),
        Body::ClockAccepted(clock) => {
            (EntryKind::ClockAccepted { decided_by: clock.decided_by, reason: clock.reason }, Vec::new())
        }
        other @ (Body::Erase(_)
        | Body::Restore(_)
        | Body::Claim(_)
        | Body::Effect(_)
        | Body::Callback(_)
        | Body::Follower(_)
        | Body::Activity(_)) => (EntryKind::Maintenance { name: other.kind() }, Vec::new()),
    })
}

fn changes(tables: Vec<TableChanges>) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    for TableChanges { table, rows } in tables {
        for row in rows {
            changes.push(match row {
                RowChange::Put { key, value } => {
                    let sealed = open_sealed(&table, &key, &value).map_err(|error| error.to_string())?;
                    let value = Some(sealed.payload.to_vec());
                    Change { table: table.clone(), key, value }
                }
                RowChange::Remove { key } => Change { table: table.clone(), key, value: None },
            });
        }
    }
    Ok(changes)
}
