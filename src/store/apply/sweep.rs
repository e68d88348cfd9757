//! A sweep: what fell due goes, in the order of deadlines.
//!
//! The cost is that of the rows that are due, however many there are: each is found through the expiry table, and no row
//! is read that is not due.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::log::record::SweepRecord;
use crate::state::{Overlay, Rows};
use crate::store::rows::{
    ExpiryRow, ReceiptRow, SCOPE_BYTES, ScopeRow, SlotRow, System, Tier, expiry_key, open_row, sequence_key,
    sequence_of,
};

use super::effects::{forget_callback, remove_final};
use super::usage::Usage;
use super::{ApplyError, Changes, FrameFacts, get_system};

/// Collects what one sweep changes. Every expiry row up to the one that it names is covered, as they were before it.
pub(super) fn collect_sweep(
    rows: &Overlay,
    changes: &mut Changes,
    frame: FrameFacts,
    sweep: &SweepRecord,
) -> Result<(), ApplyError> {
    let first = expiry_key(sweep.from_deadline_ms, sweep.from_sequence);
    let last = expiry_key(sweep.deadline_ms, sweep.sequence);
    let due = rows.range(System::Expiry.id(), (Bound::Included(&first), Bound::Included(&last)))?;
    let mut swept = Swept::default();
    // Mostly there are none, and then no receipt is asked for its effects.
    let has_effects = rows.range(System::Effects.id(), crate::state::ALL)?.next().is_some();
    let mut found = 0;
    for row in due {
        let (key, value) = row?;
        let expiry = open_row::<ExpiryRow>(System::Expiry, key.key(), &value)?;
        changes.remove(System::Expiry.id(), key.key());
        let key = key.key().try_into().unwrap_or(first);
        let gone = expiry.tier == Tier::Refuse;
        swept.collect(rows, changes, sequence_of(&key), expiry)?;
        if gone && has_effects {
            remove_final(rows, changes, frame, sequence_of(&key))?;
        }
        found += 1;
    }
    if found != sweep.rows {
        return Err(ApplyError::Sweep { found, expected: sweep.rows });
    }
    swept.finish(rows, changes)
}

#[derive(Debug, Default)]
struct Swept {
    usage: Usage,
    /// The tenants of the scopes that were met.
    tenants: BTreeMap<Vec<u8>, String>,
    /// Slots that are gone.
    slots: BTreeSet<Vec<u8>>,
}

impl Swept {
    fn collect(
        &mut self,
        rows: &Overlay,
        changes: &mut Changes,
        sequence: u64,
        expiry: ExpiryRow,
    ) -> Result<(), ApplyError> {
        if expiry.tier == Tier::Callback {
            return forget_callback(rows, changes, &expiry.key, sequence);
        }
        // Whatever replaces or resolves a receipt takes its expiry row along, so this is the receipt that it was made for.
        let Some(SlotRow::Receipt(receipt)) = get_system::<SlotRow>(rows, System::Slots, &expiry.key)? else {
            return Ok(());
        };
        if receipt.position.sequence != sequence {
            return Ok(());
        }
        let tenant = self.tenant(rows, &expiry.key)?;
        match expiry.tier {
            Tier::Replay => self.sweep_reply(changes, &tenant, &receipt, expiry),
            Tier::Refuse => {
                changes.remove(System::Slots.id(), &expiry.key);
                changes.remove(System::Activity.id(), &expiry.key);
                self.usage.went(&tenant, &expiry.key);
                self.slots.insert(expiry.key);
            }
            // Answered above.
            Tier::Callback => {}
        }
        Ok(())
    }

    /// The reply goes, and the row moves to the deadline of the other tier. This sweep does not cover it again, even if
    /// that has passed too: what it covers are the rows as they were before.
    fn sweep_reply(&mut self, changes: &mut Changes, tenant: &str, receipt: &ReceiptRow, expiry: ExpiryRow) {
        let sequence = receipt.position.sequence;
        changes.remove(System::Replies.id(), &sequence_key(sequence));
        if !receipt.reply_erased {
            self.usage.reply_went(tenant, receipt);
        }
        let key = expiry_key(expiry.refuse_until_ms, sequence);
        changes.put_system(System::Expiry, &key, &ExpiryRow { tier: Tier::Refuse, ..expiry });
    }

    fn tenant(&mut self, rows: &Overlay, slot_key: &[u8]) -> Result<String, ApplyError> {
        let scope = &slot_key[..SCOPE_BYTES.min(slot_key.len())];
        if let Some(tenant) = self.tenants.get(scope) {
            return Ok(tenant.clone());
        }
        let names = get_system::<ScopeRow>(rows, System::Scopes, scope)?.ok_or(ApplyError::ScopeMissing)?;
        self.tenants.insert(scope.to_vec(), names.tenant.clone());
        Ok(names.tenant)
    }

    /// A scope's names go with the last slot that has its prefix.
    fn finish(self, rows: &Overlay, changes: &mut Changes) -> Result<(), ApplyError> {
        let scopes: BTreeSet<&[u8]> = self.slots.iter().map(|slot| &slot[..SCOPE_BYTES.min(slot.len())]).collect();
        for scope in scopes {
            if !is_used(rows, scope, &self.slots)? {
                changes.remove(System::Scopes.id(), scope);
            }
        }
        self.usage.collect(rows, changes)
    }
}

/// Whether a scope has a slot beside those that are gone. Asked from the far end: what is due first was mostly made first,
/// and keys that follow time stand in that order.
fn is_used(rows: &Overlay, scope: &[u8], gone: &BTreeSet<Vec<u8>>) -> Result<bool, ApplyError> {
    let end = prefix_end(scope);
    let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    for row in rows.range(System::Slots.id(), (Bound::Included(scope), upper))?.rev() {
        let (key, _) = row?;
        if !gone.contains(key.key()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first key behind all that begin with a prefix; none if there is no such key.
fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=kept].to_vec();
    end[kept] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::prefix_end;

    #[test]
    fn the_end_of_a_prefix_carries_over_full_bytes_and_may_not_exist() {
        assert_eq!(prefix_end(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(prefix_end(&[1, 255, 255]), Some(vec![2]));
        assert_eq!(prefix_end(&[255, 255]), None);
    }
}
