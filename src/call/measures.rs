//! An observer that keeps what it sees: how many operations were useful, what they cost, and how long attempts take.

use std::collections::BTreeMap;
use std::time::Duration;

use super::attempt::Connection;
use super::config_error::millionths;
use super::measures_table::Table;
use super::observer::{Event, Observer};
use super::outcome::Ending;
use super::verdict::Kind;
use crate::base::histogram::Histogram;

/// What was seen of one operation type.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ClassMeasures {
    /// Logical operations that were begun.
    pub started: u64,
    /// Logical operations by outcome; `degraded` is an outcome of its own.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Physical attempts, hedges included.
    pub attempts: u64,
    /// Hedges among them.
    pub hedges: u64,
    /// Deadlines that passed, by phase.
    pub deadline_exhausted: BTreeMap<&'static str, u64>,
    /// Uncertain operations, by cause.
    pub uncertain: BTreeMap<&'static str, u64>,
    /// Retries that were not made, by reason.
    pub suppressed: BTreeMap<&'static str, u64>,
    /// Time spent waiting, by source.
    pub waited: BTreeMap<&'static str, Duration>,
    /// The cost that attempts reported.
    pub cost: u64,
    /// Attempts whose work came to its end after their caller had left.
    pub abandoned: u64,
    /// The cost of those.
    pub abandoned_cost: u64,
    /// Attempts that went without a breaker, because there was no room for one.
    pub untracked: u64,
    /// Attempts that were answered, by connection: cold, warm, unknown.
    pub(super) durations: [Histogram; 3],
    /// Attempts that timed out, by connection. How long they would have taken is not known.
    timed_out: [u64; 3],
}

pub(super) const fn index(connection: Connection) -> usize {
    match connection {
        Connection::Cold => 0,
        Connection::Warm => 1,
        Connection::Unknown => 2,
    }
}

impl ClassMeasures {
    /// Operations that succeeded.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.outcomes.get("success").copied().unwrap_or(0)
    }

    /// Physical attempts for each logical operation. 1 is none too many.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a ratio to look at")]
    pub fn amplification(&self) -> f64 {
        if self.started == 0 { 0.0 } else { self.attempts as f64 / self.started as f64 }
    }

    /// How long answered attempts took.
    #[must_use]
    pub fn durations(&self, connection: Connection) -> &Histogram {
        &self.durations[index(connection)]
    }

    fn suggest(&self, connection: Connection, false_timeout_rate: f64) -> Result<Duration, NoSuggestion> {
        let rate = millionths("the rate of false timeouts", false_timeout_rate).map_err(|_| NoSuggestion::Rate)?;
        let (answered, timed_out) = (self.durations(connection), self.timed_out[index(connection)]);
        let have = answered.count() + timed_out;
        // Ten that would have been cut off: fewer are no measurement.
        let need = (10 * 1_000_000_u64).div_ceil(rate);
        if have < need {
            return Err(NoSuggestion::TooFew { have, need });
        }
        let cut = u64::try_from(u128::from(have) * u128::from(rate) / 1_000_000).unwrap_or(have);
        // Those that timed out would have taken longer than all others, as far as is known.
        answered.at_rank(have - cut).ok_or(NoSuggestion::Censored { timed_out, answered: answered.count() })
    }
}

/// Why no timeout can be suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSuggestion {
    /// The rate is no number above 0 and at most 1.
    #[error("the rate of false timeouts must be a number above 0 and at most 1")]
    Rate,
    /// There are too few attempts to know so rare a thing.
    #[error("{have} attempts were measured; so low a rate needs {need}")]
    TooFew {
        /// How many there are.
        have: u64,
        /// How many are needed.
        need: u64,
    },
    /// More attempts timed out than would be allowed to: the timeout they ran into is too short to learn a longer one from.
    #[error("{timed_out} attempts timed out and {answered} were answered: measure with a longer timeout")]
    Censored {
        /// How many timed out.
        timed_out: u64,
        /// How many were answered.
        answered: u64,
    },
}

/// Keeps what it sees, by operation type.
///
/// ```
/// use std::sync::Arc;
/// use counterfoil::call::{Budget, BudgetConfig, Caller, Connection, Measures, Pool};
///
/// let measures = Arc::new(Measures::default());
/// let caller = Caller::builder("orders", Budget::new(BudgetConfig::default())?, Pool::Unlimited)
///     .observer(measures.clone())
///     .build()?;
/// assert!(measures.suggest_timeout("create_order", Connection::Warm, 0.001).is_err(), "nothing was measured yet");
/// # Ok::<(), counterfoil::call::ConfigError>(())
/// ```
#[derive(Debug, Default)]
pub struct Measures(Table);

impl Measures {
    /// What was seen of one operation type so far.
    #[must_use]
    pub fn of(&self, operation: &str) -> ClassMeasures {
        self.0.read(operation).unwrap_or_default()
    }

