//! Receipts: what is known of an operation that finished.

use serde::{Deserialize, Serialize};

use super::name::Slot;
use super::position::{Position, TimestampMs};
use super::reply::Reply;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Outcome {
    /// The mutation was committed with the reply.
    Completed,
    /// The operation said "no": no mutation, but the reply is stored.
    Rejected,
    /// The operation was accepted and finishes later; its receipt changes when it does.
    Accepted,
}

/// What a receipt says beside the reply. A replay guard sees this, never the body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiptMeta {
    /// How the operation ended.
    pub outcome: Outcome,
    /// Under which version of the operation it was executed.
    pub operation_version: u32,
    /// Where it stands in the log.
    pub position: Position,
    /// When it completed, by the store's time.
    pub completed_at: TimestampMs,
    /// When it completed, by the wall clock of that moment.
    pub completed_at_wall: TimestampMs,
    /// Until when the reply can be replayed, by the store's time.
    pub replay_until: TimestampMs,
    /// Until when the key is known, by the store's time; then it may become a new operation.
    pub refuse_until: TimestampMs,
    /// Which attempt of the caller executed.
    pub attempt: u32,
    /// The trace id of the attempt that executed.
    pub trace_id: Option<String>,
    /// The durable id of what was made.
    pub resource_id: Option<String>,
    /// The reply's body and headers were above the limit and were dropped, as the operation type asks.
    pub body_dropped: bool,
    /// The stored reply is not the whole of what the first caller got: see
    /// [`StoreBuilder::redact`](crate::StoreBuilder::redact).
    pub redacted: bool,
}

/// The receipt of one operation: the answer to its first attempt and to every retry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a receipt says whether the operation was completed or rejected"]
pub struct Receipt {
    pub(crate) slot: Slot,
    pub(crate) meta: ReceiptMeta,
    pub(crate) reply: Reply,
    pub(crate) replayed: bool,
}

impl Receipt {
    /// The reply.
    #[must_use]
    pub const fn reply(&self) -> &Reply {
        &self.reply
    }

    /// The reply, taken out.
    #[must_use]
    pub fn into_reply(self) -> Reply {
        self.reply
    }

    /// This submission executed nothing: the answer is that of an earlier one.
    #[must_use]
    pub const fn is_replayed(&self) -> bool {
        self.replayed
    }

    /// The operation said "no".
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        self.meta.outcome == Outcome::Rejected
    }

    /// The operation was accepted and finishes later: ask again with the same key.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.meta.outcome == Outcome::Accepted
    }

    /// Whose receipt it is.
    #[must_use]
    pub const fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Where the operation stands in the log.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.meta.position
    }

    /// Times, versions, attempt and the rest.
    #[must_use]
    pub const fn meta(&self) -> &ReceiptMeta {
        &self.meta
    }
}
