//! A snapshot written into a new file: for backups, and to give space back after much was deleted.

use std::ops::Bound;

use redb::StorageBackend;

use super::error::EngineError;
use super::{Engine, FoldDurability, Snapshot};
use crate::state::map::MemoryMap;
use crate::state::row_key::RowKey;

/// Bytes of rows per transaction of a copy: enough to make sorted inserts cheap, little enough to stay in the cache.
const COPY_BATCH_BYTES: usize = 4 * 1024 * 1024;

impl Engine {
    /// Writes the rows of a snapshot of this tree into an empty backend. Durable when it returns.
    ///
    /// The copy has the snapshot's [`Meta`](super::Meta) from its first commit on, so an unfinished copy looks like a
    /// finished one: write it under a temporary name and rename it afterwards. Stops between batches as soon as
    /// `keep_going` says no, and then returns `false`.
    pub(crate) fn copy_into(
        &self,
        snapshot: &Snapshot,
        backend: impl StorageBackend,
        cache_bytes: usize,
        mut keep_going: impl FnMut() -> bool,
    ) -> Result<bool, EngineError> {
        let meta = snapshot.meta();
        let copy = Self::create(backend, self.catalog.clone(), meta, cache_bytes)?;
        let mut batch = MemoryMap::new();
        for table in snapshot.tables() {
            let Some(mut rows) = snapshot.range(table, Bound::Unbounded, Bound::Unbounded)? else { continue };
            while let Some((key, value)) = rows.next(false, |key| RowKey::new(table, key))? {
                batch.insert(key, value);
                if batch.bytes() >= COPY_BATCH_BYTES {
                    if !keep_going() {
                        return Ok(false);
                    }
                    copy.fold(&std::mem::take(&mut batch), meta, FoldDurability::Volatile)?;
                }
            }
        }
        copy.fold(&batch, meta, FoldDurability::Checkpoint)?;
        Ok(true)
    }
}
