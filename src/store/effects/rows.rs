//! The rows of effects and callbacks, and their keys.

use serde::{Deserialize, Serialize};

use crate::log::record::{CallbackRecord, EffectReport, EffectTransition, IntentRecord, LookUpAbility, Reported};
use crate::protocol::effect::{EffectState, Event, LookUp, News, Phase, Plan};

/// An effect: its intent and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct EffectRow {
    /// The key of the row of the slot whose operation planned it.
    #[serde(with = "crate::base::byte_string")]
    pub(in crate::store) slot_key: Vec<u8>,
    pub(in crate::store) intent: IntentRecord,
    pub(in crate::store) phase: PhaseRow,
    pub(in crate::store) fence: u64,
    pub(in crate::store) attempt: u32,
    pub(in crate::store) tries: u32,
    pub(in crate::store) asks: u32,
    pub(in crate::store) doubt: bool,
    pub(in crate::store) first_sent_ms: Option<u64>,
    pub(in crate::store) last_sent_ms: Option<u64>,
    pub(in crate::store) since_ms: u64,
    /// The order of the newest callback, as its provider gave it.
    pub(in crate::store) news_order: Option<u64>,
    /// What settled it.
    pub(in crate::store) report: Option<EffectReport>,
    /// The provider's reference, as the last report named it.
    pub(in crate::store) reference: Option<String>,
    /// The last report that contradicts its final state, until a person has looked.
    pub(in crate::store) dispute: Option<EffectReport>,
    /// How many reports came from finishers that had lost their fence.
    pub(in crate::store) stale: u32,
    pub(in crate::store) decided_by: Option<String>,
    pub(in crate::store) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) enum PhaseRow {
    Planned { not_before_ms: u64 },
    Sending { run_id: [u8; 16], lease_until_ms: u64 },
    Uncertain { ask_not_before_ms: u64 },
    Parked,
    Applied,
    Refused,
}

impl EffectRow {
    pub(in crate::store) fn planned(slot_key: Vec<u8>, intent: IntentRecord, now_ms: u64) -> Self {
        let state = EffectState::planned(intent.not_before_ms);
        let reference = intent.provider_reference.clone();
        let phase = PhaseRow::Planned { not_before_ms: intent.not_before_ms };
        Self {
            slot_key,
            intent,
            phase,
            fence: state.fence,
            attempt: state.attempt,
            tries: state.tries,
            asks: state.asks,
            doubt: state.doubt,
            first_sent_ms: state.first_sent_ms,
            last_sent_ms: state.last_sent_ms,
            since_ms: now_ms,
            news_order: None,
            report: None,
            reference,
            dispute: None,
            stale: 0,
            decided_by: None,
            reason: None,
        }
    }

    pub(in crate::store) const fn state(&self) -> EffectState {
        let phase = match self.phase {
            PhaseRow::Planned { not_before_ms } => Phase::Planned { not_before_ms },
            PhaseRow::Sending { run_id, lease_until_ms } => Phase::Sending { run_id, lease_until_ms },
            PhaseRow::Uncertain { ask_not_before_ms } => Phase::Uncertain { ask_not_before_ms },
            PhaseRow::Parked => Phase::Parked,
            PhaseRow::Applied => Phase::Applied,
            PhaseRow::Refused => Phase::Refused,
        };
        EffectState {
            phase,
            fence: self.fence,
            attempt: self.attempt,
            tries: self.tries,
            asks: self.asks,
            doubt: self.doubt,
            first_sent_ms: self.first_sent_ms,
            last_sent_ms: self.last_sent_ms,
        }
    }

    pub(in crate::store) fn set_state(&mut self, state: EffectState, now_ms: u64) {
        self.phase = match state.phase {
            Phase::Planned { not_before_ms } => PhaseRow::Planned { not_before_ms },
            Phase::Sending { run_id, lease_until_ms } => PhaseRow::Sending { run_id, lease_until_ms },
            Phase::Uncertain { ask_not_before_ms } => PhaseRow::Uncertain { ask_not_before_ms },
            Phase::Parked => PhaseRow::Parked,
            Phase::Applied => PhaseRow::Applied,
            Phase::Refused => PhaseRow::Refused,
        };
        self.fence = state.fence;
        self.attempt = state.attempt;
        self.tries = state.tries;
        self.asks = state.asks;
        self.doubt = state.doubt;
        self.first_sent_ms = state.first_sent_ms;
        self.last_sent_ms = state.last_sent_ms;
        self.since_ms = now_ms;
    }

    /// Takes out what was said, and leaves what was done.
    pub(in crate::store) fn erase(&mut self) {
        self.intent.payload.clear();
        for report in [&mut self.report, &mut self.dispute].into_iter().flatten() {
            report.body.clear();
        }
    }

