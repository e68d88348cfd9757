//! What a closure gets: the tables, its own writes included, the remaining time and the store's time.

use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, IntentError};
use crate::base::position::TimestampMs;
use crate::log::record::IntentRecord;
use crate::state::{MemoryMap, Table, TableError, TableKey, TableLimits, TableMut, TxRows, View};

use super::effects::intent::{EffectId, Intent, IntentBase, Intents};
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
    intents: Intents<'a>,
}

impl Tx<'_> {
    pub(super) fn begin<'a>(
        shared: &'a Shared,
        view: &View,
        remaining: Option<Duration>,
        now: TimestampMs,
        base: Option<IntentBase>,
    ) -> Tx<'a> {
        let limits = TableLimits {
            key_bytes_max: shared.limits.row_key_bytes_max,
            value_bytes_max: shared.limits.row_bytes_max,
            operation_rows_max: shared.limits.operation_rows_max,
            operation_bytes_max: shared.limits.record_bytes_max,
        };
        let rows = TxRows::new(view.clone(), Arc::clone(&shared.tables), limits);
        Tx { rows, remaining, now, intents: Intents::new(shared, base) }
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

    /// Plans an effect outside the store: it is durable with everything else that the operation does, and a dispatcher
    /// performs it afterwards, under the identity that is returned. If the operation is rejected or fails, nothing was
    /// planned.
    ///
    /// # Errors
    ///
    /// [`IntentError`]. Sticky.
    pub fn intend(&self, intent: Intent) -> Result<EffectId, IntentError> {
        self.intents.add(intent, self.now)
    }

    /// What was written and planned, or the first error of a table handle or an intent.
    pub(super) fn finish(self) -> Result<(MemoryMap, Vec<IntentRecord>), Error> {
        let writes = self.rows.into_writes().map_err(|error| Error::Table(error.to_string()))?;
        Ok((writes, self.intents.finish()?))
    }
}
