//! What is asked for, what is remembered, and what has happened: three different things, which many systems keep in one
//! place or confuse.

use serde::{Deserialize, Serialize};

use crate::rules::ids::{Amount, Attempt, Endpoint, Epoch, IncarnationId, Key, Millis, ReplicaId, SealedIntent};

/// One attempt of a client to have something done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The identity of the operation.
    pub key: Key,
    /// When the client made the key. An owner with a younger disk cannot know what became of it.
    pub minted_at: Millis,
    /// What is asked for.
    pub amount: Amount,
    /// Which try this is. For the eyes of people and for fault rules; it decides nothing.
    pub attempt: Attempt,
    /// For the judge. Carried, never read.
    pub intent: SealedIntent,
}

/// The name under which the record of an operation stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slot(pub String);

impl std::fmt::Display for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The counterfoil: what proves to a client that its operation was executed, and which execution it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The key that it was executed under.
    pub key: Key,
    /// What was paid: of the first request with that key, whatever later ones ask for.
    pub amount: Amount,
    /// The attempt that executed.
    pub attempt: Attempt,
    /// Who executed: a replica or the provider.
    pub by: Endpoint,
    /// Where in the executing store's log, when the receipt and the effect are one write there.
    pub position: Option<u64>,
}

/// A receipt under its slot, as it lies on a disk or in a map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Under which name it stands.
    pub slot: Slot,
    /// What it says.
    pub receipt: Receipt,
}

/// An effect: one row in a ledger. Each execution appends one, so that the judge can count them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectRow {
    /// For the judge.
    pub intent: SealedIntent,
    /// The key it was executed under.
    pub key: Key,
    /// What was paid.
    pub amount: Amount,
    /// The attempt that executed.
    pub attempt: Attempt,
    /// Who executed.
    pub by: Endpoint,
}

/// A charge at the external provider, as it stands in the provider's ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// What was done.
    pub row: EffectRow,
    /// The identity that the provider was given, if it was given one.
    pub identity: Option<Slot>,
}

/// What a replica knows about the disk that it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskIdentity {
    /// Which disk: drawn when the store was made.
    pub incarnation: IncarnationId,
    /// When the store was made.
    pub born_at: Millis,
    /// Whether it has been there from the beginning.
    pub standing: Standing,
}

/// Whether a disk may speak for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Made when the lab was started, and not replaced since. An absence on it means something.
    Founding,
    /// It replaces another one and knows nothing of what that one held. "Not found" on it means nothing.
    Behind,
    /// It replaces another one and has copied the records of a counted majority of the others.
    CaughtUp,
}

impl Standing {
    /// Whether the incarnation is unbroken, or was mended by catching up: whether its vote counts.
    pub const fn has_vote(self) -> bool {
        matches!(self, Self::Founding | Self::CaughtUp)
    }
}

impl DiskIdentity {
    /// Whether a key is older than this disk, so that what became of it may have stood on another one. The first disk
    /// cannot have forgotten anything, whatever the clients' clocks say.
    pub fn may_have_forgotten(&self, minted_at: Millis) -> bool {
        self.standing != Standing::Founding && minted_at <= self.born_at
    }
}

/// What one `execute` at an owner or keeper does: look, compare, mutate and record, in a single durable write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    /// The record's name.
    pub slot: Slot,
    /// What is asked for.
    pub request: Request,
    /// Whether another amount under the same slot is refused. It is what the digest is made of: with the amount, or
    /// without it.
    pub compares_amounts: bool,
    /// The effect, when it is inside. Without one, only the receipt is kept.
    pub row: Option<EffectRow>,
    /// Who executed, for the receipt.
    pub by: Endpoint,
    /// The epoch to be compared in the same write.
    pub fence: Option<Fence>,
}

/// The right to execute, until a later one is given out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The number.
    pub epoch: Epoch,
    /// The keeper's disk that gave it out. Another disk counts from the beginning and must not recognise it.
    pub keeper: IncarnationId,
}

/// What became of an `execute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executed {
    /// It was executed now.
    First(Receipt),
    /// It had been executed before; this is the stored receipt.
    Replayed(Receipt),
    /// The slot holds another amount. Nothing was done.
    Mismatch {
        /// The one that it holds.
        held: Amount,
    },
    /// A later epoch was given out. Nothing was done.
    Stale {
        /// The newest one.
        newest: Epoch,
        /// What stands under the slot, so that one who is stale can still be told what became of the operation.
        receipt: Option<Receipt>,
    },
}

/// A right to execute as it was given out to one replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// To whom.
    pub to: ReplicaId,
    /// What.
    pub fence: Fence,
}
