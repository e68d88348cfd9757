//! The states of an effect and the one function that moves it from one to the next.

/// Where an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing left, or whatever left is known not to have been applied.
    Planned { not_before_ms: u64 },
    /// Recorded before the call leaves.
    Sending { run_id: [u8; 16], lease_until_ms: u64 },
    /// It may have happened.
    Uncertain { ask_not_before_ms: u64 },
    /// A person must decide.
    Parked,
    /// It happened. Final.
    Applied,
    /// It did not and will not happen. Final.
    Refused,
}

impl Phase {
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Applied | Self::Refused)
    }
}

/// An effect as far as its transitions are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EffectState {
    pub(crate) phase: Phase,
    /// Raised by every sending. Whoever reports under an older one is stale.
    pub(crate) fence: u64,
    /// How often it was sent.
    pub(crate) attempt: u32,
    /// The same since it was planned, or since a person let it go on: what the bound on attempts counts.
    pub(crate) tries: u32,
    /// Look-ups since it was last sent that settled nothing.
    pub(crate) asks: u32,
    /// An earlier sending may have been applied, so that "not applied" of the present one settles nothing.
    pub(crate) doubt: bool,
    /// The first sending of which nobody knows that it was not applied: from here the provider's window counts.
    pub(crate) first_sent_ms: Option<u64>,
    pub(crate) last_sent_ms: Option<u64>,
}

impl EffectState {
    /// As an intent brings it.
    pub(crate) const fn planned(not_before_ms: u64) -> Self {
        Self {
            phase: Phase::Planned { not_before_ms },
            fence: 0,
            attempt: 0,
            tries: 0,
            asks: 0,
            doubt: false,
            first_sent_ms: None,
            last_sent_ms: None,
        }
    }
}

/// What happens to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is about to be sent, under the next fence.
    Sending {
        run_id: [u8; 16],
        lease_until_ms: u64,
    },
    /// What left is known not to have been applied.
    Planned {
        not_before_ms: u64,
    },
    Uncertain {
        ask_not_before_ms: u64,
    },
    Parked,
    Applied,
    Refused,
}

/// Why an event changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The effect is final.
    Final,
    /// The fence is not the present one.
    Stale,
    /// The present state does not allow it.
    NotAllowed,
}

/// Moves an effect, or says why not. `fence` is what the event comes under: the present one, and the next one for a sending.
pub(crate) fn transition(state: EffectState, event: Event, fence: u64, now_ms: u64) -> Result<EffectState, Refusal> {
    if state.phase.is_final() {
        return Err(Refusal::Final);
    }
    let sending = matches!(event, Event::Sending { .. });
    if fence != state.fence.saturating_add(u64::from(sending)) {
        return Err(Refusal::Stale);
    }
    let parked = state.phase == Phase::Parked;
    let tries = if parked { 0 } else { state.tries };
    match (event, state.phase) {
        (Event::Sending { run_id, lease_until_ms }, Phase::Planned { .. } | Phase::Uncertain { .. }) => {
            Ok(EffectState {
                phase: Phase::Sending { run_id, lease_until_ms },
                fence,
                attempt: state.attempt.saturating_add(1),
                tries: state.tries.saturating_add(1),
                asks: 0,
                doubt: matches!(state.phase, Phase::Uncertain { .. }),
                first_sent_ms: state.first_sent_ms.or(Some(now_ms)),
                last_sent_ms: Some(now_ms),
            })
        }
        (Event::Planned { not_before_ms }, Phase::Sending { .. }) if !state.doubt => {
            Ok(planned(state, tries, not_before_ms))
        }
        // A look-up that counts, or a person, says so of everything that left.
        (Event::Planned { not_before_ms }, Phase::Uncertain { .. } | Phase::Parked) => {
            Ok(planned(state, tries, not_before_ms))
        }
        (Event::Uncertain { ask_not_before_ms }, Phase::Sending { .. } | Phase::Uncertain { .. } | Phase::Parked) => {
            let asked = matches!(state.phase, Phase::Uncertain { .. });
            let asks = if asked { state.asks.saturating_add(1) } else { 0 };
            let phase = Phase::Uncertain { ask_not_before_ms };
            Ok(EffectState { phase, asks, tries, doubt: true, ..state })
        }
        (Event::Parked, Phase::Planned { .. } | Phase::Uncertain { .. }) => {
            Ok(EffectState { phase: Phase::Parked, ..state })
        }
        // An authoritative answer may come from anywhere at any time: a callback, a look-up, a person.
        (Event::Applied, _) => Ok(EffectState { phase: Phase::Applied, ..state }),
        (Event::Refused, _) => Ok(EffectState { phase: Phase::Refused, ..state }),
        (Event::Sending { .. } | Event::Planned { .. } | Event::Uncertain { .. } | Event::Parked, _) => {
            Err(Refusal::NotAllowed)
        }
    }
}

/// Nothing that left was applied, so the next sending is a first one.
const fn planned(state: EffectState, tries: u32, not_before_ms: u64) -> EffectState {
    EffectState { phase: Phase::Planned { not_before_ms }, tries, asks: 0, doubt: false, first_sent_ms: None, ..state }
}
