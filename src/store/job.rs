//! What waits in the queue.

use std::time::Duration;

use crate::base::error::Failure;
use crate::base::position::Position;
use crate::base::receipt::Receipt;
use crate::base::reply::Decision;

use super::admit::Prepared;
use super::queue::Lane;
use super::ticket::Responder;
use super::tx::Tx;

pub(super) type OperationClosure = Box<dyn FnOnce(&Tx<'_>) -> Result<Decision, Failure> + Send>;
pub(super) type WriteClosure = Box<dyn FnOnce(&Tx<'_>) -> Result<(), Failure> + Send>;

/// One submission.
#[expect(clippy::large_enum_variant, reason = "nearly all submissions are operations")]
pub(super) enum Job {
    Operation(OperationJob),
    Write(WriteJob),
}

pub(super) struct OperationJob {
    pub(super) prepared: Prepared,
    pub(super) closure: OperationClosure,
    pub(super) responder: Responder<Receipt>,
    /// On the store's monotonic clock.
    pub(super) deadline: Option<Duration>,
}

pub(super) struct WriteJob {
    pub(super) closure: WriteClosure,
    /// Answered with the position, or without one if nothing was changed.
    pub(super) responder: Responder<Option<Position>>,
}

impl Job {
    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Operation(job) => Lane::Tenant(job.prepared.slot.tenant.clone()),
            Self::Write(_) => Lane::Writes,
        }
    }

    /// Takes it off the queue. `false` if it was cancelled.
    pub(super) fn start(&self) -> bool {
        match self {
            Self::Operation(job) => job.responder.start(),
            Self::Write(job) => job.responder.start(),
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Operation(job) => f.debug_tuple("Operation").field(&job.prepared.slot).finish(),
            Self::Write(_) => f.write_str("Write"),
        }
    }
}
