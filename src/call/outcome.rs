//! How a logical operation ended.

use std::time::Duration;

use super::decide::StopReason;
use super::identity::Identity;
use super::trace::TraceId;
use super::verdict::Kind;

/// Where a deadline found the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before anything was begun: there was too little time to begin with.
    Start,
    /// Waiting for a breaker.
    Breaker,
    /// Waiting for a pool.
    Pool,
    /// In an attempt.
    Attempt,
    /// The pause before the next attempt would have outlasted it.
    Backoff,
}

impl Phase {
    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Breaker => "breaker",
            Self::Pool => "pool",
            Self::Attempt => "attempt",
            Self::Backoff => "backoff",
        }
    }
}

/// Who said that there is too much to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OverloadSource {
    /// The other side.
    Server,
    /// The breaker on this side.
    Breaker,
    /// The pool on this side.
    Pool,
}

impl OverloadSource {
    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Breaker => "breaker",
            Self::Pool => "pool",
        }
    }
}

/// The attempt that left the operation uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// What happened to it.
    pub kind: Kind,
    /// Its number, from 1.
    pub attempt: u32,
}

/// How a logical operation ended, without what it brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It was done.
    Success {
        /// The answer is that of an earlier attempt.
        replayed: bool,
        /// The answer came after the deadline.
        late: bool,
    },
    /// It was refused, and nothing was done.
    Rejected {
        /// It contradicts what is there; else the same request will always be refused.
        conflict: bool,
    },
    /// No further attempt was made, and nothing was done; or, with [`StopReason::ResultLost`], it was done and its answer
    /// cannot be had.
    Exhausted {
        /// Why no further attempt was made.
        reason: StopReason,
        /// When the other side asked to come again.
        retry_after: Option<Duration>,
    },
    /// There is too much to do, and nothing was done.
    Overloaded {
        /// Who says so.
        source: OverloadSource,
        /// When to come again, if that is known.
        retry_after: Option<Duration>,
    },
    /// Time was up, and nothing was done.
    DeadlineExceeded {
        /// Where the deadline found it.
        phase: Phase,
    },
    /// **It may have been done.** Call again with the same identity, or look it up.
    Uncertain {
        /// The attempt that left it so.
        cause: Cause,
        /// Why it was not settled by another attempt.
        reason: StopReason,
    },
    /// It was cancelled, and nothing was done.
    Cancelled,
}

impl Ending {
    /// The name in metrics.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Success { .. } => "success",
            Self::Rejected { .. } => "rejected",
            Self::Exhausted { .. } => "exhausted",
            Self::Overloaded { .. } => "overloaded",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
            Self::Uncertain { .. } => "uncertain",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether an answer of one's own may stand in for the missing one: the other side did not say "no", and nobody lost
    /// interest.
    pub(crate) const fn allows_fallback(&self) -> bool {
        match self {
            Self::Exhausted { .. } | Self::Overloaded { .. } | Self::DeadlineExceeded { .. } => true,
            Self::Success { .. } | Self::Rejected { .. } | Self::Uncertain { .. } | Self::Cancelled => false,
        }
    }
}

