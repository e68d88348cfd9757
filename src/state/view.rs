//! What a reader sees: the active map over the frozen map over a snapshot of redb.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use super::engine::{EngineError, Snapshot};
use super::map::MemoryMap;
use super::merge::{RowRange, marks};
use super::row_key::{RowKey, TableId};
use crate::base::bytes::Bytes;

/// Bounds of a range of keys within a table.
pub(crate) type KeyBounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// The whole of a table.
pub(crate) const ALL: KeyBounds<'static> = (Bound::Unbounded, Bound::Unbounded);

/// Rows that can be read.
pub(crate) trait Rows {
    /// The value of a row.
    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Bytes>, EngineError>;

    /// Rows in the order of their keys, as they are now: what is written later does not show. `.rev()` for the other
    /// order. Rows are read as they are asked for; bounds that contain nothing are not an error.
    fn range(&self, table: TableId, bounds: KeyBounds<'_>) -> Result<RowRange, EngineError>;

    /// The exact number of rows in a table.
    ///
    /// The tree keeps its own count; to it come one look-up in the tree for each row of this table that is in memory,
    /// so the cost grows with what is not folded yet and not with the table.
    fn len(&self, table: TableId) -> Result<u64, EngineError>;
}

/// One state of the store. A clone costs three counters.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// What was written since the last freeze.
    pub(crate) active: MemoryMap,
    /// What the folder is writing into redb right now.
    pub(crate) frozen: Option<MemoryMap>,
    /// What redb held when the last fold ended.
    pub(crate) base: Arc<Snapshot>,
}

impl View {
    /// The state of a tree with nothing above it.
    pub(crate) fn new(base: Arc<Snapshot>) -> Self {
        Self { active: MemoryMap::new(), frozen: None, base }
    }

    fn layers(&self) -> impl Iterator<Item = &MemoryMap> {
        std::iter::once(&self.active).chain(self.frozen.as_ref())
    }
}

impl Rows for View {
    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        get(self.layers(), &self.base, table, key)
    }

    fn range(&self, table: TableId, bounds: KeyBounds<'_>) -> Result<RowRange, EngineError> {
        RowRange::new(self.layers(), Some(&self.base), table, bounds)
    }

    fn len(&self, table: TableId) -> Result<u64, EngineError> {
        len(self.layers(), &self.base, table)
    }
}

/// A view with one more map on top: a transaction's own writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above<'a> {
    pub(crate) writes: &'a MemoryMap,
    pub(crate) view: &'a View,
}

impl<'a> Above<'a> {
    fn layers(&self) -> impl Iterator<Item = &'a MemoryMap> {
        std::iter::once(self.writes).chain(self.view.layers())
    }
}

impl Rows for Above<'_> {
    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        get(self.layers(), &self.view.base, table, key)
    }

    fn range(&self, table: TableId, bounds: KeyBounds<'_>) -> Result<RowRange, EngineError> {
        RowRange::new(self.layers(), Some(&self.view.base), table, bounds)
    }

    fn len(&self, table: TableId) -> Result<u64, EngineError> {
        len(self.layers(), &self.view.base, table)
    }
}

/// The writer's working copy of a view: the map of a batch, on which frames are applied.
///
/// Dropping it is the whole of rollback.
#[derive(Clone, Debug)]
pub(crate) struct Overlay {
    view: View,
    /// The last row of each table that was looked for in the tree, which does not change under an overlay: an operation
    /// asks for its slot when it is admitted and again when its frame is applied, and a batch for the same scopes.
    looked_up: RefCell<HashMap<TableId, (RowKey, Option<Bytes>)>>,
}

impl Overlay {
    pub(crate) fn new(view: &View) -> Self {
        Self { view: view.clone(), looked_up: RefCell::default() }
    }

    /// Sets the final state of a row; `None` removes it.
    pub(crate) fn set(&mut self, key: RowKey, value: Option<Bytes>) {
        self.view.active.set(key, value);
    }

    /// Takes over all rows of a map, deletions included: the writes of a transaction.
    #[cfg(test)]
    pub(crate) fn apply(&mut self, writes: &MemoryMap) {
        for (key, value) in writes.iter() {
            self.view.active.set(key.clone(), value.cloned());
        }
    }

    /// The state as it is now, for transactions to read.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    pub(crate) fn into_map(self) -> MemoryMap {
        self.view.active
    }
}

impl Rows for Overlay {
    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        let row_key = RowKey::new(table, key);
        if let Some(row) = in_layers(self.view.layers(), &row_key) {
            return Ok(row);
        }
        let mut looked_up = self.looked_up.borrow_mut();
        if let Some((last, row)) = looked_up.get(&table)
            && *last == row_key
        {
            return Ok(row.clone());
        }
        let row = self.view.base.get(table, key)?;
        looked_up.insert(table, (row_key, row.clone()));
        Ok(row)
    }

    fn range(&self, table: TableId, bounds: KeyBounds<'_>) -> Result<RowRange, EngineError> {
        self.view.range(table, bounds)
    }

    fn len(&self, table: TableId) -> Result<u64, EngineError> {
        self.view.len(table)
    }
}

/// The first layer that says anything about a row has the last word.
fn get<'a>(
    layers: impl Iterator<Item = &'a MemoryMap>,
    base: &Snapshot,
    table: TableId,
    key: &[u8],
) -> Result<Option<Bytes>, EngineError> {
    match in_layers(layers, &RowKey::new(table, key)) {
        Some(row) => Ok(row),
        None => base.get(table, key),
    }
}

/// What the topmost map that knows a row says about it.
fn in_layers<'a>(mut layers: impl Iterator<Item = &'a MemoryMap>, key: &RowKey) -> Option<Option<Bytes>> {
    layers.find_map(|map| map.get(key).map(Option::<&Bytes>::cloned))
}

fn len<'a>(layers: impl Iterator<Item = &'a MemoryMap>, base: &Snapshot, table: TableId) -> Result<u64, EngineError> {
    let mut len = base.len(table)?;
    let base_is_empty = len == 0;
    for (key, value) in marks(layers, table) {
        let in_base = !base_is_empty && base.contains(table, key.key())?;
        match (in_base, value.is_some()) {
            (false, true) => len += 1,
            (true, false) => len = len.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
    }
    Ok(len)
}
