//! What the handles of a store and its threads share.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::base::error::Error;
use crate::base::limits::Limits;
use crate::base::name::Slot;
use crate::base::operation::OperationType;
use crate::base::position::TimestampMs;
use crate::base::receipt::Receipt;
use crate::base::sync::Mutex;
use crate::disk::{Disk, WriteGate};
use crate::log::{RecoveryReport, StoreId};
use crate::protocol::identity::HashKeys;
use crate::state::{Catalog, Declarations};

use super::activity::Activity;
use super::admit::{Doorkeeper, Prepared};
use super::counters::Counters;
use super::effects::intent::Providers;
use super::effects::settle::Continuations;
use super::history::History;
use super::job::Job;
use super::measures::Measures;
use super::poison::Poison;
use super::published::Publisher;
use super::queue::Queue;
use super::quota::Quotas;
use super::redaction::Redaction;
use super::time::StoreTime;
use super::writer::Control;

/// Everything that is fixed when the store is opened, and the few things that change.
#[derive(Debug)]
pub(super) struct Shared {
    /// Tells the open stores of this process apart.
    pub(super) number: usize,
    pub(super) store_id: StoreId,
    pub(super) epoch: u64,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) hash_keys: HashKeys,
    pub(super) time: Arc<StoreTime>,
    pub(super) limits: Limits,
    pub(super) catalog: Arc<Catalog>,
    pub(super) tables: Arc<Declarations>,
    pub(super) operations: HashMap<&'static str, OperationType>,
    /// Names of reply headers that may be stored.
    pub(super) headers: HashSet<String>,
    pub(super) doorkeeper: Doorkeeper,
    pub(super) quotas: Quotas,
    pub(super) redaction: Redaction,
    pub(super) providers: Providers,
    pub(super) continuations: Continuations,
    /// This opening, among all that there ever were.
    pub(super) run_id: [u8; 16],

    pub(super) queue: Queue<Job, Control>,
    pub(super) publisher: Publisher,
    pub(super) poison: Poison,
    /// Knows whether a call of the state file failed, after which redb answers nothing.
    pub(super) state_file: parking_lot::RwLock<WriteGate>,
    pub(super) counters: Counters,
    pub(super) measures: Measures,
    pub(super) activity: Activity,
    pub(super) readers: Readers,
    /// What recovery found at open.
    pub(super) recovery: RecoveryReport,
    /// How far back the log goes.
    pub(super) history: Arc<History>,
}

impl Shared {
    /// Counts the answer to one submission.
    pub(super) fn count(&self, prepared: &Prepared, answer: &Result<Receipt, Error>) {
        self.counters.count(answer);
        let now = self.time.now();
        self.measures.answered(answer, prepared.minted_at, now);
        self.activity.answered(prepared, answer, now);
    }

    /// Stops the store and wakes whoever waits for what will not come.
    pub(super) fn stop(&self, cause: impl Into<String>, unknown: HashSet<Slot>) {
        self.poison.set(cause, unknown);
        self.publisher.end();
    }
}

/// Open views, so that the stats can name the oldest: it keeps maps and pages alive.
#[derive(Debug, Default)]
pub(super) struct Readers {
    open: Mutex<BTreeMap<u64, TimestampMs>>,
    next: std::sync::atomic::AtomicU64,
}

impl Readers {
    pub(super) fn enter(&self, now: TimestampMs) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, now);
        number
    }

    pub(super) fn leave(&self, number: u64) {
        self.open.lock().remove(&number);
    }

    /// How many views are open, and since when the oldest is.
    pub(super) fn oldest(&self) -> (usize, Option<TimestampMs>) {
        let open = self.open.lock();
        (open.len(), open.values().next().copied())
    }
}

/// The next store's number in this process.
pub(super) fn next_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