    /// An attempt timeout that cuts off `false_timeout_rate` of the attempts that would have been answered. Connections
    /// are told apart: a timeout that was learnt from warm ones cuts off cold ones.
    ///
    /// # Errors
    ///
    /// [`NoSuggestion`] where what was measured does not say.
    pub fn suggest_timeout(
        &self,
        operation: &str,
        connection: Connection,
        false_timeout_rate: f64,
    ) -> Result<Duration, NoSuggestion> {
        self.of(operation).suggest(connection, false_timeout_rate)
    }
}

impl Observer for Measures {
    fn observe(&self, event: &Event<'_>) {
        self.0.count(event);
    }
}

impl ClassMeasures {
    pub(super) fn count(&mut self, event: &Event<'_>) {
        match *event {
            Event::OperationStarted { .. } => self.started += 1,
            Event::Waited { source, duration, .. } => {
                let waited = self.waited.entry(source.label()).or_default();
                *waited = waited.saturating_add(duration);
            }
            Event::AttemptStarted { hedge, .. } => {
                self.attempts += 1;
                self.hedges += u64::from(hedge);
            }
            Event::AttemptFinished { duration, failure, connection, cost, .. } => {
                self.cost = self.cost.saturating_add(cost);
                match failure {
                    None => self.durations[index(connection)].record(duration),
                    Some(Kind::Timeout) => self.timed_out[index(connection)] += 1,
                    // How long a failure takes says nothing about how long an answer takes.
                    Some(
                        Kind::Transient
                        | Kind::Throttled
                        | Kind::Overloaded
                        | Kind::InProgress
                        | Kind::Permanent
                        | Kind::Conflict
                        | Kind::Cancelled,
                    ) => {}
                }
            }
            Event::RetrySuppressed { reason, .. } => *self.suppressed.entry(reason.label()).or_default() += 1,
            Event::BreakerUntracked { .. } => self.untracked += 1,
            Event::OperationFinished { ending, degraded, .. } => self.count_ending(ending, degraded),
            Event::AbandonedFinished { cost, .. } => {
                self.abandoned += 1;
                self.abandoned_cost = self.abandoned_cost.saturating_add(cost);
            }
            Event::RetryScheduled { .. } | Event::BreakerChanged { .. } => {}
        }
    }

    fn count_ending(&mut self, ending: &Ending, degraded: bool) {
        let label = if degraded { "degraded" } else { ending.label() };
        *self.outcomes.entry(label).or_default() += 1;
        match ending {
            Ending::DeadlineExceeded { phase } => *self.deadline_exhausted.entry(phase.label()).or_default() += 1,
            Ending::Uncertain { cause, .. } => *self.uncertain.entry(cause.kind.label()).or_default() += 1,
            Ending::Success { .. }
            | Ending::Rejected { .. }
            | Ending::Exhausted { .. }
            | Ending::Overloaded { .. }
            | Ending::Cancelled => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::observer::Labels;
    use super::*;

    fn measured(answered: impl Iterator<Item = u64>, timed_out: u64, connection: Connection) -> Measures {
        let measures = Measures::default();
        let labels = Labels { dependency: "d", operation: "read", identity_hash: None };
        let finished = |ms, failure| {
            let duration = Duration::from_millis(ms);
            let event = Event::AttemptFinished { labels, number: 1, duration, failure, connection, cost: 0 };
            measures.observe(&event);
        };
        answered.for_each(|ms| finished(ms, None));
        (0..timed_out).for_each(|_| finished(500, Some(Kind::Timeout)));
        measures
    }

    #[test]
    fn a_suggested_timeout_cuts_off_the_rate_that_was_asked_for() {
        let measures = measured(1..=1000, 0, Connection::Warm);
        let suggested = measures.suggest_timeout("read", Connection::Warm, 0.01).unwrap();
        assert!(Duration::from_millis(990) <= suggested && suggested < Duration::from_millis(1060), "{suggested:?}");
    }

    #[test]
    fn cold_and_warm_connections_are_told_apart() {
        let measures = measured(1..=1000, 0, Connection::Warm);
        let error = measures.suggest_timeout("read", Connection::Cold, 0.01);
        assert_eq!(error, Err(NoSuggestion::TooFew { have: 0, need: 1000 }));
    }

    #[test]
    fn too_few_measurements_suggest_nothing() {
        let measures = measured(1..=999, 0, Connection::Warm);
        let error = measures.suggest_timeout("read", Connection::Warm, 0.01);
        assert_eq!(error, Err(NoSuggestion::TooFew { have: 999, need: 1000 }));
        assert_eq!(measures.suggest_timeout("read", Connection::Warm, f64::NAN), Err(NoSuggestion::Rate));
        assert_eq!(measures.suggest_timeout("read", Connection::Warm, 0.0), Err(NoSuggestion::Rate));
    }

    #[test]
    fn a_timeout_that_is_too_short_does_not_confirm_itself() {
        let measures = measured(1..=990, 50, Connection::Warm);
        let error = measures.suggest_timeout("read", Connection::Warm, 0.01);
        assert_eq!(error, Err(NoSuggestion::Censored { timed_out: 50, answered: 990 }));
        assert!(measures.suggest_timeout("read", Connection::Warm, 0.1).is_ok());
    }
}
