//! Erasure: what was said is taken out of receipts and hidden in the log; that it was done stays.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::log::record::{EraseRecord, EraseTarget, SlotRecord};
use crate::state::{ALL, Overlay, Rows};
use crate::store::rows::{ErasureRow, ReceiptRow, ScopeRow, SlotRow, System, open_row, sequence_key, slot_key_of};

use super::effects::erase_effects;
use super::usage::Usage;
use super::{ApplyError, Changes, FrameFacts, get_system};

/// Collects what one erasure changes. Applied twice it changes nothing more.
pub(super) fn collect_erase(
    rows: &Overlay,
    changes: &mut Changes,
    frame: FrameFacts,
    erase: &EraseRecord,
) -> Result<(), ApplyError> {
    match &erase.target {
        EraseTarget::Operation(slot) => collect_operation(rows, changes, slot)?,
        EraseTarget::Actor { tenant, actor } => {
            collect_scopes(rows, changes, frame, |names| names.tenant == *tenant && names.actor == *actor)?;
        }
        EraseTarget::Tenant { tenant } => collect_scopes(rows, changes, frame, |names| names.tenant == *tenant)?,
    }
    collect_ranges(rows, changes, &erase.sequences)?;
    if erase.sequences.is_empty() {
        // The decision itself. What carries it out names entries.
        let row = ErasureRow { time_ms: frame.time_ms, erase: erase.clone() };
        changes.put_system(System::Erasures, &sequence_key(frame.position.sequence), &row);
    }
    Ok(())
}

/// Reply and resource id go. Digest, key, times and deadlines stay, so that it is never executed again.
fn collect_operation(rows: &Overlay, changes: &mut Changes, slot: &SlotRecord) -> Result<(), ApplyError> {
    let key = slot_key_of(&slot.scope, &slot.key);
    let Some(SlotRow::Receipt(receipt)) = get_system::<SlotRow>(rows, System::Slots, &key)? else { return Ok(()) };
    erase_effects(rows, changes, receipt.position.sequence)?;
    let reply_key = sequence_key(receipt.position.sequence);
    if rows.get(System::Replies.id(), &reply_key)?.is_some() {
        changes.remove(System::Replies.id(), &reply_key);
        let mut usage = Usage::default();
        usage.reply_went(&slot.tenant, &receipt);
        usage.collect(rows, changes)?;
    }
    let erased = ReceiptRow { reply_erased: true, reply_bytes: 0, resource_id: None, ..receipt };
    changes.put_system(System::Slots, &key, &SlotRow::Receipt(erased));
    Ok(())
}

/// Receipts up to this entry are erased in every answer at once.
fn collect_scopes(
    rows: &Overlay,
    changes: &mut Changes,
    frame: FrameFacts,
    is_meant: impl Fn(&ScopeRow) -> bool,
) -> Result<(), ApplyError> {
    for row in rows.range(System::Scopes.id(), ALL)? {
        let (key, bytes) = row?;
        let names = open_row::<ScopeRow>(System::Scopes, key.key(), &bytes)?;
        if is_meant(&names) {
            let erased_through = names.erased_through.max(frame.position.sequence);
            changes.put_system(System::Scopes, key.key(), &ScopeRow { erased_through, ..names });
        }
    }
    Ok(())
}

/// Adds ranges of sequences to those that are hidden. They are kept apart from each other, since a reader looks for the
/// last one that begins at or before an entry.
fn collect_ranges(rows: &Overlay, changes: &mut Changes, added: &[(u64, u64)]) -> Result<(), ApplyError> {
    let (Some(first), Some(last)) =
        (added.iter().map(|(first, _)| *first).min(), added.iter().map(|(_, last)| *last).max())
    else {
        return Ok(());
    };
    let mut ranges: BTreeMap<u64, u64> = BTreeMap::new();
    let upto = sequence_key(last.saturating_add(1));
    for row in rows.range(System::Erased.id(), (Bound::Unbounded, Bound::Included(&upto)))?.rev() {
        let (key, bytes) = row?;
        let begins = key.key().try_into().map_or(0, u64::from_be_bytes);
        let ends = open_row::<u64>(System::Erased, key.key(), &bytes)?;
        if ends.saturating_add(1) < first {
            break;
        }
        ranges.insert(begins, ends);
        changes.remove(System::Erased.id(), key.key());
    }
    for &(begins, ends) in added {
        let known = ranges.entry(begins).or_insert(ends);
        *known = (*known).max(ends);
    }
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (begins, ends) in ranges {
        match merged.last_mut() {
            Some((_, last)) if begins <= last.saturating_add(1) => *last = (*last).max(ends),
            Some(_) | None => merged.push((begins, ends)),
        }
    }
    for (begins, ends) in merged {
        changes.put_system(System::Erased, &sequence_key(begins), &ends);
    }
    Ok(())
}
