//! Builds callers, and refuses what would harm.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::{Clock, SystemClock};
use crate::protocol::backoff::{Backoff, DELAY_MIN};

use super::breaker::BreakerConfig;
use super::breaker_registry::BreakerRegistry;
use super::budget::Budget;
use super::bulkhead::Pool;
use super::caller::Caller;
use super::config_error::{ConfigError, not_zero, ordered};
use super::core::Core;
use super::deadline::DeadlinePolicy;
use super::hedge::HedgePolicy;
use super::limits::AttemptLimits;
use super::observer::Observer;
use super::random::{Randomness, SystemRandom};
use super::timer::{Park, ThreadPark, Timer};

/// One attempt and two retries: who needs more has another problem.
const ATTEMPTS_DEFAULT: u32 = 3;
/// More attempts than this are no retries but a loop.
const ATTEMPTS_MAX: u32 = 100;
/// About what a fast answer takes.
const BACKOFF_FIRST_DEFAULT: Duration = Duration::from_millis(50);
/// People who wait do not notice much more.
const BACKOFF_CAP_DEFAULT: Duration = Duration::from_secs(2);
/// Who is asked to come again in more than a minute gives up and says so.
const HINT_CEILING_DEFAULT: Duration = Duration::from_secs(60);

/// Builds a [`Caller`]. What is not set has the default that is named there.
#[derive(Clone, Debug)]
#[must_use = "nothing is built yet"]
pub struct CallerBuilder {
    dependency: Arc<str>,
    budget: Budget,
    pool: Pool,
    policy: DeadlinePolicy,
    limits: AttemptLimits,
    attempts_max: u32,
    backoff: (Duration, Duration),
    hint_ceiling: Duration,
    breaker: Option<BreakerConfig>,
    breakers_max: usize,
    hedge: Option<HedgePolicy>,
    observers: Vec<Arc<dyn Observer>>,
    clock: Option<Arc<dyn Clock>>,
    random: Arc<dyn Randomness>,
    timer: Arc<dyn Timer>,
    park: Arc<dyn Park>,
}

#[cfg(feature = "tokio")]
fn default_timer() -> Arc<dyn Timer> {
    Arc::new(super::timer::TokioTimer)
}

#[cfg(not(feature = "tokio"))]
fn default_timer() -> Arc<dyn Timer> {
    Arc::new(super::timer::ThreadTimer)
}

impl CallerBuilder {
    pub(crate) fn new(dependency: Arc<str>, budget: Budget, pool: Pool) -> Self {
        Self {
            dependency,
            budget,
            pool,
            policy: DeadlinePolicy::default(),
            limits: AttemptLimits::NONE,
            attempts_max: ATTEMPTS_DEFAULT,
            backoff: (BACKOFF_FIRST_DEFAULT, BACKOFF_CAP_DEFAULT),
            hint_ceiling: HINT_CEILING_DEFAULT,
            breaker: None,
            breakers_max: BreakerRegistry::DEFAULT_MAX,
            hedge: None,
            observers: Vec::new(),
            clock: None,
            random: Arc::new(SystemRandom),
            timer: default_timer(),
            park: Arc::new(ThreadPark),
        }
    }

    /// How an operation's time is divided. Default: 10 s in all.
    pub fn deadline(self, policy: DeadlinePolicy) -> Self {
        Self { policy, ..self }
    }

    /// Limits of an attempt beside its total. Default: none.
    pub fn limits(self, limits: AttemptLimits) -> Self {
        Self { limits, ..self }
    }

    /// At most so many attempts, the first included, hedges not. Default: 3.
    pub fn attempts(self, max: u32) -> Self {
        Self { attempts_max: max, ..self }
    }

    /// The delays between attempts: by chance, up to `first` before the first retry, doubling up to `cap`. Default:
    /// 50 ms and 2 s.
    pub fn backoff(self, first: Duration, cap: Duration) -> Self {
        Self { backoff: (first, cap), ..self }
    }

    /// Who is asked to come again later than this does not. Default: 60 s.
    pub fn hint_ceiling(self, ceiling: Duration) -> Self {
        Self { hint_ceiling: ceiling, ..self }
    }

    /// A breaker for each operation and tenant. Default: none. It needs an attempt timeout: without one it cannot be told
    /// whether an attempt that timed out had enough time.
    pub fn breaker(self, config: BreakerConfig) -> Self {
        Self { breaker: Some(config), ..self }
    }

    /// At most so many breakers. Default: 1,024.
    pub fn breakers_max(self, max: usize) -> Self {
        Self { breakers_max: max, ..self }
    }

    /// How [hedged reads](Caller::hedged_read) are hedged. Default: not.
    pub fn hedge(self, policy: HedgePolicy) -> Self {
        Self { hedge: Some(policy), ..self }
    }

    /// Who sees what happens; any number of them. Default: nobody.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// The clock. Default: the machine's.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Where chance comes from. Default: the system.
    pub fn random(self, random: Arc<dyn Randomness>) -> Self {
        Self { random, ..self }
    }

    /// How asynchronous calls wait. Default: with feature `tokio` its timers, else a thread of the process.
    pub fn timer(self, timer: Arc<dyn Timer>) -> Self {
        Self { timer, ..self }
    }

    /// How blocking calls wait. Default: the thread is parked.
    pub fn park(self, park: Arc<dyn Park>) -> Self {
        Self { park, ..self }
    }

    /// The caller.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for zero, for what is no number, for bounds upside down, and for parts that do not fit together.
    pub fn build(self) -> Result<Caller, ConfigError> {
        self.policy.check()?;
        self.limits.check()?;
        if self.attempts_max == 0 {
            return Err(ConfigError::Zero { what: "the number of attempts" });
        }
        if self.attempts_max > ATTEMPTS_MAX {
            let (value, most) = (u64::from(self.attempts_max), u64::from(ATTEMPTS_MAX));
            return Err(ConfigError::TooLarge { what: "the number of attempts", value, most });
        }
        not_zero("the ceiling of hints", self.hint_ceiling)?;
        if self.breaker.is_some() && self.policy.attempt.is_none() {
            return Err(ConfigError::Needs { what: "a breaker", needs: "an attempt timeout" });
        }
        let new_registry = |config| BreakerRegistry::new(config, self.breakers_max);
        let core = Core {
            dependency: self.dependency,
            policy: self.policy,
            limits: self.limits,
            attempts_max: self.attempts_max,
            backoff: checked_backoff(self.backoff)?,
            hint_ceiling: self.hint_ceiling,
            budget: self.budget,
            pool: self.pool,
            breakers: self.breaker.map(new_registry).transpose()?,
            hedge: self.hedge.map(HedgePolicy::parts).transpose()?,
            observers: self.observers,
            clock: self.clock.unwrap_or_else(|| Arc::new(SystemClock::default())),
            random: self.random,
            timer: self.timer,
            park: self.park,
        };
        Ok(Caller(Arc::new(core)))
    }
}

fn checked_backoff((first, cap): (Duration, Duration)) -> Result<Backoff, ConfigError> {
    not_zero("the first delay", first)?;
    ordered(("the first delay", first), ("the longest delay", cap))?;
    Backoff::new(first, cap).ok_or(ConfigError::TooSmall { what: "the first delay", value: first, least: DELAY_MIN })
}
