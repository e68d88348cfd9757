//! The store's own rows: scopes, slots, replies, expiry and table declarations.
//!
//! They stand in system tables of the same state as the business rows and are sealed in the same way. The enums are only
//! ever appended to.

use serde::{Deserialize, Serialize};

use crate::base::encoding::{ENCODED_BYTES_USUAL, decode, encode_into};
use crate::base::name::Slot;
use crate::base::position::{Position, TimestampMs};
use crate::base::receipt::{Outcome, ReceiptMeta};
use crate::log::record::{ClaimHolder, EraseRecord};
use crate::protocol::admission::Stored;
use crate::protocol::identity::{Digest, ScopeHash};
use crate::state::{Codec, TableId, begin_seal, finish_seal, open_sealed};

/// The system tables, in the order of their fixed ids.
pub(super) const SYSTEM_TABLES: [&str; 20] = [
    "_counterfoil/scopes",
    "_counterfoil/slots",
    "_counterfoil/replies",
    "_counterfoil/expiry",
    "_counterfoil/tables",
    "_counterfoil/erased",
    "_counterfoil/claims",
    "_counterfoil/clock",
    "_counterfoil/usage",
    "_counterfoil/activity",
    "_counterfoil/erasures",
    "_counterfoil/restores",
    "_counterfoil/effects",
    "_counterfoil/effect_ids",
    "_counterfoil/effect_refs",
    "_counterfoil/effect_order",
    "_counterfoil/due",
    "_counterfoil/callbacks",
    "_counterfoil/deliveries",
    "_counterfoil/seen",
];

/// One system table, by its place in [`SYSTEM_TABLES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// Scope hash to names.
    Scopes,
    /// Scope hash and key to receipt or claim.
    Slots,
    /// Sequence to reply.
    Replies,
    /// Deadline and sequence to what is due.
    Expiry,
    /// Table name to declaration.
    Tables,
    /// First sequence of an erased range to its last.
    Erased,
    /// A claimed slot's key to the claim's fence, so that an open finds the living claims without reading every slot.
    Claims,
    /// `accepted` to what a person said of the clock.
    Clock,
    /// Tenant to what its receipts take.
    Usage,
    /// Key of a slot's row to how often it was replayed or refused.
    Activity,
    /// Sequence of a decision to what it erased.
    Erasures,
    /// Epoch of a restore to what was restored.
    Restores,
    /// Sequence of an operation and ordinal to effect.
    Effects,
    /// Identity to an effect's key.
    EffectIds,
    /// Provider and reference to an effect's key.
    EffectRefs,
    /// Provider, order key and an open effect's key.
    EffectOrder,
    /// Kind, time and an open effect's key, or the sequence of an operation whose continuation is due.
    Due,
    /// Provider, reference and sequence of a parked callback to its delivery.
    Callbacks,
    /// Provider and delivery to callback.
    Deliveries,
    /// Sequence of a callback that was seen and not applied to its delivery.
    Seen,
}

impl System {
    pub(super) fn id(self) -> TableId {
        TableId::from_index(self as usize).expect("there are few system tables")
    }

    pub(super) const fn name(self) -> &'static str {
        SYSTEM_TABLES[self as usize]
    }
}

/// The names behind a scope hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScopeRow {
    pub(super) tenant: String,
    pub(super) actor: String,
    pub(super) operation: String,
    /// Receipts of the scope up to this sequence are erased; 0 if none is. One row erases an actor's or a tenant's at
    /// once in every answer.
    pub(super) erased_through: u64,
}

/// The same, read without copying: it is compared at every operation.
#[derive(Debug, Deserialize)]
pub(super) struct ScopeNames<'a> {
    tenant: &'a str,
    actor: &'a str,
    operation: &'a str,
    pub(super) erased_through: u64,
}

impl ScopeNames<'_> {
    /// Whether it is the scope of these names.
    pub(super) fn names(&self, tenant: &str, actor: &str, operation: &str) -> bool {
        self.tenant == tenant && self.actor == actor && self.operation == operation
    }
}

