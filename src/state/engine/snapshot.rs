//! What redb holds as of one commit.

use std::fmt;
use std::ops::Bound;

use redb::{ReadOnlyTable, ReadableTableMetadata, TableDefinition, TableHandle};

use super::error::{EngineError, catch, redb};
use super::meta::{META_KEY, META_TABLE, Meta};
use crate::base::bytes::Bytes;
use crate::state::catalog::Catalog;
use crate::state::row_key::TableId;

pub(super) type StoredTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// The type of every table in the tree: bytes to bytes. What they mean is decided above, where it can fail.
pub(super) fn definition(name: &str) -> TableDefinition<'_, &'static [u8], &'static [u8]> {
    TableDefinition::new(name)
}

/// A read transaction with all of its tables opened once.
///
/// It pins the pages of its commit: while one lives, the file cannot reuse them. Tables that did not exist then are
/// empty. It does not keep the engine open: read after that was closed, it answers [`EngineError::Closed`].
///
/// redb trusts pages when it reads them and can panic on a damaged one, so every read is caught.
pub(crate) struct Snapshot {
    /// By table id. Every table that the tree had is here, so an absent one is empty.
    tables: Vec<Option<StoredTable>>,
    meta: Meta,
}

impl Snapshot {
    pub(super) fn open(transaction: &redb::ReadTransaction, catalog: &Catalog) -> Result<Self, EngineError> {
        let meta = read_meta(transaction)?;
        let mut tables = Vec::new();
        for handle in transaction.list_tables().map_err(redb("listing tables"))? {
            if handle.name() == META_TABLE {
                continue;
            }
            let id = catalog.intern_stored(handle.name()).map_err(|_| EngineError::TooManyTables)?;
            if tables.len() <= id.index() {
                tables.resize_with(id.index() + 1, || None);
            }
            let table = transaction.open_table(definition(handle.name())).map_err(redb("opening a table"))?;
            tables[id.index()] = Some(table);
        }
        Ok(Self { tables, meta })
    }

    /// What the commit said about itself.
    pub(crate) fn meta(&self) -> Meta {
        self.meta
    }

    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let Some(table) = self.table(table) else { return Ok(None) };
        catch("reading a row", || {
            let found = table.get(key).map_err(redb("reading a row"))?;
            Ok(found.map(|value| value.value().into()))
        })
    }

    pub(crate) fn contains(&self, table: TableId, key: &[u8]) -> Result<bool, EngineError> {
        let Some(table) = self.table(table) else { return Ok(false) };
        catch("reading a row", || Ok(table.get(key).map_err(redb("reading a row"))?.is_some()))
    }

    /// Rows of a table; the tree keeps count.
    pub(crate) fn len(&self, table: TableId) -> Result<u64, EngineError> {
        let Some(table) = self.table(table) else { return Ok(0) };
        catch("counting rows", || table.len().map_err(redb("counting rows")))
    }

    /// Rows of a table in order, from both ends. `None` if the table is absent.
    pub(crate) fn range(
        &self,
        table: TableId,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<Option<StoredRows>, EngineError> {
        let Some(table) = self.table(table) else { return Ok(None) };
        catch("reading a range", || {
            let rows = table.range::<&[u8]>((lower, upper)).map_err(redb("reading a range"))?;
            Ok(Some(StoredRows(rows)))
        })
    }

    /// The tables that have rows or had some.
    pub(crate) fn tables(&self) -> impl Iterator<Item = TableId> {
        let present = self.tables.iter().enumerate().filter(|(_, table)| table.is_some());
        present.filter_map(|(index, _)| TableId::from_index(index))
    }

    fn table(&self, id: TableId) -> Option<&StoredTable> {
        self.tables.get(id.index())?.as_ref()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("meta", &self.meta).finish_non_exhaustive()
    }
}

/// Rows of one stored table, read as they are asked for.
pub(crate) struct StoredRows(redb::Range<'static, &'static [u8], &'static [u8]>);

impl StoredRows {
    /// The next row from the front, or from the back.
    ///
    /// `make_key` sees the key where it lies, so that a short one is never allocated.
    pub(crate) fn next<T>(
        &mut self,
        from_back: bool,
        make_key: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<(T, Bytes)>, EngineError> {
        catch("reading a range", || {
            let next = if from_back { self.0.next_back() } else { self.0.next() };
            let Some(row) = next else { return Ok(None) };
            let (key, value) = row.map_err(redb("reading a range"))?;
            Ok(Some((make_key(key.value()), value.value().into())))
        })
    }
}

impl fmt::Debug for StoredRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRows").finish_non_exhaustive()
    }
}

fn read_meta(transaction: &redb::ReadTransaction) -> Result<Meta, EngineError> {
    let table = match transaction.open_table(definition(META_TABLE)) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Err(EngineError::NoMeta),
        Err(error) => return Err(redb("opening the metadata")(error)),
    };
    let row = table.get(META_KEY).map_err(redb("reading the metadata"))?;
    Meta::decode(row.ok_or(EngineError::NoMeta)?.value())
}
