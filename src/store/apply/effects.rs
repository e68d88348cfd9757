//! Effects and callbacks: planned with their operation, moved by their own entries, gone with their receipt.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::base::receipt::Outcome;
use crate::log::record::{
    CallbackRecord, CallbackVerdict, EffectRecord, EffectReport, EffectTransition, IntentRecord, Reported,
};
use crate::protocol::effect::{Receipt, receive, transition};
use crate::state::{Overlay, Rows};
use crate::store::effects::rows::{
    CallbackRow, DueKind, EffectRow, PhaseRow, continuation_key, due_key, effect_key, event_of, news_of, pair_key,
    sequence_of_effect,
};
use crate::store::rows::{ExpiryRow, SlotRow, System, Tier, expiry_key, open_row};

use super::{ApplyError, Changes, FrameFacts, get_system};

/// Rows of a table whose keys begin with a prefix.
pub(in crate::store) fn with_prefix(
    rows: &impl Rows,
    table: System,
    prefix: &[u8],
) -> Result<Vec<(Vec<u8>, crate::state::Bytes)>, ApplyError> {
    let mut found = Vec::new();
    for row in rows.range(table.id(), (Bound::Included(prefix), Bound::Unbounded))? {
        let (key, value) = row?;
        if !key.key().starts_with(prefix) {
            break;
        }
        found.push((key.key().to_vec(), value));
    }
    Ok(found)
}

/// The effects of one operation, in the order of their ordinals.
pub(in crate::store) fn effects_of(rows: &impl Rows, sequence: u64) -> Result<Vec<(Vec<u8>, EffectRow)>, ApplyError> {
    with_prefix(rows, System::Effects, &sequence.to_be_bytes())?
        .into_iter()
        .map(|(key, value)| Ok((key.clone(), open_row(System::Effects, &key, &value)?)))
        .collect()
}

/// The effect under an identity, with its key.
pub(in crate::store) fn effect_by_id(
    rows: &impl Rows,
    identity: &[u8; 32],
) -> Result<Option<(Vec<u8>, EffectRow)>, ApplyError> {
    let Some(key) = get_system::<Vec<u8>>(rows, System::EffectIds, identity)? else { return Ok(None) };
    Ok(get_system(rows, System::Effects, &key)?.map(|row| (key, row)))
}

/// The receipt of an effect's operation, if it is still there: whether it waits for its effects, and whether it is erased.
fn receipt_of(rows: &impl Rows, row: &EffectRow, sequence: u64) -> Result<Option<(Outcome, bool)>, ApplyError> {
    Ok(match get_system::<SlotRow>(rows, System::Slots, &row.slot_key)? {
        Some(SlotRow::Receipt(receipt)) if receipt.position.sequence == sequence => {
            Some((receipt.outcome, receipt.reply_erased))
        }
        Some(SlotRow::Receipt(_) | SlotRow::Claim(_)) | None => None,
    })
}

/// Applies what one frame says of effects. It keeps in mind what the frame itself has changed.
pub(super) struct Effects<'a> {
    rows: &'a Overlay,
    frame: FrameFacts,
    /// Order rows that this frame removed, and orders to which it added.
    gone: BTreeSet<Vec<u8>>,
    came: BTreeSet<Vec<u8>>,
}

impl<'a> Effects<'a> {
    pub(super) const fn new(rows: &'a Overlay, frame: FrameFacts) -> Self {
        Self { rows, frame, gone: BTreeSet::new(), came: BTreeSet::new() }
    }

    /// Plans the intents of an operation, whose effects stand under `sequence`. `accepted`: it waits for them.
    pub(super) fn plan(
        &mut self,
        changes: &mut Changes,
        slot_key: &[u8],
        sequence: u64,
        intents: &[IntentRecord],
        accepted: bool,
    ) -> Result<(), ApplyError> {
        let mut all_final = true;
        for intent in intents {
            // An old effect of the same identity is final, or the operation would not have been committed.
            if let Some((key, old)) = effect_by_id(self.rows, &intent.identity)? {
                self.remove(changes, &key, &old)?;
            }
            let key = effect_key(sequence, intent.ordinal);
            let mut row = EffectRow::planned(slot_key.to_vec(), intent.clone(), self.frame.time_ms);
            changes.put_system(System::EffectIds, &intent.identity, &key.to_vec());
            self.match_parked(changes, &mut row)?;
            self.put_reference(changes, &row, &key);
            changes.put_system(System::Effects, &key, &row);
            if row.is_final() {
                continue;
            }
            all_final = false;
            if let Some(order) = order_prefix(&row) {
                let order_row = [&order[..], &key].concat();
                changes.put_system(System::EffectOrder, &order_row, &());
                if self.first_of(&order)?.is_some() || !self.came.insert(order) {
                    continue;
                }
            }
            put_due(changes, &row, &key);
        }
        if accepted && all_final && !intents.is_empty() {
            put_continuation(changes, slot_key, sequence);
        }
        Ok(())
    }

