//! The retry budget: of all calls in a window, so many may be retries.
//!
//! Backoff spreads attempts in time and creates no capacity. What keeps a population of callers from feeding an overload
//! with its own retries is that retries are a fraction of useful first attempts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::config_error::{ConfigError, millionths, not_zero};
use super::window::{Counted, Counts, Window};

const MILLION: u128 = 1_000_000;

/// How many retries there may be.
///
/// The defaults are a ratio of 0.10, a reserve of one a second, and a window of 10 s: an outage costs the other side at
/// most a tenth more, and a caller with little traffic can still retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetConfig {
    ratio: f64,
    reserve_per_second: u32,
    window: Duration,
}

impl BudgetConfig {
    /// At most this many retries for each logical call that was started in the window; above 0, at most 1.
    #[must_use]
    pub const fn ratio(self, ratio: f64) -> Self {
        Self { ratio, ..self }
    }

    /// So many retries a second in any case. Zero is a budget that has to be earned first.
    #[must_use]
    pub const fn reserve_per_second(self, retries: u32) -> Self {
        Self { reserve_per_second: retries, ..self }
    }

    /// Over how long calls and retries are counted.
    #[must_use]
    pub const fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self { ratio: 0.1, reserve_per_second: 1, window: Duration::from_secs(10) }
    }
}

/// A retry budget, which any number of callers may share. It starts with its reserve and nothing else.
///
/// ```
/// use counterfoil::call::{Budget, BudgetConfig};
///
/// let budget = Budget::new(BudgetConfig::default().ratio(0.2))?;
/// assert!(Budget::new(BudgetConfig::default().ratio(f64::NAN)).is_err());
/// # Ok::<(), counterfoil::call::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ratio_millionths: u64,
    reserve_millionths: u128,
    /// Calls, and retries. Retries are taken, and slots begun, under the lock.
    window: Window,
    lock: Mutex<()>,
}

