//! The breaker: stops calling what fails, for a while, and finds out with few probes whether it is well again.
//!
//! It saves work that would be wasted. It is no admission control: what is overloaded must still refuse by itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::config_error::{ConfigError, millionths, not_zero, ordered};
use super::verdict::Health;
use super::window::{Counts, Window};

/// When a breaker opens, and how it closes again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerConfig {
    samples_min: u32,
    failure_ratio: f64,
    window: Duration,
    open_min: Duration,
    open_max: Duration,
    probes: u32,
    probe_lease: Duration,
}

impl BreakerConfig {
    /// Opens when of at least `samples_min` attempts in the window `failure_ratio` or more failed. Fewer samples say
    /// nothing: one failure of one attempt is no outage.
    ///
    /// The rest has defaults: a window of 10 s, open for 1 s at first and for 30 s at most, 3 probes, each with a lease of
    /// 10 s.
    #[must_use]
    pub const fn new(samples_min: u32, failure_ratio: f64) -> Self {
        Self {
            samples_min,
            failure_ratio,
            window: Duration::from_secs(10),
            open_min: Duration::from_secs(1),
            open_max: Duration::from_secs(30),
            probes: 3,
            probe_lease: Duration::from_secs(10),
        }
    }

    /// Over how long attempts are counted.
    #[must_use]
    pub const fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// How long it stays open: `min` at first, twice as long each time that probes fail, `max` at most. Each time
    /// between half of that and all of it, by chance, so that many callers do not probe together.
    #[must_use]
    pub const fn open_for(self, min: Duration, max: Duration) -> Self {
        Self { open_min: min, open_max: max, ..self }
    }

    /// So many probes at a time, and so many that succeed close it.
    #[must_use]
    pub const fn probes(self, probes: u32) -> Self {
        Self { probes, ..self }
    }

    /// A probe that has said nothing for so long no longer keeps others from probing.
    #[must_use]
    pub const fn probe_lease(self, lease: Duration) -> Self {
        Self { probe_lease: lease, ..self }
    }

    /// Checks the parts, as building a caller does.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for zero, for a ratio that is no number above 0 and at most 1, for `open_for` upside down.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (what, value) in [("the breaker's minimum of samples", self.samples_min), ("the probes", self.probes)] {
            not_zero(what, Duration::from_nanos(u64::from(value)))?;
        }
        millionths("the breaker's failure ratio", self.failure_ratio)?;
        not_zero("the breaker's window", self.window)?;
        not_zero("the shortest open interval", self.open_min)?;
        not_zero("the lease of a probe", self.probe_lease)?;
        ordered(("the shortest open interval", self.open_min), ("the longest", self.open_max))
    }
}

/// What a breaker does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Lets everything through.
    Closed,
    /// Lets nothing through.
    Open,
    /// Lets probes through.
    HalfOpen,
}

impl BreakerState {
    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// No attempt may be made now. After this it may be asked again, if that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    pub(crate) retry_after: Option<Duration>,
}

/// Of the first kind those that failed, of the second all.
const GOOD: Counts = Counts { one: 0, two: 1 };