    pub(in crate::store) const fn is_final(&self) -> bool {
        matches!(self.phase, PhaseRow::Applied | PhaseRow::Refused)
    }

    pub(in crate::store) fn plan(&self, call_ms: u64) -> Plan {
        Plan {
            dedupe_window_ms: self.intent.abilities.dedupe_window_ms,
            look_up: look_up_of(self.intent.abilities.lookup),
            attempts_max: self.intent.attempts_max,
            not_after_ms: self.intent.not_after_ms,
            call_ms,
        }
    }
}

pub(in crate::store) const fn look_up_of(ability: LookUpAbility) -> LookUp {
    match ability {
        LookUpAbility::None => LookUp::None,
        LookUpAbility::Plain => LookUp::Plain,
        LookUpAbility::Bounded { in_flight_ms } => LookUp::Bounded { in_flight_ms },
        LookUpAbility::Bars => LookUp::Bars,
    }
}

pub(in crate::store) const fn news_of(reported: Reported) -> News {
    match reported {
        Reported::Applied => News::Applied,
        Reported::Refused => News::Refused,
        Reported::Pending | Reported::NotFound => News::Open,
    }
}

/// What a record's transition is, or none for evidence that moves nothing.
pub(in crate::store) const fn event_of(transition: &EffectTransition) -> Option<Event> {
    Some(match transition {
        EffectTransition::Sending { run_id, lease_until_ms } => {
            Event::Sending { run_id: *run_id, lease_until_ms: *lease_until_ms }
        }
        EffectTransition::Planned { not_before_ms } => Event::Planned { not_before_ms: *not_before_ms },
        EffectTransition::Uncertain { ask_not_before_ms } => Event::Uncertain { ask_not_before_ms: *ask_not_before_ms },
        EffectTransition::Parked => Event::Parked,
        EffectTransition::Applied(_) => Event::Applied,
        EffectTransition::Refused(_) => Event::Refused,
        EffectTransition::Disputed(_) | EffectTransition::Stale(_) | EffectTransition::DisputeClosed => return None,
    })
}

/// A callback, under its delivery. It is kept until its `forget_after_ms`, so that a redelivery is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct CallbackRow {
    /// The sequence of its entry, which its expiry row has as well.
    pub(in crate::store) sequence: u64,
    pub(in crate::store) record: CallbackRecord,
}

/// The key of an effect's row: the sequence of its operation and its ordinal.
pub(in crate::store) const EFFECT_KEY_BYTES: usize = 12;
pub(in crate::store) type EffectKey = [u8; EFFECT_KEY_BYTES];

pub(in crate::store) fn effect_key(sequence: u64, ordinal: u32) -> EffectKey {
    let mut key = [0; EFFECT_KEY_BYTES];
    key[..8].copy_from_slice(&sequence.to_be_bytes());
    key[8..].copy_from_slice(&ordinal.to_be_bytes());
    key
}

pub(in crate::store) fn sequence_of_effect(key: &[u8]) -> u64 {
    key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// What a row of the due table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum DueKind {
    /// Being sent: due at the end of the lease, or at once in another run.
    Sending,
    /// Planned or uncertain.
    Ready,
    /// All effects of an accepted operation are final, and its continuation has not run.
    Continuation,
}

impl DueKind {
    pub(in crate::store) const fn number(self) -> u8 {
        match self {
            Self::Sending => 0,
            Self::Ready => 1,
            Self::Continuation => 2,
        }
    }
}

/// Kind, provider, time, effect: an open finds what was being sent without reading what waits, and a provider's dispatch
/// does not walk over what waits for another.
pub(in crate::store) fn due_key(kind: DueKind, provider: &str, at_ms: u64, effect: &[u8]) -> Vec<u8> {
    [&due_prefix(kind, provider)[..], &at_ms.to_be_bytes(), effect].concat()
}

pub(in crate::store) fn due_prefix(kind: DueKind, provider: &str) -> Vec<u8> {
    let kind = [kind.number()];
    [&kind[..], provider.as_bytes(), &[0]].concat()
}

/// An operation whose continuation is due.
pub(in crate::store) fn continuation_key(sequence: u64) -> Vec<u8> {
    [&[DueKind::Continuation.number()][..], &sequence.to_be_bytes()].concat()
}

/// The time and the effect of a row of the due table.
pub(in crate::store) fn due_parts(key: &[u8]) -> Option<(u64, &[u8])> {
    let (rest, effect) = key.split_last_chunk::<EFFECT_KEY_BYTES>()?;
    let (_, at) = rest.split_last_chunk::<8>()?;
    Some((u64::from_be_bytes(*at), effect))
}

/// Two names as one key, so that no two pairs are the same.
pub(in crate::store) fn pair_key(provider: &str, text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
    [provider.as_bytes(), &[0], &length, text.as_bytes()].concat()
}