impl Budget {
    /// A budget.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a ratio that is no number, not above 0 or above 1, and for a window below a millisecond.
    pub fn new(config: BudgetConfig) -> Result<Self, ConfigError> {
        let ratio_millionths = millionths("the budget's ratio", config.ratio)?;
        not_zero("the budget's window", config.window)?;
        let least = Duration::from_millis(1);
        if config.window < least {
            return Err(ConfigError::TooSmall { what: "the budget's window", value: config.window, least });
        }
        let reserve_millionths = config.window.as_micros().saturating_mul(u128::from(config.reserve_per_second));
        let window = Window::new(config.window);
        Ok(Self(Arc::new(Inner { ratio_millionths, reserve_millionths, window, lock: Mutex::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        // Nothing in there can panic half-way.
        self.0.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free_millionths(&self, counts: Counts) -> u128 {
        let earned = u128::from(counts.one) * u128::from(self.0.ratio_millionths);
        let spent = u128::from(counts.two) * MILLION;
        earned.saturating_add(self.0.reserve_millionths).saturating_sub(spent)
    }

    /// One logical call was started. Once for each, by the layer that owns its retries.
    pub(crate) fn deposit(&self, now: Duration) {
        let one = Counts { one: 1, two: 0 };
        if !self.0.window.add_if_current(now, one) {
            let _alone = self.lock();
            self.0.window.add(now, one);
        }
    }

    /// Takes one retry, if there is one.
    pub(crate) fn reserve(&self, now: Duration) -> Option<Reservation> {
        let _alone = self.lock();
        let free = self.free_millionths(self.0.window.sum(now));
        (free >= MILLION).then(|| {
            let counted = self.0.window.add(now, Counts { one: 0, two: 1 });
            Reservation { budget: Some((self.clone(), counted)) }
        })
    }

    /// How many retries there may be at this moment.
    #[must_use]
    pub fn balance(&self, now: Duration) -> u64 {
        let _alone = self.lock();
        let counts = self.0.window.sum(now);
        u64::try_from(self.free_millionths(counts) / MILLION).unwrap_or(u64::MAX)
    }
}

/// One retry that was taken and not sent yet. It goes back when it is dropped, unless it was sent.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Option<(Budget, Counted)>,
}

impl Reservation {
    /// The retry leaves: it stays charged.
    pub(crate) fn sent(mut self) {
        self.budget = None;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some((budget, counted)) = self.budget.take() {
            let _alone = budget.lock();
            budget.0.window.take_back_two(counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn budget(ratio: f64, reserve: u32) -> Budget {
        Budget::new(BudgetConfig::default().ratio(ratio).reserve_per_second(reserve)).unwrap()
    }

    /// Takes as many retries as it gets.
    fn drain(budget: &Budget, now: Duration) -> u32 {
        let mut taken = 0;
        while let Some(reservation) = budget.reserve(now) {
            reservation.sent();
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_budget_starts_with_its_reserve_and_not_full() {
        assert_eq!(drain(&budget(0.1, 1), ms(0)), 10);
        assert_eq!(drain(&budget(1.0, 0), ms(0)), 0);
    }

    #[test]
    fn a_ratio_of_0_6_lets_six_of_ten_through() {
        let budget = budget(0.6, 0);
        (0..10).for_each(|_| budget.deposit(ms(1)));
        assert_eq!(budget.balance(ms(1)), 6);
        assert_eq!(drain(&budget, ms(1)), 6);
    }

    #[test]
    fn ten_deposits_of_a_tenth_are_one_retry_exactly() {
        let budget = budget(0.1, 0);
        (0..9).for_each(|_| budget.deposit(ms(1)));
        assert_eq!(drain(&budget, ms(1)), 0);
        budget.deposit(ms(1));
        assert_eq!(drain(&budget, ms(1)), 1);
    }

    #[test]
    fn the_reserve_is_there_again_after_its_window() {
        let budget = budget(0.1, 1);
        assert_eq!(drain(&budget, ms(0)), 10);
        assert_eq!(drain(&budget, ms(10_000)), 0, "not a moment earlier");
        assert_eq!(drain(&budget, ms(11_000)), 10);
    }

    #[test]
    fn earned_retries_are_lost_with_the_window_they_were_earned_in() {
        let budget = budget(0.5, 0);
        (0..100).for_each(|_| budget.deposit(ms(0)));
        assert_eq!(budget.balance(ms(9_999)), 50);
        assert_eq!(budget.balance(ms(10_000)), 0);
    }

    #[test]
    fn a_retry_that_was_never_sent_goes_back_and_a_sent_one_does_not() {
        let budget = budget(0.1, 1);
        let taken: Vec<_> = std::iter::from_fn(|| budget.reserve(ms(0))).collect();
        assert_eq!((taken.len(), budget.balance(ms(0))), (10, 0));
        drop(taken);
        assert_eq!(budget.balance(ms(0)), 10);
        budget.reserve(ms(0)).unwrap().sent();
        assert_eq!(budget.balance(ms(0)), 9);
    }

    #[test]
    fn zero_no_number_and_more_than_everything_are_refused() {
        for ratio in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert!(Budget::new(BudgetConfig::default().ratio(ratio)).is_err(), "{ratio}");
        }
        assert!(Budget::new(BudgetConfig::default().window(Duration::ZERO)).is_err());
        assert!(Budget::new(BudgetConfig::default().window(Duration::from_micros(999))).is_err());
        assert!(Budget::new(BudgetConfig::default().window(Duration::MAX).reserve_per_second(u32::MAX)).is_ok());
    }

    proptest! {
        #[test]
        fn in_no_window_are_there_more_retries_than_its_ratio_and_reserve(
            ratio_millionths in 1_u32..=1_000_000, reserve in 0_u32..3,
            steps in prop::collection::vec((0_u64..700, any::<bool>()), 1..400)
        ) {
            let budget = budget(f64::from(ratio_millionths) / 1e6, reserve);
            let (mut now, mut calls, mut retries) = (0, Vec::new(), Vec::new());
            for (pause, is_call) in steps {
                now += pause;
                if is_call {
                    budget.deposit(ms(now));
                    calls.push(now);
                } else if let Some(reservation) = budget.reserve(ms(now)) {
                    reservation.sent();
                    retries.push(now);
                    let recent = |times: &[u64]| times.iter().filter(|at| **at + 10_000 >= now).count() as u64;
                    let allowed = recent(&calls) * u64::from(ratio_millionths) + u64::from(reserve) * 10_000_000;
                    prop_assert!(recent(&retries) * 1_000_000 <= allowed);
                }
            }
        }
    }
}
