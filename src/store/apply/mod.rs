//! Applying frames: the one piece of code that turns a record into rows, live and in recovery.
//!
//! It reads no clock and no configuration: whatever it needs is in the frame. A record of a kind that this version does
//! not know how to apply is an error and never skipped.

mod activity;
mod claim;
pub(super) mod effects;
mod effects_resolve;
mod erase;
mod operation;
mod sweep;
mod usage;

use crate::base::error::Error;
use crate::base::position::Position;
use crate::log::record::{Body, Record, RestoreRecord, RowChange, TableChanges, TableRecord};
use crate::state::{Bytes, Catalog, Codec, EngineError, Overlay, RowKey, Rows, TableDeclaration, TableId};

use super::rows::{CLOCK_ACCEPTED, ClockRow, RestoreRow, System, SystemRowError, open_row, seal_row, sequence_key};
use super::sweep::ExpiryKey;
use activity::collect_activity;
use claim::collect_claim;
use effects::{Effects, put_seen};
use effects_resolve::collect_resolve;
use erase::collect_erase;
use operation::collect_operation;
use sweep::collect_sweep;

/// What a frame says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameFacts {
    pub(super) position: Position,
    /// The store's time.
    pub(super) time_ms: u64,
}

/// Why a frame could not be applied. Nothing of it was.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApplyError {
    #[error("the state cannot be read: {0}")]
    State(#[from] EngineError),
    #[error(transparent)]
    Row(#[from] SystemRowError),
    #[error("table {table} of the record cannot be had: {reason}")]
    Table { table: String, reason: String },
    #[error("two scopes have the same hash; neither is touched")]
    ScopeCollision,
    #[error("a scope has receipts and no names")]
    ScopeMissing,
    #[error("a sweep covers {expected} expiry rows, and there are {found}")]
    Sweep { found: u64, expected: u64 },
    #[error("there is no accepted operation at {0} to be resolved")]
    NotAccepted(u64),
    #[error("this version does not know how to apply a record of kind \"{0}\"")]
    Newer(&'static str),
}

impl ApplyError {
    /// What a submission is told that met it.
    pub(super) fn answer(&self) -> Error {
        match self {
            Self::State(EngineError::Closed) => Error::Closed,
            Self::State(_)
            | Self::Row(_)
            | Self::Table { .. }
            | Self::ScopeCollision
            | Self::ScopeMissing
            | Self::Sweep { .. }
            | Self::NotAccepted(_)
            | Self::Newer(_) => Error::Corrupt(self.to_string()),
        }
    }
}

/// Reads the store's own rows on any set of layers.
pub(super) fn get_system<T: serde::de::DeserializeOwned>(
    rows: &impl Rows,
    table: System,
    key: &[u8],
) -> Result<Option<T>, ApplyError> {
    Ok(rows.get(table.id(), key)?.map(|bytes| open_row(table, key, &bytes)).transpose()?)
}

/// The rows that one frame changes. They are collected while everything that can fail is done, and written after it, so
/// that a frame is applied whole or not at all.
#[derive(Debug, Default)]
struct Changes(Vec<(RowKey, Option<Bytes>)>);

impl Changes {
    fn put(&mut self, table: TableId, key: &[u8], value: Bytes) {
        self.0.push((RowKey::new(table, key), Some(value)));
    }

    fn remove(&mut self, table: TableId, key: &[u8]) {
        self.0.push((RowKey::new(table, key), None));
    }

    fn put_system<T: serde::Serialize>(&mut self, table: System, key: &[u8], row: &T) {
        self.put(table.id(), key, Bytes::from(seal_row(table, key, row)));
    }
}

/// What applying a frame has to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Applied {
    /// The first of the expiry rows that it put.
    pub(super) due_first: Option<ExpiryKey>,
}

/// Applies one frame, whole or not at all.
pub(super) fn apply(
    overlay: &mut Overlay,
    catalog: &Catalog,
    frame: FrameFacts,
    record: &Record,
) -> Result<Applied, ApplyError> {
    let mut changes = Changes::default();
    collect(overlay, &mut changes, catalog, frame, record)?;
    let mut applied = Applied::default();
    for (key, value) in changes.0 {
        if key.table() == System::Expiry.id() && value.is_some() {
            let due = key.key().try_into().ok();
            applied.due_first = applied.due_first.into_iter().chain(due).min();
        }
        overlay.set(key, value);
    }
    Ok(applied)
}

fn collect(
    rows: &Overlay,
    changes: &mut Changes,
    catalog: &Catalog,
    frame: FrameFacts,
    record: &Record,
) -> Result<(), ApplyError> {
    match &record.body {
        Body::Operation(operation) => collect_operation(rows, changes, catalog, frame, record.wall_ms, operation),
        Body::Write(write) => collect_tables(changes, catalog, &write.changes),
        Body::TableDeclared(table) => collect_declaration(changes, catalog, table),
        Body::Claim(claim) => collect_claim(rows, changes, frame, claim),
        Body::ClockAccepted(_) => {
            // The time that was accepted is the frame's own, which recovery reads from the header.
            let row = ClockRow { ahead_ms: frame.time_ms.saturating_sub(record.wall_ms) };
            changes.put_system(System::Clock, CLOCK_ACCEPTED, &row);
            Ok(())
        }
        Body::Sweep(sweep) => collect_sweep(rows, changes, frame, sweep),
        Body::Effect(effect) => Effects::new(rows, frame).effect(changes, effect, false),
        Body::Callback(callback) => {
            put_seen(changes, callback, frame.position.sequence);
            Effects::new(rows, frame).callback(changes, callback)
        }
        Body::Resolve(resolve) => collect_resolve(rows, changes, catalog, frame, record.wall_ms, resolve),
        Body::Activity(activity) => collect_activity(rows, changes, activity),
        Body::Erase(erase) => collect_erase(rows, changes, frame, erase),
        Body::Restore(restore) => {
            let RestoreRecord { backup_id, from_epoch, from_sequence } = *restore;
            let row = RestoreRow { backup_id, from_epoch, from_sequence };
            changes.put_system(System::Restores, &sequence_key(frame.position.epoch), &row);
            Ok(())
        }
        Body::Follower(_) => Err(ApplyError::Newer(record.body.kind())),
    }
}

fn collect_tables(changes: &mut Changes, catalog: &Catalog, tables: &[TableChanges]) -> Result<(), ApplyError> {
    for table in tables {
        let id = table_id(catalog, &table.table)?;
        for row in &table.rows {
            match row {
                RowChange::Put { key, value } => changes.put(id, key, value.clone()),
                RowChange::Remove { key } => changes.remove(id, key),
            }
        }
    }
    Ok(())
}

fn table_id(catalog: &Catalog, table: &str) -> Result<TableId, ApplyError> {
    catalog
        .intern_stored(table)
        .map_err(|error| ApplyError::Table { table: table.to_owned(), reason: error.to_string() })
}

fn collect_declaration(changes: &mut Changes, catalog: &Catalog, table: &TableRecord) -> Result<(), ApplyError> {
    table_id(catalog, &table.name)?;
    let codec = Codec::from_id(table.codec).ok_or(ApplyError::Newer("table declared with a new codec"))?;
    let declaration = TableDeclaration {
        name: table.name.clone(),
        key_type: table.key_type.clone(),
        codec,
        version: table.version,
        upgrades_from: table.upgrades_from.clone(),
        retired: table.retired.clone(),
        rows_of: table.rows_of.clone(),
    };
    changes.put_system(System::Tables, table.name.as_bytes(), &declaration);
    Ok(())
}
