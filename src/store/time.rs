//! The store's time: a persisted high-water mark plus elapsed monotonic time.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Clock;
use crate::base::position::TimestampMs;
use crate::protocol::retention::{ClockState, time_at_open};

/// By which things are forgotten. It never goes back, and at open it leaps only so far.
#[derive(Debug)]
pub(super) struct StoreTime {
    clock: Arc<dyn Clock>,
    at_open: TimestampMs,
    opened: Duration,
    state: ClockState,
    trusted: TimestampMs,
}

impl StoreTime {
    /// Starts from the mark that the store remembers (zero in a new store), and the last time that was beyond doubt.
    pub(super) fn start(clock: Arc<dyn Clock>, mark: TimestampMs, trusted: TimestampMs, leap_max: Duration) -> Self {
        let (at_open, state) = time_at_open(mark, trusted, clock.wall(), leap_max);
        if state != ClockState::Good {
            tracing::warn!(?state, store_time = %at_open, "the wall clock looks wrong beside the store's time");
        }
        let opened = clock.monotonic();
        Self { clock, at_open, opened, state, trusted }
    }

    pub(super) fn now(&self) -> TimestampMs {
        self.at_open.saturating_add(self.clock.monotonic().saturating_sub(self.opened))
    }

    pub(super) fn wall(&self) -> TimestampMs {
        self.clock.wall()
    }

    pub(super) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// The last time that is beyond doubt: `time`, unless the clock is ahead of what anybody accepted.
    pub(super) const fn trusted(&self, time: TimestampMs) -> TimestampMs {
        match self.state {
            ClockState::Ahead(_) => self.trusted,
            ClockState::Good | ClockState::Behind(_) => time,
        }
    }

    pub(super) const fn state(&self) -> ClockState {
        self.state
    }
}
