//! A full check of a copy.

use redb::{ReadableDatabase, StorageBackend};

use super::error::{EngineError, catch, redb};
use super::snapshot::Snapshot;
use super::{Meta, open_existing};
use crate::state::catalog::Catalog;

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopyCheck {
    /// Whether every page and the allocator's records were in order. `false`: something was wrong and redb could
    /// repair it in the copy.
    pub(crate) clean: bool,
    /// Where the state of the copy stands, after the repair if there was one.
    pub(crate) meta: Meta,
    /// Rows of all tables.
    pub(crate) rows: u64,
}

/// Verifies every page of a **copy** of a tree.
///
/// redb's check repairs what it can and commits, so a verifier that must change nothing hands in a copy and throws it
/// away. What it cannot repair is an error.
pub(crate) fn check_copy(copy: impl StorageBackend, cache_bytes: usize) -> Result<CopyCheck, EngineError> {
    let mut database = open_existing(copy, cache_bytes)?;
    catch("checking", move || {
        let clean = database.check_integrity().map_err(redb("checking"))?;
        let transaction = database.begin_read().map_err(redb("checking"))?;
        let snapshot = Snapshot::open(&transaction, &Catalog::new(&[]))?;
        let mut rows = 0;
        for table in snapshot.tables() {
            rows += snapshot.len(table)?;
        }
        Ok(CopyCheck { clean, meta: snapshot.meta(), rows })
    })
}