    /// Callbacks that came before their intent: matched in the entry that brings it.
    fn match_parked(&self, changes: &mut Changes, row: &mut EffectRow) -> Result<(), ApplyError> {
        let Some(reference) = row.intent.provider_reference.clone() else { return Ok(()) };
        let prefix = pair_key(&row.intent.provider, &reference);
        for (parked, value) in with_prefix(self.rows, System::Callbacks, &prefix)? {
            let delivery: Vec<u8> = open_row(System::Callbacks, &parked, &value)?;
            changes.remove(System::Callbacks.id(), &parked);
            let Some(callback) = get_system::<CallbackRow>(self.rows, System::Deliveries, &delivery)? else { continue };
            let identity = row.intent.identity;
            let verdict = self.take_callback(row, &callback.record);
            let record = CallbackRecord { verdict, identity: Some(identity), ..callback.record };
            changes.put_system(System::Deliveries, &delivery, &CallbackRow { record, ..callback });
        }
        Ok(())
    }

    /// Lets a callback act on an effect.
    fn take_callback(&self, row: &mut EffectRow, callback: &CallbackRecord) -> CallbackVerdict {
        let state = row.state();
        let news = news_of(callback.report.outcome);
        match receive(state.phase, news, callback.order, row.news_order) {
            Receipt::Stale => CallbackVerdict::Stale,
            Receipt::Disputed => {
                row.dispute = Some(callback.report.clone());
                CallbackVerdict::Disputed
            }
            Receipt::Applied => {
                row.news_order = callback.order.or(row.news_order);
                let transition = final_transition(&callback.report);
                if let Some(transition) = &transition {
                    move_row(row, transition, row.fence, self.frame.time_ms);
                }
                CallbackVerdict::Applied
            }
        }
    }

    /// Moves an effect, as an entry of its own or as part of a resolution says.
    pub(super) fn effect(
        &mut self,
        changes: &mut Changes,
        record: &EffectRecord,
        resolving: bool,
    ) -> Result<(), ApplyError> {
        let Some((key, old)) = effect_by_id(self.rows, &record.identity)? else { return Ok(()) };
        let mut row = old.clone();
        match &record.transition {
            EffectTransition::Disputed(report) => row.dispute = Some(report.clone()),
            EffectTransition::Stale(_) => row.stale = row.stale.saturating_add(1),
            EffectTransition::DisputeClosed => row.dispute = None,
            transition @ (EffectTransition::Sending { .. }
            | EffectTransition::Planned { .. }
            | EffectTransition::Uncertain { .. }
            | EffectTransition::Parked
            | EffectTransition::Applied(_)
            | EffectTransition::Refused(_)) => {
                if !move_row(&mut row, transition, record.fence, self.frame.time_ms) {
                    return Ok(());
                }
            }
        }
        if record.reason.is_some() {
            row.decided_by.clone_from(&record.decided_by);
            row.reason.clone_from(&record.reason);
        }
        self.replace(changes, &key, &old, row, resolving)
    }

    pub(super) fn callback(&mut self, changes: &mut Changes, record: &CallbackRecord) -> Result<(), ApplyError> {
        let sequence = self.frame.position.sequence;
        let delivery = pair_key(&record.provider, &record.delivery_id);
        let known = get_system::<CallbackRow>(self.rows, System::Deliveries, &delivery)?;
        if let Some(known) = known {
            changes.remove(System::Expiry.id(), &expiry_key(known.record.forget_after_ms, known.sequence));
            changes.remove(System::Seen.id(), &known.sequence.to_be_bytes());
        }
        changes.put_system(System::Deliveries, &delivery, &CallbackRow { sequence, record: record.clone() });
        let expiry = ExpiryRow { key: delivery.clone(), tier: Tier::Callback, refuse_until_ms: record.forget_after_ms };
        changes.put_system(System::Expiry, &expiry_key(record.forget_after_ms, sequence), &expiry);
        if record.verdict == CallbackVerdict::Parked {
            let parked = parked_key(record, sequence);
            changes.put_system(System::Callbacks, &parked, &delivery);
            return Ok(());
        }
        let Some(identity) = &record.identity else { return Ok(()) };
        let Some((key, old)) = effect_by_id(self.rows, identity)? else { return Ok(()) };
        let mut row = old.clone();
        match record.verdict {
            CallbackVerdict::Applied => {
                self.take_callback(&mut row, record);
                self.replace(changes, &key, &old, row, false)
            }
            CallbackVerdict::Disputed => {
                row.dispute = Some(record.report.clone());
                self.replace(changes, &key, &old, row, false)
            }
            CallbackVerdict::Parked | CallbackVerdict::Seen | CallbackVerdict::Stale => Ok(()),
        }
    }

