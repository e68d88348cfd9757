//! state.redb: everything that has been folded.
//!
//! The only place, with its children, that names redb. Rows are bytes here; the tree never holds anything that is not
//! synced in the log, so what an unclean stop takes from it can be replayed.
//!
//! Numbered rules, cited by tests:
//!
//! * **E1** Data and [`Meta`] are one transaction: a reader never sees rows of one position under another's metadata.
//! * **E2** Every durable commit uses quick repair, hence two phases: a root that an open can see rests only on pages
//!   whose sync succeeded, and an unclean stop costs no scan of the file.
//! * **E3** Opening never creates. An empty file beside a log is an error.
//! * **E4** A fold never takes the state back to an earlier position.
//! * **E5** A panic inside redb is caught in the scope that owns the transaction, which is then aborted; closing is
//!   caught too.
//!
//! What cannot be caught: in a file damaged in its free-space records, redb 4.6 can panic in a destructor while it
//! unwinds from a panic in `commit`, which aborts the process. The log is whole; a check names the damage.
//!
//! redb makes a durable one-phase commit of its own when it is dropped cleanly after non-durable ones. Whoever owns the
//! backend refuses writes first (design, section 3).

mod check;
mod copy;
mod error;
mod meta;
mod snapshot;
#[cfg(test)]
mod tests;

#[cfg(test)]
use check::CopyCheck;
pub(crate) use check::check_copy;
pub(crate) use copy::CopyCursor;
pub(crate) use error::EngineError;
pub(crate) use meta::Meta;
pub(crate) use snapshot::{Snapshot, StoredRows};

use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, StorageBackend, WriteTransaction};

use self::error::{catch, redb};
use self::meta::{META_KEY, META_TABLE};
use self::snapshot::definition;
use super::catalog::Catalog;
use super::map::MemoryMap;
use crate::base::mutant::{self, Mutant};

/// What becomes of a fold if power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldDurability {
    /// It may be lost, or be there after all: the log still has it. Visible to new snapshots at once.
    Volatile,
    /// It and all folds before it are durable when the call returns.
    Checkpoint,
}

/// The open tree.
#[derive(Debug)]
pub(crate) struct Engine {
    /// `None` once closed.
    database: Option<Database>,
    catalog: Arc<Catalog>,
}

impl Engine {
    /// Makes a tree in an empty backend, durable when it returns.
    pub(crate) fn create(
        backend: impl StorageBackend,
        catalog: Arc<Catalog>,
        meta: Meta,
        cache_bytes: usize,
    ) -> Result<Self, EngineError> {
        let len = backend.len().map_err(redb("asking for the length"))?;
        if len > 0 {
            return Err(EngineError::NotEmpty(len));
        }
        let engine = Self { database: Some(open_database(backend, cache_bytes)?), catalog };
        engine.write_transaction(FoldDurability::Checkpoint, |transaction| write_meta(transaction, meta))?;
        Ok(engine)
    }

    /// An empty tree with the same catalog, to copy this one into. It has the copy's [`Meta`] from its first commit on, so
    /// an unfinished copy looks like a finished one: it is written under a name of its own and renamed afterwards.
    pub(crate) fn create_copy(
        &self,
        backend: impl StorageBackend,
        meta: Meta,
        cache_bytes: usize,
    ) -> Result<Self, EngineError> {
        Self::create(backend, Arc::clone(&self.catalog), meta, cache_bytes)
    }

