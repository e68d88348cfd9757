//! The stats as metrics of the `metrics` facade.

use metrics::{counter, gauge};

use super::stats::Stats;
use crate::protocol::retention::ClockState;

impl Stats {
    /// Hands every number to the `metrics` facade. Call it as often as your recorder is read, every ten seconds say.
    ///
    /// | metric | kind | labels |
    /// |---|---|---|
    /// | `counterfoil.operations` | counter | `outcome`: executed, rejected, replayed, conflict, failed, cancelled |
    /// | `counterfoil.batches`, `.folds`, `.checkpoints`, `.folder_waits`, `.slow_closures`, `.segments`, `.swept_rows`, `.quota_refusals`, `.late_retries` | counter | |
    /// | `counterfoil.queued`, `.views`, `.fold_lag_entries` | gauge | |
    /// | `counterfoil.active_bytes`, `.frozen_bytes`, `.log_bytes`, `.state_bytes` | gauge | |
    /// | `counterfoil.sweep_lag_seconds`, `.oldest_view_seconds`, `.checkpoint_age_seconds` | gauge | |
    /// | `counterfoil.sync_seconds`, `counterfoil.checkpoint_seconds` | gauge | `quantile`: 0.5, 0.99 |
    /// | `counterfoil.batch_operations` | gauge | `quantile`: 0.5, 0.99 |
    /// | `counterfoil.clock_good`, `counterfoil.stopped` | gauge, 0 or 1 | |
    ///
    /// No label holds a key or a tenant.
    pub fn record_metrics(&self) {
        for (outcome, count) in [
            ("executed", self.executed),
            ("rejected", self.rejected),
            ("replayed", self.replayed),
            ("conflict", self.conflicts),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
        ] {
            counter!("counterfoil.operations", "outcome" => outcome).absolute(count);
        }
        counter!("counterfoil.batches").absolute(self.batches);
        counter!("counterfoil.folds").absolute(self.folds);
        counter!("counterfoil.checkpoints").absolute(self.checkpoints);
        counter!("counterfoil.folder_waits").absolute(self.folder_waits);
        counter!("counterfoil.slow_closures").absolute(self.slow_closures);
        counter!("counterfoil.segments").absolute(self.segments);
        counter!("counterfoil.swept_rows").absolute(self.swept);
        counter!("counterfoil.quota_refusals").absolute(self.quota_refusals);
        counter!("counterfoil.late_retries").absolute(self.late_retries.count());
        gauge!("counterfoil.queued").set(number(self.queued as u64));
        gauge!("counterfoil.views").set(number(self.views as u64));
        gauge!("counterfoil.fold_lag_entries").set(number(self.fold_lag));
        gauge!("counterfoil.active_bytes").set(number(self.active_bytes as u64));
        gauge!("counterfoil.frozen_bytes").set(number(self.frozen_bytes as u64));
        gauge!("counterfoil.log_bytes").set(number(self.log_bytes));
        gauge!("counterfoil.state_bytes").set(number(self.state_bytes));
        gauge!("counterfoil.sweep_lag_seconds").set(self.sweep_lag.as_secs_f64());
        gauge!("counterfoil.oldest_view_seconds").set(self.oldest_view.unwrap_or_default().as_secs_f64());
        if let Some(age) = self.checkpoint_age {
            gauge!("counterfoil.checkpoint_age_seconds").set(age.as_secs_f64());
        }
        for (label, quantile) in [("0.5", 0.5), ("0.99", 0.99)] {
            if let Some(took) = self.sync.quantile(quantile) {
                gauge!("counterfoil.sync_seconds", "quantile" => label).set(took.as_secs_f64());
            }
            if let Some(took) = self.checkpoint.quantile(quantile) {
                gauge!("counterfoil.checkpoint_seconds", "quantile" => label).set(took.as_secs_f64());
            }
            if let Some(operations) = self.batch_operations.quantile(quantile) {
                gauge!("counterfoil.batch_operations", "quantile" => label).set(number(operations));
            }
        }
        gauge!("counterfoil.clock_good").set(f64::from(u8::from(self.clock == ClockState::Good)));
        gauge!("counterfoil.stopped").set(f64::from(u8::from(self.stopped.is_some())));
    }
}

#[expect(clippy::cast_precision_loss, reason = "above 2^53 one more or less does not matter")]
const fn number(value: u64) -> f64 {
    value as f64
}