/// What is stored under a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SlotRow {
    Receipt(ReceiptRow),
    Claim(ClaimRow),
}

/// A receipt. Past its replay deadline the same row is the tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReceiptRow {
    pub(super) digest: [u8; 32],
    pub(super) operation_version: u32,
    pub(super) outcome: Outcome,
    pub(super) position: Position,
    pub(super) completed_ms: u64,
    pub(super) completed_wall_ms: u64,
    pub(super) replay_until_ms: u64,
    pub(super) refuse_until_ms: u64,
    pub(super) allowed_until_ms: Option<u64>,
    /// What the reply row weighs, so that a quota gives back exactly what it took. The row itself is under the
    /// receipt's sequence, until it is swept or erased.
    pub(super) reply_bytes: u64,
    pub(super) reply_erased: bool,
    pub(super) body_dropped: bool,
    pub(super) redacted: bool,
    pub(super) attempt: u32,
    pub(super) trace_id: Option<String>,
    pub(super) resource_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClaimRow {
    pub(super) digest: [u8; 32],
    pub(super) operation_version: u32,
    pub(super) fence: u64,
    pub(super) lease_ms: u64,
    pub(super) lease_until_ms: u64,
    pub(super) holder: ClaimHolder,
    pub(super) attempt: u32,
    pub(super) trace_id: Option<String>,
    pub(super) position: Position,
}

/// One receipt that becomes due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExpiryRow {
    /// What is due: for a receipt, its key in the slots table.
    #[serde(with = "crate::base::byte_string")]
    pub(super) key: Vec<u8>,
    pub(super) tier: Tier,
    /// The deadline to which the row moves when the replay tier was swept.
    pub(super) refuse_until_ms: u64,
}

/// What the receipts of one tenant take, swept ones no longer. Kept with every receipt, so that a quota is exact after a
/// crash and costs an open nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UsageRow {
    /// Receipts, tombstones included.
    pub(super) receipts: u64,
    /// Bytes of their keys and replies.
    pub(super) bytes: u64,
}

/// How often a key was asked for again: at least so many times since a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ActivityRow {
    pub(super) replays: u64,
    pub(super) conflicts: u64,
    pub(super) since_ms: u64,
    pub(super) last_ms: u64,
}

/// A restore: positions from the backup's epoch on and below this one's, above its last sequence, are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RestoreRow {
    pub(super) backup_id: [u8; 16],
    pub(super) from_epoch: u64,
    pub(super) from_sequence: u64,
}

/// An erasure that was decided: kept for ever, since a backup from before has to be erased again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ErasureRow {
    pub(super) time_ms: u64,
    pub(super) erase: EraseRecord,
}

impl std::fmt::Display for UsageRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} receipts of {} bytes", self.receipts, self.bytes)
    }
}

/// The key of the one row in [`System::Clock`].
pub(super) const CLOCK_ACCEPTED: &[u8] = b"accepted";

/// What a person accepted of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ClockRow {
    /// How far the store's time was ahead of the wall clock.
    pub(super) ahead_ms: u64,
}

/// What falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Tier {
    /// The reply.
    Replay,
    /// The whole receipt.
    Refuse,
    /// A callback.
    Callback,
}

impl SlotRow {
    /// As admission sees it.
    pub(super) fn stored<'a>(&'a self, digest: &'a mut Digest, erased_through: u64) -> Stored<'a> {
        match self {
            Self::Receipt(row) => {
                *digest = Digest(row.digest);
                Stored::Receipt {
                    digest,
                    operation_version: row.operation_version,
                    replay_until: TimestampMs(row.replay_until_ms),
                    refuse_until: TimestampMs(row.refuse_until_ms),
                    reply_erased: row.is_erased(erased_through),
                }
            }
            Self::Claim(row) => {
                *digest = Digest(row.digest);
                Stored::Claim {
                    digest,
                    operation_version: row.operation_version,
                    lease_until: TimestampMs(row.lease_until_ms),
                }
            }
        }
    }
}

