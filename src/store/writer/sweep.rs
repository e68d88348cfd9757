//! When the writer sweeps: behind the operations of a batch, whose sync the sweep shares, and when there is nothing else
//! to do. Each time it takes a bounded number of rows, so an operation waits for few of them however many are due.

use std::sync::Arc;
use std::time::Duration;

use crate::log::record::Body;
use crate::protocol::retention::ClockState;
use crate::store::batch::Batch;

use super::Writer;

/// How long an idle writer sleeps at most while something will fall due: a clock that was looked at may be good by then.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(60);

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

    /// How long an idle writer may sleep; without bound if nothing will fall due.
    pub(super) fn until_sweep(&self) -> Option<Duration> {
        self.sweeper.until_due(self.frame_time()).map(|wait| wait.min(LOOK_AGAIN_AFTER))
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
