//! Replays and conflicts of single keys: a bounded table in memory, written into the log at checkpoints.
//!
//! They explain to a person what happened to a key. What was counted since the last checkpoint is lost in a crash, and
//! keys beyond the bound are not counted, so a number means "at least so many".

use std::collections::HashMap;

use crate::base::error::Error;
use crate::base::position::TimestampMs;
use crate::base::receipt::Receipt;
use crate::base::sync::Mutex;
use crate::log::record::{ActivityRecord, SlotActivity};

use super::admit::Prepared;

/// Keys that are counted between two checkpoints: each costs about 150 bytes in memory and in the log.
const SLOTS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Activity(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    since: TimestampMs,
    slots: HashMap<SlotOf, Counts>,
}

/// A slot by its scope's hash and its key.
type SlotOf = ([u8; 16], Vec<u8>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    replays: u64,
    conflicts: u64,
    last: TimestampMs,
}

impl Activity {
    /// Counts an answer, if it is one of those that are counted.
    pub(super) fn answered(&self, prepared: &Prepared, answer: &Result<Receipt, Error>, now: TimestampMs) {
        let (replays, conflicts) = match answer {
            Ok(receipt) if receipt.is_replayed() => (1, 0),
            Err(Error::Conflict { .. }) => (0, 1),
            Ok(_) | Err(_) => return,
        };
        let mut table = self.0.lock();
        if table.slots.is_empty() {
            table.since = now;
        }
        let slot = (prepared.scope.0, prepared.slot.key.as_bytes().to_vec());
        let is_full = table.slots.len() >= SLOTS_MAX;
        let counts = match table.slots.get_mut(&slot) {
            Some(counts) => counts,
            None if is_full => return,
            None => table.slots.entry(slot).or_default(),
        };
        counts.replays += replays;
        counts.conflicts += conflicts;
        counts.last = counts.last.max(now);
    }

    /// What was counted, to be written into the log; counting begins anew.
    pub(super) fn take(&self) -> Option<ActivityRecord> {
        let Table { since, slots } = std::mem::take(&mut *self.0.lock());
        let mut slots: Vec<SlotActivity> = slots
            .into_iter()
            .map(|((scope, key), counts)| SlotActivity {
                scope,
                key,
                replays: counts.replays,
                conflicts: counts.conflicts,
                last_ms: counts.last.0,
            })
            .collect();
        // In one order, so that equal histories give equal logs.
        slots.sort_unstable_by(|a, b| (a.scope, &a.key).cmp(&(b.scope, &b.key)));
        (!slots.is_empty()).then_some(ActivityRecord { since_ms: since.0, slots })
    }

    /// What was counted of one slot and is not in the log yet.
    pub(super) fn of(&self, scope: [u8; 16], key: &[u8]) -> Option<(u64, u64, TimestampMs, TimestampMs)> {
        let table = self.0.lock();
        let counts = table.slots.get(&(scope, key.to_vec()))?;
        Some((counts.replays, counts.conflicts, table.since, counts.last))
    }
}
