//! When an operation stops being useful, and how its time is divided.

use std::time::Duration;

use super::config_error::{ConfigError, not_zero, ordered};

/// The moment at which an operation stops being useful, on this process's monotonic clock.
///
/// It is never written to a wire: another machine has another clock. What travels is what [`Deadline::remaining`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Duration>);

impl Deadline {
    /// There is no end.
    pub const UNBOUNDED: Self = Self(None);

    /// So much time from now. What is beyond the end of the clock has no end.
    #[must_use]
    pub const fn after(now: Duration, budget: Duration) -> Self {
        Self(now.checked_add(budget))
    }

    /// The earlier of two.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        Self(match (self.0, other.0) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        })
    }

    /// The same, less a margin. It saturates at the beginning of the clock, where nothing can be sent any more.
    #[must_use]
    pub fn less(self, margin: Duration) -> Self {
        Self(self.0.map(|end| end.saturating_sub(margin)))
    }

    /// What a caller below may take: no more than its own, and no more than what it inherited less the margin for
    /// giving an answer.
    #[must_use]
    pub fn child(own: Self, inherited: Self, margin: Duration) -> Self {
        own.earlier(inherited.less(margin))
    }

    /// What is left: zero once it has passed, [`Duration::MAX`] if there is no end.
    #[must_use]
    pub fn remaining(self, now: Duration) -> Duration {
        self.0.map_or(Duration::MAX, |end| end.saturating_sub(now))
    }

    /// Nothing is left.
    #[must_use]
    pub fn has_passed(self, now: Duration) -> bool {
        self.0.is_some_and(|end| end <= now)
    }

    /// The moment, if there is an end.
    #[must_use]
    pub const fn moment(self) -> Option<Duration> {
        self.0
    }
}

/// How the time of one logical operation is divided.
///
/// ```
/// use std::time::Duration;
/// use counterfoil::call::DeadlinePolicy;
///
/// // 600 ms in all, at most 80 ms of it waiting to be let in, 40 ms kept for giving the answer.
/// let ms = Duration::from_millis;
/// let policy = DeadlinePolicy::within(ms(600)).admission(ms(80)).margin(ms(40));
/// assert!(policy.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlinePolicy {
    pub(crate) total: Duration,
    pub(crate) admission: Duration,
    pub(crate) attempt: Option<Duration>,
    pub(crate) margin: Duration,
    pub(crate) useful_min: Duration,
}

/// Ten seconds in all: an operation without an end is not an operation that somebody waits for.
const TOTAL_DEFAULT: Duration = Duration::from_secs(10);
/// What is left must be more than nothing. Set it to what the fastest useful answer takes.
const USEFUL_DEFAULT: Duration = Duration::from_millis(1);

impl DeadlinePolicy {
    /// So much time for the whole operation, for all of its attempts and waits together. [`Duration::MAX`] is no end.
    #[must_use]
    pub const fn within(total: Duration) -> Self {
        Self { total, admission: Duration::MAX, attempt: None, margin: Duration::ZERO, useful_min: USEFUL_DEFAULT }
    }

    /// At most so much of it waiting for breakers and pools, over all attempts. Without this all of it may be waited.
    #[must_use]
    pub const fn admission(self, allowance: Duration) -> Self {
        Self { admission: allowance, ..self }
    }

    /// At most so much for one attempt. Without this one attempt may take all that is left. Choose it from measurements:
    /// see [`Measures::suggest_timeout`](crate::call::Measures::suggest_timeout).
    #[must_use]
    pub const fn attempt(self, timeout: Duration) -> Self {
        Self { attempt: Some(timeout), ..self }
    }

    /// So much is kept for turning the last answer into one's own. Without this none is.
    #[must_use]
    pub const fn margin(self, margin: Duration) -> Self {
        Self { margin, ..self }
    }

    /// With less than this left nothing is sent. Without this 1 ms.
    #[must_use]
    pub const fn useful_min(self, least: Duration) -> Self {
        Self { useful_min: least, ..self }
    }

