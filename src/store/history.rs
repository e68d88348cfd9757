//! How far back the log goes: what readers of it see, and the removal of what is past the history policy.
//!
//! The order of effects is fixed. A checkpoint that contains everything in a segment raises the floor in the same
//! commit; when this process has seen that commit succeed, readers see the new floor; then segments go, oldest first. So
//! what is missing at the old end is known to be missing on purpose, and nothing goes that the next opening needs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{RwLock, RwLockReadGuard};

use crate::base::limits::Limits;
use crate::base::position::millis;
use crate::disk::Disk;
use crate::log::{Keep, Removable, Removal, RemoveError, Retention, StoreId, remove_oldest};
use crate::state::Meta;

/// Removals at a clean close, which somebody waits for. Stores that are opened and closed for a few operations each time
/// leave one segment at each opening and may never be open for long enough to remove it otherwise.
const REMOVALS_AT_CLOSE: usize = 16;

/// What readers of the log and the one that removes segments agree on.
#[derive(Debug)]
pub(super) struct History {
    /// The smallest sequence that the log must hold.
    floor: AtomicU64,
    /// Bytes of all segments.
    bytes: AtomicU64,
    /// Shared by whoever must find each segment that it has listed. Removal does not wait for them, it is done later.
    whole: RwLock<()>,
}

impl History {
    pub(super) fn new(floor: u64, bytes: u64) -> Self {
        Self { floor: AtomicU64::new(floor), bytes: AtomicU64::new(bytes), whole: RwLock::new(()) }
    }

    pub(super) fn floor(&self) -> u64 {
        self.floor.load(Ordering::Acquire)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A segment became part of the log.
    pub(super) fn grew(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn shrank(&self, bytes: u64) {
        // Never below zero: segments are counted when they become active, and their files may have been cut since.
        let smaller = |all: u64| Some(all.saturating_sub(bytes));
        if self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, smaller).is_err() {
            unreachable!("the closure always gives a number");
        }
    }

    /// Keeps every segment where it is.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.whole.read()
    }
}

/// Removes segments, one at a time, on the folder's thread.
#[derive(Debug)]
pub(super) struct Remover {
    disk: Arc<dyn Disk>,
    store_id: StoreId,
    keep: Keep,
    history: Arc<History>,
    retention: Retention,
    /// What goes once the checkpoint that is being made is durable.
    planned: Option<Removal>,
    /// What may go now, oldest first.
    due: VecDeque<Removable>,
    /// A removal failed, or somebody held the log: the next fold is early enough to try again.
    waits: bool,
    /// A removal may or may not be durable. There is no second try in this opening.
    ended: bool,
}

impl Remover {
    pub(super) fn new(disk: Arc<dyn Disk>, store_id: StoreId, limits: &Limits, history: Arc<History>) -> Self {
        Self {
            disk,
            store_id,
            keep: Keep { bytes: limits.keep_log_bytes, age_ms: millis(limits.keep_log_age) },
            history,
            retention: Retention::default(),
            planned: None,
            due: VecDeque::new(),
            waits: false,
            ended: false,
        }
    }

    /// The floor that a fold which is no checkpoint repeats.
    pub(super) fn floor(&mut self) -> u64 {
        self.waits = false;
        self.history.floor()
    }

    /// Decides what goes after the checkpoint that `meta` is of. Returns the floor that belongs into it.
    pub(super) fn plan(&mut self, meta: &Meta) -> u64 {
        let floor = self.floor();
        if self.ended {
            return floor;
        }
        self.plan_keeping(meta, self.keep, floor)
    }

    /// The same without keeping any history.
    pub(super) fn plan_all(&mut self, meta: &Meta) -> u64 {
        let floor = self.floor();
        if self.ended { floor } else { self.plan_keeping(meta, Keep { bytes: 0, age_ms: 0 }, floor) }
    }

    fn plan_keeping(&mut self, meta: &Meta, keep: Keep, floor: u64) -> u64 {
        // The time that is beyond doubt: a clock that leaped makes nothing old.
        let (applied, now_ms) = (meta.applied_sequence, meta.clock_trusted_ms);
        self.planned = self.retention.plan(&*self.disk, self.store_id, applied, now_ms, keep).unwrap_or_else(|error| {
            tracing::warn!(%error, "no log segment is removed for now; if this goes on, run verify");
            None
        });
        self.planned.as_ref().map_or(floor, |removal| removal.floor.max(floor))
    }

    /// Removes everything that is due, or says why some of it is still there.
    pub(super) fn remove_all(&mut self) -> Result<(), String> {
        while self.step() {}
        if self.ended {
            return Err("a log segment could not be removed for good; open the store again first".to_owned());
        }
        match self.due.front() {
            None => Ok(()),
            Some(oldest) => Err(format!("log segment {} is being read, or cannot be removed; try again", oldest.name)),
        }
    }

    /// The checkpoint is durable, and this process saw it.
    pub(super) fn checkpointed(&mut self, floor: u64) {
        if let Some(removal) = self.planned.take() {
            self.history.floor.store(floor, Ordering::Release);
            self.due = removal.segments;
        }
    }

    /// Removes one segment, if one is due. Returns whether another try makes sense now.
    pub(super) fn step(&mut self) -> bool {
        if self.waits || self.ended {
            return false;
        }
        let Some(&oldest) = self.due.front() else { return false };
        let Some(_alone) = self.history.whole.try_write() else {
            self.waits = true;
            return false;
        };
        match remove_oldest(&*self.disk, oldest.name) {
            Ok(()) => {
                tracing::debug!(segment = %oldest.name, bytes = oldest.bytes, "a log segment was removed");
                self.history.shrank(oldest.bytes);
                self.due.pop_front();
            }
            Err(error @ RemoveError::Kept { .. }) => {
                tracing::warn!(%error, "an old log segment stays for now; removing it is tried again");
                self.waits = true;
            }
            Err(error @ RemoveError::Unsure { .. }) => {
                tracing::warn!(%error, "no more log segments are removed until the store is opened again");
                self.ended = true;
            }
        }
        !self.waits && !self.ended
    }

    /// Removing panicked.
    pub(super) fn give_up(&mut self) {
        tracing::error!("removing a log segment panicked; no more are removed until the store is opened again");
        self.ended = true;
    }

    /// The store is being closed.
    pub(super) fn finish(&mut self) {
        for _ in 0..REMOVALS_AT_CLOSE {
            if !self.step() {
                return;
            }
        }
    }
}
