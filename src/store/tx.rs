//! What a closure gets: the tables, its own writes included, the remaining time and the store's time.

use std::sync::Arc;
use std::time::Duration;

use crate::base::position::TimestampMs;
use crate::state::{MemoryMap, Table, TableError, TableKey, TableLimits, TableMut, TxRows, View};

use super::shared::Shared;

/// The transaction of one operation or plain write.
///
/// It reads the state as it is after every operation before it, and its own writes. Whatever it writes is kept or
/// dropped as a whole. It does no I/O: an effect outside the store belongs into an intent, not here.
///
/// Errors of its table handles are sticky: after one, the operation fails whatever the closure returns.
#[derive(Debug)]
pub struct Tx<'a> {
    rows: TxRows,
    remaining: Option<Duration>,
    now: TimestampMs,
    store: std::marker::PhantomData<&'a ()>,
}

impl Tx<'_> {
    pub(super) fn begin<'a>(shared: &'a Shared, view: &View, remaining: Option<Duration>, now: TimestampMs) -> Tx<'a> {
        let limits = TableLimits {
            key_bytes_max: shared.limits.row_key_bytes_max,
            value_bytes_max: shared.limits.row_bytes_max,
            operation_rows_max: shared.limits.operation_rows_max,
            operation_bytes_max: shared.limits.record_bytes_max,
        };
        let rows = TxRows::new(view.clone(), Arc::clone(&shared.tables), limits);
        Tx { rows, remaining, now, store: std::marker::PhantomData }
    }

    /// A handle for a table that was declared when the store was opened. Several may be held at once.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the table was not declared, or with another key type, codec or version. Sticky.
    pub fn table<'t, K: TableKey, V>(&'t self, table: &'t Table<K, V>) -> Result<TableMut<'t, K, V>, TableError> {
        self.rows.table(table)
    }

    /// How much of the caller's time was left when the closure was started; none if the caller gave no deadline. A
    /// closure that cannot finish in it should fail early.
    #[must_use]
    pub const fn remaining(&self) -> Option<Duration> {
        self.remaining
    }

    /// The store's time for this operation, which its receipt will carry. Use it rather than a clock: it never goes
    /// back.
    #[must_use]
    pub const fn now(&self) -> TimestampMs {
        self.now
    }

    /// What was written and, if any, the first error of a table handle.
    pub(super) fn finish(self) -> (MemoryMap, Option<String>) {
        match self.rows.into_writes() {
            Ok(writes) => (writes, None),
            Err(error) => (MemoryMap::new(), Some(error.to_string())),
        }
    }
}
