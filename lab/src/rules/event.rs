//! What a replica is told.

use crate::rules::{
    barrier::Barrier,
    ids::{CallId, Epoch, OpId, ReplicaId},
    message::{Message, ProviderReply, Reply},
    record::{DiskIdentity, Executed, Fence, Receipt, Record, Request},
};

/// One thing that has happened. The driver hands over one at a time, with the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The process is up and has opened its disk. Always the first.
    Started(DiskIdentity),
    /// A client asks.
    Request {
        /// Who waits for the answer.
        call: CallId,
        /// What is asked.
        request: Request,
    },
    /// Another replica asks.
    Peer {
        /// Who waits for the answer.
        call: CallId,
        /// From whom.
        from: ReplicaId,
        /// What is asked.
        message: Message,
    },
    /// The disk has done what it was told, and synced it.
    DiskDone {
        /// For which operation.
        op: OpId,
        /// What it says.
        done: DiskDone,
    },
    /// The disk has not done what it was told.
    DiskFailed {
        /// For which operation.
        op: OpId,
        /// Whether certainly nothing was written.
        certain: bool,
    },
    /// Another replica has answered.
    PeerAnswered {
        /// For which operation.
        op: OpId,
        /// Who.
        peer: ReplicaId,
        /// What.
        reply: Reply,
    },
    /// Another replica was asked in vain.
    PeerFailed {
        /// For which operation.
        op: OpId,
        /// Who.
        peer: ReplicaId,
        /// How far it came.
        failure: CallFailure,
    },
    /// The provider has answered.
    ProviderAnswered {
        /// For which operation.
        op: OpId,
        /// What.
        reply: ProviderReply,
    },
    /// The provider was called in vain.
    ProviderFailed {
        /// For which operation.
        op: OpId,
        /// How far it came.
        failure: CallFailure,
    },
    /// A barrier lets go. Without a script that holds it, that is at once.
    Released {
        /// Which operation.
        op: OpId,
        /// Where it stood.
        barrier: Barrier,
    },
    /// A cut between this replica and others is gone.
    Healed,
    /// A script wants this replica to execute from now on (atomic-fenced). It is never the replica's own idea.
    TakeOver {
        /// Who waits for the answer.
        call: CallId,
    },
    /// Time has passed: see [`crate::rules::replica::Replica::next_deadline`].
    Tick,
}

/// How far a call came that brought no answer. It decides between *refused* and *unknown*, so it is never guessed: only
/// what certainly happened before anything was sent is [`CallFailure::BeforeConnection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    /// There was no connection; nothing was sent.
    BeforeConnection,
    /// Something may have been sent.
    Later,
}

/// What the disk says when it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskDone {
    /// To [`crate::rules::action::DiskCommand::Look`].
    Looked(Option<Record>),
    /// To [`crate::rules::action::DiskCommand::LookReceipt`].
    Kept {
        /// What was found.
        receipt: Option<Receipt>,
        /// The newest epoch that was given out; 0 before the first.
        newest: Epoch,
    },
    /// To every command that only writes.
    Written,
    /// To [`crate::rules::action::DiskCommand::Execute`].
    Executed(Executed),
    /// To [`crate::rules::action::DiskCommand::IssueEpoch`].
    Issued(Fence),
    /// To [`crate::rules::action::DiskCommand::Records`].
    Records(Vec<Record>),
}