impl ReceiptRow {
    pub(super) fn meta(&self) -> ReceiptMeta {
        ReceiptMeta {
            outcome: self.outcome,
            operation_version: self.operation_version,
            position: self.position,
            completed_at: TimestampMs(self.completed_ms),
            completed_at_wall: TimestampMs(self.completed_wall_ms),
            replay_until: TimestampMs(self.replay_until_ms),
            refuse_until: TimestampMs(self.refuse_until_ms),
            attempt: self.attempt,
            trace_id: self.trace_id.clone(),
            resource_id: self.resource_id.clone(),
            body_dropped: self.body_dropped,
            redacted: self.redacted,
        }
    }

    /// Its reply and resource id are not shown any more.
    pub(super) const fn is_erased(&self, erased_through: u64) -> bool {
        self.reply_erased || self.position.sequence <= erased_through
    }

    /// The same for a person to see.
    pub(super) fn shown(&self, erased: bool) -> ReceiptMeta {
        let meta = self.meta();
        if erased { ReceiptMeta { resource_id: None, ..meta } } else { meta }
    }

    /// Nothing is known of it any more.
    pub(super) const fn is_forgotten(&self, now: TimestampMs) -> bool {
        now.0 >= self.refuse_until_ms
    }
}

/// The key of a slot's row: the scope first, then the key as given, so time-ordered keys stay together.
pub(super) fn slot_key(scope: ScopeHash, slot: &Slot) -> Vec<u8> {
    slot_key_of(&scope.0, slot.key.as_bytes())
}

/// The bytes of a scope's hash, with which a slot's key begins.
pub(super) const SCOPE_BYTES: usize = 16;

pub(super) fn slot_key_of(scope: &[u8; 16], key: &[u8]) -> Vec<u8> {
    [&scope[..], key].concat()
}

pub(super) fn expiry_key(deadline_ms: u64, sequence: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&deadline_ms.to_be_bytes());
    key[8..].copy_from_slice(&sequence.to_be_bytes());
    key
}

/// The deadline in the key of an expiry row.
pub(super) fn deadline_of(key: &[u8; 16]) -> u64 {
    u64::from_be_bytes(*key.first_chunk().expect("8 of 16 bytes"))
}

/// The sequence in the key of an expiry row.
pub(super) fn sequence_of(key: &[u8; 16]) -> u64 {
    u64::from_be_bytes(*key.last_chunk().expect("8 of 16 bytes"))
}

pub(super) const fn sequence_key(sequence: u64) -> [u8; 8] {
    sequence.to_be_bytes()
}

/// The version of the store's own rows.
const ROW_VERSION: u32 = 1;

/// A row of the store's own that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("table {table}, row {key}: {reason}")]
pub(crate) struct SystemRowError {
    table: &'static str,
    key: String,
    reason: String,
}

/// Seals a row of the store's own.
pub(super) fn seal_row<T: Serialize>(table: System, key: &[u8], row: &T) -> Vec<u8> {
    let mut bytes = begin_seal(Codec::Bincode, ROW_VERSION, ENCODED_BYTES_USUAL);
    encode_into(row, &mut bytes).expect("the store's own rows have no type that bincode cannot encode");
    finish_seal(table.name(), key, &mut bytes);
    bytes
}

/// Opens a row of the store's own.
pub(super) fn open_row<'a, T: Deserialize<'a>>(
    table: System,
    key: &[u8],
    bytes: &'a [u8],
) -> Result<T, SystemRowError> {
    let error = |reason: String| SystemRowError { table: table.name(), key: key.escape_ascii().to_string(), reason };
    let sealed = open_sealed(table.name(), key, bytes).map_err(|fault| error(fault.to_string()))?;
    if sealed.codec != Codec::Bincode || sealed.version != ROW_VERSION {
        return Err(error(format!("written as version {} by a newer version of this crate", sealed.version)));
    }
    decode(sealed.payload).map_err(|fault| error(fault.to_string()))
}
