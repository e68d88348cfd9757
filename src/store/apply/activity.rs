//! Replays and conflicts of single keys.

use crate::log::record::ActivityRecord;
use crate::state::{Overlay, Rows};
use crate::store::rows::{ActivityRow, System, slot_key_of};

use super::{ApplyError, Changes, get_system};

/// Adds to the counts of slots that are still there: a count goes with its slot.
pub(super) fn collect_activity(
    rows: &Overlay,
    changes: &mut Changes,
    activity: &ActivityRecord,
) -> Result<(), ApplyError> {
    for slot in &activity.slots {
        let key = slot_key_of(&slot.scope, &slot.key);
        if rows.get(System::Slots.id(), &key)?.is_none() {
            continue;
        }
        let before = get_system::<ActivityRow>(rows, System::Activity, &key)?;
        let row = ActivityRow {
            replays: before.map_or(0, |row| row.replays).saturating_add(slot.replays),
            conflicts: before.map_or(0, |row| row.conflicts).saturating_add(slot.conflicts),
            since_ms: before.map_or(activity.since_ms, |row| row.since_ms),
            last_ms: slot.last_ms,
        };
        changes.put_system(System::Activity, &key, &row);
    }
    Ok(())
}
