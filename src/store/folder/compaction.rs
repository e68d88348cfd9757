//! Rewriting the state file: the rows of a snapshot go into a new file, a little at a time between folds, the folds made
//! meanwhile are repeated in it, and it takes the old one's name.
//!
//! The order of effects is fixed: the copy is made durable, it is renamed over the state file, the directory is synced,
//! and only then it is the one that folds go to and that removals of log segments rely on. Whatever fails before the
//! rename leaves the old file as it was. If the sync after it fails, nobody knows which of the two a loss of power
//! leaves: both are whole, each with the log behind it, so the store stops, and nothing is removed any more.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use crate::base::sync::mpsc::Sender;
use crate::disk::{OpenMode, RedbBackend, WriteGate};
use crate::state::{CopyCursor, Engine, EngineError, FoldDurability, MemoryMap, Meta, Snapshot};
use crate::store::open::{STATE, STATE_NEW};

use super::{Done, Folded, Folder};

/// Rows that are copied at a time, in bytes of memory: some milliseconds of work.
const SLICE_BYTES: usize = 1024 * 1024;

/// Folds that are kept until the copy has caught up, in bytes of memory. Above it, copying has precedence.
const SINCE_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What whoever asked for a compaction hears.
#[derive(Debug)]
pub(in crate::store) enum CompactNews {
    /// So many rows of so many are copied.
    Progress { copied: u64, total: u64 },
    /// It is over: bytes of the state file before and after.
    Done(Result<(u64, u64), String>),
}

/// A compaction under way.
#[derive(Debug)]
pub(super) struct Compaction {
    copy: Engine,
    gate: WriteGate,
    snapshot: Arc<Snapshot>,
    cursor: CopyCursor,
    /// What was folded since the snapshot, oldest first.
    since: VecDeque<(MemoryMap, Meta)>,
    since_bytes: usize,
    copied: u64,
    total: u64,
    bytes_before: u64,
    news: Sender<CompactNews>,
}

/// What came of a step.
enum Step {
    More,
    Replaced,
}

impl Compaction {
    /// Remembers a fold that the copy does not have.
    pub(super) fn note(&mut self, map: &MemoryMap, meta: Meta) {
        self.since_bytes += map.bytes();
        self.since.push_back((map.clone(), meta));
    }

    /// Copies one slice, or repeats one fold. Returns whether the copy has everything now.
    fn advance(&mut self) -> Result<bool, EngineError> {
        let meta = self.snapshot.meta();
        if let Some(rows) = self.cursor.next(&self.snapshot, SLICE_BYTES)? {
            self.copied += rows.len() as u64;
            self.copy.fold(&rows, meta, FoldDurability::Volatile)?;
            // Whoever asked may have left: the work goes on.
            drop(self.news.send(CompactNews::Progress { copied: self.copied, total: self.total }));
            return Ok(false);
        }
        let Some((map, meta)) = self.since.pop_front() else { return Ok(true) };
        self.since_bytes = self.since_bytes.saturating_sub(map.bytes());
        self.copy.fold(&map, meta, FoldDurability::Volatile)?;
        Ok(false)
    }

    fn is_urgent(&self) -> bool {
        self.since_bytes > SINCE_BYTES_MAX
    }
}

/// An engine that was replaced and is kept for views that still read it.
#[derive(Debug)]
pub(super) struct Retired {
    _engine: Engine,
    read_by: Vec<Weak<Snapshot>>,
}

impl Retired {
    pub(super) fn is_read(&self) -> bool {
        self.read_by.iter().any(|snapshot| snapshot.strong_count() > 0)
    }
}

impl Folder {
    /// Begins a compaction.
    pub(super) fn begin_compaction(&mut self, news: Sender<CompactNews>) {
        let begun = if self.compaction.is_some() {
            Err("the state file is being compacted already".to_owned())
        } else {
            self.try_begin(&news).map_err(|error| error.to_string())
        };
        if let Err(error) = begun {
            drop(news.send(CompactNews::Done(Err(error))));
        }
    }

