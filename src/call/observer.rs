//! What a caller lets others see.

use std::fmt;
use std::time::Duration;

use super::attempt::Connection;
use super::breaker::BreakerState;
use super::decide::StopReason;
use super::outcome::{Ending, Report};
use super::verdict::Kind;

/// By what an event is told apart. The tenant is not among it, and of the key only its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labels<'a> {
    /// Who is called.
    pub dependency: &'a str,
    /// For what.
    pub operation: &'static str,
    /// Which logical operation. Fit for a log line, and for no metric: it takes a new value for each operation.
    pub identity_hash: Option<u64>,
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitSource {
    /// A breaker.
    Breaker,
    /// A pool.
    Pool,
    /// The next attempt.
    Backoff,
    /// Readiness of what is called, within an attempt.
    Readiness,
}

impl WaitSource {
    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Breaker => "breaker",
            Self::Pool => "pool",
            Self::Backoff => "backoff",
            Self::Readiness => "readiness",
        }
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A logical operation was begun.
    OperationStarted {
        /// Which.
        labels: Labels<'a>,
    },
    /// It waited.
    Waited {
        /// Which.
        labels: Labels<'a>,
        /// For what.
        source: WaitSource,
        /// How long.
        duration: Duration,
    },
    /// A physical attempt was sent.
    AttemptStarted {
        /// Of which operation.
        labels: Labels<'a>,
        /// Its number, from 1.
        number: u32,
        /// It is sent beside another one.
        hedge: bool,
    },
    /// A physical attempt came to its end.
    AttemptFinished {
        /// Of which operation.
        labels: Labels<'a>,
        /// Its number, from 1.
        number: u32,
        /// How long it took.
        duration: Duration,
        /// What it came to: `None` is an answer.
        failure: Option<Kind>,
        /// Whether it had to set up its connection.
        connection: Connection,
        /// What it cost.
        cost: u64,
    },
    /// A retry was charged to the budget.
    RetryScheduled {
        /// Of which operation.
        labels: Labels<'a>,
        /// After which delay.
        delay: Duration,
        /// What is left of the budget.
        balance: u64,
    },
    /// No further attempt is made after one that failed.
    RetrySuppressed {
        /// Of which operation.
        labels: Labels<'a>,
        /// Why.
        reason: StopReason,
    },
    /// A breaker changed.
    BreakerChanged {
        /// On which operation.
        labels: Labels<'a>,
        /// What it was.
        from: BreakerState,
        /// What it is.
        to: BreakerState,
    },
    /// There was no room for a breaker; the attempt went without.
    BreakerUntracked {
        /// Of which operation.
        labels: Labels<'a>,
    },
    /// A logical operation came to its end.
    OperationFinished {
        /// Which.
        labels: Labels<'a>,
        /// How.
        ending: &'a Ending,
        /// What was measured.
        report: &'a Report,
        /// A fallback answered instead.
        degraded: bool,
    },
    /// Work on an attempt came to its end after its caller had left.
    AbandonedFinished {
        /// Of which operation.
        labels: Labels<'a>,
        /// Which attempt.
        number: u32,
        /// What it cost.
        cost: u64,
    },
}

impl<'a> Event<'a> {
    /// By what it is told apart.
    #[must_use]
    pub const fn labels(&self) -> &Labels<'a> {
        match self {
            Self::OperationStarted { labels }
            | Self::Waited { labels, .. }
            | Self::AttemptStarted { labels, .. }
            | Self::AttemptFinished { labels, .. }
            | Self::RetryScheduled { labels, .. }
            | Self::RetrySuppressed { labels, .. }
            | Self::BreakerChanged { labels, .. }
            | Self::BreakerUntracked { labels }
            | Self::OperationFinished { labels, .. }
            | Self::AbandonedFinished { labels, .. } => labels,
        }
    }
}

/// Sees what happens. It is called on the caller's thread, between its steps, and must not block.
pub trait Observer: Send + Sync + fmt::Debug + 'static {
    /// Something happened.
    fn observe(&self, event: &Event<'_>);
}