    /// Checks the parts against each other, as building a caller does.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for a part of zero, and for parts that leave no time to send anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        not_zero("the total time", self.total)?;
        not_zero("the admission allowance", self.admission)?;
        not_zero("the smallest useful attempt", self.useful_min)?;
        if let Some(attempt) = self.attempt {
            not_zero("the attempt timeout", attempt)?;
            ordered(("the smallest useful attempt", self.useful_min), ("the attempt timeout", attempt))?;
            ordered(("the attempt timeout", attempt), ("the total time", self.total))?;
        }
        let needed = self.margin.saturating_add(self.useful_min);
        ordered(("margin and smallest useful attempt", needed), ("the total time", self.total))
    }
}

impl Default for DeadlinePolicy {
    fn default() -> Self {
        Self::within(TOTAL_DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_deadline_beyond_the_end_of_the_clock_has_no_end() {
        let deadline = Deadline::after(ms(1), Duration::MAX);
        assert_eq!(deadline, Deadline::UNBOUNDED);
        assert_eq!(deadline.remaining(Duration::MAX), Duration::MAX);
        assert!(!deadline.has_passed(Duration::MAX));
        assert_eq!(deadline.less(Duration::MAX), Deadline::UNBOUNDED);
    }

    #[test]
    fn a_margin_above_the_remainder_leaves_nothing() {
        let deadline = Deadline::after(ms(100), ms(30)).less(ms(500));
        assert_eq!(deadline.remaining(ms(100)), Duration::ZERO);
        assert!(deadline.has_passed(ms(100)));
    }

    #[test]
    fn a_budget_of_zero_has_passed_at_once() {
        assert!(Deadline::after(ms(5), Duration::ZERO).has_passed(ms(5)));
        assert!(!Deadline::after(ms(5), ms(1)).has_passed(ms(5)));
    }

    #[test]
    fn a_child_takes_the_smaller_of_its_own_and_what_it_inherited_less_the_margin() {
        let inherited = Deadline::after(ms(0), ms(250));
        assert_eq!(Deadline::child(Deadline::UNBOUNDED, inherited, ms(40)).remaining(ms(0)), ms(210));
        assert_eq!(Deadline::child(Deadline::after(ms(0), ms(50)), inherited, ms(40)).remaining(ms(0)), ms(50));
        assert_eq!(
            Deadline::child(Deadline::after(ms(0), ms(50)), Deadline::UNBOUNDED, ms(40)).remaining(ms(0)),
            ms(50)
        );
        assert_eq!(Deadline::child(Deadline::UNBOUNDED, inherited, ms(900)).remaining(ms(0)), Duration::ZERO);
    }

    #[test]
    fn parts_of_zero_and_parts_that_do_not_fit_are_refused() {
        let fine = DeadlinePolicy::within(ms(600)).admission(ms(80)).margin(ms(40)).attempt(ms(250)).useful_min(ms(5));
        assert_eq!(fine.check(), Ok(()));
        let zero = |policy: DeadlinePolicy| assert!(matches!(policy.check(), Err(ConfigError::Zero { .. })));
        zero(DeadlinePolicy::within(Duration::ZERO));
        zero(fine.admission(Duration::ZERO));
        zero(fine.attempt(Duration::ZERO));
        zero(fine.useful_min(Duration::ZERO));
        let inverted = |policy: DeadlinePolicy| assert!(matches!(policy.check(), Err(ConfigError::Inverted { .. })));
        inverted(fine.attempt(ms(601)));
        inverted(fine.useful_min(ms(251)));
        inverted(fine.margin(ms(596)));
        assert!(DeadlinePolicy::within(Duration::MAX).margin(Duration::MAX).check().is_ok());
    }

    proptest! {
        #[test]
        fn no_child_outlives_what_it_inherited(
            now in any::<Duration>(), own in any::<Duration>(), inherited in any::<Duration>(), margin in any::<Duration>()
        ) {
            let inherited = Deadline::after(now, inherited);
            let child = Deadline::child(Deadline::after(now, own), inherited, margin);
            prop_assert!(child.remaining(now) <= inherited.remaining(now));
            prop_assert!(child.remaining(now) <= Deadline::after(now, own).remaining(now));
        }
    }
}
