//! The four results of a request, and what a client may do after each.
//!
//! Systems like to have two, success and failure, and put what they do not know under failure. A client that believes
//! them then tries again with a new key. So there are four here, and *unknown* is never folded into anything.

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::{Amount, Epoch, ReplicaId},
    record::Receipt,
    word::words,
};

/// What a client was told, or had to conclude.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is done, and here is the receipt.
    Done {
        /// The proof.
        receipt: Receipt,
        /// Whether it is the receipt of an earlier execution.
        replayed: bool,
    },
    /// It was definitely not executed by this attempt.
    Refused(Refused),
    /// It may or may not have been executed.
    Unknown(Unknown),
    /// The key stands for something else. Nothing was done by this attempt.
    Mismatch {
        /// The amount that it stands for.
        held: Amount,
    },
}

/// Why an attempt was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// No connection was made, so nothing was sent.
    NotConnected,
    /// The server turned it away before it looked at it.
    TurnedAway,
    /// A majority could not be asked, and nothing had begun.
    NoMajority {
        /// How many answered with a vote.
        counted: u8,
        /// How many are a majority.
        needed: u8,
    },
    /// "Failed": the effect had happened and its record reached no majority. **Not true**: it is what the switch
    /// `no-majority` in the position `failed` makes a replica say, as many do.
    SaidFailed {
        /// How many hold the record.
        counted: u8,
        /// How many are a majority.
        needed: u8,
    },
    /// The owner or keeper could not be reached.
    OwnerNotReached(ReplicaId),
    /// The provider could not be reached.
    ProviderNotReached,
    /// This replica holds no epoch, so it may not execute.
    NoEpoch,
    /// This replica holds an old epoch: another one has taken over.
    Stale {
        /// The newest one; 0, if the keeper's disk was replaced and has given out none.
        newest: Epoch,
    },
    /// The disk refused before anything was written.
    Disk,
    /// The replica has not finished starting, or has no such member.
    NotReady,
}

/// Why it is not known what became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// No answer came in time.
    NoAnswer,
    /// The connection broke after the request may have left.
    ConnectionLost,
    /// The effect happened here, and its record reached no majority.
    NoMajority {
        /// How many hold the record.
        counted: u8,
        /// How many are a majority.
        needed: u8,
    },
    /// The effect happened, and its record could not be kept.
    NotRecorded,
    /// It was handed to the owner or keeper, and no answer came back.
    OwnerSilent(ReplicaId),
    /// The provider was called, and no answer came back.
    ProviderSilent,
    /// The key is older than the disk that would know it.
    OlderThanDisk,
    /// The disk failed while it was writing.
    Disk,
    /// The server answered with an error that proves nothing.
    ServerError,
}

words! {
    /// An outcome without its particulars.
    pub enum OutcomeKind, "outcome" {
        /// Executed.
        Done = "done",
        /// Definitely not executed.
        Refused = "refused",
        /// Executed or not.
        Unknown = "unknown",
        /// The key stands for something else.
        Mismatch = "mismatch",
    }
}

impl Outcome {
    /// Which of the four.
    pub const fn kind(&self) -> OutcomeKind {
        match self {
            Self::Done { .. } => OutcomeKind::Done,
            Self::Refused(_) => OutcomeKind::Refused,
            Self::Unknown(_) => OutcomeKind::Unknown,
            Self::Mismatch { .. } => OutcomeKind::Mismatch,
        }
    }

    /// What the client may do now.
    pub const fn what_next(&self) -> &'static str {
        self.kind().what_next()
    }

    /// What is known about the operation after this attempt, given what was known before it.
    ///
    /// An attempt that was refused says nothing about the others. If one of those is unknown, the operation stays
    /// unknown, however definitely the last one was turned away; and what is done stays done, whatever an attempt is
    /// told that was under way at the same time.
    #[must_use]
    pub fn after(self, earlier: Option<&Self>) -> Self {
        match (earlier, self) {
            (Some(Self::Unknown(why)), Self::Refused(_)) => Self::Unknown(why.clone()),
            (Some(done @ Self::Done { .. }), Self::Refused(_) | Self::Unknown(_)) => done.clone(),
            (_, now) => now,
        }
    }
}

impl OutcomeKind {
    /// What a client may do after it.
    pub const fn what_next(self) -> &'static str {
        match self {
            Self::Done => "Nothing: it is executed. The same key gives the same receipt again.",
            Self::Refused => "Try again, with the same key or a new one: this attempt executed nothing.",
            Self::Unknown => "Ask again with the same key. A new key could execute it a second time.",
            Self::Mismatch => "Do not try again: this key stands for something else. Find out which request is wrong.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, OutcomeKind, Refused, Unknown};
    use crate::rules::{
        ids::{Amount, Attempt, Endpoint, Epoch},
        record::Receipt,
    };

    fn done() -> Outcome {
        let (key, by) = ("k".parse().unwrap(), Endpoint::Client);
        let receipt = Receipt { key, amount: Amount(1), attempt: Attempt::FIRST, by, position: None };
        Outcome::Done { receipt, replayed: false }
    }

    #[test]
    fn what_is_done_stays_done_when_an_attempt_beside_it_is_refused_or_silent() {
        for beside in [Outcome::Refused(Refused::Stale { newest: Epoch(2) }), Outcome::Unknown(Unknown::NoAnswer)] {
            assert_eq!(beside.after(Some(&done())).kind(), OutcomeKind::Done);
        }
    }

    #[test]
    fn a_refusal_does_not_settle_what_an_earlier_attempt_left_unknown() {
        let unknown = Outcome::Unknown(Unknown::NoAnswer);
        assert_eq!(Outcome::Refused(Refused::TurnedAway).after(Some(&unknown)).kind(), OutcomeKind::Unknown);
        assert_eq!(done().after(Some(&unknown)).kind(), OutcomeKind::Done);
    }
}
