//! What is measured while a store is at work: distributions, where a count alone would not say enough.

use std::time::Duration;

use crate::base::error::Error;
use crate::base::histogram::{Distribution, Histogram};
use crate::base::position::TimestampMs;
use crate::base::receipt::Receipt;
use crate::base::sync::Mutex;

/// What is measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) batch_operations: Distribution,
    pub(super) sync: Histogram,
    pub(super) checkpoint: Histogram,
    /// On the monotonic clock.
    pub(super) last_checkpoint: Option<Duration>,
    pub(super) late_retries: LateRetries,
}

/// Retries that came after their reply was gone, by their age.
///
/// They say whether receipts are kept for long enough. A retry that comes when even the key is forgotten cannot be told
/// from a new operation, and is not among them: keys that tell their age are
/// ([`OperationType::time_ordered_keys`](crate::OperationType::time_ordered_keys)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LateRetries(Histogram);

impl LateRetries {
    /// How many there were.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.0.count()
    }

    /// The age that this share of them did not exceed, counted from the operation's completion, or from when the key was
    /// minted if nothing else was known. `None` if there were none.
    #[must_use]
    pub fn age(&self, quantile: f64) -> Option<Duration> {
        self.0.quantile(quantile)
    }

    /// A replay window that would have answered this share of them with their reply. `None` if there were none.
    ///
    /// ```
    /// # let store = counterfoil::testing::TestBed::new(counterfoil::Store::builder)?;
    /// # let stats = store.store().stats();
    /// if let Some(replay) = stats.late_retries.suggest_replay(0.99) {
    ///     println!("keep replies for {} hours", replay.as_secs() / 3600);
    /// }
    /// # Ok::<(), counterfoil::OpenError>(())
    /// ```
    #[must_use]
    pub fn suggest_replay(&self, share: f64) -> Option<Duration> {
        const HOUR_SECS: u64 = 3600;
        // In whole hours: nobody configures a retention more finely, and the ages are known to a sixteenth.
        let age = self.age(share)?;
        Some(Duration::from_secs((age.as_secs() / HOUR_SECS + 1) * HOUR_SECS))
    }
}

/// Where it is measured.
#[derive(Debug, Default)]
pub(super) struct Measures(Mutex<Measured>);

impl Measures {
    pub(super) fn read(&self) -> Measured {
        self.0.lock().clone()
    }

    /// A batch of so many members is durable.
    pub(super) fn batch(&self, operations: usize, sync: Duration) {
        let mut measured = self.0.lock();
        measured.batch_operations.record(operations as u64);
        measured.sync.record(sync);
    }

    pub(super) fn checkpoint(&self, took: Duration, now: Duration) {
        let mut measured = self.0.lock();
        measured.checkpoint.record(took);
        measured.last_checkpoint = Some(now);
    }

    /// An answer to a submission whose key was minted then, if it says so.
    pub(super) fn answered(&self, answer: &Result<Receipt, Error>, minted_at: Option<TimestampMs>, now: TimestampMs) {
        let since = match answer {
            Err(Error::Gone(gone)) => gone.completed_at,
            Err(Error::Expired { .. }) => minted_at.unwrap_or(now),
            Ok(_) | Err(_) => return,
        };
        self.0.lock().late_retries.0.record(now.since(since));
    }
}
