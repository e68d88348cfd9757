//! What to do with an effect that is due, and what an answer means for it.

use super::state::{EffectState, Event, Phase};

/// After so many look-ups that settled nothing a person is asked.
pub(crate) const ASKS_MAX: u32 = 32;

/// Whether a provider can be asked by key, and what "not found" means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUp {
    None,
    /// "Not found" settles nothing.
    Plain,
    /// "Not found" counts once this long has passed since the last sending.
    Bounded {
        in_flight_ms: u64,
    },
    /// Asking bars the identity from then on.
    Bars,
}

/// What an intent and its provider say of how it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The provider deduplicates by key for this long.
    pub(crate) dedupe_window_ms: Option<u64>,
    pub(crate) look_up: LookUp,
    pub(crate) attempts_max: u32,
    /// Not sent any more from here on, unless it was sent before.
    pub(crate) not_after_ms: Option<u64>,
    /// How long one call may take: a resend must arrive inside the window.
    pub(crate) call_ms: u64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Wait {
        until_ms: u64,
    },
    Send,
    LookUp,
    Park(ParkReason),
    /// Its lease has ended or its run is gone: it is uncertain.
    Doubt,
    /// It is final, or a person's.
    Nothing,
}

/// Why a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkReason {
    AttemptsUsedUp,
    TooLate,
    /// It may have happened, and the provider can neither be asked nor be sent it again.
    CannotBeSettled,
    LookUpsUsedUp,
}

impl ParkReason {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::AttemptsUsedUp => "its attempts are used up, and none was applied",
            Self::TooLate => "it was not sent before its time was over",
            Self::CannotBeSettled => {
                "it may have been applied, and the provider can neither be asked nor be sent it again"
            }
            Self::LookUpsUsedUp => "look-ups settled nothing, and it cannot be sent again",
        }
    }
}

/// What is due for an effect now, in the run `run_id`.
pub(crate) fn next_step(state: &EffectState, plan: &Plan, run_id: [u8; 16], now_ms: u64) -> Step {
    match state.phase {
        Phase::Applied | Phase::Refused | Phase::Parked => Step::Nothing,
        Phase::Sending { run_id: of, lease_until_ms } if of == run_id && now_ms < lease_until_ms => {
            Step::Wait { until_ms: lease_until_ms }
        }
        Phase::Sending { .. } => Step::Doubt,
        Phase::Planned { .. } if plan.not_after_ms.is_some_and(|end| now_ms >= end) => Step::Park(ParkReason::TooLate),
        Phase::Planned { not_before_ms } if now_ms < not_before_ms => Step::Wait { until_ms: not_before_ms },
        Phase::Planned { .. } if state.tries >= plan.attempts_max => Step::Park(ParkReason::AttemptsUsedUp),
        Phase::Planned { .. } => Step::Send,
        Phase::Uncertain { ask_not_before_ms } if now_ms < ask_not_before_ms => {
            Step::Wait { until_ms: ask_not_before_ms }
        }
        Phase::Uncertain { .. } => next_of_uncertain(state, plan, now_ms),
    }
}

/// Asking comes first, since it does nothing; then the same identity again, while the provider knows it; then a person.
fn next_of_uncertain(state: &EffectState, plan: &Plan, now_ms: u64) -> Step {
    let can_ask = plan.look_up != LookUp::None;
    let resends = state.tries < plan.attempts_max && window_is_open(state, plan, now_ms);
    if can_ask && (state.asks == 0 || !resends) && state.asks < ASKS_MAX {
        Step::LookUp
    } else if resends {
        Step::Send
    } else if can_ask {
        Step::Park(ParkReason::LookUpsUsedUp)
    } else {
        Step::Park(ParkReason::CannotBeSettled)
    }
}

/// A request that leaves now arrives while the provider still knows the first one.
fn window_is_open(state: &EffectState, plan: &Plan, now_ms: u64) -> bool {
    let (Some(window), Some(first)) = (plan.dedupe_window_ms, state.first_sent_ms) else { return false };
    now_ms.saturating_add(plan.call_ms) < first.saturating_add(window)
}

/// What a sending came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendResult {
    Applied,
    /// A definite no that sending again will not change.
    Refused,
    /// Certainly not applied, this time.
    NotApplied,
    /// It may have been applied.
    Unknown,
}

/// The event of a sending's result; `again_ms` is when the next step may be made.
pub(crate) const fn after_send(state: &EffectState, result: SendResult, again_ms: u64) -> Event {
    match result {
        SendResult::Applied => Event::Applied,
        SendResult::Refused => Event::Refused,
        SendResult::NotApplied if !state.doubt => Event::Planned { not_before_ms: again_ms },
        // This attempt did nothing; an earlier one may have.
        SendResult::NotApplied | SendResult::Unknown => Event::Uncertain { ask_not_before_ms: again_ms },
    }
}

/// The event of a look-up that found nothing. It settles nothing while the last request may still be travelling, unless
/// asking has barred the identity: then it never happens.
pub(crate) fn after_look_up(state: &EffectState, look_up: LookUp, now_ms: u64, again_ms: u64) -> Event {
    match look_up {
        LookUp::Bars => Event::Refused,
        LookUp::Bounded { in_flight_ms } => {
            let counts_from = state.last_sent_ms.map_or(u64::MAX, |sent| sent.saturating_add(in_flight_ms));
            if now_ms >= counts_from {
                Event::Planned { not_before_ms: again_ms }
            } else {
                Event::Uncertain { ask_not_before_ms: again_ms.max(counts_from) }
            }
        }
        LookUp::None | LookUp::Plain => Event::Uncertain { ask_not_before_ms: again_ms },
    }
}
