//! Effects as people see them: listed, shown, and decided with a reason.

use std::fmt;

use crate::base::error::Error;
use crate::base::name::Slot;
use crate::base::position::TimestampMs;
use crate::log::record::{Body, EffectRecord, EffectReport, EffectTransition, ReportSource, Reported};
use crate::state::{ALL, Rows};
use crate::store::Store;
use crate::store::apply::effects::effect_by_id;
use crate::store::apply::{ApplyError, get_system};
use crate::store::rows::{SCOPE_BYTES, ScopeRow, System, open_row};

use super::intent::EffectId;
use super::record_of;
use super::rows::{EffectRow, PhaseRow};

/// Where an effect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EffectPhase {
    /// It is durable, and nothing of it may have happened.
    Planned,
    /// It is being sent.
    Sending,
    /// It may have happened.
    Uncertain,
    /// A person must decide.
    Parked,
    /// It happened.
    Applied,
    /// It did not and will not happen.
    Refused,
}

impl fmt::Display for EffectPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Planned => "planned",
            Self::Sending => "sending",
            Self::Uncertain => "uncertain",
            Self::Parked => "parked",
            Self::Applied => "applied",
            Self::Refused => "refused",
        })
    }
}

/// One effect. Its payload and the provider's answer are not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectStatus {
    /// Its identity.
    pub id: EffectId,
    /// The operation that planned it; none if its names are gone with its receipt.
    pub slot: Option<Slot>,
    /// Whose it is.
    pub provider: String,
    /// Where it is.
    pub phase: EffectPhase,
    /// Since when, by the store's time.
    pub since: TimestampMs,
    /// How often it was sent.
    pub attempts: u32,
    /// The next step is not made before this.
    pub not_before: Option<TimestampMs>,
    /// The provider's reference.
    pub reference: Option<String>,
    /// A report contradicts its final state.
    pub disputed: bool,
    /// How many reports came from finishers that had lost their fence.
    pub stale_reports: u32,
    /// Who decided last, where a person did.
    pub decided_by: Option<String>,
    /// Why it is parked, or why a person decided as they did.
    pub reason: Option<String>,
}

/// What a person decides about an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EffectDecision {
    /// It happened.
    Applied,
    /// It did not and will not happen.
    Refused,
    /// It did not happen, and may be sent. **Only certainty allows this**: an effect that did happen would happen again.
    Retry,
    /// Go on asking and, where the provider deduplicates, sending. Of a parked effect whose fate is not known.
    AskAgain,
    /// Nothing is to be done with it until somebody decides.
    Park,
    /// The dispute about it was looked into.
    CloseDispute,
}

impl Store {
    /// The effects that `wanted` asks for, oldest first. Final ones are listed until their receipt is forgotten.
    ///
    /// It reads every effect that is kept.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn effects(&self, wanted: impl Fn(&EffectStatus) -> bool) -> Result<Vec<EffectStatus>, Error> {
        let published = self.shared().publisher.load();
        let list = || -> Result<Vec<EffectStatus>, ApplyError> {
            let mut found = Vec::new();
            for row in published.view.range(System::Effects.id(), ALL)? {
                let (key, value) = row?;
                let status = status(&published.view, open_row(System::Effects, key.key(), &value)?)?;
                if wanted(&status) {
                    found.push(status);
                }
            }
            Ok(found)
        };
        list().map_err(|error| error.answer())
    }

    /// One effect; none if it is not known, or not any more.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn effect(&self, id: EffectId) -> Result<Option<EffectStatus>, Error> {
        let published = self.shared().publisher.load();
        let find = || -> Result<Option<EffectStatus>, ApplyError> {
            effect_by_id(&published.view, &id.0)?.map(|(_, row)| status(&published.view, row)).transpose()
        };
        find().map_err(|error| error.answer())
    }

    /// Records what a person decided about an effect, and why. `false` if its state does not allow it: final states stay,
    /// and what is being sent can be settled but not parked or sent again.
    ///
    /// If that settles the last effect of an accepted operation, its continuation runs in the same write; or, where this
    /// program has none, as soon as one runs that does.
    ///
    /// # Errors
    ///
    /// As [`Store::write`].
    pub fn decide_effect(
        &self,
        id: EffectId,
        decision: EffectDecision,
        decided_by: &str,
        reason: &str,
    ) -> Result<bool, Error> {
        let (decided_by, reason) = (decided_by.to_owned(), reason.to_owned());
        self.commit_effects(move |batch| {
            let found = effect_by_id(&batch.overlay, &id.0).map_err(|error| error.answer())?;
            let Some((key, row)) = found else { return Ok(false) };
            if !is_allowed(&row, decision) {
                return Ok(false);
            }
            let transition = decided(decision, batch.time.0);
            let record =
                EffectRecord { decided_by: Some(decided_by), reason: Some(reason), ..record_of(&row, transition) };
            match decision {
                EffectDecision::Applied | EffectDecision::Refused => batch.settle(&key, record, &[])?,
                EffectDecision::Retry
                | EffectDecision::AskAgain
                | EffectDecision::Park
                | EffectDecision::CloseDispute => batch.add_frame(Body::Effect(record)).map(drop)?,
            }
            Ok(true)
        })
    }
}

