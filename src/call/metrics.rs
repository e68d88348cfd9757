//! What a caller observes, for the `metrics` facade. Names follow OpenTelemetry's; durations are seconds.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use super::observer::{Event, Labels, Observer};
use super::outcome::{Ending, Report};

/// Records to whatever recorder the program has installed.
///
/// | name | kind | labels |
/// |---|---|---|
/// | `caller.operation.duration` | histogram | `outcome` |
/// | `caller.operation.attempts` | histogram | |
/// | `caller.operation.uncertain` | counter | `cause` |
/// | `caller.operation.cost` | counter | |
/// | `caller.attempt.duration` | histogram | `result` |
/// | `caller.attempt.abandoned` | counter | |
/// | `caller.retry.suppressed` | counter | `reason` |
/// | `caller.deadline.exhausted` | counter | `phase` |
/// | `caller.admission.wait.duration` | histogram | `source` |
/// | `caller.budget.balance` | gauge | |
/// | `caller.breaker.state` | counter | `from`, `to` |
/// | `caller.breaker.untracked` | counter | |
///
/// Each has `dependency` and `operation` as well. No tenant, no key.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetricsObserver;

impl Observer for MetricsObserver {
    fn observe(&self, event: &Event<'_>) {
        let Labels { dependency, operation, .. } = *event.labels();
        let own = [("dependency", dependency.to_owned()), ("operation", operation.to_owned())];
        let with = |name: &'static str, value: &'static str| {
            let [one, two] = own.clone();
            [one, two, (name, value.to_owned())]
        };
        match *event {
            Event::Waited { source, duration, .. } => {
                histogram!("caller.admission.wait.duration", &with("source", source.label())).record(duration);
            }
            Event::AttemptFinished { duration, failure, .. } => {
                let result = failure.map_or("success", super::verdict::Kind::label);
                histogram!("caller.attempt.duration", &with("result", result)).record(duration);
            }
            Event::RetryScheduled { balance, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
                gauge!("caller.budget.balance", &own).set(balance as f64);
            }
            Event::RetrySuppressed { reason, .. } => {
                counter!("caller.retry.suppressed", &with("reason", reason.label())).increment(1);
            }
            Event::BreakerChanged { from, to, .. } => {
                let [one, two] = own;
                let states = [one, two, ("from", from.label().to_owned()), ("to", to.label().to_owned())];
                counter!("caller.breaker.state", &states).increment(1);
            }
            Event::BreakerUntracked { .. } => counter!("caller.breaker.untracked", &own).increment(1),
            Event::OperationFinished { ending, report, degraded, .. } => {
                let outcome = if degraded { "degraded" } else { ending.label() };
                let Report { duration, attempts, cost, .. } = *report;
                histogram!("caller.operation.duration", &with("outcome", outcome)).record::<Duration>(duration);
                histogram!("caller.operation.attempts", &own).record(f64::from(attempts));
                counter!("caller.operation.cost", &own).increment(cost);
                match ending {
                    Ending::Uncertain { cause, .. } => {
                        counter!("caller.operation.uncertain", &with("cause", cause.kind.label())).increment(1);
                    }
                    Ending::DeadlineExceeded { phase } => {
                        counter!("caller.deadline.exhausted", &with("phase", phase.label())).increment(1);
                    }
                    Ending::Success { .. }
                    | Ending::Rejected { .. }
                    | Ending::Exhausted { .. }
                    | Ending::Overloaded { .. }
                    | Ending::Cancelled => {}
                }
            }
            Event::AbandonedFinished { .. } => counter!("caller.attempt.abandoned", &own).increment(1),
            Event::OperationStarted { .. } | Event::AttemptStarted { .. } => {}
        }
    }
}
