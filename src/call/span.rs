//! One span for each logical operation, and one below it for each physical attempt. Without the feature `tracing` all of
//! this is nothing.

use super::attempt::Attempt;
use super::flow::Flow;
use super::outcome::{Ending, Report};

#[cfg(feature = "tracing")]
pub(crate) use with_tracing::Spans;
#[cfg(not(feature = "tracing"))]
pub(crate) use without::Spans;

#[cfg(feature = "tracing")]
mod with_tracing {
    use std::future::Future;

    use tracing::instrument::{Instrument, Instrumented};
    use tracing::{Span, field};

    use super::*;

    /// The span of a logical operation.
    #[derive(Debug)]
    pub(crate) struct Spans(Span);

    impl Spans {
        pub(crate) fn new(flow: &Flow) -> Self {
            let span = tracing::debug_span!(
                "caller.operation",
                dependency = %flow.core().dependency,
                operation = flow.operation(),
                identity = field::Empty,
                outcome = field::Empty,
                attempts = field::Empty,
            );
            if let Some(identity) = flow.identity() {
                span.record("identity", format_args!("{:016x}", identity.hash()).to_string());
            }
            Self(span)
        }

        pub(crate) fn attempt(&self, attempt: &Attempt) -> AttemptSpan {
            let trace = attempt.trace_id();
            let number = attempt.number();
            AttemptSpan(tracing::debug_span!(parent: &self.0, "caller.attempt", number, %trace))
        }

        pub(crate) fn finish(&self, ending: &Ending, report: &Report) {
            self.0.record("outcome", ending.label());
            self.0.record("attempts", report.attempts);
        }
    }

    /// The span of one attempt.
    #[derive(Debug)]
    pub(crate) struct AttemptSpan(Span);

    impl AttemptSpan {
        pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            self.0.in_scope(f)
        }

        pub(crate) fn instrument<F: Future>(&self, future: F) -> Instrumented<F> {
            future.instrument(self.0.clone())
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod without {
    use super::*;

    #[derive(Debug)]
    pub(crate) struct Spans;

    impl Spans {
        pub(crate) const fn new(_: &Flow) -> Self {
            Self
        }

        pub(crate) const fn attempt(&self, _: &Attempt) -> AttemptSpan {
            AttemptSpan
        }

        pub(crate) const fn finish(&self, _: &Ending, _: &Report) {}
    }

    #[derive(Debug)]
    pub(crate) struct AttemptSpan;

    impl AttemptSpan {
        pub(crate) fn in_scope<R>(&self, f: impl FnOnce() -> R) -> R {
            f()
        }

        pub(crate) fn instrument<F>(&self, future: F) -> F {
            future
        }
    }
}
