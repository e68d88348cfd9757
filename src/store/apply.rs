//! Applying frames: the one piece of code that turns a record into rows, live and in recovery.
//!
//! It reads no clock and no configuration: whatever it needs is in the frame. A record of a kind that this version does
//! not know how to apply is an error and never skipped.

use crate::base::error::Error;
use crate::base::mutant::{self, Mutant};
use crate::base::position::Position;
use crate::log::record::{
    Body, ClaimAction, ClaimRecord, OperationRecord, Record, RowChange, SlotRecord, TableChanges, TableRecord,
};
use crate::state::{Bytes, Catalog, Codec, EngineError, Overlay, RowKey, Rows, TableDeclaration, TableId};

use super::rows::{
    ClaimRow, ExpiryRow, ReceiptRow, ScopeNames, ScopeRow, SlotRow, System, SystemRowError, Tier, expiry_key, open_row,
    seal_row, sequence_key, slot_key_of,
};

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
    #[error("this version does not know how to apply a record of kind \"{0}\"")]
    Newer(&'static str),
}

impl ApplyError {
    /// What a submission is told that met it.
    pub(super) fn answer(&self) -> Error {
        match self {
            Self::State(EngineError::Closed) => Error::Closed,
            Self::State(_) | Self::Row(_) | Self::Table { .. } | Self::ScopeCollision | Self::Newer(_) => {
                Error::Corrupt(self.to_string())
            }
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

/// Applies one frame, whole or not at all.
pub(super) fn apply(
    overlay: &mut Overlay,
    catalog: &Catalog,
    frame: FrameFacts,
    record: &Record,
) -> Result<(), ApplyError> {
    let mut changes = Changes::default();
    collect(overlay, &mut changes, catalog, frame, record)?;
    for (key, value) in changes.0 {
        overlay.set(key, value);
    }
    Ok(())
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
        // The time that was accepted is the frame's own, which recovery reads from the header.
        Body::ClockAccepted(_) => Ok(()),
        Body::Sweep(_)
        | Body::Erase(_)
        | Body::Restore(_)
        | Body::Effect(_)
        | Body::Callback(_)
        | Body::Resolve(_)
        | Body::Follower(_)
        | Body::Activity(_) => Err(ApplyError::Newer(record.body.kind())),
    }
}

fn collect_operation(
    rows: &Overlay,
    changes: &mut Changes,
    catalog: &Catalog,
    frame: FrameFacts,
    wall_ms: u64,
    operation: &OperationRecord,
) -> Result<(), ApplyError> {
    if !operation.intents.is_empty() {
        return Err(ApplyError::Newer("operation with intents"));
    }
    let slot_key = slot_key_of(&operation.slot.scope, &operation.slot.key);
    let replaced = get_system::<SlotRow>(rows, System::Slots, &slot_key)?;
    collect_scope(rows, changes, &operation.slot)?;
    collect_tables(changes, catalog, &operation.changes)?;
    remove_dependents(changes, &slot_key, replaced.as_ref());
    let sequence = frame.position.sequence;
    let completion = &operation.completion;
    let reply = seal_row(System::Replies, &sequence_key(sequence), &completion.reply);
    let row = ReceiptRow {
        digest: operation.digest,
        operation_version: operation.operation_version,
        outcome: completion.outcome,
        position: frame.position,
        completed_ms: frame.time_ms,
        completed_wall_ms: wall_ms,
        replay_until_ms: completion.replay_until_ms,
        refuse_until_ms: completion.refuse_until_ms,
        allowed_until_ms: completion.allowed_until_ms,
        reply_bytes: reply.len() as u64,
        reply_erased: false,
        body_dropped: completion.body_dropped,
        redacted: completion.redacted,
        attempt: operation.attempt,
        trace_id: operation.trace_id.clone(),
        resource_id: completion.reply.resource_id.clone(),
    };
    changes.put(System::Replies.id(), &sequence_key(sequence), Bytes::from(reply));
    let expiry = ExpiryRow { key: slot_key.clone(), tier: Tier::Replay, refuse_until_ms: completion.refuse_until_ms };
    changes.put_system(System::Expiry, &expiry_key(completion.replay_until_ms, sequence), &expiry);
    changes.put_system(System::Slots, &slot_key, &SlotRow::Receipt(row));
    Ok(())
}

/// What is replaced takes with it whatever depends on it, so that nothing of it comes due later and takes its successor
/// away. A receipt's one expiry row is under one of two deadlines, depending on whether it was swept; both are removed
/// without looking.
fn remove_dependents(changes: &mut Changes, slot_key: &[u8], replaced: Option<&SlotRow>) {
    match replaced {
        Some(SlotRow::Receipt(old)) => {
            let sequence = old.position.sequence;
            if !mutant::is(Mutant::ExpiryRowLeft) {
                changes.remove(System::Expiry.id(), &expiry_key(old.replay_until_ms, sequence));
                changes.remove(System::Expiry.id(), &expiry_key(old.refuse_until_ms, sequence));
            }
            changes.remove(System::Replies.id(), &sequence_key(sequence));
        }
        Some(SlotRow::Claim(_)) => changes.remove(System::Claims.id(), slot_key),
        None => {}
    }
}

fn collect_scope(rows: &Overlay, changes: &mut Changes, slot: &SlotRecord) -> Result<(), ApplyError> {
    let stored = rows.get(System::Scopes.id(), &slot.scope)?;
    let names =
        stored.as_ref().map(|bytes| open_row::<ScopeNames<'_>>(System::Scopes, &slot.scope, bytes)).transpose()?;
    match names {
        None => {
            let row = ScopeRow {
                tenant: slot.tenant.clone(),
                actor: slot.actor.clone(),
                operation: slot.operation.clone(),
                erased_through: 0,
            };
            changes.put_system(System::Scopes, &slot.scope, &row);
        }
        Some(stored) if stored.names(&slot.tenant, &slot.actor, &slot.operation) => {}
        Some(_) => return Err(ApplyError::ScopeCollision),
    }
    Ok(())
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

fn collect_claim(
    rows: &Overlay,
    changes: &mut Changes,
    frame: FrameFacts,
    claim: &ClaimRecord,
) -> Result<(), ApplyError> {
    let slot_key = slot_key_of(&claim.slot.scope, &claim.slot.key);
    let stored = get_system::<SlotRow>(rows, System::Slots, &slot_key)?;
    match (&claim.action, stored) {
        (ClaimAction::Taken { lease_ms, lease_until_ms, holder, attempt, trace_id }, stored) => {
            collect_scope(rows, changes, &claim.slot)?;
            remove_dependents(changes, &slot_key, stored.as_ref());
            changes.put_system(System::Claims, &slot_key, &claim.fence);
            let row = ClaimRow {
                digest: claim.digest,
                operation_version: claim.operation_version,
                fence: claim.fence,
                lease_ms: *lease_ms,
                lease_until_ms: *lease_until_ms,
                holder: holder.clone(),
                attempt: *attempt,
                trace_id: trace_id.clone(),
                position: frame.position,
            };
            changes.put_system(System::Slots, &slot_key, &SlotRow::Claim(row));
        }
        (ClaimAction::Extended { lease_ms, lease_until_ms }, Some(SlotRow::Claim(row))) if row.fence == claim.fence => {
            let row = ClaimRow { lease_ms: *lease_ms, lease_until_ms: *lease_until_ms, ..row };
            changes.put_system(System::Slots, &slot_key, &SlotRow::Claim(row));
        }
        (ClaimAction::Released, Some(SlotRow::Claim(row))) if row.fence == claim.fence => {
            changes.remove(System::Slots.id(), &slot_key);
            changes.remove(System::Claims.id(), &slot_key);
        }
        // A stale holder changes nothing; what it reported stays in the log as evidence.
        (ClaimAction::Extended { .. } | ClaimAction::Released | ClaimAction::Refused { .. }, _) => {}
    }
    Ok(())
}
