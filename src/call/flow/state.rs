//! What a flow is in the middle of.

use std::time::Duration;

use super::super::attempt::Attempt;
use super::super::breaker::Token;
use super::super::budget::Reservation;
use super::super::bulkhead::Place;
use super::super::limits::{Limit, Stage};
use super::super::outcome::{Ending, Phase};
use super::super::verdict::{Kind, Verdict};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waited {
    pub(super) breaker: Duration,
    pub(super) pool: Duration,
    pub(super) between: Duration,
}

#[derive(Debug)]
pub(super) enum State {
    /// About to look at the breaker. A retry holds its charge until it is sent.
    Admission {
        /// What was waited for before.
        after: Phase,
        retry: Option<Reservation>,
    },
    Breaker {
        since: Duration,
        until: Duration,
        retry: Option<Reservation>,
    },
    Queued {
        since: Duration,
        until: Option<Duration>,
        place: Place,
        retry: Option<Reservation>,
    },
    InFlight {
        first: Option<Sent>,
        /// Rarely there, and a state is moved at each step.
        hedge: Option<Box<Sent>>,
    },
    Backoff {
        since: Duration,
        until: Duration,
        retry: Reservation,
    },
    Ended(Ending, Duration),
    /// Only while a step is made.
    Moving,
}

#[derive(Debug)]
pub(super) struct Sent {
    pub(super) attempt: Attempt,
    pub(super) token: Option<Token>,
    /// It was given all the time that an attempt is meant to have.
    pub(super) full_time: bool,
    pub(super) at: Duration,
}

/// What a limit says of the attempt that it ended: nothing was sent while it still connected.
pub(super) fn timed_out(limit: Limit, attempt: &Attempt) -> Verdict {
    match (limit, attempt.stage()) {
        (Limit::Connect, _) | (Limit::Total, Stage::Connecting) => Verdict::not_sent(Kind::Timeout),
        (Limit::FirstByte | Limit::Idle | Limit::Total, _) => Verdict::maybe_applied(Kind::Timeout),
    }
}
