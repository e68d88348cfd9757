//! What waits in the queue.

use std::time::Duration;

use crate::base::error::{Error, Failure};
use crate::base::position::{Position, TimestampMs};
use crate::base::receipt::Receipt;
use crate::base::reply::Decision;
use crate::log::record::Body;
use crate::state::Overlay;

use super::admit::Prepared;
use super::batch::Batch;
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
    Own(OwnJob),
    Effect(EffectJob),
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

/// A change of the store's own that somebody asked for. Its records are made on the writer's thread, so that they rest
/// on what is stored at that moment.
pub(super) struct OwnJob {
    pub(super) work: OwnWork,
    /// Answered with the position of the last record, or without one if there was nothing to do.
    pub(super) responder: Responder<Option<Position>>,
}

/// Makes the records. Each of them is applied whole; if one is refused, those before it stay.
pub(super) type OwnWork = Box<dyn FnOnce(OwnContext<'_>) -> Result<Vec<Body>, Error> + Send>;

/// A change of effects, which may run a continuation.
pub(super) struct EffectJob {
    pub(super) work: EffectWork,
    pub(super) responder: Responder<Option<Position>>,
}

pub(super) type EffectWork = Box<dyn FnOnce(&mut Batch<'_>) -> Result<(), Error> + Send>;

/// What the records may rest on.
pub(super) struct OwnContext<'a> {
    /// Everything before this change, the batch's earlier members included.
    pub(super) rows: &'a Overlay,
    /// The store's time in the records' frames.
    pub(super) time: TimestampMs,
}

impl Job {
    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Operation(job) => Lane::Tenant(job.prepared.slot.tenant.clone()),
            Self::Write(_) => Lane::Writes,
            Self::Own(_) | Self::Effect(_) => Lane::Own,
        }
    }

    /// Takes it off the queue. `false` if it was cancelled.
    pub(super) fn start(&self) -> bool {
        match self {
            Self::Operation(job) => job.responder.start(),
            Self::Write(job) => job.responder.start(),
            Self::Own(job) => job.responder.start(),
            Self::Effect(job) => job.responder.start(),
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Operation(job) => f.debug_tuple("Operation").field(&job.prepared.slot).finish(),
            Self::Write(_) => f.write_str("Write"),
            Self::Own(_) => f.write_str("Own"),
            Self::Effect(_) => f.write_str("Effect"),
        }
    }
}
