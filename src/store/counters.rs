//! Counters behind the stats.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::error::Error;
use crate::base::receipt::Receipt;

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicU64);

impl Gauge {
    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happened since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) executed: Counter,
    pub(super) rejected: Counter,
    pub(super) replayed: Counter,
    pub(super) conflicts: Counter,
    pub(super) failed: Counter,
    pub(super) quota_refusals: Counter,
    pub(super) cancelled: Counter,
    pub(super) batches: Counter,
    pub(super) folds: Counter,
    pub(super) checkpoints: Counter,
    pub(super) folder_waits: Counter,
    pub(super) slow_closures: Counter,
    pub(super) segments: Counter,
    /// Expiry rows that were swept.
    pub(super) swept: Counter,
    /// The deadline of the first expiry row, as the sweeper knows it.
    pub(super) next_due_ms: Gauge,
}

impl Counters {
    /// Counts the answer to one submission.
    pub(super) fn count(&self, answer: &Result<Receipt, Error>) {
        match answer {
            Ok(receipt) if receipt.is_replayed() => self.replayed.add(1),
            Ok(receipt) if receipt.is_rejected() => self.rejected.add(1),
            Ok(_) => self.executed.add(1),
            Err(Error::Conflict { .. }) => self.conflicts.add(1),
            Err(error) => {
                self.failed.add(1);
                self.quota_refusals.add(u64::from(matches!(error, Error::QuotaExceeded { .. })));
            }
        }
    }
}