/// How a logical operation ended, and what it brought: `T` from the attempt that succeeded, `E` from the last one that
/// failed.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "an operation that is uncertain is neither done nor not done"]
pub enum Outcome<T, E> {
    /// It was done.
    Success {
        /// The answer.
        value: T,
        /// The answer is that of an earlier attempt.
        replayed: bool,
        /// The answer came after the deadline.
        late: bool,
    },
    /// It was not done, and the fallback answered instead. Never a success: it would hide the outage.
    Degraded {
        /// The fallback's answer.
        value: T,
        /// How the operation itself ended.
        ending: Ending,
        /// The last error.
        error: Option<E>,
    },
    /// It was refused, and nothing was done.
    Rejected {
        /// It contradicts what is there; else the same request will always be refused.
        conflict: bool,
        /// The refusal.
        error: E,
    },
    /// No further attempt was made: see [`Ending::Exhausted`].
    Exhausted {
        /// Why no further attempt was made.
        reason: StopReason,
        /// When the other side asked to come again.
        retry_after: Option<Duration>,
        /// The last error.
        error: Option<E>,
    },
    /// There is too much to do, and nothing was done.
    Overloaded {
        /// Who says so.
        source: OverloadSource,
        /// When to come again, if that is known.
        retry_after: Option<Duration>,
        /// The last error.
        error: Option<E>,
    },
    /// Time was up, and nothing was done.
    DeadlineExceeded {
        /// Where the deadline found it.
        phase: Phase,
        /// The last error of an attempt, if one came to an end.
        error: Option<E>,
    },
    /// **It may have been done.** Call again with the same identity, or look it up.
    Uncertain {
        /// The identity to ask with. `None`: the operation has none, so only a person can find out.
        identity: Option<Identity>,
        /// The attempt that left it so.
        cause: Cause,
        /// Why it was not settled by another attempt.
        reason: StopReason,
        /// The last error.
        error: Option<E>,
    },
    /// It was cancelled, and nothing was done.
    Cancelled {
        /// The last error.
        error: Option<E>,
    },
}

/// What was measured of one logical operation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Physical attempts, hedges included.
    pub attempts: u32,
    /// Its identity.
    pub identity: Option<Identity>,
    /// From beginning to end.
    pub duration: Duration,
    /// Time spent waiting for the breaker.
    pub waited_for_breaker: Duration,
    /// Time spent waiting for the pool.
    pub waited_for_pool: Duration,
    /// Time spent between attempts.
    pub waited_between: Duration,
    /// The sum of what attempts said they cost.
    pub cost: u64,
    pub(crate) trace: TraceId,
}

impl Report {
    /// The trace id of each attempt, so that what the other side did later can be found.
    pub fn trace_ids(&self) -> impl Iterator<Item = TraceId> + '_ {
        (1..=self.attempts).map(|number| self.trace.attempt(number))
    }
}

/// The end of one logical operation.
#[derive(Debug)]
#[must_use = "an operation that is uncertain is neither done nor not done"]
pub struct Finished<T, E> {
    /// How it ended.
    pub outcome: Outcome<T, E>,
    /// What was measured.
    pub report: Report,
}

impl<T, E> Finished<T, E> {
    /// What a driver has at the end. `value` is there if the ending is a success, `error` if it is a rejection.
    pub(crate) fn new(ending: Ending, report: Report, value: Option<T>, error: Option<E>) -> Self {
        let outcome = match ending {
            Ending::Success { replayed, late } => {
                Outcome::Success { value: value.expect("a success brought its value"), replayed, late }
            }
            Ending::Rejected { conflict } => {
                Outcome::Rejected { conflict, error: error.expect("a rejection is an attempt's error") }
            }
            Ending::Exhausted { reason, retry_after } => Outcome::Exhausted { reason, retry_after, error },
            Ending::Overloaded { source, retry_after } => Outcome::Overloaded { source, retry_after, error },
            Ending::DeadlineExceeded { phase } => Outcome::DeadlineExceeded { phase, error },
            Ending::Uncertain { cause, reason } => {
                Outcome::Uncertain { identity: report.identity.clone(), cause, reason, error }
            }
            Ending::Cancelled => Outcome::Cancelled { error },
        };
        Self { outcome, report }
    }

    /// The value of a success. A degraded answer is none.
    pub fn success(self) -> Option<T> {
        match self.outcome {
            Outcome::Success { value, .. } => Some(value),
            Outcome::Degraded { .. }
            | Outcome::Rejected { .. }
            | Outcome::Exhausted { .. }
            | Outcome::Overloaded { .. }
            | Outcome::DeadlineExceeded { .. }
            | Outcome::Uncertain { .. }
            | Outcome::Cancelled { .. } => None,
        }
    }
}