    /// A callback that a resolution applies.
    pub(super) fn callback_applied(&self, changes: &mut Changes, sequence: u64) -> Result<(), ApplyError> {
        let Some(delivery) = get_system::<Vec<u8>>(self.rows, System::Seen, &sequence.to_be_bytes())? else {
            return Ok(());
        };
        changes.remove(System::Seen.id(), &sequence.to_be_bytes());
        if let Some(row) = get_system::<CallbackRow>(self.rows, System::Deliveries, &delivery)? {
            let record = CallbackRecord { verdict: CallbackVerdict::Applied, ..row.record };
            changes.put_system(System::Deliveries, &delivery, &CallbackRow { record, ..row });
        }
        Ok(())
    }

    /// Puts a changed effect in place of the old one, with what depends on its state.
    fn replace(
        &mut self,
        changes: &mut Changes,
        key: &[u8],
        old: &EffectRow,
        row: EffectRow,
        resolving: bool,
    ) -> Result<(), ApplyError> {
        let order = order_prefix(old);
        let heads = match &order {
            Some(order) => self.first_of(order)?.as_deref() == Some(&[&order[..], key].concat()[..]),
            None => true,
        };
        remove_due(changes, old, key);
        let settled = row.is_final() && !old.is_final();
        if let Some(order) = order.filter(|_| settled) {
            let order_row = [&order[..], key].concat();
            changes.remove(System::EffectOrder.id(), &order_row);
            self.gone.insert(order_row);
            self.wake_next(changes, &order)?;
        }
        let sequence = sequence_of_effect(key);
        let is_final = row.is_final();
        let receipt = if is_final { receipt_of(self.rows, &row, sequence)? } else { Some((Outcome::Completed, false)) };
        let mut row = row;
        match receipt {
            None if row.dispute.is_none() => return self.remove(changes, key, &row),
            Some((_, true)) => row.erase(),
            Some((_, false)) | None => {}
        }
        self.put_reference(changes, &row, key);
        changes.put_system(System::Effects, key, &row);
        if heads {
            put_due(changes, &row, key);
        }
        if settled && !resolving && receipt.is_some_and(|(outcome, _)| outcome == Outcome::Accepted) {
            let others = effects_of(self.rows, sequence)?;
            if others.iter().all(|(other, row)| other == key || row.is_final()) {
                put_continuation(changes, &row.slot_key, sequence);
            }
        }
        Ok(())
    }

    /// The next of an order may leave.
    fn wake_next(&self, changes: &mut Changes, order: &[u8]) -> Result<(), ApplyError> {
        let Some(next) = self.first_of(order)? else { return Ok(()) };
        let key = &next[order.len()..];
        if let Some(row) = get_system::<EffectRow>(self.rows, System::Effects, key)? {
            put_due(changes, &row, key);
        }
        Ok(())
    }

    /// The first row of an order that this frame has not removed.
    fn first_of(&self, order: &[u8]) -> Result<Option<Vec<u8>>, ApplyError> {
        for row in self.rows.range(System::EffectOrder.id(), (Bound::Included(order), Bound::Unbounded))? {
            let (key, _) = row?;
            if !key.key().starts_with(order) {
                return Ok(None);
            }
            if !self.gone.contains(key.key()) {
                return Ok(Some(key.key().to_vec()));
            }
        }
        Ok(None)
    }

    fn put_reference(&self, changes: &mut Changes, row: &EffectRow, key: &[u8]) {
        for reference in [&row.intent.provider_reference, &row.reference].into_iter().flatten() {
            changes.put_system(System::EffectRefs, &pair_key(&row.intent.provider, reference), &key.to_vec());
        }
    }

    /// An effect goes, with everything that points at it.
    fn remove(&self, changes: &mut Changes, key: &[u8], row: &EffectRow) -> Result<(), ApplyError> {
        for reference in [&row.intent.provider_reference, &row.reference].into_iter().flatten() {
            let reference = pair_key(&row.intent.provider, reference);
            if get_system::<Vec<u8>>(self.rows, System::EffectRefs, &reference)?.is_none_or(|of| of == key) {
                changes.remove(System::EffectRefs.id(), &reference);
            }
        }
        changes.remove(System::EffectIds.id(), &row.intent.identity);
        changes.remove(System::Effects.id(), key);
        Ok(())
    }
}