    /// A tree in memory, which ends with this value.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn create_in_memory(catalog: Arc<Catalog>, meta: Meta) -> Result<Self, EngineError> {
        Self::create(redb::backends::InMemoryBackend::new(), catalog, meta, 1024 * 1024)
    }

    /// Opens the tree of a store; `store_id` is what the store's identity file says.
    ///
    /// Names of stored tables join the catalog. A file that was not closed cleanly is taken at its last checkpoint.
    pub(crate) fn open(
        backend: impl StorageBackend,
        catalog: Arc<Catalog>,
        store_id: u128,
        cache_bytes: usize,
    ) -> Result<(Self, Arc<Snapshot>), EngineError> {
        let engine = Self { database: Some(open_existing(backend, cache_bytes)?), catalog };
        let snapshot = engine.snapshot()?;
        let found = snapshot.meta().store_id;
        if found != store_id {
            return Err(EngineError::OtherStore { found, expected: store_id });
        }
        Ok((engine, snapshot))
    }

    /// Writes all rows of a map, deletions included, and `meta`, in one transaction.
    ///
    /// After an error nothing may be assumed about the fold except that no earlier one is lost; redb refuses further
    /// work after an I/O error, and the cure is to reopen.
    pub(crate) fn fold(&self, rows: &MemoryMap, meta: Meta, durability: FoldDurability) -> Result<(), EngineError> {
        self.write_transaction(durability, |transaction| {
            write_rows(transaction, rows, &self.catalog)?;
            write_meta(transaction, meta)
        })
    }

    /// The state of the last fold.
    pub(crate) fn snapshot(&self) -> Result<Arc<Snapshot>, EngineError> {
        catch("beginning a snapshot", || {
            let transaction = self.database()?.begin_read().map_err(redb("beginning a snapshot"))?;
            Ok(Arc::new(Snapshot::open(&transaction, &self.catalog)?))
        })
    }

    /// Closes the file. Snapshots that are still held answer [`EngineError::Closed`] from now on.
    ///
    /// redb would commit what is volatile on its way out, in one phase (against E2): whoever owns the backend refuses
    /// writes first, and then expects an error here. On a copy that takes every write, this commit shows whether a
    /// commit can be made at all.
    pub(crate) fn close(mut self) -> Result<(), EngineError> {
        self.close_database()
    }

    #[cfg(test)]
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn database(&self) -> Result<&Database, EngineError> {
        self.database.as_ref().ok_or(EngineError::Closed)
    }

    fn close_database(&mut self) -> Result<(), EngineError> {
        let Some(database) = self.database.take() else { return Ok(()) };
        catch("closing", || database.close().map_err(redb("closing")))
    }

    /// Rules E2 and E5 in one place: nothing else in this crate commits to redb.
    fn write_transaction(
        &self,
        durability: FoldDurability,
        work: impl FnOnce(&WriteTransaction) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut transaction = self.database()?.begin_write().map_err(redb("beginning a fold"))?;
        match durability {
            FoldDurability::Volatile => {
                transaction.set_durability(Durability::None).map_err(redb("beginning a fold"))?;
            }
            FoldDurability::Checkpoint => {
                transaction.set_durability(Durability::Immediate).map_err(redb("beginning a fold"))?;
                transaction.set_quick_repair(!mutant::is(Mutant::OnePhaseCheckpoint));
            }
        }
        // A transaction dropped while unwinding leaks pages and costs a full repair, so the panic ends in here.
        match catch("folding", || work(&transaction)) {
            Ok(()) => catch("committing a fold", || transaction.commit().map_err(redb("committing a fold"))),
            Err(error) => {
                // The first error is the one that says why; what aborting may add says nothing more.
                drop(catch("aborting a fold", || transaction.abort().map_err(redb("aborting a fold"))));
                Err(error)
            }
        }
    }
}

impl Drop for Engine {
    /// Quiet, and catches panics: after one inside redb its locks are poisoned and closing panics again.
    fn drop(&mut self) {
        drop(self.close_database());
    }
}

fn write_rows(transaction: &WriteTransaction, rows: &MemoryMap, catalog: &Catalog) -> Result<(), EngineError> {
    let mut rows = rows.iter().peekable();
    while let Some((first, _)) = rows.peek() {
        let id = first.table();
        let name = catalog.name(id);
        let mut table = transaction.open_table(definition(&name)).map_err(redb("opening a table"))?;
        while let Some((key, value)) = rows.next_if(|(key, _)| key.table() == id) {
            match value {
                Some(value) => drop(table.insert(key.key(), &**value).map_err(redb("writing a row"))?),
                None => drop(table.remove(key.key()).map_err(redb("removing a row"))?),
            }
        }
    }
    Ok(())
}

fn write_meta(transaction: &WriteTransaction, meta: Meta) -> Result<(), EngineError> {
    let mut table = transaction.open_table(definition(META_TABLE)).map_err(redb("opening the metadata"))?;
    let bytes = meta.encode()?;
    let old = table.insert(META_KEY, bytes.as_slice()).map_err(redb("writing the metadata"))?;
    let Some(old) = old else { return Ok(()) };
    let old = Meta::decode(old.value())?;
    if old.store_id != meta.store_id {
        return Err(EngineError::OtherStore { found: old.store_id, expected: meta.store_id });
    }
    if meta.position() < old.position() {
        return Err(EngineError::Backwards {
            epoch: old.epoch,
            sequence: old.applied_sequence,
            to_epoch: meta.epoch,
            to_sequence: meta.applied_sequence,
        });
    }
    Ok(())
}

/// Rule E3: redb itself would take an empty file for a new database.
fn open_existing(backend: impl StorageBackend, cache_bytes: usize) -> Result<Database, EngineError> {
    if backend.len().map_err(redb("asking for the length"))? == 0 {
        return Err(EngineError::Empty);
    }
    open_database(backend, cache_bytes)
}

fn open_database(backend: impl StorageBackend, cache_bytes: usize) -> Result<Database, EngineError> {
    catch("opening", || {
        let mut builder = Database::builder();
        builder.set_cache_size(cache_bytes);
        builder.create_with_backend(backend).map_err(redb("opening"))
    })
}
