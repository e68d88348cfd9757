//! The rows of a snapshot, a bounded number of bytes at a time.

use std::ops::Bound;

use super::error::EngineError;
use super::snapshot::Snapshot;
use crate::state::map::MemoryMap;
use crate::state::row_key::{RowKey, TableId};

/// Where a copy of a snapshot stands.
#[derive(Debug)]
pub(crate) struct CopyCursor {
    tables: Vec<TableId>,
    /// The last key that was taken from the first of them.
    after: Option<Vec<u8>>,
}

impl CopyCursor {
    /// At the first row.
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let mut tables: Vec<TableId> = snapshot.tables().collect();
        tables.reverse();
        Self { tables, after: None }
    }

    /// The next rows, until they take so many bytes; none if there are no more.
    pub(crate) fn next(&mut self, snapshot: &Snapshot, bytes_max: usize) -> Result<Option<MemoryMap>, EngineError> {
        let mut rows = MemoryMap::new();
        while let Some(&table) = self.tables.last() {
            let lower = self.after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let Some(mut range) = snapshot.range(table, lower, Bound::Unbounded)? else {
                self.tables.pop();
                continue;
            };
            while let Some((key, value)) = range.next(false, |key| RowKey::new(table, key))? {
                self.after = Some(key.key().to_vec());
                rows.set(key, Some(value));
                if rows.bytes() >= bytes_max {
                    return Ok(Some(rows));
                }
            }
            self.tables.pop();
            self.after = None;
        }
        Ok((!rows.is_empty()).then_some(rows))
    }
}
