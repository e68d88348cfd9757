//! The engine: it opens and recovers, runs operations, commits them and answers.
//!
//! In reading order: [`mod.rs`](self) is what users call; `open` brings a store to life; `writer` and `batch` are the
//! path of an operation; `admit` decides what it is answered; `apply` turns its frame into rows; `folder` moves rows
//! into redb.

mod activity;
mod admit;
mod answers;
mod apply;
mod backup;
mod batch;
mod builder;
mod claims;
mod clock;
mod compact;
mod counters;
mod detached;
mod effects;
mod erase;
mod explain;
mod export;
mod folder;
mod follow;
mod history;
mod holder;
mod identity;
mod job;
mod listing;
mod measures;
#[cfg(feature = "metrics")]
mod metrics;
mod mutation;
mod open;
mod open_error;
mod own;
mod poison;
mod published;
mod queue;
mod quota;
mod reads;
mod redaction;
mod reentry;
#[cfg(any(test, feature = "testing"))]
mod replay;
mod restore;
mod rows;
mod run;
mod segments;
mod shared;
mod stats;
mod sweep;
#[cfg(test)]
mod tests;
mod ticket;
mod time;
mod tx;
mod verify;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, Failure};
use crate::base::invalid::Invalid;
use crate::base::name::Slot;
use crate::base::operation::Operation;
use crate::base::position::{Position, TimestampMs};
use crate::base::receipt::Receipt;
use crate::base::reply::Decision;
use crate::base::sync::{Mutex, mpsc};
use crate::disk::DiskLock;
use crate::log::record::Body;
use crate::protocol::minted::minted_at;

pub use backup::{Backup, BackupError};
pub use builder::StoreBuilder;
pub use claims::{Claim, ClaimAnswer, ClaimDecision, ClaimStatus, Holder};
pub use clock::ClockAccepted;
pub use compact::Compacted;
pub use detached::DetachedLog;
pub(crate) use effects::dispatch::{CallEnd, Lease, Want};
pub use effects::intent::{EffectId, Intent, LookUpMeaning, Provider};
pub use effects::list::{EffectDecision, EffectPhase, EffectStatus};
pub use effects::report::{Report, ReportAnswer};
pub use effects::settle::{Settled, SettledEffect};
pub use erase::{Erase, Erased, Erasure};
pub use explain::{Explanation, KeyActivity, KeyEvent, KeyEventKind, NextAnswer};
#[cfg(feature = "admin")]
pub(crate) use export::parse_bytes;
pub use export::{ExportError, Exported};
pub use follow::{Change, Entry, EntryKind, LogFollower, LogReadError, LogStart};
pub use listing::{ListedReceipt, RawRow, RawRows, ReceiptFilter, Receipts, TableInfo, TenantUsage};
pub use measures::LateRetries;
pub use open_error::OpenError;
pub use quota::Quota;
pub use reads::ReadView;
#[cfg(feature = "testing")]
pub(crate) use replay::apply_to_nothing;
pub use restore::{PositionState, RestoreOptions, Restored};
pub use stats::Stats;
pub use sweep::Swept;
pub use ticket::Ticket;
pub use tx::Tx;
pub use verify::{Problem, VerifyReport};

use admit::{Prepared, Verdict};
use job::{Job, OperationJob, WriteJob};
use open::StartError;
use queue::Refusal;
use run::{Engines, Run};
use shared::Shared;
use writer::Control;

/// An open store. Clones are handles to the same one, and may be used from any thread.
///
/// ```
/// use counterfoil::{OperationType, Reply, Store, Table};
///
/// const CREATE_ORDER: OperationType = OperationType::new("create_order");
/// const ORDERS: Table<String, u32> = Table::new("orders");
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("shop");
/// let store = Store::builder().operation(&CREATE_ORDER).table(&ORDERS).open(path)?;
///
/// let order = || CREATE_ORDER.request("acme", "alice", "key-1")?.json(&("socks", 2));
/// let create = |tx: &counterfoil::Tx<'_>| {
///     tx.table(&ORDERS)?.insert_new("order-1", &2)?;
///     Ok(Reply::created().resource_id("order-1"))
/// };
/// let first = store.execute(order()?, create)?;
/// let again = store.execute(order()?, create)?;
/// assert!(!first.is_replayed() && again.is_replayed());
/// assert_eq!(first.reply(), again.reply());
/// store.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    run: Arc<Run>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("location", &self.shared().disk.location()).finish_non_exhaustive()
    }
}

