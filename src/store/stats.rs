//! One snapshot of what a store is doing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::base::histogram::{Distribution, Histogram};
use crate::base::position::{Position, TimestampMs};
use crate::disk::OpenMode;
use crate::protocol::retention::ClockState;

use super::measures::LateRetries;
use super::open::STATE;
use super::shared::Shared;

/// What a store is doing. Counts are since it was opened; nothing in here names a key or a tenant.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The last durable entry; sequence 0 before the first.
    pub position: Position,
    /// The oldest entry that the log retains; one more than the last if it retains none.
    pub oldest_sequence: u64,
    /// Bytes of all log segments.
    pub log_bytes: u64,
    /// The store's time.
    pub store_time: TimestampMs,
    /// What the wall clock looks like beside it. While it is not good nothing is deleted.
    pub clock: ClockState,
    /// Why the store stopped, if it did. Reopen it.
    pub stopped: Option<String>,
    /// Operations that ran and were kept.
    pub executed: u64,
    /// Operations that said "no".
    pub rejected: u64,
    /// Answers from a receipt.
    pub replayed: u64,
    /// Keys used again with another request.
    pub conflicts: u64,
    /// Everything else that ended without a receipt.
    pub failed: u64,
    /// Submissions cancelled while queued.
    pub cancelled: u64,
    /// Syncs of the log with operations behind them.
    pub batches: u64,
    /// Submissions waiting now.
    pub queued: usize,
    /// Bytes of the memory map that takes new rows.
    pub active_bytes: usize,
    /// Bytes of the memory map that is being folded into the state file.
    pub frozen_bytes: usize,
    /// Maps folded into the state file.
    pub folds: u64,
    /// Folds that were checkpoints.
    pub checkpoints: u64,
    /// How often the writer had to wait for the folder.
    pub folder_waits: u64,
    /// Closures that held up the writer.
    pub slow_closures: u64,
    /// How many operations shared a sync.
    pub batch_operations: Distribution,
    /// How long syncs of the log took.
    pub sync: Histogram,
    /// How long checkpoints of the state file took.
    pub checkpoint: Histogram,
    /// How long ago the last checkpoint was, if there was one since the store was opened.
    pub checkpoint_age: Option<Duration>,
    /// Entries that are in the log and not in the state file yet: what the next open would apply at most.
    pub fold_lag: u64,
    /// Bytes of the state file.
    pub state_bytes: u64,
    /// Submissions refused because their tenant's quota was used up.
    pub quota_refusals: u64,
    /// Retries that came after their reply was gone.
    pub late_retries: LateRetries,
    /// Log segments that became active after the first.
    pub segments: u64,
    /// Expiry rows that were swept: replies, and then receipts.
    pub swept: u64,
    /// For how long the oldest row that is due has been waiting to be swept. Answers do not wait for it.
    pub sweep_lag: Duration,
    /// Views that are open.
    pub views: usize,
    /// For how long the oldest view has been open: it keeps memory and pages of the state file.
    pub oldest_view: Option<Duration>,
    /// Entries that recovery found merely cached and wrote again.
    pub recovered_unproven: u64,
    /// Bytes behind the last entry that recovery found to be no part of the log.
    pub recovered_discarded_bytes: u64,
}

impl Stats {
    /// Writes the numbers that matter most into the trace, as one event of level *info*: for a service without metrics,
    /// say once a minute. No field names a key or a tenant.
    pub fn trace(&self) {
        tracing::info!(
            target: "counterfoil::stats",
            position = %self.position,
            executed = self.executed,
            rejected = self.rejected,
            replayed = self.replayed,
            conflicts = self.conflicts,
            failed = self.failed,
            queued = self.queued,
            sync_p99_us = self.sync.quantile(0.99).map(|took| took.as_micros()),
            active_bytes = self.active_bytes,
            fold_lag = self.fold_lag,
            log_bytes = self.log_bytes,
            state_bytes = self.state_bytes,
            sweep_lag_ms = self.sweep_lag.as_millis(),
            views = self.views,
            slow_closures = self.slow_closures,
            quota_refusals = self.quota_refusals,
            late_retries = self.late_retries.count(),
            clock = ?self.clock,
            stopped = self.stopped.as_deref(),
            "stats"
        );
    }

