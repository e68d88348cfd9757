//! Reading a table.

use std::fmt;
use std::iter::FusedIterator;

use super::key_range::{Bounds, prefix_bounds};
use super::tx::Sticky;
use super::typed::Typed;
use super::{AsKey, Declarations, KeyPrefix, KeyRange, Table, TableKey, key};
use crate::state::error::TableError;
use crate::state::{Bytes, EngineError, RowKey, RowRange, View};

/// Reads one table of a snapshot.
///
/// Everything that it returns belongs to one state of the store, that of the moment the snapshot was taken.
pub struct TableView<'a, K, V> {
    rows: &'a View,
    typed: Typed<'a, K, V>,
}

impl<'a, K: TableKey, V> TableView<'a, K, V> {
    pub(crate) fn open(rows: &'a View, declared: &Declarations, table: &'a Table<K, V>) -> Result<Self, TableError> {
        let id = declared.resolve(table)?;
        Ok(Self { rows, typed: Typed { table, id } })
    }

    /// The value of a row.
    ///
    /// # Errors
    ///
    /// If the row is damaged, does not decode, or the state file cannot be read.
    pub fn get(&self, key: impl AsKey<K>) -> Result<Option<V>, TableError> {
        self.typed.get(self.rows, &key::encode::<K>(&key))
    }

    /// Whether a row is there. Its value is not decoded.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read.
    pub fn contains(&self, key: impl AsKey<K>) -> Result<bool, TableError> {
        self.typed.contains(self.rows, &key::encode::<K>(&key))
    }

    /// Rows with keys in a range, in the order of the keys; `.rev()` for the other order.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read.
    pub fn range(&self, keys: impl KeyRange<K>) -> Result<TableRange<'a, K, V>, TableError> {
        self.rows_between(&keys.key_bounds())
    }

    /// Rows whose keys begin with a prefix: of a string or bytes, or the first parts of a tuple.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read.
    pub fn prefix(&self, prefix: impl KeyPrefix<K>) -> Result<TableRange<'a, K, V>, TableError> {
        self.rows_between(&prefix_bounds(&prefix))
    }

    /// The row with the smallest key.
    ///
    /// # Errors
    ///
    /// Like [`Self::get`].
    pub fn first(&self) -> Result<Option<(K, V)>, TableError> {
        self.range(..)?.next().transpose()
    }

    /// The row with the largest key.
    ///
    /// # Errors
    ///
    /// Like [`Self::get`].
    pub fn last(&self) -> Result<Option<(K, V)>, TableError> {
        self.range(..)?.next_back().transpose()
    }

    /// The exact number of rows. Costs a look-up for each row of this table that was written recently and is not in
    /// the state file yet, up to some thousands; the rest is a stored count.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read.
    pub fn len(&self) -> Result<u64, TableError> {
        self.typed.len(self.rows)
    }

    /// Whether there are no rows.
    ///
    /// # Errors
    ///
    /// If the state file cannot be read.
    pub fn is_empty(&self) -> Result<bool, TableError> {
        self.typed.is_empty(self.rows)
    }

    fn rows_between(&self, bounds: &Bounds) -> Result<TableRange<'a, K, V>, TableError> {
        Ok(TableRange { rows: self.typed.range(self.rows, bounds)?, typed: self.typed, sticky: None })
    }
}

impl<K, V> fmt::Debug for TableView<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableView").field("table", self.typed.table).finish_non_exhaustive()
    }
}

/// Rows of a table in the order of their keys, readable from both ends.
///
/// It shows the table as it was when the range was made: rows that the same operation writes while it walks do not
/// appear. A row that does not decode is an error in its place; the rows after it can still be read.
pub struct TableRange<'a, K, V> {
    pub(super) rows: RowRange,
    pub(super) typed: Typed<'a, K, V>,
    /// Where errors are recorded, within an operation.
    pub(super) sticky: Option<&'a Sticky>,
}

impl<K: TableKey, V> TableRange<'_, K, V> {
    fn decode(&self, row: Result<(RowKey, Bytes), EngineError>) -> Result<(K, V), TableError> {
        let row = row.map_err(|error| TableError::storage(self.typed.table.name(), error));
        let decoded = row.and_then(|(key, value)| self.typed.decode_row(&key, &value));
        match self.sticky {
            Some(sticky) => sticky.note(decoded),
            None => decoded,
        }
    }
}

impl<K: TableKey, V> Iterator for TableRange<'_, K, V> {
    type Item = Result<(K, V), TableError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.rows.next().map(|row| self.decode(row))
    }
}

impl<K: TableKey, V> DoubleEndedIterator for TableRange<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| self.decode(row))
    }
}

impl<K: TableKey, V> FusedIterator for TableRange<'_, K, V> {}

impl<K, V> fmt::Debug for TableRange<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableRange").field("table", self.typed.table).finish_non_exhaustive()
    }
}
