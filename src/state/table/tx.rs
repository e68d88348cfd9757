//! The rows of one operation: what it reads, what it wrote, and the first error that a handle returned.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Declarations, Table, TableKey, TableMut};
use crate::base::mutant::{self, Mutant};
use crate::state::error::TableError;
use crate::state::view::Above;
use crate::state::{Bytes, MemoryMap, RowKey, TableLimits, View};

/// The first error that a table handle returned in an operation.
///
/// Errors are sticky because a closure can ignore one and return a reply, and then the operation would commit half of
/// what it meant. (A lock, taken only when there is an error, so that ranges can be sent to another thread.)
#[derive(Debug, Default)]
pub(crate) struct Sticky(Mutex<Option<TableError>>);

impl Sticky {
    /// Passes a result on and remembers its error, if it is the first.
    pub(super) fn note<T>(&self, result: Result<T, TableError>) -> Result<T, TableError> {
        if let Err(error) = &result
            && !mutant::is(Mutant::TableErrorsForgotten)
        {
            self.0.lock().get_or_insert_with(|| error.clone());
        }
        result
    }
}

/// A transaction over a view: its own writes in a map of their own above it, one final value per row.
///
/// The writes never touch the view's maps, so giving up is dropping this. Handles share it (it is used by one thread at
/// a time), so that a closure can hold several.
#[derive(Debug)]
pub(crate) struct TxRows {
    view: View,
    declared: Arc<Declarations>,
    limits: TableLimits,
    writes: RefCell<MemoryMap>,
    /// Bytes of keys and values in `writes`.
    written_bytes: Cell<usize>,
    sticky: Sticky,
}

impl TxRows {
    pub(crate) fn new(view: View, declared: Arc<Declarations>, limits: TableLimits) -> Self {
        Self {
            view,
            declared,
            limits,
            writes: RefCell::new(MemoryMap::new()),
            written_bytes: Cell::new(0),
            sticky: Sticky::default(),
        }
    }

    /// A handle for a declared table.
    pub(crate) fn table<'a, K: TableKey, V>(
        &'a self,
        table: &'a Table<K, V>,
    ) -> Result<TableMut<'a, K, V>, TableError> {
        let id = self.sticky.note(self.declared.resolve(table))?;
        Ok(TableMut::new(self, table, id))
    }

    /// The first error that a handle or a range returned, whatever became of it.
    #[cfg(test)]
    pub(crate) fn first_error(&self) -> Option<TableError> {
        self.sticky.0.lock().clone()
    }

    /// What was written, deletions included; or the sticky error, with which the operation fails.
    pub(crate) fn into_writes(self) -> Result<MemoryMap, TableError> {
        match self.sticky.0.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.writes.into_inner()),
        }
    }

    pub(super) fn sticky(&self) -> &Sticky {
        &self.sticky
    }

    pub(super) fn limits(&self) -> &TableLimits {
        &self.limits
    }

    /// Reads with the transaction's own writes on top.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Above<'_>) -> T) -> T {
        read(&Above { writes: &self.writes.borrow(), view: &self.view })
    }

    /// Sets the final state of a row, unless that exceeds what one operation may write.
    pub(super) fn write(&self, key: RowKey, value: Option<Bytes>) -> Result<(), TableError> {
        let mut writes = self.writes.borrow_mut();
        let row_bytes = |value: Option<&Bytes>| key.key().len() + value.map_or(0, |value| value.len());
        let old = writes.get(&key);
        if old.is_none() && writes.len() >= self.limits.operation_rows_max {
            return Err(TableError::TooManyRows { rows_max: self.limits.operation_rows_max });
        }
        let bytes = self.written_bytes.get() - old.map_or(0, row_bytes) + row_bytes(value.as_ref());
        if bytes > self.limits.operation_bytes_max {
            return Err(TableError::TooManyBytes { bytes_max: self.limits.operation_bytes_max });
        }
        self.written_bytes.set(bytes);
        writes.set(key, value);
        Ok(())
    }
}