    /// Every number as one JSON object; durations in milliseconds or, where the name says so, microseconds.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let micros = |histogram: &Histogram, quantile| histogram.quantile(quantile).map(|took| took.as_micros());
        json!({
            "position": self.position.to_string(),
            "oldest_sequence": self.oldest_sequence,
            "store_time_ms": self.store_time.0,
            "store_time": self.store_time.to_string(),
            "clock": format!("{:?}", self.clock),
            "stopped": self.stopped,
            "executed": self.executed,
            "rejected": self.rejected,
            "replayed": self.replayed,
            "conflicts": self.conflicts,
            "failed": self.failed,
            "cancelled": self.cancelled,
            "quota_refusals": self.quota_refusals,
            "late_retries": self.late_retries.count(),
            "late_retries_suggest_replay_ms": self.late_retries.suggest_replay(0.99).map(|replay| replay.as_millis()),
            "batches": self.batches,
            "batch_operations_p50": self.batch_operations.quantile(0.5),
            "batch_operations_p99": self.batch_operations.quantile(0.99),
            "sync_p50_us": micros(&self.sync, 0.5),
            "sync_p99_us": micros(&self.sync, 0.99),
            "queued": self.queued,
            "active_bytes": self.active_bytes,
            "frozen_bytes": self.frozen_bytes,
            "folds": self.folds,
            "fold_lag_entries": self.fold_lag,
            "folder_waits": self.folder_waits,
            "checkpoints": self.checkpoints,
            "checkpoint_p99_us": micros(&self.checkpoint, 0.99),
            "checkpoint_age_ms": self.checkpoint_age.map(|age| age.as_millis()),
            "segments": self.segments,
            "log_bytes": self.log_bytes,
            "state_bytes": self.state_bytes,
            "swept_rows": self.swept,
            "sweep_lag_ms": self.sweep_lag.as_millis(),
            "views": self.views,
            "oldest_view_ms": self.oldest_view.map(|age| age.as_millis()),
            "slow_closures": self.slow_closures,
            "recovered_unproven": self.recovered_unproven,
            "recovered_discarded_bytes": self.recovered_discarded_bytes,
        })
    }

    pub(super) fn of(shared: &Shared) -> Self {
        let published = shared.publisher.load();
        let counters = &shared.counters;
        let now = shared.time.now();
        let (views, oldest) = shared.readers.oldest();
        let measured = shared.measures.read();
        let folded = published.view.base.meta().applied_sequence;
        let state_file = shared.disk.open(STATE, OpenMode::Read).and_then(|file| file.len());
        Self {
            position: published.position,
            oldest_sequence: shared.history.floor(),
            log_bytes: shared.history.bytes(),
            store_time: now,
            clock: shared.time.state(),
            stopped: shared.poison.get().map(|stopped| stopped.cause.clone()),
            executed: counters.executed.get(),
            rejected: counters.rejected.get(),
            replayed: counters.replayed.get(),
            conflicts: counters.conflicts.get(),
            failed: counters.failed.get(),
            cancelled: counters.cancelled.get(),
            batches: counters.batches.get(),
            queued: shared.queue.len(),
            active_bytes: published.view.active.bytes(),
            frozen_bytes: published.view.frozen.as_ref().map_or(0, crate::state::MemoryMap::bytes),
            folds: counters.folds.get(),
            checkpoints: counters.checkpoints.get(),
            folder_waits: counters.folder_waits.get(),
            slow_closures: counters.slow_closures.get(),
            batch_operations: measured.batch_operations,
            sync: measured.sync,
            checkpoint: measured.checkpoint,
            checkpoint_age: measured.last_checkpoint.map(|at| shared.time.monotonic().saturating_sub(at)),
            fold_lag: published.position.sequence.saturating_sub(folded),
            // A file that cannot be looked at is somebody else's to report.
            state_bytes: state_file.unwrap_or(0),
            quota_refusals: counters.quota_refusals.get(),
            late_retries: measured.late_retries,
            segments: counters.segments.get(),
            swept: counters.swept.get(),
            sweep_lag: match counters.next_due_ms.get() {
                0 => Duration::ZERO,
                due => now.since(TimestampMs(due)),
            },
            views,
            oldest_view: oldest.map(|since| now.since(since)),
            recovered_unproven: shared.recovery.copied_frames,
            recovered_discarded_bytes: shared.recovery.discarded_bytes,
        }
    }
}
