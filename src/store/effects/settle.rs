//! Settling an effect: its last transition, and with the last of them the continuation of its operation.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::base::error::{Error, Failure, IntentError};
use crate::base::name::Slot;
use crate::base::operation::OperationType;
use crate::base::receipt::Outcome;
use crate::base::reply::{Decision, Reply};
use crate::log::record::{Body, EffectRecord, EffectTransition, IntentRecord, ResolveRecord, SlotRecord};
use crate::store::apply::effects::{effect_by_id, effects_of};
use crate::store::apply::get_system;
use crate::store::batch::{Batch, Ended, Member};
use crate::store::job::EffectJob;
use crate::store::rows::{ReceiptRow, SCOPE_BYTES, ScopeRow, SlotRow, System, sequence_key};
use crate::store::tx::Tx;

use super::intent::{EffectId, IntentBase};
use super::rows::{EffectRow, sequence_of_effect};

type Continuation = Arc<dyn Fn(&Tx<'_>, &Settled) -> Result<Decision, Failure> + Send + Sync>;

/// How accepted operations go on, by the name of their type.
#[derive(Default)]
pub(in crate::store) struct Continuations(HashMap<&'static str, Continuation>);

impl Continuations {
    pub(in crate::store) fn add<F, D>(&mut self, operation: &'static str, continuation: F)
    where
        F: Fn(&Tx<'_>, &Settled) -> Result<D, Failure> + Send + Sync + 'static,
        D: Into<Decision>,
    {
        self.0.insert(operation, Arc::new(move |tx, settled| continuation(tx, settled).map(Into::into)));
    }
}

impl fmt::Debug for Continuations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// An accepted operation whose effects are all final.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The operation.
    pub slot: Slot,
    /// What it answered when it was accepted.
    pub reply: Reply,
    /// Its effects, in the order in which they were planned.
    pub effects: Vec<SettledEffect>,
}

/// One effect that is final.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettledEffect {
    /// Its identity.
    pub id: EffectId,
    /// Whose it is.
    pub provider: String,
    /// It happened. Else it did not, and will not.
    pub applied: bool,
    /// The provider's reference, if it gave one.
    pub reference: Option<String>,
    /// What the provider answered.
    pub body: Vec<u8>,
}

impl SettledEffect {
    fn of(row: &EffectRow, last: Option<&EffectRecord>) -> Self {
        let (applied, report) = match last.map(|record| &record.transition) {
            Some(EffectTransition::Applied(report)) => (true, Some(report)),
            Some(EffectTransition::Refused(report)) => (false, Some(report)),
            Some(_) | None => (row.phase == super::rows::PhaseRow::Applied, row.report.as_ref()),
        };
        Self {
            id: EffectId(row.intent.identity),
            provider: row.intent.provider.clone(),
            applied,
            reference: report.and_then(|report| report.provider_reference.clone()).or_else(|| row.reference.clone()),
            body: report.map_or_else(Vec::new, |report| report.body.clone()),
        }
    }
}

/// An accepted operation as its rows tell it.
struct AcceptedOperation {
    sequence: u64,
    slot: Slot,
    scope: [u8; SCOPE_BYTES],
    receipt: ReceiptRow,
    operation_type: OperationType,
    continuation: Continuation,
}

impl Batch<'_> {
    pub(in crate::store) fn run_effect(&mut self, job: EffectJob) {
        let EffectJob { work, responder } = job;
        let before = self.last_sequence;
        let worked = work(self);
        let wrote = self.last_sequence > before;
        let answer = worked.map(|()| wrote.then(|| self.last_position()));
        self.members.push(Member::Write { responder, answer, wrote });
    }

    /// An operation may only be accepted if something will finish it.
    pub(in crate::store) fn check_accepted(
        &self,
        operation_type: &OperationType,
        intents: &[IntentRecord],
    ) -> Result<(), Error> {
        if intents.is_empty() {
            return Err(IntentError::AcceptedWithoutIntent.into());
        }
        if !self.shared.continuations.0.contains_key(operation_type.name) {
            return Err(IntentError::NoContinuation.into());
        }
        Ok(())
    }

    /// The same identity again means the same key and request after the first receipt was forgotten. While the first
    /// effect is not settled, a second one could not be told from it.
    pub(in crate::store) fn refuse_open(&self, intents: &[IntentRecord]) -> Result<(), Error> {
        for intent in intents {
            let found = effect_by_id(&self.overlay, &intent.identity).map_err(|error| error.answer())?;
            if found.is_some_and(|(_, row)| !row.is_final()) {
                return Err(IntentError::StillOpen.into());
            }
        }
        Ok(())
    }

    /// Records the last transition of an effect; if its operation waits for nothing else, together with the
    /// continuation. If that fails the outcome is kept and the continuation stays due.
    pub(in crate::store) fn settle(
        &mut self,
        key: &[u8],
        record: EffectRecord,
        callbacks: &[u64],
    ) -> Result<(), Error> {
        let sequence = sequence_of_effect(key);
        let others = effects_of(&self.overlay, sequence).map_err(|error| error.answer())?;
        if others.iter().all(|(other, row)| other == key || row.is_final()) {
            match self.resolve(sequence, vec![record.clone()], callbacks) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "a continuation failed; it stays due"),
            }
        }
        self.add_frame(Body::Effect(record)).map(drop)
    }

    /// Runs the continuation of an accepted operation and commits it. `false` if it is none, or has no continuation here.
    pub(in crate::store) fn resolve(
        &mut self,
        sequence: u64,
        effects: Vec<EffectRecord>,
        callbacks: &[u64],
    ) -> Result<bool, Error> {
        let Some(accepted) = self.accepted(sequence)? else { return Ok(false) };
        let rows = effects_of(&self.overlay, sequence).map_err(|error| error.answer())?;
        let reply = get_system::<Reply>(&self.overlay, System::Replies, &sequence_key(sequence));
        let last = |row: &EffectRow| effects.iter().find(|record| record.identity == row.intent.identity);
        let settled = Settled {
            slot: accepted.slot.clone(),
            reply: reply.map_err(|error| error.answer())?.unwrap_or_else(Reply::accepted),
            effects: rows.iter().map(|(_, row)| SettledEffect::of(row, last(row))).collect(),
        };
        let base = IntentBase {
            scope: accepted.scope,
            key: accepted.slot.key.as_bytes().to_vec(),
            digest: accepted.receipt.digest,
            first_ordinal: rows.iter().map(|(_, row)| row.intent.ordinal + 1).max().unwrap_or(0),
        };
        let continuation = Arc::clone(&accepted.continuation);
        let ran = self.run_closure(None, Some(base), |tx: &Tx<'_>| continuation(tx, &settled))?;
        let window_ms = rows.iter().filter_map(|(_, row)| row.intent.abilities.dedupe_window_ms).max().unwrap_or(0);
        let Ended { completion, writes, intents, .. } =
            self.end(&accepted.slot, &accepted.operation_type, ran, window_ms)?;
        let slot = &accepted.slot;
        let record = ResolveRecord {
            slot: SlotRecord {
                scope: accepted.scope,
                tenant: slot.tenant.as_str().to_owned(),
                actor: slot.actor.as_str().to_owned(),
                operation: slot.operation.as_str().to_owned(),
                key: slot.key.as_bytes().to_vec(),
            },
            accepted_sequence: accepted.sequence,
            effects,
            completion,
            changes: self.changes(&writes),
            intents,
            callbacks: callbacks.to_vec(),
        };
        self.add_frame(Body::Resolve(record))?;
        self.slots.insert(accepted.slot);
        Ok(true)
    }

    fn accepted(&self, sequence: u64) -> Result<Option<AcceptedOperation>, Error> {
        let rows = &self.overlay;
        let effects = effects_of(rows, sequence).map_err(|error| error.answer())?;
        let Some((_, effect)) = effects.first() else { return Ok(None) };
        let slot_key = &effect.slot_key;
        let stored = get_system::<SlotRow>(rows, System::Slots, slot_key).map_err(|error| error.answer())?;
        let Some(SlotRow::Receipt(receipt)) = stored else { return Ok(None) };
        if receipt.position.sequence != sequence || receipt.outcome != Outcome::Accepted {
            return Ok(None);
        }
        let Some((scope, key)) = slot_key.split_first_chunk::<SCOPE_BYTES>() else { return Ok(None) };
        let names = get_system::<ScopeRow>(rows, System::Scopes, scope).map_err(|error| error.answer())?;
        let Some(names) = names else { return Ok(None) };
        let (operation_type, continuation) = match (
            self.shared.operations.get(names.operation.as_str()),
            self.shared.continuations.0.get(names.operation.as_str()),
        ) {
            (Some(operation_type), Some(continuation)) => (*operation_type, Arc::clone(continuation)),
            (Some(_) | None, _) => return Ok(None),
        };
        let slot = Slot::new(&names.tenant, &names.actor, &names.operation, key)?;
        Ok(Some(AcceptedOperation { sequence, slot, scope: *scope, receipt, operation_type, continuation }))
    }
}