    fn try_begin(&mut self, news: &Sender<CompactNews>) -> Result<(), EngineError> {
        let failed = |during| move |source| EngineError::Io { during, source };
        let bytes_before = self.disk.open(STATE, OpenMode::Read).and_then(|file| file.len());
        let bytes_before = bytes_before.map_err(failed("asking for the length"))?;
        let file = self.disk.open(STATE_NEW, OpenMode::Create).map_err(failed("making the new state file"))?;
        let gate = WriteGate::new();
        let snapshot = self.engine.snapshot()?;
        let meta = snapshot.meta();
        let backend = RedbBackend::new(file, gate.clone());
        let copy = self.engine.create_copy(backend, meta, self.cache_bytes).inspect_err(|_| gate.refuse())?;
        let mut total = 0;
        for table in snapshot.tables() {
            total += snapshot.len(table)?;
        }
        let cursor = CopyCursor::new(&snapshot);
        self.compaction = Some(Compaction {
            copy,
            gate,
            snapshot,
            cursor,
            since: VecDeque::new(),
            since_bytes: 0,
            copied: 0,
            total,
            bytes_before,
            news: news.clone(),
        });
        Ok(())
    }

    /// Does one slice of a compaction, or as many as it takes to bound what it keeps in memory. Returns what is to be said,
    /// and whether there may be more to do.
    pub(in crate::store) fn compact(&mut self) -> (Option<Folded>, bool) {
        loop {
            if self.compaction.is_none() || self.gate.is_refusing() {
                return (None, false);
            }
            match self.compact_slice() {
                Ok(Step::More) if self.compaction.as_ref().is_some_and(Compaction::is_urgent) => {}
                Ok(Step::More) => return (None, true),
                Ok(Step::Replaced) => return (Some(self.replaced()), false),
                Err(Failure::Copy(error)) => {
                    self.abandon_compaction(&error.to_string());
                    return (None, false);
                }
                Err(Failure::Name(error)) => {
                    let cause = format!("{STATE} was replaced and its directory could not be synced: {error}");
                    self.abandon_compaction(&cause);
                    return (Some(self.fail(cause)), false);
                }
            }
        }
    }

    fn compact_slice(&mut self) -> Result<Step, Failure> {
        let Some(compaction) = &mut self.compaction else { return Ok(Step::More) };
        if !compaction.advance()? {
            return Ok(Step::More);
        }
        // Everything is in the copy. It becomes durable with the position of the last fold, and with the floor that
        // belongs to a checkpoint.
        let log_floor = self.remover.plan(&self.last_meta);
        let meta = Meta { log_floor, ..self.last_meta };
        compaction.copy.fold(&MemoryMap::new(), meta, FoldDurability::Checkpoint)?;
        self.disk.rename(STATE_NEW, STATE).map_err(|source| EngineError::Io { during: "renaming", source })?;
        self.disk.sync_dir("").map_err(Failure::Name)?;
        self.remover.checkpointed(log_floor);
        self.log_bytes_since_checkpoint = 0;
        self.fold_time_since_checkpoint = std::time::Duration::ZERO;
        Ok(Step::Replaced)
    }

    /// The copy is the state file now.
    fn replaced(&mut self) -> Folded {
        let compaction = self.compaction.take().expect("a compaction was under way");
        let Compaction { copy, gate, bytes_before, news, .. } = compaction;
        self.gate.refuse();
        self.gate = gate.clone();
        let old = std::mem::replace(&mut self.engine, copy);
        let read_by = std::mem::take(&mut self.given);
        self.retired.push(Retired { _engine: old, read_by });
        let bytes = self.disk.open(STATE, OpenMode::Read).and_then(|file| file.len()).unwrap_or(0);
        match self.snapshot() {
            Ok(snapshot) => {
                let done = Done(Box::new(move || drop(news.send(CompactNews::Done(Ok((bytes_before, bytes)))))));
                Folded::Replaced { snapshot, gate, done }
            }
            Err(error) => {
                drop(news.send(CompactNews::Done(Err(error.to_string()))));
                self.fail(error.to_string())
            }
        }
    }

    /// Ends a compaction that is not to be finished. The state file is the old one.
    pub(super) fn abandon_compaction(&mut self, reason: &str) {
        let Some(Compaction { copy, gate, news, .. }) = self.compaction.take() else { return };
        gate.refuse();
        drop(copy);
        if let Err(error) = self.disk.remove(STATE_NEW)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "an unfinished state file stays until the next opening");
        }
        tracing::warn!(reason, "the state file was not compacted");
        drop(news.send(CompactNews::Done(Err(reason.to_owned()))));
    }
}

/// Where a compaction failed.
enum Failure {
    /// Nothing but the copy is concerned.
    Copy(EngineError),
    /// The copy has the name, and nobody knows for how long.
    Name(std::io::Error),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Copy(error)
    }
}
