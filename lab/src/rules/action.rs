//! What a replica wants done.

use serde::{Deserialize, Serialize};

use crate::rules::{
    barrier::At,
    ids::{Attempt, CallId, Epoch, Key, OpId, ReplicaId},
    message::{Message, ProviderCall, Reply},
    outcome::Outcome,
    plan::Step,
    record::{EffectRow, Execution, Fence, Record, Slot},
    word::words,
};

/// One thing to do. The driver does them in the order given, does not wait in between, and reports each result as an
/// event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Do this on the own disk; report `DiskDone` or `DiskFailed`.
    Disk {
        /// For which operation.
        op: OpId,
        /// What.
        command: DiskCommand,
    },
    /// Ask another replica; report `PeerAnswered` or `PeerFailed`.
    Send {
        /// For which operation.
        op: OpId,
        /// Whom.
        to: ReplicaId,
        /// What.
        message: Message,
    },
    /// Call the provider; report `ProviderAnswered` or `ProviderFailed`.
    CallProvider {
        /// For which operation.
        op: OpId,
        /// What.
        call: ProviderCall,
    },
    /// Answer a client's request.
    Answer {
        /// Which one.
        call: CallId,
        /// With what.
        outcome: Outcome,
    },
    /// Answer another replica, or whoever asked for a take-over.
    Reply {
        /// Which call.
        call: CallId,
        /// With what.
        reply: Reply,
    },
    /// A gap between two steps is reached; report `Released`, at once or when a script lets go.
    Reach {
        /// Which operation.
        op: OpId,
        /// Where.
        at: At,
    },
    /// Something worth a line in the history. Nothing needs to be done.
    Note(Note),
}

/// What the disk is told. Each is durable when it is reported as done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskCommand {
    /// Read a record: `Looked`.
    Look(Slot),
    /// Read a receipt of the store itself, and the newest epoch: `Kept`.
    LookReceipt(Slot),
    /// Append an effect, as a write of its own: `Written`.
    Effect(EffectRow),
    /// Put a record, as a write of its own: `Written`. One that is there already under the slot stays.
    Record(Record),
    /// Put the intent to call the provider: `Written`.
    Intent(Execution),
    /// One conditional write: receipt, mutation and the comparison of epochs: `Executed`.
    ///
    /// The store answers a known slot from its receipt and does not run the closure that compares epochs. The driver
    /// reads the newest epoch after it: a lower fence is reported as `Stale` with the receipt, so that whoever was
    /// overtaken learns it. Nothing is executed either way, so that look needs no lock.
    Execute(Execution),
    /// Give out the next epoch: `Issued`.
    IssueEpoch {
        /// To whom.
        to: ReplicaId,
    },
    /// Read every record: `Records`.
    Records,
    /// Put every record that is not there yet: `Written`. With `caught_up`, the disk's standing becomes
    /// [`crate::rules::record::Standing::CaughtUp`] in the same write.
    Adopt {
        /// The records.
        records: Vec<Record>,
        /// Whether a counted majority was copied.
        caught_up: bool,
    },
}

/// What a replica tells the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// A step of a request began, is done, or failed.
    Step {
        /// Of which request.
        of: RequestName,
        /// Which.
        step: Step,
        /// What about it.
        mark: StepMark,
    },
    /// Looks or copies were counted, and that ended the step.
    Counted {
        /// For which request.
        of: RequestName,
        /// In which step.
        step: Step,
        /// How many count.
        counted: u8,
        /// How many are a majority.
        needed: u8,
    },
    /// A record was found, so nothing is executed.
    Found {
        /// Of which request.
        of: RequestName,
        /// In which step.
        step: Step,
    },
    /// This replica was told that another one has taken over.
    Stale {
        /// With which request.
        of: RequestName,
        /// The epoch that it held.
        held: Epoch,
        /// The newest one.
        newest: Epoch,
    },
    /// This replica may execute from now on.
    TookOver(Fence),
    /// The own disk copied records of others.
    Copied {
        /// How many records were read.
        records: usize,
        /// How many others with a vote they came from.
        counted: u8,
        /// How many are a majority.
        needed: u8,
        /// Whether the disk may vote now.
        caught_up: bool,
    },
}

words! {
    /// What about a step.
    pub enum StepMark, "mark of a step" {
        /// It began.
        Began = "began",
        /// It is done.
        Done = "done",
        /// It failed, and the request with it.
        Failed = "failed",
    }
}

/// How a request is named in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestName {
    /// The key.
    pub key: Key,
    /// The attempt.
    pub attempt: Attempt,
}
