//! Claims: taken, extended, released, or refused and kept as evidence.

use crate::log::record::{ClaimAction, ClaimRecord};
use crate::state::Overlay;

use super::effects::remove_final;
use super::operation::{collect_scope, remove_dependents};
use super::usage::Usage;
use super::{ApplyError, Changes, FrameFacts, get_system};
use crate::store::rows::{ClaimRow, SlotRow, System, slot_key_of};

pub(super) fn collect_claim(
    rows: &Overlay,
    changes: &mut Changes,
    frame: FrameFacts,
    claim: &ClaimRecord,
) -> Result<(), ApplyError> {
    let slot_key = slot_key_of(&claim.slot.scope, &claim.slot.key);
    let stored = get_system::<SlotRow>(rows, System::Slots, &slot_key)?;
    match (&claim.action, stored) {
        (ClaimAction::Taken { lease_ms, lease_until_ms, holder, attempt, trace_id }, stored) => {
            collect_scope(rows, changes, &claim.slot)?;
            let mut usage = Usage::default();
            remove_dependents(rows, changes, &mut usage, &claim.slot.tenant, &slot_key, stored.as_ref())?;
            if let Some(SlotRow::Receipt(old)) = &stored {
                remove_final(rows, changes, frame, old.position.sequence)?;
            }
            usage.collect(rows, changes)?;
            changes.put_system(System::Claims, &slot_key, &claim.fence);
            let row = ClaimRow {
                digest: claim.digest,
                operation_version: claim.operation_version,
                fence: claim.fence,
                lease_ms: *lease_ms,
                lease_until_ms: *lease_until_ms,
                holder: holder.clone(),
                attempt: *attempt,
                trace_id: trace_id.clone(),
                position: frame.position,
            };
            changes.put_system(System::Slots, &slot_key, &SlotRow::Claim(row));
        }
        (ClaimAction::Extended { lease_ms, lease_until_ms }, Some(SlotRow::Claim(row))) if row.fence == claim.fence => {
            let row = ClaimRow { lease_ms: *lease_ms, lease_until_ms: *lease_until_ms, ..row };
            changes.put_system(System::Slots, &slot_key, &SlotRow::Claim(row));
        }
        (ClaimAction::Released, Some(SlotRow::Claim(row))) if row.fence == claim.fence => {
            changes.remove(System::Slots.id(), &slot_key);
            changes.remove(System::Claims.id(), &slot_key);
        }
        // A stale holder changes nothing; what it reported stays in the log as evidence.
        (ClaimAction::Extended { .. } | ClaimAction::Released | ClaimAction::Refused { .. }, _) => {}
    }
    Ok(())
}
