//! What the receipts of each tenant take: changed in the entry that changes a receipt, so that the numbers are exact.

use std::collections::BTreeMap;

use crate::state::Overlay;
use crate::store::rows::{ReceiptRow, System, UsageRow};

use super::{ApplyError, Changes, get_system};

/// What one entry changes, by tenant.
#[derive(Debug, Default)]
pub(super) struct Usage(BTreeMap<String, Delta>);

#[derive(Clone, Copy, Debug, Default)]
struct Delta {
    more: UsageRow,
    less: UsageRow,
}

impl Usage {
    /// A receipt came.
    pub(super) fn came(&mut self, tenant: &str, slot_key: &[u8], reply_bytes: u64) {
        let more = &mut self.delta(tenant).more;
        more.receipts += 1;
        more.bytes += slot_key.len() as u64 + reply_bytes;
    }

    /// A receipt went; its reply is no longer counted.
    pub(super) fn went(&mut self, tenant: &str, slot_key: &[u8]) {
        let less = &mut self.delta(tenant).less;
        less.receipts += 1;
        less.bytes += slot_key.len() as u64;
    }

    /// The reply of a receipt went, which stays as a tombstone.
    pub(super) fn reply_went(&mut self, tenant: &str, row: &ReceiptRow) {
        self.delta(tenant).less.bytes += row.reply_bytes;
    }

    fn delta(&mut self, tenant: &str) -> &mut Delta {
        if !self.0.contains_key(tenant) {
            self.0.insert(tenant.to_owned(), Delta::default());
        }
        self.0.get_mut(tenant).expect("it was just put there")
    }

    /// Adds the rows to the entry's changes. A tenant without receipts has no row.
    pub(super) fn collect(self, rows: &Overlay, changes: &mut Changes) -> Result<(), ApplyError> {
        for (tenant, Delta { more, less }) in self.0 {
            let key = tenant.as_bytes();
            let before = get_system::<UsageRow>(rows, System::Usage, key)?.unwrap_or_default();
            let after = UsageRow {
                receipts: (before.receipts + more.receipts).saturating_sub(less.receipts),
                bytes: (before.bytes + more.bytes).saturating_sub(less.bytes),
            };
            if after == UsageRow::default() {
                changes.remove(System::Usage.id(), key);
            } else {
                changes.put_system(System::Usage, key, &after);
            }
        }
        Ok(())
    }
}
