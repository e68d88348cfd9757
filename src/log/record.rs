//! What a frame says: records of format 1.
//!
//! A record is self-contained: it names scope, operation and tables in full, so that it can be read without the state
//! file, and holds every time and deadline that applying it needs, so that applying reads neither clock nor
//! configuration. The enums are **only ever appended to**: a variant keeps its number for ever, and golden bytes of each
//! stay in `tests/fixtures`. `docs/format.md` describes every shape, the ones that this version does not yet produce
//! included.

use serde::{Deserialize, Serialize};

use crate::base::byte_string;
use crate::base::bytes::Bytes;
use crate::base::encoding::{EncodingError, decode, encode};
use crate::base::receipt::Outcome;
use crate::base::reply::Reply;

/// The payload of an entry frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The wall clock when the record was made, in milliseconds. The frame's own time is the store's.
    pub(crate) wall_ms: u64,
    /// What happened.
    pub(crate) body: Body,
}

impl Record {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, EncodingError> {
        encode(self)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableRecord> {
        decode(bytes).map_err(UnreadableRecord)
    }
}

/// A record that cannot be decoded. Its frame's checksum was right, so it is not damage.
#[derive(Debug, thiserror::Error)]
#[error(
    "its record cannot be read although its checksum is right: a newer version of this crate may have written it ({0})"
)]
pub(crate) struct UnreadableRecord(EncodingError);

/// Everything that can change the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Body {
    /// An operation ran: its mutation and its receipt.
    Operation(OperationRecord),
    /// A change without a receipt.
    Write(WriteRecord),
    /// A table was declared, or declared anew at a higher version.
    TableDeclared(TableRecord),
    /// A person accepted the clock.
    ClockAccepted(ClockRecord),
    /// Due expiry rows were swept.
    Sweep(SweepRecord),
    /// Operations were erased.
    Erase(EraseRecord),
    /// The store was restored from a backup.
    Restore(RestoreRecord),
    /// A claim was taken, extended, released or refused.
    Claim(ClaimRecord),
    /// An effect changed its state.
    Effect(EffectRecord),
    /// A provider called back.
    Callback(CallbackRecord),
    /// An accepted operation finished: its receipt changes.
    Resolve(ResolveRecord),
    /// A named follower acknowledged entries, or was removed: it pins segments.
    Follower(FollowerRecord),
    /// Replays and conflicts of some slots since a time.
    Activity(ActivityRecord),
}

impl Body {
    /// The name of the kind, for people.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Operation(_) => "operation",
            Self::Write(_) => "write",
            Self::TableDeclared(_) => "table declared",
            Self::ClockAccepted(_) => "clock accepted",
            Self::Sweep(_) => "sweep",
            Self::Erase(_) => "erase",
            Self::Restore(_) => "restore",
            Self::Claim(_) => "claim",
            Self::Effect(_) => "effect",
            Self::Callback(_) => "callback",
            Self::Resolve(_) => "resolve",
            Self::Follower(_) => "follower",
            Self::Activity(_) => "activity",
        }
    }
}

/// A slot by its names, with the scope's keyed hash, so that applying needs no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlotRecord {
    pub(crate) scope: [u8; 16],
    pub(crate) tenant: String,
    pub(crate) actor: String,
    pub(crate) operation: String,
    #[serde(with = "byte_string")]
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OperationRecord {
    pub(crate) slot: SlotRecord,
    pub(crate) digest: [u8; 32],
    pub(crate) operation_version: u32,
    pub(crate) completion: Completion,
    /// Which attempt of the caller executed.
    pub(crate) attempt: u32,
    pub(crate) trace_id: Option<String>,
    pub(crate) changes: Vec<TableChanges>,
    pub(crate) intents: Vec<IntentRecord>,
    /// The fence of the claim that this operation completes.
    pub(crate) claim_fence: Option<u64>,
}

