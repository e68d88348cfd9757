//! The store's time: a persisted high-water mark plus elapsed monotonic time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::base::clock::Clock;
use crate::base::position::{TimestampMs, millis};
use crate::protocol::retention::{ClockState, clock_state, time_at_open};

/// By which things are forgotten. It never goes back, it goes on with the monotonic clock alone, at open it leaps only so
/// far, and otherwise only when a person says so.
#[derive(Debug)]
pub(super) struct StoreTime {
    clock: Arc<dyn Clock>,
    /// The store's time when the monotonic clock was zero, in milliseconds; it wraps where that is before 1970.
    origin_ms: AtomicU64,
    /// At open the wall clock was further ahead than anybody accepted: what was followed of it is in doubt.
    doubted: AtomicBool,
    /// The last time that was beyond doubt, if it is doubted.
    trusted: TimestampMs,
    /// How far ahead of the wall clock a person accepted it to be.
    accepted_ahead_ms: AtomicU64,
}

impl StoreTime {
    /// Starts from the mark that the store remembers (zero in a new store), the last time that was beyond doubt, and
    /// what a person has accepted.
    pub(super) fn start(
        clock: Arc<dyn Clock>,
        mark: TimestampMs,
        trusted: TimestampMs,
        leap_max: Duration,
        accepted_ahead: Duration,
    ) -> Self {
        let at_open = time_at_open(mark, trusted, clock.wall(), leap_max);
        let state = clock_state(at_open, clock.wall(), accepted_ahead);
        if state != ClockState::Good {
            tracing::warn!(?state, store_time = %at_open, "the wall clock looks wrong beside the store's time");
        }
        Self {
            origin_ms: AtomicU64::new(at_open.0.wrapping_sub(millis(clock.monotonic()))),
            doubted: AtomicBool::new(matches!(state, ClockState::Ahead(_))),
            trusted,
            accepted_ahead_ms: AtomicU64::new(millis(accepted_ahead)),
            clock,
        }
    }

    pub(super) fn now(&self) -> TimestampMs {
        TimestampMs(self.origin_ms.load(Ordering::Relaxed).wrapping_add(millis(self.clock.monotonic())))
    }

    pub(super) fn wall(&self) -> TimestampMs {
        self.clock.wall()
    }

    pub(super) fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    /// By which a key is too old: the later of the two clocks, so that neither makes an old key young.
    pub(super) fn age_time(&self) -> TimestampMs {
        self.now().max(self.wall())
    }

    /// The last time that is beyond doubt: `time`, unless the clock was ahead of what anybody accepted.
    pub(super) fn trusted(&self, time: TimestampMs) -> TimestampMs {
        if self.doubted.load(Ordering::Relaxed) { self.trusted } else { time }
    }

    pub(super) fn state(&self) -> ClockState {
        let accepted = Duration::from_millis(self.accepted_ahead_ms.load(Ordering::Relaxed));
        clock_state(self.now(), self.wall(), accepted)
    }

    /// A person says that the wall clock is right. The store's time leaps to it, or stays where it is ahead.
    pub(super) fn accept(&self) {
        let (now, wall) = (self.now(), self.wall());
        let ahead = wall.since(now);
        self.origin_ms.fetch_add(millis(ahead), Ordering::Relaxed);
        self.accepted_ahead_ms.store(millis(now.since(wall)), Ordering::Relaxed);
        self.doubted.store(false, Ordering::Relaxed);
    }
}
