//! The only place that reads a clock.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use super::position::{TimestampMs, millis};

/// The two clocks that a store reads.
pub trait Clock: Send + Sync + fmt::Debug + 'static {
    /// The wall clock. It may step in either direction.
    fn wall(&self) -> TimestampMs;
    /// Time since some fixed moment; it never goes back.
    fn monotonic(&self) -> Duration;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> TimestampMs {
        // A clock before 1970 reads as 1970: the store's own time never goes back for it.
        TimestampMs(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, millis))
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// A clock that moves only when told to.
#[cfg(any(all(test, feature = "store"), feature = "testing"))]
#[derive(Clone, Debug)]
pub struct VirtualClock {
    now: std::sync::Arc<parking_lot::Mutex<(TimestampMs, Duration)>>,
}

#[cfg(any(all(test, feature = "store"), feature = "testing"))]
impl VirtualClock {
    /// A clock whose wall shows `wall`.
    #[must_use]
    pub fn new(wall: TimestampMs) -> Self {
        Self { now: std::sync::Arc::new(parking_lot::Mutex::new((wall, Duration::ZERO))) }
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock();
        now.0 = now.0.saturating_add(by);
        now.1 = now.1.saturating_add(by);
    }

    /// Steps the wall clock alone, as an administrator or a bad time server does.
    pub fn set_wall(&self, wall: TimestampMs) {
        self.now.lock().0 = wall;
    }
}

#[cfg(any(all(test, feature = "store"), feature = "testing"))]
impl Clock for VirtualClock {
    fn wall(&self) -> TimestampMs {
        self.now.lock().0
    }

    fn monotonic(&self) -> Duration {
        self.now.lock().1
    }
}
