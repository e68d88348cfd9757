//! Runs the workload on a simulated disk and writes down what was answered.

use std::collections::BTreeMap;
use std::time::Duration;

use counterfoil::testing::{SimDisk, VirtualClock, WALL_AT_START};
use counterfoil::{Erase, Error, Execution, Limits, OpenError, Position, Receipt, Reply, Store, StoreBuilder};

use crate::crash::phase::{Activity, Diary};
use crate::crash::script::{FLEETING, Kind, ORDER, ORDERS, Op, RECENT, Step, TOTALS};

/// Limits so small that everything happens within fifty operations: folds, checkpoints, eviction by redb.
pub(crate) fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.fold_bytes = 4 * 1024;
    limits.checkpoint_log_bytes = 24 * 1024;
    limits.cache_bytes = 64 * 1024;
    limits
}

/// A store as every test here opens it. The identity is fixed, so that every run is the same to the byte.
pub(crate) fn builder(clock: &VirtualClock, limits: Limits) -> StoreBuilder {
    declared().limits(limits).clock(clock.clone()).manual().identity_seed(1)
}

/// The same store with threads of its own.
pub(crate) fn unmanned(clock: &VirtualClock) -> StoreBuilder {
    declared().limits(limits()).clock(clock.clone())
}

/// A builder that knows operations and tables and nothing else.
pub(crate) fn declared() -> StoreBuilder {
    Store::builder().operation(&ORDER).operation(&FLEETING).table(&ORDERS).table(&TOTALS).table(&RECENT)
}

/// Every file but those that every attempt to open may write.
pub(crate) fn everything_but_the_lock(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let mut files = disk.files();
    files.retain(|name, _| name != "LOCK" && name != "HOLDER");
    files
}

/// What the outside world was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// Positions and replies of what was executed or rejected.
    pub(crate) receipts: BTreeMap<u32, (Op, Position, Reply)>,
    /// Plain writes that were answered.
    pub(crate) writes: BTreeMap<u32, (Op, Position)>,
    /// Operations whose last answer was "not executed".
    pub(crate) not_executed: BTreeMap<u32, Op>,
    /// Operations whose last answer was "unknown".
    pub(crate) unknown: BTreeMap<u32, Op>,
    /// So many entries were seen by somebody who read the tables.
    pub(crate) seen: usize,
}

impl Told {
    pub(crate) fn positions(&self) -> impl Iterator<Item = (Op, Position)> {
        let receipts = self.receipts.values().map(|(op, position, _)| (*op, *position));
        receipts.chain(self.writes.values().copied())
    }

    /// A first answer, or a replay, which must be equal to it.
    fn note(&mut self, op: Op, answer: Result<Receipt, Error>) -> Result<(), Error> {
        match answer {
            Ok(receipt) => {
                let heard = (op, receipt.position(), receipt.into_reply());
                let known = self.receipts.entry(op.id).or_insert_with(|| heard.clone());
                assert_eq!(*known, heard, "a replay is the first answer to the byte");
                self.not_executed.remove(&op.id);
                Ok(())
            }
            Err(error) => self.note_error(op, error),
        }
    }

    /// What leaves no receipt, or one that does not last.
    fn note_write(&mut self, op: Op, written: Result<Position, Error>) -> Result<(), Error> {
        match written {
            Ok(position) => {
                self.not_executed.remove(&op.id);
                self.writes.insert(op.id, (op, position));
                Ok(())
            }
            Err(error) => self.note_error(op, error),
        }
    }

    fn note_error(&mut self, op: Op, error: Error) -> Result<(), Error> {
        let list = match error.execution() {
            Execution::Unknown => {
                // This attempt may have been executed, whatever was said of an earlier one.
                self.not_executed.remove(&op.id);
                &mut self.unknown
            }
            // It speaks of this attempt only: one before it may have been executed.
            Execution::NotExecuted if self.unknown.contains_key(&op.id) => &mut self.unknown,
            Execution::NotExecuted | Execution::Executed => &mut self.not_executed,
        };
        if !self.receipts.contains_key(&op.id) {
            list.insert(op.id, op);
        }
        match (op.kind, error) {
            (Kind::Fail, Error::Failed(_))
            | (Kind::Swallow, Error::Table(_))
            | (Kind::Panic, Error::Panicked { .. }) => Ok(()),
            (_, error) => Err(error),
        }
    }
}

/// Why a run ended early.
#[derive(Debug)]
#[expect(dead_code, reason = "read by whoever reads the message of a failed test")]
pub(crate) enum Stopped {
    Open(OpenError),
    Answer(Op, Error),
    Upkeep(Error),
    Close(Error),
}

/// A process that works through a script.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) disk: SimDisk,
    pub(crate) clock: VirtualClock,
    pub(crate) limits: Limits,
    pub(crate) store: Option<Store>,
    pub(crate) told: Told,
    /// What it was asked for, and when.
    pub(crate) diary: Diary,
}

impl Process {
    pub(crate) fn new(disk: SimDisk) -> Self {
        Self::with(disk, limits(), Told::default())
    }

    /// With limits of its own, in a world that was told this already.
    pub(crate) fn with(disk: SimDisk, limits: Limits, told: Told) -> Self {
        Self { disk, clock: VirtualClock::new(WALL_AT_START), limits, store: None, told, diary: Diary::default() }
    }

    /// Creates or opens the store and works until the end or the first failure.
    pub(crate) fn run(&mut self, script: &[Step]) -> Result<(), Stopped> {
        self.open().map_err(Stopped::Open)?;
        script.iter().try_for_each(|step| self.step(step))?;
        self.close().map_err(Stopped::Close)
    }

