//! The folder: writes frozen maps into redb off the writer's path, and makes checkpoints.

mod compaction;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::base::clock::Clock;
use crate::base::error::Error;
use crate::base::limits::Limits;
use crate::base::mutant::{self, Mutant};
use crate::base::sync::mpsc::Sender;
use crate::disk::{CopyOnWrite, Disk, OpenMode, WriteGate};
use crate::state::{Engine, EngineError, FoldDurability, MemoryMap, Meta, Snapshot, check_copy};

use super::history::Remover;
use super::open::STATE;
use super::published::Published;
pub(super) use compaction::CompactNews;
use compaction::{Compaction, Retired};

/// One frozen map and how far it reaches.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) map: MemoryMap,
    pub(super) meta: Meta,
    /// Bytes of log that led to this map.
    pub(super) log_bytes: u64,
    /// Who asked for a checkpoint, after which the log holds no more than the next open needs.
    pub(super) forced: Vec<Sender<Result<(), Error>>>,
}

/// What the writer sends.
#[derive(Debug)]
pub(super) enum Task {
    Fold(Fold),
    /// A view that nobody publishes any more: a large map is dropped here, not on the writer.
    Discard(Arc<Published>),
    /// Check the pages of the state file, between two folds.
    Check(Sender<StateCheck>),
    /// Rewrite the state file, a little at a time.
    Compact(Sender<CompactNews>),
    /// The last fold, as a checkpoint; then the engine is dropped.
    Finish(Fold),
}

/// What a check of the state file found: whether every page is sound, and how many rows there are.
pub(super) type StateCheck = Result<(bool, u64), String>;

/// What the folder sends back.
#[derive(Debug)]
pub(super) enum Folded {
    /// The frozen map is in redb: publish this snapshot and drop the map.
    Done {
        snapshot: Arc<Snapshot>,
        /// How long it took, if it was a checkpoint.
        checkpoint: Option<Duration>,
    },
    /// The state file is another one: publish this snapshot, and watch this gate.
    Replaced { snapshot: Arc<Snapshot>, gate: WriteGate, done: Done },
    /// Nothing more will be folded.
    Failed(String),
    /// The final checkpoint is durable.
    Finished,
}

/// Said when what the folder told was dealt with.
pub(super) struct Done(Box<dyn FnOnce() + Send>);

impl Done {
    pub(super) fn say(self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Done")
    }
}

/// Owns redb.
#[derive(Debug)]
pub(super) struct Folder {
    engine: Engine,
    gate: WriteGate,
    log_bytes_since_checkpoint: u64,
    fold_time_since_checkpoint: Duration,
    checkpoint_log_bytes: u64,
    checkpoint_fold_time: Duration,
    clock: Arc<dyn Clock>,
    disk: Arc<dyn Disk>,
    cache_bytes: usize,
    remover: Remover,
    /// What the last fold said of the state.
    last_meta: Meta,
    /// Snapshots of the engine that somebody may still read.
    given: Vec<Weak<Snapshot>>,
    compaction: Option<Compaction>,
    retired: Vec<Retired>,
}

impl Folder {
    pub(super) fn new(
        engine: Engine,
        gate: WriteGate,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        limits: &Limits,
        remover: Remover,
        meta: Meta,
    ) -> Self {
        Self {
            engine,
            gate,
            log_bytes_since_checkpoint: 0,
            fold_time_since_checkpoint: Duration::ZERO,
            checkpoint_log_bytes: limits.checkpoint_log_bytes,
            checkpoint_fold_time: limits.checkpoint_fold_time,
            clock,
            disk,
            cache_bytes: limits.cache_bytes,
            remover,
            last_meta: meta,
            given: Vec::new(),
            compaction: None,
            retired: Vec::new(),
        }
    }

    /// Does one task. `None` if there is nothing to say about it.
    pub(super) fn run(&mut self, task: Task) -> Option<Folded> {
        self.retired.retain(Retired::is_read);
        let outcome = catch_unwind(AssertUnwindSafe(|| match task {
            Task::Fold(fold) => self.fold(&fold).map(Some),
            Task::Discard(view) => {
                drop(view);
                Ok(None)
            }
            Task::Check(reply) => {
                // Whoever asked may have left.
                drop(reply.send(self.check()));
                Ok(None)
            }
            Task::Compact(news) => {
                self.begin_compaction(news);
                Ok(None)
            }
            Task::Finish(fold) => self.finish(&fold).map(Some),
        }));
        match outcome {
            Ok(Ok(folded)) => folded,
            Ok(Err(error)) => Some(self.fail(error.to_string())),
            Err(_) => Some(self.fail("the folder panicked".to_owned())),
        }
    }