#[derive(Debug)]
enum Phase {
    Closed,
    Open { until: Duration },
    HalfOpen { leases: Vec<Lease>, successes: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    id: u64,
    ends: Duration,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    /// Counts changes of phase. What was sent in an earlier one says nothing about this one.
    generation: u64,
    /// How often it opened since it was last closed.
    opened: u32,
    next_lease: u64,
}

/// One breaker for one population of attempts.
#[derive(Debug)]
pub(crate) struct Breaker {
    config: BreakerConfig,
    failure_millionths: u64,
    /// What was counted since it was last closed.
    window: Window,
    /// The generation in which it is closed, plus one; 0 if it is not. Changed under the lock. What a closed breaker is
    /// asked nearly always, and what it is told, takes no lock.
    closed: AtomicU64,
    inner: Mutex<Inner>,
}

impl Breaker {
    /// `config` was checked.
    pub(crate) fn new(config: BreakerConfig) -> Self {
        let failure_millionths = millionths("checked", config.failure_ratio).unwrap_or(1_000_000);
        let inner = Mutex::new(Inner { phase: Phase::Closed, generation: 0, opened: 0, next_lease: 0 });
        let window = Window::new(config.window);
        Self { config, failure_millionths, window, closed: AtomicU64::new(1), inner }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn closed_generation(&self) -> Option<u64> {
        self.closed.load(Ordering::Acquire).checked_sub(1)
    }

    fn change(&self, inner: &mut Inner, phase: Phase) {
        if matches!(phase, Phase::Closed) {
            // A thread that was held up since before it opened may still add one good sample to this.
            self.window.clear();
        }
        inner.generation += 1;
        let closed = if matches!(phase, Phase::Closed) { inner.generation + 1 } else { 0 };
        inner.phase = phase;
        self.closed.store(closed, Ordering::Release);
    }

    /// Whether an attempt would be let through now. Takes nothing.
    pub(crate) fn look(&self, now: Duration) -> Result<(), Blocked> {
        if self.closed_generation().is_some() {
            return Ok(());
        }
        match &self.inner().phase {
            Phase::Closed => Ok(()),
            Phase::Open { until } if *until <= now => Ok(()),
            Phase::Open { until } => Err(Blocked { retry_after: Some(until.saturating_sub(now)) }),
            Phase::HalfOpen { leases, .. } => self.free_probe(leases, now),
        }
    }

    fn free_probe(&self, leases: &[Lease], now: Duration) -> Result<(), Blocked> {
        let living = leases.iter().filter(|lease| lease.ends > now).count();
        let probes = usize::try_from(self.config.probes).unwrap_or(usize::MAX);
        if living < probes { Ok(()) } else { Err(Blocked { retry_after: None }) }
    }

    /// Lets one attempt through. The token is to be given back with what came of it; dropped without, it is neutral.
    pub(crate) fn take(self: &Arc<Self>, now: Duration) -> Result<Token, Blocked> {
        if let Some(generation) = self.closed_generation() {
            return Ok(Token { breaker: Arc::clone(self), generation, lease: None, open: true });
        }
        let mut inner = self.inner();
        if let Phase::Open { until } = inner.phase {
            if until > now {
                return Err(Blocked { retry_after: Some(until.saturating_sub(now)) });
            }
            self.change(&mut inner, Phase::HalfOpen { leases: Vec::new(), successes: 0 });
        }
        let id = inner.next_lease;
        let lease = match &mut inner.phase {
            Phase::HalfOpen { leases, .. } => {
                self.free_probe(leases, now)?;
                leases.retain(|lease| lease.ends > now);
                leases.push(Lease { id, ends: now.saturating_add(self.config.probe_lease) });
                Some(id)
            }
            Phase::Closed | Phase::Open { .. } => None,
        };
        inner.next_lease += u64::from(lease.is_some());
        Ok(Token { breaker: Arc::clone(self), generation: inner.generation, lease, open: true })
    }

    fn record(&self, token: &Token, now: Duration, health: Health, draw: u64) -> (BreakerState, BreakerState) {
        let unchanged = (BreakerState::Closed, BreakerState::Closed);
        if self.closed_generation() == Some(token.generation) {
            match health {
                Health::Neutral => return unchanged,
                Health::Good if self.window.add_if_current(now, GOOD) => return unchanged,
                Health::Good | Health::Bad => {}
            }
        }
        let mut inner = self.inner();
        let before = inner.state();
        if inner.generation == token.generation {
            self.count(&mut inner, token, now, health, draw);
        }
        (before, inner.state())
    }

    fn count(&self, inner: &mut Inner, token: &Token, now: Duration, health: Health, draw: u64) {
        match &mut inner.phase {
            Phase::Closed => {
                let counts = match health {
                    Health::Good => GOOD,
                    Health::Bad => Counts { one: 1, two: 1 },
                    Health::Neutral => return,
                };
                self.window.add(now, counts);
                if health == Health::Bad && self.is_bad(self.window.sum(now)) {
                    self.open(inner, now, draw);
                }
            }
            Phase::HalfOpen { leases, successes } => {
                let before = leases.len();
                leases.retain(|lease| Some(lease.id) != token.lease);
                if leases.len() == before {
                    // Its lease ended, and somebody else may have its place.
                    return;
                }
                match health {
                    Health::Neutral => {}
                    Health::Bad => self.open(inner, now, draw),
                    Health::Good => {
                        *successes += 1;
                        if *successes >= self.config.probes {
                            self.change(inner, Phase::Closed);
                            inner.opened = 0;
                        }
                    }
                }
            }
            Phase::Open { .. } => {}
        }
    }

    fn is_bad(&self, counts: Counts) -> bool {
        let (bad, all) = (u128::from(counts.one), u128::from(counts.two));
        counts.two >= u64::from(self.config.samples_min) && bad * 1_000_000 >= all * u128::from(self.failure_millionths)
    }

    fn open(&self, inner: &mut Inner, now: Duration, draw: u64) {
        let doublings = 1_u32.checked_shl(inner.opened).unwrap_or(u32::MAX);
        let most = self.config.open_min.saturating_mul(doublings).min(self.config.open_max);
        let half = u64::try_from((most / 2).as_nanos()).unwrap_or(u64::MAX);
        let jitter = u64::try_from((u128::from(half) * u128::from(draw)) >> 64).unwrap_or(half);
        let interval = most.saturating_sub(Duration::from_nanos(jitter));
        inner.opened = inner.opened.saturating_add(1);
        self.change(inner, Phase::Open { until: now.saturating_add(interval) });
    }

    /// What it does at the moment.
    pub(crate) fn state(&self) -> BreakerState {
        self.inner().state()
    }

    /// Closed, and nothing was counted within its window: forgetting it loses nothing.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        match &self.inner().phase {
            Phase::Closed => self.window.sum(now) == Counts::default(),
            Phase::Open { .. } | Phase::HalfOpen { .. } => false,
        }
    }
}

impl Inner {
    const fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}

/// One attempt that was let through.
#[derive(Debug)]
pub(crate) struct Token {
    breaker: Arc<Breaker>,
    generation: u64,
    /// Set for a probe.
    lease: Option<u64>,
    open: bool,
}

impl Token {
    /// Says what came of it, and what the breaker was before and is now.
    pub(crate) fn record(mut self, now: Duration, health: Health, draw: u64) -> (BreakerState, BreakerState) {
        self.open = false;
        self.breaker.record(&self, now, health, draw)
    }
}

impl Drop for Token {
    /// Cancelled, or its attempt panicked: it says nothing, and its probe is free again.
    fn drop(&mut self) {
        if self.open {
            self.breaker.record(self, Duration::ZERO, Health::Neutral, 0);
        }
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