    pub(crate) fn open(&mut self) -> Result<(), OpenError> {
        let is_new = self.disk.read_file("IDENTITY").is_none();
        self.diary.begin(&self.disk, if is_new { Activity::Creating } else { Activity::Opening });
        self.store = Some(builder(&self.clock, self.limits.clone()).open_in(&self.disk)?);
        Ok(())
    }

    /// The process dies, the cache stays, and another one opens the store.
    pub(crate) fn kill_and_open(&mut self) -> Result<(), OpenError> {
        self.abandon();
        self.disk = self.disk.kill();
        self.open()
    }

    /// Drops the store of a process that is dead: its calls reach nothing.
    pub(crate) fn abandon(&mut self) {
        self.disk.power_cut_at(0);
        self.store = None;
    }

    /// Asks again for everything that the store knows, and hears the answers.
    pub(crate) fn hear_replays(&mut self, operations: &[Op]) {
        for op in operations.iter().copied().filter(|op| op.has_receipt()) {
            if self.store().receipt(&op.slot()).expect("receipts can be read").is_some() {
                let answer = self.store().execute(op.request(), move |tx| op.execute(tx));
                self.told.note(op, answer).expect("a replay");
            }
        }
    }

    pub(crate) fn close(&mut self) -> Result<(), Error> {
        self.diary.begin(&self.disk, Activity::Closing);
        self.store.take().map_or(Ok(()), Store::close)
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    pub(crate) fn step(&mut self, step: &Step) -> Result<(), Stopped> {
        match step {
            Step::Idle => {
                self.clock.advance(Duration::from_millis(150));
                self.settle();
                Ok(())
            }
            Step::Reopen => {
                self.close().map_err(Stopped::Close)?;
                self.open().map_err(Stopped::Open)
            }
            Step::Compact => self.work(|this| {
                let compacted = this.store().compact(|_, _| ());
                this.upkeep(compacted.map(drop))
            }),
            Step::Purge => self.work(|this| {
                let erased = this.store().erase(&Erase::tenant("nobody"), None, "asked to", |_| ());
                let purged = erased.and_then(|_| this.store().purge(|_, _| ()));
                this.upkeep(purged.map(drop))
            }),
            Step::One(_) | Step::Retry(_) | Step::Conflict(_) | Step::Batch(_) => self.work(|this| this.ask(step)),
        }
    }

    /// What the store was asked to do with its files fails without power alone.
    fn upkeep(&self, outcome: Result<(), Error>) -> Result<(), Stopped> {
        match outcome {
            Err(error) if self.disk.is_off() => Err(Stopped::Upkeep(error)),
            outcome => {
                outcome.expect("the power is on");
                Ok(())
            }
        }
    }

    /// Notes whether a checkpoint was made meanwhile.
    fn work<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.diary.begin(&self.disk, Activity::Working { checkpoint: false });
        let before = self.store().stats().checkpoints;
        let outcome = work(self);
        if self.store().stats().checkpoints > before {
            self.diary.note_checkpoint();
        }
        outcome
    }

    fn ask(&mut self, step: &Step) -> Result<(), Stopped> {
        match step {
            Step::One(op) if op.has_frame() && !op.has_receipt() => self.write(*op),
            Step::One(op) | Step::Retry(op) => {
                let op = *op;
                let answer = self.store().execute(op.request(), move |tx| op.execute(tx));
                self.told.note(op, answer).map_err(|error| Stopped::Answer(op, error))
            }
            Step::Batch(ops) => self.batch(ops),
            Step::Conflict(op) => {
                let op = *op;
                match self.store().execute(op.request_for(1), move |tx| op.execute(tx)) {
                    Err(Error::Conflict { .. }) => Ok(()),
                    // Without power the state file cannot be read.
                    Err(error) if self.disk.is_off() => Err(Stopped::Answer(op, error)),
                    other => panic!("another request under a key that was used is a conflict, not {other:?}"),
                }
            }
            Step::Idle | Step::Reopen | Step::Compact | Step::Purge => {
                unreachable!("these are no calls for work")
            }
        }
    }

    /// Lets the store do everything that is due.
    pub(crate) fn settle(&mut self) {
        while self.work(|this| this.store().step().expect("the store is open")) {}
    }

    /// All are noted before the first failure counts.
    pub(crate) fn batch(&mut self, ops: &[Op]) -> Result<(), Stopped> {
        let store = self.store().clone();
        let submit = |op: Op| store.submit(op.request(), move |tx| op.execute(tx));
        let tickets: Vec<_> = ops.iter().map(|op| (*op, submit(*op))).collect();
        store.step().expect("the store is open");
        let mut outcome = Ok(());
        for (op, ticket) in tickets {
            let answer = ticket.and_then(counterfoil::Ticket::wait);
            let noted = if op.has_receipt() || !op.has_frame() {
                self.told.note(op, answer)
            } else {
                self.told.note_write(op, answer.map(|receipt| receipt.position()))
            };
            outcome = outcome.and(noted.map_err(|error| Stopped::Answer(op, error)));
        }
        outcome
    }

    /// A plain write, or an operation whose receipt does not last.
    pub(crate) fn write(&mut self, op: Op) -> Result<(), Stopped> {
        let written = if op.has_slot() {
            self.store().execute(op.request(), move |tx| op.execute(tx)).map(|receipt| receipt.position())
        } else {
            let written = self.store().write(move |tx| op.execute(tx).map(drop));
            written.map(|written| written.position.expect("it wrote something"))
        };
        self.told.note_write(op, written).map_err(|error| Stopped::Answer(op, error))
    }
}