    /// From here on nothing reaches the state file: redb must not make its own commit when it is dropped.
    fn fail(&self, cause: String) -> Folded {
        self.gate.refuse();
        Folded::Failed(cause)
    }

    fn fold(&mut self, fold: &Fold) -> Result<Folded, EngineError> {
        self.log_bytes_since_checkpoint += fold.log_bytes;
        let checkpoint = !fold.forced.is_empty()
            || self.log_bytes_since_checkpoint >= self.checkpoint_log_bytes
            || self.fold_time_since_checkpoint >= self.checkpoint_fold_time;
        let started = self.clock.monotonic();
        if checkpoint {
            self.checkpoint(fold)?;
            self.log_bytes_since_checkpoint = 0;
            self.fold_time_since_checkpoint = Duration::ZERO;
        } else {
            let meta = Meta { log_floor: self.remover.floor(), ..fold.meta };
            self.engine.fold(&fold.map, meta, FoldDurability::Volatile)?;
            self.fold_time_since_checkpoint += self.clock.monotonic().saturating_sub(started);
        }
        self.last_meta = fold.meta;
        if let Some(compaction) = &mut self.compaction {
            compaction.note(&fold.map, fold.meta);
        }
        let snapshot = self.snapshot()?;
        let took = self.clock.monotonic().saturating_sub(started);
        Ok(Folded::Done { snapshot, checkpoint: checkpoint.then_some(took) })
    }

    /// Makes everything folded durable, and says in the same commit from where on the log must be whole.
    fn checkpoint(&mut self, fold: &Fold) -> Result<(), EngineError> {
        let log_floor =
            if fold.forced.is_empty() { self.remover.plan(&fold.meta) } else { self.remover.plan_all(&fold.meta) };
        if mutant::is(Mutant::RemovedBeforeCheckpoint) {
            self.remover.checkpointed(log_floor);
            self.remover.finish();
        }
        self.engine.fold(&fold.map, Meta { log_floor, ..fold.meta }, FoldDurability::Checkpoint)?;
        self.remover.checkpointed(log_floor);
        if !fold.forced.is_empty() {
            let removed = self.remover.remove_all();
            for reply in &fold.forced {
                // Whoever asked may have left.
                drop(reply.send(removed.clone().map_err(Error::Corrupt)));
            }
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Arc<Snapshot>, EngineError> {
        let snapshot = self.engine.snapshot()?;
        self.given.retain(|given| given.strong_count() > 0);
        self.given.push(Arc::downgrade(&snapshot));
        Ok(snapshot)
    }

    fn finish(&mut self, fold: &Fold) -> Result<Folded, EngineError> {
        self.abandon_compaction("the store is being closed");
        self.checkpoint(fold)?;
        self.gate.refuse();
        self.remover.finish();
        Ok(Folded::Finished)
    }

    /// Removes one log segment that is past the history policy, if there is one. Returns whether there may be another.
    pub(super) fn remove_one(&mut self) -> bool {
        if self.gate.is_refusing() {
            return false;
        }
        // The folder must live: the writer waits for what it was given.
        catch_unwind(AssertUnwindSafe(|| self.remover.step())).unwrap_or_else(|_| {
            self.remover.give_up();
            false
        })
    }

    /// Does a little of a compaction. Returns what is to be said, and whether there may be more to do.
    pub(super) fn compact_one(&mut self) -> (Option<Folded>, bool) {
        catch_unwind(AssertUnwindSafe(|| self.compact())).unwrap_or_else(|_| {
            self.abandon_compaction("it panicked");
            (None, false)
        })
    }

    /// redb's own check, on a copy that keeps every write in memory: it repairs what it finds, and this changes nothing.
    /// It sees the last checkpoint, behind which the log stands.
    fn check(&self) -> StateCheck {
        let file = self.disk.open(STATE, OpenMode::Read).map_err(|error| error.to_string())?;
        let copy = CopyOnWrite::new(file).map_err(|error| error.to_string())?;
        let found = check_copy(copy, self.cache_bytes).map_err(|error| error.to_string())?;
        Ok((found.clean, found.rows))
    }

    /// Folds while the store is being opened, on the caller's thread.
    pub(super) fn fold_at_open(&mut self, fold: &Fold) -> Result<Arc<Snapshot>, EngineError> {
        match self.fold(fold)? {
            Folded::Done { snapshot, .. } => Ok(snapshot),
            Folded::Replaced { .. } | Folded::Failed(_) | Folded::Finished => self.snapshot(),
        }
    }
}

impl Drop for Folder {
    /// Whatever led here, redb is dropped behind a closed gate: its own commit at close would be in one phase.
    fn drop(&mut self) {
        self.gate.refuse();
    }
}