/// What a plain write gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    /// What the closure returned.
    pub value: T,
    /// Where the write stands in the log; none if it changed nothing.
    pub position: Option<Position>,
}

impl Store {
    /// Begins to put a store together.
    #[must_use]
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }

    fn start(
        shared: Arc<Shared>,
        engines: Engines,
        lock: Box<dyn DiskLock>,
        manual: bool,
        declarations: Vec<Body>,
    ) -> Result<Self, StartError> {
        Ok(Self { run: Arc::new(Run::start(shared, engines, lock, manual, declarations)?) })
    }

    fn shared(&self) -> &Arc<Shared> {
        self.run.shared()
    }

    /// Executes an operation, or answers it from its receipt, and waits for the answer.
    ///
    /// The closure runs at most once, on the store's own thread, after every operation before it. What it writes and
    /// its reply are durable together before this returns; a retry with the same key and an equal request gets the same
    /// reply and runs nothing. A retry of a committed operation is answered without waiting for the writer.
    ///
    /// If the operation carries a deadline, this returns when it has passed.
    ///
    /// # Errors
    ///
    /// Every [`Error`] says through [`Error::execution`] whether the operation was executed, was not, or may have been.
    /// With a deadline: [`Error::DeadlineExceeded`] if it passed before the closure was started (*not executed*), and
    /// [`Error::Unknown`] if it passed afterwards: ask again with the same key.
    pub fn execute<F, D>(&self, operation: Operation, closure: F) -> Result<Receipt, Error>
    where
        F: FnOnce(&Tx<'_>) -> Result<D, Failure> + Send + 'static,
        D: Into<Decision>,
    {
        if reentry::inside(self.shared().number) {
            return Err(Error::Reentrant);
        }
        let deadline = operation.deadline.map(|remaining| self.shared().time.monotonic().saturating_add(remaining));
        let ticket = self.submit_within(operation, deadline, deadline, closure)?;
        match deadline {
            None => self.wait(ticket),
            Some(deadline) => self.wait_until(ticket, deadline),
        }
    }

    /// Hands an operation to the store and returns at once with a ticket for the answer. It never waits for room: a
    /// full queue is [`Error::Overloaded`].
    ///
    /// # Errors
    ///
    /// Whatever can be said at once; all of it means *not executed*. The rest arrives through the ticket.
    pub fn submit<F, D>(&self, operation: Operation, closure: F) -> Result<Ticket, Error>
    where
        F: FnOnce(&Tx<'_>) -> Result<D, Failure> + Send + 'static,
        D: Into<Decision>,
    {
        let deadline = operation.deadline.map(|remaining| self.shared().time.monotonic().saturating_add(remaining));
        self.submit_within(operation, deadline, None, closure)
    }

    fn submit_within<F, D>(
        &self,
        operation: Operation,
        deadline: Option<Duration>,
        wait_until: Option<Duration>,
        closure: F,
    ) -> Result<Ticket, Error>
    where
        F: FnOnce(&Tx<'_>) -> Result<D, Failure> + Send + 'static,
        D: Into<Decision>,
    {
        let shared = self.shared();
        if reentry::guarding(shared.number) {
            return Err(Error::Reentrant);
        }
        let bytes = operation.content.len();
        let prepared = self.prepare(operation)?;
        if let Some(answer) = self.answer_early(&prepared) {
            return Ok(Ticket::answered(shared.number, answer));
        }
        let (ticket, responder) = ticket::pair(shared.number);
        let closure = Box::new(move |tx: &Tx<'_>| closure(tx).map(Into::into));
        let job = Job::Operation(OperationJob { prepared, closure, responder, deadline });
        self.enqueue(job, bytes, wait_until)?;
        Ok(if self.run.is_manual() { ticket.stepping(&self.run) } else { ticket })
    }

    /// Checks that the operation type is the declared one, and hashes scope and request.
    fn prepare(&self, operation: Operation) -> Result<Prepared, Error> {
        let shared = self.shared();
        let declared = shared.operations.get(operation.operation_type.name);
        if declared != Some(&operation.operation_type) {
            let name = operation.operation_type.name.to_owned();
            return Err(Error::Undeclared { what: "operation type", name });
        }
        let minted_at = minted_at(operation.operation_type.key_form, operation.slot.key.as_bytes());
        if minted_at.is_none()
            && let Some(form) = operation.operation_type.key_form.name()
        {
            return Err(Error::Invalid(Invalid::KeyForm { form }));
        }
        Ok(Prepared {
            minted_at,
            scope: shared.hash_keys.scope(&operation.slot),
            digests: shared.hash_keys.digests(&operation),
            operation_type: operation.operation_type,
            slot: operation.slot,
            attempt: operation.attempt,
            trace_id: operation.trace_id,
        })
    }

    /// The answer, if the published state has it: a committed operation is answered without the queue.
    fn answer_early(&self, prepared: &Prepared) -> Option<Result<Receipt, Error>> {
        let shared = self.shared();
        let answer = match shared.poison.get() {
            Some(stopped) => answers::when_stopped(shared, stopped, prepared),
            None => {
                let published = shared.publisher.load();
                match shared.doorkeeper.admit(&published.view, prepared, shared.time.now()) {
                    Verdict::Answer(answer) => answer,
                    Verdict::Execute => return None,
                }
            }
        };
        shared.count(prepared, &answer);
        Some(answer)
    }

    fn enqueue(&self, job: Job, bytes: usize, wait_until: Option<Duration>) -> Result<(), Error> {
        let shared = self.shared();
        let remaining = || wait_until.map(|until| until.saturating_sub(shared.time.monotonic()));
        let lane = job.lane();
        let outcome = if self.run.is_manual() {
            shared.queue.push(&lane, job, bytes, || None)
        } else {
            shared.queue.push(&lane, job, bytes, remaining)
        };
        outcome.map_err(|(job, refusal)| {
            let error = match refusal {
                Refusal::Full => Error::Overloaded,
                Refusal::Closed => Error::Closed,
            };
            drop(job);
            error
        })
    }

    fn wait<T>(&self, ticket: Ticket<T>) -> Result<T, Error> {
        // Whoever closes the store meanwhile answers the ticket.
        while self.run.is_manual() && !ticket.is_answered() && self.run.step().is_ok() {}
        ticket.wait()
    }

    /// Waits until a deadline; then what is queued is cancelled, and what was started is unknown for now.
    fn wait_until<T>(&self, ticket: Ticket<T>, deadline: Duration) -> Result<T, Error> {
        if self.run.is_manual() {
            return self.wait(ticket);
        }
        let remaining = deadline.saturating_sub(self.shared().time.monotonic());
        match ticket.wait_for(remaining) {
            Ok(answer) => answer,
            Err(ticket) => match ticket.cancel() {
                Ok(()) => Err(Error::DeadlineExceeded),
                Err(ticket) => match ticket.wait_for(Duration::ZERO) {
                    Ok(answer) => answer,
                    Err(_) => Err(Error::Unknown("the deadline passed while the operation was running".to_owned())),
                },
            },
        }
    }

    /// Changes tables without idempotency: no key, no receipt.
    ///
    /// It takes the same path as an operation and is as durable. But after [`Error::Unknown`] **nothing can decide**
    /// whether it happened; where that matters, use [`Store::execute`].
    ///
    /// # Errors
    ///
    /// As [`Store::execute`], without the answers that concern receipts.
    pub fn write<F, T>(&self, closure: F) -> Result<Written<T>, Error>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, Failure> + Send + 'static,
        T: Send + 'static,
    {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        if let Some(stopped) = shared.poison.get() {
            return Err(Error::Poisoned(stopped.cause.clone()));
        }
        let value = Arc::new(Mutex::new(None));
        let put = Arc::clone(&value);
        let closure = Box::new(move |tx: &Tx<'_>| {
            *put.lock() = Some(closure(tx)?);
            Ok(())
        });
        let (ticket, responder) = ticket::pair(shared.number);
        self.enqueue(Job::Write(WriteJob { closure, responder }), 0, None)?;
        let position = self.wait(ticket)?;
        let value = value.lock().take().expect("a closure that succeeded has put its value");
        Ok(Written { value, position })
    }

    /// Reads a snapshot: everything durable now, nothing that comes later.
    pub fn read<T>(&self, read: impl FnOnce(&ReadView) -> T) -> T {
        read(&self.view())
    }

    /// A snapshot to keep. Keep it for a short time: it holds memory, and pages of the state file.
    #[must_use]
    pub fn view(&self) -> ReadView {
        ReadView::open(self.shared())
    }

    /// Looks a receipt up without executing anything.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] (*executed*), [`Error::InProgress`], [`Error::NeedsReconciliation`], [`Error::Denied`], and
    /// [`Error::Unknown`] for an operation that was with the disk when the store stopped.
    pub fn receipt(&self, slot: &Slot) -> Result<Option<Receipt>, Error> {
        let shared = self.shared();
        if reentry::guarding(shared.number) {
            return Err(Error::Reentrant);
        }
        let published = shared.publisher.load();
        let found = shared.doorkeeper.look_up(&published.view, shared.hash_keys.scope(slot), slot, shared.time.now());
        match shared.poison.get() {
            // The guard comes first: whoever is denied does not learn that there was anything.
            Some(stopped) if stopped.unknown.contains(slot) && !matches!(found, Err(Error::Denied)) => {
                Err(Error::Unknown(stopped.cause.clone()))
            }
            Some(_) | None => found,
        }
    }

    /// Reads committed entries in order and follows new ones as they become durable.
    ///
    /// # Errors
    ///
    /// [`LogReadError`] if the start is below the oldest retained entry, for which see
    /// [`Limits::keep_log_bytes`](crate::Limits::keep_log_bytes), or is of another history.
    pub fn log(&self, start: LogStart) -> Result<LogFollower, LogReadError> {
        if let LogStart::After(position) = start
            && let Ok(PositionState::LostInRestore { from, .. }) = self.position_state(position)
        {
            return Err(LogReadError::LostInRestore { position, from });
        }
        LogFollower::open(self.shared(), start)
    }

    /// Checks everything that is stored, and changes nothing; see [`VerifyReport`].
    ///
    /// It reads the whole log and the whole state file, so it takes time in proportion; folding waits meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the checking itself could not be done; what it found is in the report. [`Error::Closed`] if
    /// the store is closed: that is no problem of what is stored.
    pub fn verify(&self) -> Result<VerifyReport, Error> {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        let mut report = verify::verify(shared)?;
        let (reply, answer) = mpsc::channel();
        shared.queue.push_control(Control::CheckState(reply));
        while self.run.is_manual() && self.run.step()? {}
        let checked = answer.recv().map_err(|_| Error::Closed)?;
        verify::note_state_check(&mut report, checked);
        Ok(report)
    }

    /// What the store is doing.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(self.shared())
    }

    /// The store's time, by which receipts expire.
    #[must_use]
    pub fn now(&self) -> TimestampMs {
        self.shared().time.now()
    }

    /// The directory.
    #[must_use]
    pub fn location(&self) -> String {
        self.shared().disk.location()
    }

    /// In `manual` mode: does what is due (a batch, a fold, a preparation) on this thread, and returns whether there
    /// was anything. With threads it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], and [`Error::Reentrant`] from inside a closure.
    pub fn step(&self) -> Result<bool, Error> {
        self.run.step()
    }

    /// Closes the store for all its handles: what is queued is still executed and answered, then everything is written
    /// into the state file, so that the next open has nothing to apply.
    ///
    /// Dropping the last handle does the same and keeps quiet about it. Views and look-ups of other handles end with
    /// the state file: they may answer that the store is closed.
    ///
    /// # Errors
    ///
    /// [`Error::Poisoned`] if the store had stopped or could not be closed cleanly: nothing answered is lost, and the
    /// next open applies the log. [`Error::Closed`] if another handle closed it.
    pub fn close(self) -> Result<(), Error> {
        self.run.close()
    }

    /// Whether there is a store in a directory.
    #[must_use]
    pub fn exists(directory: impl AsRef<Path>) -> bool {
        directory.as_ref().join(identity::IDENTITY).is_file()
    }
}
