//! A resolution: the effects' last transitions, the business continuation and the receipt, in one entry.

use crate::log::record::ResolveRecord;
use crate::state::{Bytes, Catalog, Overlay};
use crate::store::rows::{
    ExpiryRow, ReceiptRow, SlotRow, System, Tier, expiry_key, seal_row, sequence_key, slot_key_of,
};

use super::effects::{Effects, remove_continuation};
use super::usage::Usage;
use super::{ApplyError, Changes, FrameFacts, collect_tables, get_system};
use crate::base::receipt::Outcome;

pub(super) fn collect_resolve(
    rows: &Overlay,
    changes: &mut Changes,
    catalog: &Catalog,
    frame: FrameFacts,
    wall_ms: u64,
    resolve: &ResolveRecord,
) -> Result<(), ApplyError> {
    let slot_key = slot_key_of(&resolve.slot.scope, &resolve.slot.key);
    let sequence = resolve.accepted_sequence;
    let stored = get_system::<SlotRow>(rows, System::Slots, &slot_key)?;
    let old = match stored {
        Some(SlotRow::Receipt(old)) if old.position.sequence == sequence && old.outcome == Outcome::Accepted => old,
        Some(SlotRow::Receipt(_) | SlotRow::Claim(_)) | None => return Err(ApplyError::NotAccepted(sequence)),
    };
    collect_tables(changes, catalog, &resolve.changes)?;
    let completion = &resolve.completion;
    let reply = seal_row(System::Replies, &sequence_key(sequence), &completion.reply);
    changes.remove(System::Expiry.id(), &expiry_key(old.replay_until_ms, sequence));
    changes.remove(System::Expiry.id(), &expiry_key(old.refuse_until_ms, sequence));
    let tenant = &resolve.slot.tenant;
    let mut usage = Usage::default();
    if !old.reply_erased {
        usage.reply_went(tenant, &old);
    }
    usage.went(tenant, &slot_key);
    // What was erased while it was accepted stays erased.
    let erased = old.reply_erased;
    let reply_bytes = if erased { 0 } else { reply.len() as u64 };
    usage.came(tenant, &slot_key, reply_bytes);
    usage.collect(rows, changes)?;
    let row = ReceiptRow {
        outcome: completion.outcome,
        completed_ms: frame.time_ms,
        completed_wall_ms: wall_ms,
        replay_until_ms: completion.replay_until_ms,
        refuse_until_ms: completion.refuse_until_ms,
        allowed_until_ms: completion.allowed_until_ms,
        reply_bytes,
        reply_erased: erased,
        body_dropped: completion.body_dropped,
        redacted: completion.redacted,
        resource_id: completion.reply.resource_id.clone().filter(|_| !erased),
        ..old
    };
    if !erased {
        changes.put(System::Replies.id(), &sequence_key(sequence), Bytes::from(reply));
    }
    let expiry = ExpiryRow { key: slot_key.clone(), tier: Tier::Replay, refuse_until_ms: completion.refuse_until_ms };
    changes.put_system(System::Expiry, &expiry_key(completion.replay_until_ms, sequence), &expiry);
    changes.put_system(System::Slots, &slot_key, &SlotRow::Receipt(row));
    remove_continuation(changes, sequence);
    let mut effects = Effects::new(rows, frame);
    for effect in &resolve.effects {
        effects.effect(changes, effect, true)?;
    }
    for callback in &resolve.callbacks {
        effects.callback_applied(changes, *callback)?;
    }
    effects.plan(changes, &slot_key, sequence, &resolve.intents, completion.outcome == Outcome::Accepted)
}
