//! When the writer sweeps: behind the operations of a batch, whose sync the sweep shares, and when there is nothing else
//! to do. Each time it takes a bounded number of rows, so an operation waits for few of them however many are due.

use std::sync::Arc;
use std::time::Duration;

use crate::log::record::Body;
use crate::protocol::retention::ClockState;
use crate::store::batch::Batch;

use super::Writer;

/// How long an idle writer sleeps at most while something will fall due: deadlines are the store's time, and what a person
/// accepts of the clock moves that.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// How long it sleeps while something is due and may not be swept: the clock is in doubt, or a sweep has just failed.
const BLOCKED_SLEEP: Duration = Duration::from_secs(1);

/// How long an idle writer sleeps that has nothing to sweep now, by when the next row falls due.
fn sleep(until_due: Duration) -> Duration {
    if until_due.is_zero() { BLOCKED_SLEEP } else { until_due.min(SLEEP_MAX) }
}

impl Writer {
    /// Whether a sweep makes sense now.
    pub(super) fn sweep_is_due(&self) -> bool {
        let time = &self.shared.time;
        self.sweeper.is_due(self.frame_time(), time.monotonic())
            && self.shared.poison.get().is_none()
            // While the clock is in doubt nothing is deleted; what is forgotten is decided at each read all the same.
            && time.state() == ClockState::Good
            && !self.shared.queue.is_closed()
    }

    /// How long an idle writer that has nothing to sweep now may sleep; without bound if nothing will fall due.
    pub(super) fn until_sweep(&self) -> Option<Duration> {
        self.sweeper.until_due(self.frame_time()).map(sleep)
    }

    /// Adds one step of sweeping to a batch, if there is something to sweep.
    pub(super) fn sweep_with(&mut self, batch: &mut Batch<'_>) {
        if self.sweep_is_due() {
            batch.sweep(&mut self.sweeper);
            self.shared.counters.next_due_ms.set(self.sweeper.next_due_ms());
        }
    }

    /// After a checkpoint: adds what was counted of single keys to the next batch.
    pub(super) fn note_activity(&mut self, batch: &mut Batch<'_>) {
        if !std::mem::take(&mut self.activity_due) {
            return;
        }
        if let Some(activity) = self.shared.activity.take()
            && let Err(error) = batch.add_frame(Body::Activity(activity))
        {
            tracing::warn!(%error, "replays and conflicts of single keys were not written down");
        }
    }

    /// Commits one step of sweeping by itself. Returns whether there was something to sweep.
    pub(super) fn sweep_alone(&mut self) -> bool {
        if !self.sweep_is_due() {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let mut batch = Batch::begin(&shared, shared.epoch, self.frame_time());
        self.sweep_with(&mut batch);
        let swept = !batch.frames.is_empty();
        if let Err(error) = self.commit(batch) {
            tracing::debug!(%error, "a sweep was not committed; it is tried again");
        }
        swept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_and_may_not_be_swept_is_looked_at_again_after_a_while_and_not_at_once() {
        assert_eq!(sleep(Duration::ZERO), BLOCKED_SLEEP);
        assert_eq!(sleep(Duration::from_millis(5)), Duration::from_millis(5));
        assert_eq!(sleep(Duration::MAX), SLEEP_MAX);
    }
}
