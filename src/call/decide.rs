//! May another attempt be made? The whole table is [`decide`]: it reads nothing but its arguments.

use std::time::Duration;

use super::verdict::{EffectState, Hint, Kind, Verdict};

/// What it would mean to do the operation twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationClass {
    /// Nothing: it changes nothing.
    Read,
    /// Nothing: the other side knows the operation by its identity and does it once.
    Keyed,
    /// It would be done twice.
    Unkeyed,
}

/// Why no further attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// The same request will always be refused.
    Permanent,
    /// It contradicts what is there.
    Conflict,
    /// The other side said to stop.
    Overloaded,
    /// Somebody on this side stopped it.
    Cancelled,
    /// The other side said never to come again.
    HintNever,
    /// It may have been done, and without an identity it might be done twice.
    NoIdentity,
    /// It was done, and without an identity its answer cannot be asked for again.
    ResultLost,
    /// A layer above retries; this one makes one attempt.
    NotOwner,
    /// As many attempts were made as may be.
    Attempts,
    /// The other side asked for a longer wait than the ceiling for such hints.
    HintTooLong,
    /// The other side asked for a longer wait than there is time.
    HintPastDeadline,
    /// There is no time for another useful attempt.
    Deadline,
    /// The retry budget is spent.
    Budget,
    /// The breaker is open.
    BreakerOpen,
    /// The pool and its queue are full.
    PoolFull,
}

impl StopReason {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Permanent,
        Self::Conflict,
        Self::Overloaded,
        Self::Cancelled,
        Self::HintNever,
        Self::NoIdentity,
        Self::ResultLost,
        Self::NotOwner,
        Self::Attempts,
        Self::HintTooLong,
        Self::HintPastDeadline,
        Self::Deadline,
        Self::Budget,
        Self::BreakerOpen,
        Self::PoolFull,
    ];

    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Conflict => "conflict",
            Self::Overloaded => "overloaded",
            Self::Cancelled => "cancelled",
            Self::HintNever => "hint_never",
            Self::NoIdentity => "no_identity",
            Self::ResultLost => "result_lost",
            Self::NotOwner => "not_owner",
            Self::Attempts => "attempts",
            Self::HintTooLong => "hint_too_long",
            Self::HintPastDeadline => "hint_past_deadline",
            Self::Deadline => "deadline",
            Self::Budget => "budget",
            Self::BreakerOpen => "breaker_open",
            Self::PoolFull => "pool_full",
        }
    }
}

/// All that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// What it would mean to do the operation twice.
    pub class: OperationClass,
    /// What the last attempt came to.
    pub verdict: Verdict,
    /// This layer owns the retries.
    pub owner: bool,
    /// Attempts made.
    pub attempts: u32,
    /// Attempts that may be made.
    pub attempts_max: u32,
    /// What is left of the operation's time.
    pub remaining: Duration,
    /// What is kept of it for giving the answer.
    pub margin: Duration,
    /// With less than this nothing is sent.
    pub useful_min: Duration,
    /// The longest hint that is followed.
    pub hint_ceiling: Duration,
    /// The jittered delay before the next attempt.
    pub backoff: Duration,
}

/// Whether another attempt may be made, and after which delay. `reserve` takes one retry from the budget; it is asked
/// last, so that nothing is charged for a retry that something else forbids.
///
/// # Errors
///
/// The first reason, in the order of the table, why none may be made.
pub fn decide(situation: &Situation, reserve: impl FnOnce() -> bool) -> Result<Duration, StopReason> {
    may_repeat(situation.class, &situation.verdict)?;
    if !situation.owner {
        return Err(StopReason::NotOwner);
    }
    if situation.attempts >= situation.attempts_max {
        return Err(StopReason::Attempts);
    }
    let delay = fitting_delay(situation)?;
    if reserve() { Ok(delay) } else { Err(StopReason::Budget) }
}

/// Whether another attempt is safe, and might help.
fn may_repeat(class: OperationClass, verdict: &Verdict) -> Result<(), StopReason> {
    match (verdict.kind, verdict.hint) {
        (Kind::Overloaded, _) => return Err(StopReason::Overloaded),
        (Kind::Permanent, _) => return Err(StopReason::Permanent),
        (Kind::Conflict, _) => return Err(StopReason::Conflict),
        (Kind::Cancelled, _) => return Err(StopReason::Cancelled),
        (Kind::Transient | Kind::Timeout | Kind::Throttled | Kind::InProgress, Hint::Never) => {
            return Err(StopReason::HintNever);
        }
        (Kind::Transient | Kind::Timeout | Kind::Throttled | Kind::InProgress, Hint::None | Hint::After(_)) => {}
    }
    match (class, verdict.effect) {
        (OperationClass::Read | OperationClass::Keyed, _) => Ok(()),
        (OperationClass::Unkeyed, EffectState::Applied) => Err(StopReason::ResultLost),
        (OperationClass::Unkeyed, EffectState::MaybeApplied) => Err(StopReason::NoIdentity),
        // What is in progress is known by its identity, and this has none: it is not known what is running.
        (OperationClass::Unkeyed, _) if verdict.kind == Kind::InProgress => Err(StopReason::NoIdentity),
        (OperationClass::Unkeyed, EffectState::NotSent | EffectState::NotApplied) => Ok(()),
    }
}

/// The delay, if an attempt after it is still useful. A hint is never undercut: jitter is added to it, so that those who
/// were given the same hint do not come together, and gives way where there is no time for it.
fn fitting_delay(situation: &Situation) -> Result<Duration, StopReason> {
    let needed = situation.margin.saturating_add(situation.useful_min);
    let latest = situation.remaining.checked_sub(needed);
    match situation.verdict.hint {
        Hint::After(hint) if hint > situation.hint_ceiling => Err(StopReason::HintTooLong),
        Hint::After(hint) => {
            let latest = latest.filter(|latest| hint <= *latest).ok_or(StopReason::HintPastDeadline)?;
            Ok(hint.saturating_add(situation.backoff).min(latest))
        }
        Hint::None | Hint::Never => {
            latest.filter(|latest| situation.backoff <= *latest).map(|_| situation.backoff).ok_or(StopReason::Deadline)
        }
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