/// The final effects of a receipt that goes, go with it. Open ones, and those in dispute, stay until they are settled.
pub(super) fn remove_final(
    rows: &Overlay,
    changes: &mut Changes,
    frame: FrameFacts,
    sequence: u64,
) -> Result<(), ApplyError> {
    let effects = Effects::new(rows, frame);
    for (key, row) in effects_of(rows, sequence)? {
        if row.is_final() && row.dispute.is_none() {
            effects.remove(changes, &key, &row)?;
        }
    }
    Ok(())
}

/// Empties what was said by and to providers. An open effect keeps its payload, which is still to be sent, until it is
/// final.
pub(super) fn erase_effects(rows: &Overlay, changes: &mut Changes, sequence: u64) -> Result<(), ApplyError> {
    for (key, mut row) in effects_of(rows, sequence)? {
        if row.is_final() {
            row.erase();
            changes.put_system(System::Effects, &key, &row);
        }
    }
    Ok(())
}

/// A callback's row falls due.
pub(super) fn forget_callback(
    rows: &Overlay,
    changes: &mut Changes,
    delivery: &[u8],
    sequence: u64,
) -> Result<(), ApplyError> {
    let Some(row) = get_system::<CallbackRow>(rows, System::Deliveries, delivery)? else { return Ok(()) };
    if row.sequence == sequence {
        changes.remove(System::Deliveries.id(), delivery);
        changes.remove(System::Seen.id(), &sequence.to_be_bytes());
        changes.remove(System::Callbacks.id(), &parked_key(&row.record, sequence));
    }
    Ok(())
}

pub(super) fn put_seen(changes: &mut Changes, record: &CallbackRecord, sequence: u64) {
    if record.verdict == CallbackVerdict::Seen {
        let delivery = pair_key(&record.provider, &record.delivery_id);
        changes.put_system(System::Seen, &sequence.to_be_bytes(), &delivery);
    }
}

pub(super) fn remove_continuation(changes: &mut Changes, sequence: u64) {
    changes.remove(System::Due.id(), &continuation_key(sequence));
}

fn put_continuation(changes: &mut Changes, slot_key: &[u8], sequence: u64) {
    changes.put_system(System::Due, &continuation_key(sequence), &slot_key.to_vec());
}

fn parked_key(record: &CallbackRecord, sequence: u64) -> Vec<u8> {
    let reference = record.reference.as_deref().unwrap_or_default();
    [&pair_key(&record.provider, reference)[..], &sequence.to_be_bytes()].concat()
}

fn order_prefix(row: &EffectRow) -> Option<Vec<u8>> {
    row.intent.order_key.as_ref().map(|order| pair_key(&row.intent.provider, order))
}

/// The transition that a report with a final outcome stands for.
fn final_transition(report: &EffectReport) -> Option<EffectTransition> {
    match report.outcome {
        Reported::Applied => Some(EffectTransition::Applied(report.clone())),
        Reported::Refused => Some(EffectTransition::Refused(report.clone())),
        Reported::Pending | Reported::NotFound => None,
    }
}

/// Moves a row if its state allows it. `false` if it does not.
fn move_row(row: &mut EffectRow, to: &EffectTransition, fence: u64, now_ms: u64) -> bool {
    let Some(event) = event_of(to) else { return false };
    let Ok(state) = transition(row.state(), event, fence, now_ms) else { return false };
    row.set_state(state, now_ms);
    if let EffectTransition::Applied(report) | EffectTransition::Refused(report) = to {
        row.reference = report.provider_reference.clone().or_else(|| row.reference.take());
        row.report = Some(report.clone());
    }
    true
}

fn due_of(row: &EffectRow, key: &[u8]) -> Option<Vec<u8>> {
    match row.phase {
        PhaseRow::Planned { not_before_ms: at } | PhaseRow::Uncertain { ask_not_before_ms: at } => {
            Some(due_key(DueKind::Ready, &row.intent.provider, at, key))
        }
        PhaseRow::Sending { lease_until_ms, .. } => {
            Some(due_key(DueKind::Sending, &row.intent.provider, lease_until_ms, key))
        }
        PhaseRow::Parked | PhaseRow::Applied | PhaseRow::Refused => None,
    }
}

fn put_due(changes: &mut Changes, row: &EffectRow, key: &[u8]) {
    if let Some(due) = due_of(row, key) {
        changes.put_system(System::Due, &due, &());
    }
}

fn remove_due(changes: &mut Changes, row: &EffectRow, key: &[u8]) {
    if let Some(due) = due_of(row, key) {
        changes.remove(System::Due.id(), &due);
    }
}
