//! Retries as they are mostly written: a loop around an attempt, in one layer or in three.

use std::time::Duration;

use counterfoil::call::Backoff;

use super::policy::{ATTEMPT, PATIENCE, Policy};

/// The loop of one logical operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naive {
    made: u32,
    waiting: bool,
    attempts_max: u32,
    backoff: Option<Backoff>,
    pub(crate) attempt_timeout: Duration,
}

impl Naive {
    /// `None`: this policy is no naive one.
    pub(crate) fn new(policy: Policy) -> Option<Self> {
        let (attempts_max, jittered, attempt_timeout) = match policy {
            Policy::None => (1, false, PATIENCE),
            // The outer loops know nothing of the inner ones; three loops of three end after 27 attempts.
            Policy::ThreeLayers => (27, false, ATTEMPT),
            Policy::Jittered => (3, true, ATTEMPT),
            Policy::Counterfoil => return None,
        };
        let backoff = || Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        let backoff = if jittered { backoff() } else { None };
        Some(Self { made: 0, waiting: false, attempts_max, backoff, attempt_timeout })
    }

    /// An attempt begins.
    pub(crate) fn begin(&mut self) -> u32 {
        self.made += 1;
        self.waiting = true;
        self.made
    }

    /// Whether the answer to this attempt is still waited for.
    pub(crate) const fn awaits(&self, attempt: u32) -> bool {
        self.waiting && self.made == attempt
    }

    /// The attempt failed. After how long the next one is made: nobody asks whether somebody still waits for it.
    pub(crate) fn next(&mut self, draw: u64) -> Option<Duration> {
        self.waiting = false;
        let again = self.made < self.attempts_max;
        again.then(|| self.backoff.map_or(Duration::ZERO, |backoff| backoff.delay(self.made, draw)))
    }
}
