//! An operation: its rows, its receipt, its reply and the one row under which it comes due.

use crate::base::mutant::{self, Mutant};
use crate::base::receipt::Outcome;
use crate::log::record::{OperationRecord, SlotRecord};
use crate::state::{Bytes, Catalog, Overlay, Rows};

use super::effects::{Effects, remove_final};
use super::usage::Usage;
use super::{ApplyError, Changes, FrameFacts, collect_tables, get_system};
use crate::store::rows::{
    ExpiryRow, ReceiptRow, ScopeNames, ScopeRow, SlotRow, System, Tier, expiry_key, open_row, seal_row, sequence_key,
    slot_key_of,
};

pub(super) fn collect_operation(
    rows: &Overlay,
    changes: &mut Changes,
    catalog: &Catalog,
    frame: FrameFacts,
    wall_ms: u64,
    operation: &OperationRecord,
) -> Result<(), ApplyError> {
    let slot_key = slot_key_of(&operation.slot.scope, &operation.slot.key);
    let replaced = get_system::<SlotRow>(rows, System::Slots, &slot_key)?;
    collect_scope(rows, changes, &operation.slot)?;
    collect_tables(changes, catalog, &operation.changes)?;
    let mut usage = Usage::default();
    let tenant = &operation.slot.tenant;
    remove_dependents(rows, changes, &mut usage, tenant, &slot_key, replaced.as_ref())?;
    if let Some(SlotRow::Receipt(old)) = &replaced {
        remove_final(rows, changes, frame, old.position.sequence)?;
    }
    let sequence = frame.position.sequence;
    let completion = &operation.completion;
    let reply = seal_row(System::Replies, &sequence_key(sequence), &completion.reply);
    let row = ReceiptRow {
        digest: operation.digest,
        operation_version: operation.operation_version,
        outcome: completion.outcome,
        position: frame.position,
        completed_ms: frame.time_ms,
        completed_wall_ms: wall_ms,
        replay_until_ms: completion.replay_until_ms,
        refuse_until_ms: completion.refuse_until_ms,
        allowed_until_ms: completion.allowed_until_ms,
        reply_bytes: reply.len() as u64,
        reply_erased: false,
        body_dropped: completion.body_dropped,
        redacted: completion.redacted,
        attempt: operation.attempt,
        trace_id: operation.trace_id.clone(),
        resource_id: completion.reply.resource_id.clone(),
    };
    usage.came(tenant, &slot_key, row.reply_bytes);
    usage.collect(rows, changes)?;
    changes.put(System::Replies.id(), &sequence_key(sequence), Bytes::from(reply));
    let expiry = ExpiryRow { key: slot_key.clone(), tier: Tier::Replay, refuse_until_ms: completion.refuse_until_ms };
    changes.put_system(System::Expiry, &expiry_key(completion.replay_until_ms, sequence), &expiry);
    changes.put_system(System::Slots, &slot_key, &SlotRow::Receipt(row));
    let accepted = completion.outcome == Outcome::Accepted;
    Effects::new(rows, frame).plan(changes, &slot_key, sequence, &operation.intents, accepted)
}

/// What is replaced takes with it whatever depends on it, so that nothing of it comes due later and takes its successor
/// away. A receipt's one expiry row is under one of two deadlines, depending on whether it was swept; both are removed
/// without looking.
pub(super) fn remove_dependents(
    rows: &Overlay,
    changes: &mut Changes,
    usage: &mut Usage,
    tenant: &str,
    slot_key: &[u8],
    replaced: Option<&SlotRow>,
) -> Result<(), ApplyError> {
    match replaced {
        Some(SlotRow::Receipt(old)) => {
            let sequence = old.position.sequence;
            if !mutant::is(Mutant::ExpiryRowLeft) {
                changes.remove(System::Expiry.id(), &expiry_key(old.replay_until_ms, sequence));
                changes.remove(System::Expiry.id(), &expiry_key(old.refuse_until_ms, sequence));
            }
            if rows.get(System::Replies.id(), &sequence_key(sequence))?.is_some() {
                usage.reply_went(tenant, old);
            }
            usage.went(tenant, slot_key);
            changes.remove(System::Replies.id(), &sequence_key(sequence));
            changes.remove(System::Activity.id(), slot_key);
        }
        Some(SlotRow::Claim(_)) => changes.remove(System::Claims.id(), slot_key),
        None => {}
    }
    Ok(())
}

pub(super) fn collect_scope(rows: &Overlay, changes: &mut Changes, slot: &SlotRecord) -> Result<(), ApplyError> {
    let stored = rows.get(System::Scopes.id(), &slot.scope)?;
    let names =
        stored.as_ref().map(|bytes| open_row::<ScopeNames<'_>>(System::Scopes, &slot.scope, bytes)).transpose()?;
    match names {
        None => {
            let row = ScopeRow {
                tenant: slot.tenant.clone(),
                actor: slot.actor.clone(),
                operation: slot.operation.clone(),
                erased_through: 0,
            };
            changes.put_system(System::Scopes, &slot.scope, &row);
        }
        Some(stored) if stored.names(&slot.tenant, &slot.actor, &slot.operation) => {}
        Some(_) => return Err(ApplyError::ScopeCollision),
    }
    Ok(())
}
