//! What replicas say to each other, and to the provider.

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::{Amount, Epoch},
    outcome::Outcome,
    record::{DiskIdentity, EffectRow, Executed, Execution, Fence, Receipt, Record, Request, Slot},
    word::words,
};

/// From one replica to another. Each gets one [`Reply`], or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// Do you hold a record of this?
    Look(Slot),
    /// Keep this record, and say so when it is synced.
    Store(Record),
    /// You are the owner: execute this.
    Forward(Request),
    /// You are the keeper: do you hold a receipt of this, and which epoch is the newest?
    LookAtKeeper(Slot),
    /// You are the keeper: execute this, if my epoch is still the newest.
    ExecuteAtKeeper(Execution),
    /// You are the keeper: give me a new epoch.
    IssueEpoch,
    /// Give me every record you hold: my disk is new, or I was cut off.
    Records,
}

/// The answer to a [`Message`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// To [`Message::Look`].
    Looked {
        /// What was found.
        record: Option<Record>,
        /// On which disk. An absence on a disk that is behind is no vote.
        disk: DiskIdentity,
    },
    /// To [`Message::Store`]: it is synced.
    Stored {
        /// On which disk.
        disk: DiskIdentity,
    },
    /// To [`Message::Forward`].
    Answered(Outcome),
    /// To [`Message::LookAtKeeper`].
    Kept {
        /// What was found.
        receipt: Option<Receipt>,
        /// The newest epoch that was given out.
        newest: Epoch,
    },
    /// To [`Message::ExecuteAtKeeper`].
    Executed(Executed),
    /// To [`Message::ExecuteAtKeeper`] when the key is older than the keeper's disk.
    OlderThanDisk,
    /// To [`Message::IssueEpoch`].
    Issued(Fence),
    /// To [`Message::Records`].
    Records {
        /// All of them.
        records: Vec<Record>,
        /// On which disk. Copying from one that is itself behind proves nothing.
        disk: DiskIdentity,
    },
    /// The disk failed. `certain` says whether it certainly wrote nothing.
    DiskFailed {
        /// Whether nothing was written.
        certain: bool,
    },
    /// I am not the one you take me for, or not ready.
    NotMine,
    /// To a take-over: the keeper was not reached, or did not answer.
    KeeperSilent,
}

words! {
    /// What kind of message, for fault rules and diagrams.
    pub enum MessageKind, "message kind" {
        /// A client's request.
        Request = "request",
        /// A look at another replica's records.
        Look = "look",
        /// A copy of a record.
        Store = "store",
        /// A request on its way to the owner.
        Forward = "forward",
        /// A look at the keeper's receipts.
        LookAtKeeper = "look-at-keeper",
        /// An execution on its way to the keeper.
        ExecuteAtKeeper = "execute-at-keeper",
        /// Asking for an epoch.
        IssueEpoch = "issue-epoch",
        /// Asking for all records.
        Records = "records",
        /// A call of the provider.
        Pay = "pay",
        /// Asking the provider whether it was called.
        LookUp = "look-up",
        /// Asking for a sign of life.
        Ping = "ping",
    }
}

impl Message {
    /// Its kind.
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Look(_) => MessageKind::Look,
            Self::Store(_) => MessageKind::Store,
            Self::Forward(_) => MessageKind::Forward,
            Self::LookAtKeeper(_) => MessageKind::LookAtKeeper,
            Self::ExecuteAtKeeper(_) => MessageKind::ExecuteAtKeeper,
            Self::IssueEpoch => MessageKind::IssueEpoch,
            Self::Records => MessageKind::Records,
        }
    }
}

/// What the provider is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderCall {
    /// Charge.
    Pay {
        /// What goes into the provider's ledger.
        row: EffectRow,
        /// The identity that it is to keep. Without one, each call is a new charge.
        identity: Option<Slot>,
        /// Whether another amount under the same identity is a mismatch.
        compares_amounts: bool,
        /// Whether it may use the identity to recognise a repeated call, or only keeps it so that it can be asked.
        deduplicate: bool,
    },
    /// Have you charged for this identity?
    LookUp {
        /// Which one.
        identity: Slot,
    },
}

/// What the provider says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderReply {
    /// Charged now.
    Charged(Receipt),
    /// Charged before, under the same identity.
    ChargedBefore(Receipt),
    /// The identity stands for another amount. Nothing was charged.
    Mismatch {
        /// Which amount.
        held: Amount,
    },
    /// Asked and not found.
    NotFound,
    /// It could not write its ledger. `certain` says whether it certainly wrote nothing.
    Failed {
        /// Whether nothing was written.
        certain: bool,
    },
}

impl ProviderCall {
    /// Its kind.
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Pay { .. } => MessageKind::Pay,
            Self::LookUp { .. } => MessageKind::LookUp,
        }
    }
}
