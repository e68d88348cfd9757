//! Reading and writing a table within an operation.

use std::fmt;

use super::key_range::{Bounds, prefix_bounds};
use super::tx::TxRows;
use super::typed::Typed;
use super::{AsKey, KeyPrefix, KeyRange, Table, TableKey, TableRange, key};
use crate::state::error::TableError;
use crate::state::row_key::KeyText;
use crate::state::{RowKey, TableId};

/// Reads and writes one table within an operation.
///
/// It reads what the operation itself wrote before. Several handles can be held at once, and rows can be written while
/// a range is walked.
///
/// **Errors are sticky**: once any method or range of any handle of an operation has returned an error, the operation
/// fails with the first of them and changes nothing, whatever its closure returns. Where a row may or may not be there,
/// ask with [`contains`](Self::contains) or [`get`](Self::get) instead of trying [`insert_new`](Self::insert_new).
pub struct TableMut<'a, K, V> {
    rows: &'a TxRows,
    typed: Typed<'a, K, V>,
}

impl<'a, K: TableKey, V> TableMut<'a, K, V> {
    pub(super) fn new(rows: &'a TxRows, table: &'a Table<K, V>, id: TableId) -> Self {
        Self { rows, typed: Typed { table, id } }
    }

    /// The value of a row.
    ///
    /// # Errors
    ///
    /// If the row is damaged, does not decode, or the state file cannot be read. Sticky: not executed.
    pub fn get(&self, key: impl AsKey<K>) -> Result<Option<V>, TableError> {
        self.note(self.get_encoded(&key::encode::<K>(&key)))
    }

    /// Whether a row is there. Its value is not decoded.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read. Sticky: not executed.
    pub fn contains(&self, key: impl AsKey<K>) -> Result<bool, TableError> {
        self.note(self.contains_encoded(&key::encode::<K>(&key)))
    }

    /// Writes a row, whether or not it exists.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded or the value cannot be encoded. Sticky: not executed.
    pub fn put(&self, key: impl AsKey<K>, value: &V) -> Result<(), TableError> {
        self.note(self.key(key).and_then(|key| self.write(&key, value)))
    }

    /// Writes a row that must not exist yet.
    ///
    /// # Errors
    ///
    /// [`TableError::AlreadyExists`] if it does; otherwise like [`put`](Self::put). Sticky, also when the row exists:
    /// not executed.
    pub fn insert_new(&self, key: impl AsKey<K>, value: &V) -> Result<(), TableError> {
        self.note(self.key(key).and_then(|key| {
            if self.contains_encoded(&key)? {
                let table = self.typed.table.name().to_owned();
                return Err(TableError::AlreadyExists { table, key: KeyText::new(&key).to_string() });
            }
            self.write(&key, value)
        }))
    }

    /// Removes a row and says whether it was there. One that does not decode can be removed.
    ///
    /// # Errors
    ///
    /// If a limit is exceeded or the state file cannot be read. Sticky: not executed.
    pub fn remove(&self, key: impl AsKey<K>) -> Result<bool, TableError> {
        self.note(self.key(key).and_then(|key| {
            let was_there = self.contains_encoded(&key)?;
            if was_there {
                self.rows.write(RowKey::new(self.typed.id, &key), None)?;
            }
            Ok(was_there)
        }))
    }

    /// Changes a row in place and returns what `change` returned; `None` if there is no such row.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get) and [`put`](Self::put). Sticky: not executed.
    pub fn update<R>(&self, key: impl AsKey<K>, change: impl FnOnce(&mut V) -> R) -> Result<Option<R>, TableError> {
        self.note(self.key(key).and_then(|key| {
            let Some(mut value) = self.get_encoded(&key)? else { return Ok(None) };
            let result = change(&mut value);
            self.write(&key, &value)?;
            Ok(Some(result))
        }))
    }

    /// Rows with keys in a range, in the order of the keys; `.rev()` for the other order.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read. Sticky: not executed.
    pub fn range(&self, keys: impl KeyRange<K>) -> Result<TableRange<'a, K, V>, TableError> {
        self.rows_between(&keys.key_bounds())
    }

    /// Rows whose keys begin with a prefix: of a string or bytes, or the first parts of a tuple.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read. Sticky: not executed.
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> Result<TableRange<'a, K, V>, TableError> {
        self.rows_between(&prefix_bounds(&prefix))
    }

    /// The row with the smallest key.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get). Sticky: not executed.
    pub fn first(&self) -> Result<Option<(K, V)>, TableError> {
        self.range(..)?.next().transpose()
    }

    /// The row with the largest key.
    ///
    /// # Errors
    ///
    /// Like [`get`](Self::get). Sticky: not executed.
    pub fn last(&self) -> Result<Option<(K, V)>, TableError> {
        self.range(..)?.next_back().transpose()
    }

    /// The exact number of rows. Costs a look-up for each row of this table that was written recently and is not in
    /// the state file yet, up to some thousands, on the thread that every operation waits for: keep a counter in a
    /// row if an operation needs one often.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read. Sticky: not executed.
    pub fn len(&self) -> Result<u64, TableError> {
        self.note(self.rows.read(|rows| self.typed.len(rows)))
    }

    /// Whether there are no rows.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read. Sticky: not executed.
    pub fn is_empty(&self) -> Result<bool, TableError> {
        self.note(self.rows.read(|rows| self.typed.is_empty(rows)))
    }

    fn key(&self, key: impl AsKey<K>) -> Result<Vec<u8>, TableError> {
        self.typed.encode_key(key, self.rows.limits())
    }

    fn get_encoded(&self, key: &[u8]) -> Result<Option<V>, TableError> {
        self.rows.read(|rows| self.typed.get(rows, key))
    }

    fn contains_encoded(&self, key: &[u8]) -> Result<bool, TableError> {
        self.rows.read(|rows| self.typed.contains(rows, key))
    }

    fn write(&self, key: &[u8], value: &V) -> Result<(), TableError> {
        let bytes = self.typed.encode_value(key, value, self.rows.limits())?;
        self.rows.write(RowKey::new(self.typed.id, key), Some(bytes.into()))
    }

    fn rows_between(&self, bounds: &Bounds) -> Result<TableRange<'a, K, V>, TableError> {
        let rows = self.note(self.rows.read(|rows| self.typed.range(rows, bounds)))?;
        Ok(TableRange { rows, typed: self.typed, sticky: Some(self.rows.sticky()) })
    }

    fn note<T>(&self, result: Result<T, TableError>) -> Result<T, TableError> {
        self.rows.sticky().note(result)
    }
}

impl<K, V> fmt::Debug for TableMut<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableMut").field("table", self.typed.table).finish_non_exhaustive()
    }
}
