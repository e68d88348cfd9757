//! What is known about the operation after all of its attempts so far, and how it ends from there.

use std::time::Duration;

use super::decide::{OperationClass, StopReason};
use super::outcome::{Cause, Ending, OverloadSource, Phase};
use super::verdict::{EffectState, Hint, Verdict};

/// Uncertainty is sticky: an attempt that may have done it is not undone by a later one that did nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Knowledge {
    maybe: Option<Cause>,
    applied: bool,
}

impl Knowledge {
    /// Attempt number `attempt` came to this.
    pub(crate) fn learn(&mut self, class: OperationClass, verdict: &Verdict, attempt: u32) {
        if class == OperationClass::Read {
            return;
        }
        match verdict.effect {
            EffectState::Applied => self.applied = true,
            EffectState::MaybeApplied => {
                self.maybe.get_or_insert(Cause { kind: verdict.kind, attempt });
            }
            EffectState::NotSent | EffectState::NotApplied if verdict.settles => self.maybe = None,
            EffectState::NotSent | EffectState::NotApplied => {}
        }
    }

    /// How the operation ends if it stops now, for this reason.
    pub(crate) fn conclude(&self, stop: Stop) -> Ending {
        let retry_after = stop.retry_after;
        if self.applied {
            return Ending::Exhausted { reason: StopReason::ResultLost, retry_after };
        }
        if let Some(cause) = self.maybe {
            return Ending::Uncertain { cause, reason: stop.reason };
        }
        let overloaded = |source| Ending::Overloaded { source, retry_after };
        match stop.reason {
            StopReason::Permanent => Ending::Rejected { conflict: false },
            StopReason::Conflict => Ending::Rejected { conflict: true },
            StopReason::Overloaded => overloaded(OverloadSource::Server),
            StopReason::BreakerOpen => overloaded(OverloadSource::Breaker),
            StopReason::PoolFull => overloaded(OverloadSource::Pool),
            StopReason::Cancelled => Ending::Cancelled,
            StopReason::Deadline => Ending::DeadlineExceeded { phase: stop.phase },
            // The time was up anyway: that is what somebody who looks for slow calls must find.
            _ if stop.time_is_up => Ending::DeadlineExceeded { phase: stop.phase },
            reason @ (StopReason::HintNever
            | StopReason::NoIdentity
            | StopReason::ResultLost
            | StopReason::NotOwner
            | StopReason::Attempts
            | StopReason::HintTooLong
            | StopReason::HintPastDeadline
            | StopReason::Budget) => Ending::Exhausted { reason, retry_after },
        }
    }
}

/// Why and where an operation stops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stop {
    pub(crate) reason: StopReason,
    pub(crate) phase: Phase,
    pub(crate) time_is_up: bool,
    pub(crate) retry_after: Option<Duration>,
}

impl Stop {
    pub(crate) const fn new(reason: StopReason, phase: Phase) -> Self {
        Self { reason, phase, time_is_up: false, retry_after: None }
    }

    /// With what the last attempt's answer says about coming again.
    pub(crate) const fn hinted(self, verdict: &Verdict) -> Self {
        match verdict.hint {
            Hint::After(after) => Self { retry_after: Some(after), ..self },
            Hint::None | Hint::Never => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::Kind;
    use super::*;

    const KEYED: OperationClass = OperationClass::Keyed;

    fn after(verdicts: &[Verdict], reason: StopReason) -> Ending {
        let mut knowledge = Knowledge::default();
        for (number, verdict) in (1..).zip(verdicts) {
            knowledge.learn(KEYED, verdict, number);
        }
        knowledge.conclude(Stop::new(reason, Phase::Attempt))
    }

    const CUT: Verdict = Verdict::maybe_applied(Kind::Transient);

    #[test]
    fn an_uncertain_attempt_is_not_settled_by_a_refusal_of_a_later_one() {
        let cause = Cause { kind: Kind::Transient, attempt: 1 };
        for (later, reason) in [
            (Verdict::not_applied(Kind::Overloaded), StopReason::Overloaded),
            (Verdict::not_applied(Kind::Permanent), StopReason::Permanent),
            (Verdict::not_applied(Kind::Conflict), StopReason::Conflict),
            (Verdict::not_sent(Kind::Transient), StopReason::Attempts),
            (Verdict::not_sent(Kind::Cancelled), StopReason::Cancelled),
        ] {
            assert_eq!(after(&[CUT, later], reason), Ending::Uncertain { cause, reason });
        }
    }

    #[test]
    fn an_answer_that_names_the_identity_settles_it() {
        assert_eq!(after(&[CUT, Verdict::rejected()], StopReason::Permanent), Ending::Rejected { conflict: false });
        assert_eq!(after(&[CUT, Verdict::not_ours()], StopReason::Conflict), Ending::Rejected { conflict: true });
        let looked_up = Verdict::not_applied(Kind::Transient).settled();
        let exhausted = Ending::Exhausted { reason: StopReason::Attempts, retry_after: None };
        assert_eq!(after(&[CUT, looked_up], StopReason::Attempts), exhausted);
    }

    #[test]
    fn what_was_done_stays_done_and_its_answer_is_lost() {
        let lost = Ending::Exhausted { reason: StopReason::ResultLost, retry_after: None };
        let overloaded = Verdict::not_applied(Kind::Overloaded);
        let applied = Verdict::applied(Kind::Transient);
        assert_eq!(after(&[CUT, applied, overloaded], StopReason::Overloaded), lost);
    }

    #[test]
    fn the_first_attempt_that_may_have_done_it_is_the_cause() {
        let timed_out = Verdict::maybe_applied(Kind::Timeout);
        let verdicts = [Verdict::not_sent(Kind::Transient), timed_out, CUT];
        let cause = Cause { kind: Kind::Timeout, attempt: 2 };
        let reason = StopReason::Attempts;
        assert_eq!(after(&verdicts, reason), Ending::Uncertain { cause, reason });
    }

    #[test]
    fn a_read_is_never_uncertain() {
        let mut knowledge = Knowledge::default();
        knowledge.learn(OperationClass::Read, &CUT, 1);
        let ending = knowledge.conclude(Stop::new(StopReason::Deadline, Phase::Attempt));
        assert_eq!(ending, Ending::DeadlineExceeded { phase: Phase::Attempt });
    }
}
