//! What one attempt came to.

use std::time::Duration;

/// What the attempt did to the other side's state, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectState {
    /// No byte of the request left.
    NotSent,
    /// The other side says, or its protocol proves, that nothing was done.
    NotApplied,
    /// It may have been done.
    MaybeApplied,
    /// It was done, and its answer was lost.
    Applied,
}

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It may go better next time: a connection that was cut, a replica that went away.
    Transient,
    /// No answer in time.
    Timeout,
    /// This caller sends too much. The other side is well.
    Throttled,
    /// The other side has too much to do and says to stop.
    Overloaded,
    /// Another attempt of the same operation is running.
    InProgress,
    /// The same request will always be refused.
    Permanent,
    /// The request contradicts what is there.
    Conflict,
    /// Somebody on this side stopped it.
    Cancelled,
}

impl Kind {
    /// The name in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Timeout => "timeout",
            Self::Throttled => "throttled",
            Self::Overloaded => "overloaded",
            Self::InProgress => "in_progress",
            Self::Permanent => "permanent",
            Self::Conflict => "conflict",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What the other side says about coming again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// Not before this has passed.
    After(Duration),
    /// Not at all.
    Never,
}

/// The verdict on one attempt that brought no answer.
///
/// ```
/// use std::time::Duration;
/// use counterfoil::call::{Kind, Verdict};
///
/// let refused = Verdict::not_sent(Kind::Transient);
/// let throttled = Verdict::not_applied(Kind::Throttled).after(Duration::from_secs(2));
/// let cut = Verdict::maybe_applied(Kind::Transient);
/// assert!(!refused.settles && !throttled.settles && !cut.settles);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a verdict decides nothing until it is returned from the attempt"]
pub struct Verdict {
    /// What it did.
    pub effect: EffectState,
    /// What kind of failure it was.
    pub kind: Kind,
    /// When to come again.
    pub hint: Hint,
    /// The answer names this operation's identity, so it speaks of **all** attempts and ends an uncertainty. A refusal
    /// of this attempt alone (no access, overload, a malformed request) does not.
    pub settles: bool,
}

impl Verdict {
    const fn new(effect: EffectState, kind: Kind) -> Self {
        Self { effect, kind, hint: Hint::None, settles: false }
    }

    /// No byte of the request left.
    pub const fn not_sent(kind: Kind) -> Self {
        Self::new(EffectState::NotSent, kind)
    }

    /// This attempt did nothing.
    pub const fn not_applied(kind: Kind) -> Self {
        Self::new(EffectState::NotApplied, kind)
    }

    /// This attempt may have done it. When in doubt, this.
    pub const fn maybe_applied(kind: Kind) -> Self {
        Self::new(EffectState::MaybeApplied, kind)
    }

    /// It was done and its answer is lost.
    pub const fn applied(kind: Kind) -> Self {
        Self { settles: true, ..Self::new(EffectState::Applied, kind) }
    }

    /// The operation itself was refused, by an answer that names its identity: a stored "no".
    pub const fn rejected() -> Self {
        Self::not_applied(Kind::Permanent).settled()
    }

    /// What exists under this key is somebody else's: another request holds it, so none of ours was done.
    pub const fn not_ours() -> Self {
        Self::not_applied(Kind::Conflict).settled()
    }

    /// Another attempt of the same operation is running.
    pub const fn in_progress() -> Self {
        Self::maybe_applied(Kind::InProgress)
    }

    /// Not before this has passed.
    pub const fn after(self, delay: Duration) -> Self {
        Self { hint: Hint::After(delay), ..self }
    }

    /// Not at all.
    pub const fn never(self) -> Self {
        Self { hint: Hint::Never, ..self }
    }

    /// The same with this hint.
    pub const fn hint(self, hint: Hint) -> Self {
        Self { hint, ..self }
    }

    /// The answer names this operation's identity.
    pub const fn settled(self) -> Self {
        Self { settles: true, ..self }
    }

    /// What the attempt says about the health of the other side. `full_time`: it was given all the time that an attempt
    /// is meant to have.
    pub(crate) const fn health(&self, full_time: bool) -> Health {
        match self.kind {
            Kind::Transient | Kind::Overloaded => Health::Bad,
            // A caller with 5 ms left proves nothing about who it called.
            Kind::Timeout if full_time => Health::Bad,
            Kind::Timeout | Kind::Cancelled | Kind::Throttled => Health::Neutral,
            // A "no" in time is what a healthy service says.
            Kind::InProgress | Kind::Permanent | Kind::Conflict => Health::Good,
        }
    }
}

/// What an attempt says about the health of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// It answered in time, be it with a "no".
    Good,
    /// It failed.
    Bad,
    /// Nothing can be concluded.
    Neutral,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timely_negative_answer_is_health_and_cancellation_is_neutral() {
        let health = |kind, full| Verdict::maybe_applied(kind).health(full);
        for kind in [Kind::InProgress, Kind::Permanent, Kind::Conflict] {
            assert_eq!(health(kind, true), Health::Good, "{kind:?}");
        }
        for kind in [Kind::Transient, Kind::Overloaded] {
            assert_eq!(health(kind, false), Health::Bad, "{kind:?}");
        }
        assert_eq!(health(Kind::Cancelled, true), Health::Neutral);
        assert_eq!(health(Kind::Throttled, true), Health::Neutral);
    }

    #[test]
    fn a_timeout_counts_only_if_the_attempt_had_its_full_time() {
        assert_eq!(Verdict::maybe_applied(Kind::Timeout).health(true), Health::Bad);
        assert_eq!(Verdict::maybe_applied(Kind::Timeout).health(false), Health::Neutral);
    }

    #[test]
    fn only_answers_that_name_the_identity_settle() {
        assert!(
            Verdict::rejected().settles && Verdict::not_ours().settles && Verdict::applied(Kind::Transient).settles
        );
        assert!(!Verdict::not_applied(Kind::Permanent).settles && !Verdict::in_progress().settles);
    }
}
