//! What callers do when an attempt brings no answer.

use std::sync::Arc;
use std::time::Duration;

use counterfoil::call::{
    BreakerConfig, Budget, BudgetConfig, Bulkhead, Caller, DeadlinePolicy, Pool, Randomness, SeededRandom,
};
use counterfoil::{Clock, TimestampMs};

/// How long a user waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// How long one attempt is waited for, by everybody who retries.
pub(crate) const ATTEMPT: Duration = Duration::from_millis(300);
/// Client processes. Each has a budget, a breaker and a pool of its own: nothing is shared between them.
pub(crate) const CLIENTS: usize = 5;

/// The four that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// One attempt.
    None,
    /// Three layers, each of which makes three attempts at once: 27.
    ThreeLayers,
    /// Three attempts with full jitter between them, and no budget.
    Jittered,
    /// This crate's.
    Counterfoil,
}

impl Policy {
    pub(crate) const ALL: [Self; 4] = [Self::None, Self::ThreeLayers, Self::Jittered, Self::Counterfoil];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "no retries",
            Self::ThreeLayers => "3 x 3 x 3",
            Self::Jittered => "jittered",
            Self::Counterfoil => "counterfoil",
        }
    }
}

/// The clock of the simulation, for what reads one.
#[derive(Debug, Default)]
pub(crate) struct VirtualClock(std::sync::Mutex<Duration>);

impl VirtualClock {
    pub(crate) fn set(&self, now: Duration) {
        *self.0.lock().expect("nobody panics in there") = now;
    }
}

impl Clock for VirtualClock {
    fn wall(&self) -> TimestampMs {
        TimestampMs(0)
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().expect("nobody panics in there")
    }
}

/// The same caller as in production, one for each client process, with another clock and a seed.
pub(crate) fn callers(capacity: u32, seed: u64, clock: &Arc<VirtualClock>) -> Vec<(Caller, Arc<dyn Randomness>)> {
    let one = |client: usize| {
        let random: Arc<dyn Randomness> = Arc::new(SeededRandom::new(seed ^ ((client as u64 + 1) << 32)));
        let budget = Budget::new(BudgetConfig::default()).expect("the defaults");
        // Twice what is under way when all is well, and a queue of as many.
        let permits = (capacity as usize / 50 * 2 / CLIENTS).max(2);
        let pool = Bulkhead::new(permits, permits).expect("more than none");
        let deadline = DeadlinePolicy::within(PATIENCE).attempt(ATTEMPT).useful_min(Duration::from_millis(20));
        let breaker = BreakerConfig::new(20, 0.5)
            .window(Duration::from_secs(2))
            .open_for(Duration::from_millis(200), Duration::from_secs(1));
        let caller = Caller::builder("dependency", budget, Pool::Bounded(pool))
            .deadline(deadline)
            .breaker(breaker)
            .clock(Arc::clone(clock) as _)
            .random(Arc::clone(&random))
            .build()
            .expect("sound settings");
        (caller, random)
    };
    (0..CLIENTS).map(one).collect()
}
