//! What can be wrong with what somebody wants. Each is one clear line.

use std::io;
use std::time::Duration;

use crate::rules::ids::ReplicaId;
use crate::rules::majority::{Members, NotMembers};
use crate::wire::CallError;

/// Nothing was done, or it is said how far it came.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Something of the system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A number of replicas that cannot be.
    #[error(transparent)]
    Members(#[from] NotMembers),
    /// A child did not come up.
    #[error("{name} did not start: {why}")]
    NotStarted {
        /// Which.
        name: String,
        /// Why, with its last words.
        why: String,
    },
    /// There is no such member.
    #[error("there is no replica {replica}: this lab has {}", names(*members))]
    UnknownReplica {
        /// Whom somebody meant.
        replica: ReplicaId,
        /// Who there is.
        members: Members,
    },
    /// It is dead.
    #[error("replica {0} is dead: restart it first")]
    Dead(ReplicaId),
    /// It cannot be killed again.
    #[error("replica {0} is dead already")]
    DeadAlready(ReplicaId),
    /// It is alive.
    #[error("replica {0} is alive: kill it first")]
    Alive(ReplicaId),
    /// It is paused already.
    #[error("replica {0} is paused already")]
    Paused(ReplicaId),
    /// It is not paused.
    #[error("replica {0} is not paused")]
    NotPaused(ReplicaId),
    /// It did not confirm what it was told.
    #[error("replica {replica} did not confirm it: {error}")]
    Silent {
        /// Which.
        replica: ReplicaId,
        /// How far the call came.
        error: CallError,
    },
    /// A point was not reached.
    #[error("nobody reached the hold within {} ms", .0.as_millis())]
    NotReached(Duration),
    /// No such number.
    #[error("there is no {what} number {number}")]
    UnknownNumber {
        /// A hold, or a fault.
        what: &'static str,
        /// Which.
        number: u64,
    },
    /// The disks could not be read.
    #[error("{0}")]
    Disk(String),
    /// The lab ends.
    #[error("the lab is ending")]
    Ending,
}

/// "A, B and C".
fn names(members: Members) -> String {
    let letters: Vec<String> = members.iter().map(|one| one.to_string()).collect();
    match letters.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