fn is_allowed(row: &EffectRow, decision: EffectDecision) -> bool {
    let (sending, uncertain) =
        (matches!(row.phase, PhaseRow::Sending { .. }), matches!(row.phase, PhaseRow::Uncertain { .. }));
    let (parked, planned) = (row.phase == PhaseRow::Parked, matches!(row.phase, PhaseRow::Planned { .. }));
    match decision {
        EffectDecision::Applied | EffectDecision::Refused => {
            !row.is_final() && (sending || uncertain || parked || planned)
        }
        EffectDecision::Retry => parked || uncertain,
        EffectDecision::AskAgain => parked && row.last_sent_ms.is_some(),
        EffectDecision::Park => planned || uncertain,
        EffectDecision::CloseDispute => row.dispute.is_some(),
    }
}

fn decided(decision: EffectDecision, now_ms: u64) -> EffectTransition {
    let report =
        |outcome| EffectReport { outcome, source: ReportSource::Person, provider_reference: None, body: Vec::new() };
    match decision {
        EffectDecision::Applied => EffectTransition::Applied(report(Reported::Applied)),
        EffectDecision::Refused => EffectTransition::Refused(report(Reported::Refused)),
        EffectDecision::Retry => EffectTransition::Planned { not_before_ms: now_ms },
        EffectDecision::AskAgain => EffectTransition::Uncertain { ask_not_before_ms: now_ms },
        EffectDecision::Park => EffectTransition::Parked,
        EffectDecision::CloseDispute => EffectTransition::DisputeClosed,
    }
}

fn status(rows: &impl Rows, row: EffectRow) -> Result<EffectStatus, ApplyError> {
    let slot = match row.slot_key.split_first_chunk::<SCOPE_BYTES>() {
        Some((scope, key)) => get_system::<ScopeRow>(rows, System::Scopes, scope)?
            .and_then(|names| Slot::new(&names.tenant, &names.actor, &names.operation, key).ok()),
        None => None,
    };
    let (phase, not_before) = match row.phase {
        PhaseRow::Planned { not_before_ms } => (EffectPhase::Planned, Some(TimestampMs(not_before_ms))),
        PhaseRow::Sending { .. } => (EffectPhase::Sending, None),
        PhaseRow::Uncertain { ask_not_before_ms } => (EffectPhase::Uncertain, Some(TimestampMs(ask_not_before_ms))),
        PhaseRow::Parked => (EffectPhase::Parked, None),
        PhaseRow::Applied => (EffectPhase::Applied, None),
        PhaseRow::Refused => (EffectPhase::Refused, None),
    };
    Ok(EffectStatus {
        id: EffectId(row.intent.identity),
        slot,
        provider: row.intent.provider,
        phase,
        since: TimestampMs(row.since_ms),
        attempts: row.attempt,
        not_before,
        reference: row.reference,
        disputed: row.dispute.is_some(),
        stale_reports: row.stale,
        decided_by: row.decided_by,
        reason: row.reason,
    })
}