/// How an operation ended, and until when that is answered. Times are the store's, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Completion {
    pub(crate) outcome: Outcome,
    pub(crate) replay_until_ms: u64,
    pub(crate) refuse_until_ms: u64,
    /// The reply's own validity, where the operation gave one.
    pub(crate) allowed_until_ms: Option<u64>,
    pub(crate) reply: Reply,
    /// Body and headers were above the limit and were dropped.
    pub(crate) body_dropped: bool,
    /// A redaction hook changed the reply.
    pub(crate) redacted: bool,
}

/// The rows of one table that a record changes, one final value each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableChanges {
    pub(crate) table: String,
    pub(crate) rows: Vec<RowChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RowChange {
    Put {
        #[serde(with = "byte_string")]
        key: Vec<u8>,
        /// A sealed value: checksum, codec, version, payload. The very bytes that the memory map holds.
        value: Bytes,
    },
    Remove {
        #[serde(with = "byte_string")]
        key: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriteRecord {
    pub(crate) changes: Vec<TableChanges>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableRecord {
    pub(crate) name: String,
    pub(crate) key_type: String,
    pub(crate) codec: u8,
    pub(crate) version: u32,
    /// The older versions that the program could read.
    pub(crate) upgrades_from: Vec<u32>,
    /// The older versions of which no row is left.
    pub(crate) retired: Vec<u32>,
    /// The versions under which rows may have been written.
    pub(crate) rows_of: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockRecord {
    /// The store's time from here on, in milliseconds.
    pub(crate) accepted_ms: u64,
    pub(crate) decided_by: Option<String>,
    pub(crate) reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SweepRecord {
    /// The first expiry row that is covered: there is none before it, or a row that moved there later.
    pub(crate) from_deadline_ms: u64,
    pub(crate) from_sequence: u64,
    /// The last one that is: every row from the first up to and including (deadline, sequence).
    pub(crate) deadline_ms: u64,
    pub(crate) sequence: u64,
    /// How many rows that are.
    pub(crate) rows: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EraseTarget {
    Operation(SlotRecord),
    Actor { tenant: String, actor: String },
    Tenant { tenant: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EraseRecord {
    pub(crate) target: EraseTarget,
    /// The log entries whose content is hidden from here on, as inclusive ranges of sequence numbers.
    pub(crate) sequences: Vec<(u64, u64)>,
    pub(crate) decided_by: Option<String>,
    pub(crate) reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestoreRecord {
    pub(crate) backup_id: [u8; 16],
    /// The last position in the backup.
    pub(crate) from_epoch: u64,
    pub(crate) from_sequence: u64,
    /// What was erased after the backup was made, to be erased again.
    pub(crate) erased: Vec<EraseRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimRecord {
    pub(crate) slot: SlotRecord,
    pub(crate) digest: [u8; 32],
    pub(crate) operation_version: u32,
    pub(crate) fence: u64,
    pub(crate) action: ClaimAction,
    /// Who decided and why, where a person did.
    pub(crate) decided_by: Option<String>,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClaimAction {
    Taken {
        /// The length of one lease, by which an open extends the claim of an external holder.
        lease_ms: u64,
        lease_until_ms: u64,
        holder: ClaimHolder,
        attempt: u32,
        trace_id: Option<String>,
    },
    Extended {
        lease_ms: u64,
        lease_until_ms: u64,
    },
    /// The slot is free again.
    Released,
    /// A completion that had lost its lease: kept as evidence, not applied.
    Refused {
        #[serde(with = "byte_string")]
        evidence: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClaimHolder {
    /// Inside the process that had the store open under this run id: it dies with that run.
    Run { run_id: [u8; 16] },
    /// Outside: only the end of the lease frees it.
    External { name: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IntentRecord {
    pub(crate) ordinal: u32,
    pub(crate) identity: [u8; 32],
    pub(crate) provider: String,
    #[serde(with = "byte_string")]
    pub(crate) payload: Vec<u8>,
    pub(crate) content_type: Option<String>,
    pub(crate) abilities: ProviderAbilities,
    /// Effects of one provider with the same order key leave one after another.
    pub(crate) order_key: Option<String>,
    pub(crate) attempts_max: u32,
    pub(crate) not_before_ms: u64,
    /// A planned effect is not sent any more after this.
    pub(crate) not_after_ms: Option<u64>,
    /// The reference under which the provider may call back before it has answered.
    pub(crate) provider_reference: Option<String>,
}

/// What a provider can do, as data, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProviderAbilities {
    /// It deduplicates by key for this long.
    pub(crate) dedupe_window_ms: Option<u64>,
    pub(crate) lookup: LookUpAbility,
    /// It calls back.
    pub(crate) callbacks: bool,
}

/// Whether a provider can be asked by key, and what "not found" means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LookUpAbility {
    /// It cannot be asked.
    None,
    /// "Not found" settles nothing.
    Plain,
    /// "Not found" counts once this long has passed since the request.
    Bounded { in_flight_ms: u64 },
    /// Asking bars the identity from then on.
    Bars,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EffectRecord {
    pub(crate) identity: [u8; 32],
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    pub(crate) transition: EffectTransition,
    /// Who decided, where a person did.
    pub(crate) decided_by: Option<String>,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EffectTransition {
    /// Durable before the call leaves.
    Sending {
        run_id: [u8; 16],
        lease_until_ms: u64,
    },
    /// Nothing left, or a definite "not applied": planned again, not before a time.
    Planned {
        not_before_ms: u64,
    },
    Uncertain {
        ask_not_before_ms: u64,
    },
    Parked,
    Applied(EffectReport),
    Refused(EffectReport),
    /// A report that contradicts a final state: recorded, not applied.
    Disputed(EffectReport),
    /// A finisher that had lost its fence: kept as evidence, not applied.
    Stale(EffectReport),
    /// A person looked at a dispute; the reason says what was found.
    DisputeClosed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EffectReport {
    pub(crate) outcome: Reported,
    pub(crate) source: ReportSource,
    pub(crate) provider_reference: Option<String>,
    #[serde(with = "byte_string")]
    pub(crate) body: Vec<u8>,
}

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reported {
    Applied,
    Refused,
    Pending,
    NotFound,
}

/// Where a report came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReportSource {
    Handler,
    LookUp,
    Callback,
    Person,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallbackRecord {
    pub(crate) provider: String,
    pub(crate) reference: Option<String>,
    pub(crate) delivery_id: String,
    /// The effect it belongs to; none while it is parked.
    pub(crate) identity: Option<[u8; 32]>,
    /// The provider's own number or time of the news, by which older news is told from newer.
    pub(crate) order: Option<u64>,
    pub(crate) verdict: CallbackVerdict,
    /// The deadline of its one expiry row.
    pub(crate) forget_after_ms: u64,
    pub(crate) report: EffectReport,
}

/// What became of a callback. "Seen" and "applied" are two facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallbackVerdict {
    Parked,
    Seen,
    Applied,
    Stale,
    Disputed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolveRecord {
    pub(crate) slot: SlotRecord,
    /// The position of the operation that was accepted.
    pub(crate) accepted_sequence: u64,
    pub(crate) effects: Vec<EffectRecord>,
    pub(crate) completion: Completion,
    pub(crate) changes: Vec<TableChanges>,
    pub(crate) intents: Vec<IntentRecord>,
    /// The sequences of the callback entries that this applies.
    pub(crate) callbacks: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FollowerRecord {
    pub(crate) name: String,
    /// Every entry up to this one is dealt with; none if the follower is removed.
    pub(crate) acknowledged: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActivityRecord {
    pub(crate) since_ms: u64,
    pub(crate) slots: Vec<SlotActivity>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlotActivity {
    pub(crate) scope: [u8; 16],
    #[serde(with = "byte_string")]
    pub(crate) key: Vec<u8>,
    pub(crate) replays: u64,
    pub(crate) conflicts: u64,
    pub(crate) last_ms: u64,
}
