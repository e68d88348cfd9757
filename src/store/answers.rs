//! Who is told what: when a batch is durable, when it was refused, and when the store stopped.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::error::Error;
use crate::base::receipt::Receipt;
use crate::log::PrepareError;

use super::admit::{Prepared, Verdict};
use super::batch::Member;
use super::job::{EffectJob, Job, OperationJob, OwnJob, WriteJob};
use super::poison::Stopped;
use super::reentry;
use super::shared::Shared;

/// Answers that are owed: delivered in order when this is dropped, also while unwinding.
pub(super) struct Answers {
    shared: Arc<Shared>,
    members: VecDeque<Member>,
}

impl Answers {
    pub(super) fn of(shared: &Arc<Shared>, members: Vec<Member>) -> Self {
        Self { shared: Arc::clone(shared), members: members.into() }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        while let Some(member) = self.members.pop_front() {
            // Whatever a user's error does when it is dropped, the next one gets its answer.
            let shared = &self.shared;
            if catch_unwind(AssertUnwindSafe(|| member.deliver(shared))).is_err() {
                tracing::error!("an answer panicked while it was delivered");
            }
        }
    }
}

/// Why a batch was refused before anything of it was written.
#[derive(Debug)]
pub(super) enum NoRoom {
    DiskFull(String),
    Other(String),
}

impl NoRoom {
    /// What whoever was in the batch is told.
    pub(super) fn error(&self) -> Error {
        match self {
            Self::DiskFull(reason) => Error::DiskFull(reason.clone()),
            Self::Other(reason) => Error::Segment(reason.clone()),
        }
    }
}

impl From<PrepareError> for NoRoom {
    fn from(error: PrepareError) -> Self {
        if error.is_full() { Self::DiskFull(error.to_string()) } else { Self::Other(error.to_string()) }
    }
}

/// Nothing of a batch was written. The members' own answers are dropped, refusals as well: a closure may have read rows
/// of a neighbour that is not kept. They are answered from the published view, or told that there was no room.
pub(super) fn refused(shared: &Shared, members: Vec<Member>, reason: &NoRoom) {
    for member in members {
        let refused = reason.error();
        match member {
            Member::Operation { prepared, responder, answer: dropped } => {
                let answer = from_published(shared, &prepared, refused);
                shared.count(&prepared, &answer);
                responder.answer(answer);
                reentry::drop_quietly(dropped);
            }
            Member::Write { responder, answer: dropped, .. } => {
                responder.answer(Err(refused));
                reentry::drop_quietly(dropped);
            }
        }
    }
}

/// The disk failed with a batch in its hands.
pub(super) fn stopped(shared: &Shared, stopped: &Stopped, members: Vec<Member>) {
    for member in members {
        match member {
            Member::Operation { prepared, responder, answer: dropped } => {
                let answer = when_stopped(shared, stopped, &prepared);
                shared.count(&prepared, &answer);
                responder.answer(answer);
                reentry::drop_quietly(dropped);
            }
            Member::Write { responder, wrote, answer: dropped } => {
                let cause = stopped.cause.clone();
                // One without a frame may have read rows that did not become durable.
                responder.answer(Err(if wrote { Error::Unknown(cause) } else { Error::Poisoned(cause) }));
                reentry::drop_quietly(dropped);
            }
        }
    }
}

/// Answers a submission that reached a stopped store.
pub(super) fn to_late_comer(shared: &Shared, stopped: &Stopped, job: Job) {
    if !job.start() {
        reentry::drop_quietly(job);
        return;
    }
    match job {
        Job::Operation(OperationJob { prepared, closure, responder, .. }) => {
            let answer = when_stopped(shared, stopped, &prepared);
            shared.count(&prepared, &answer);
            responder.answer(answer);
            reentry::drop_quietly(closure);
        }
        Job::Write(WriteJob { closure, responder }) => {
            responder.answer(Err(Error::Poisoned(stopped.cause.clone())));
            reentry::drop_quietly(closure);
        }
        Job::Effect(EffectJob { work, responder }) => {
            responder.answer(Err(Error::Poisoned(stopped.cause.clone())));
            reentry::drop_quietly(work);
        }
        Job::Own(OwnJob { work, responder }) => {
            responder.answer(Err(Error::Poisoned(stopped.cause.clone())));
            reentry::drop_quietly(work);
        }
    }
}

/// What a stopped store answers: unknown for the slots that were with the disk, what is published for all others.
pub(super) fn when_stopped(shared: &Shared, stopped: &Stopped, prepared: &Prepared) -> Result<Receipt, Error> {
    match from_published(shared, prepared, Error::Poisoned(stopped.cause.clone())) {
        // The guard comes first: whoever is denied does not learn that there was anything.
        Err(Error::Denied) => Err(Error::Denied),
        _ if stopped.unknown.contains(&prepared.slot) => Err(Error::Unknown(stopped.cause.clone())),
        answer => answer,
    }
}

/// What the published state answers, or an error if it would have to execute.
fn from_published(shared: &Shared, prepared: &Prepared, otherwise: Error) -> Result<Receipt, Error> {
    let published = shared.publisher.load();
    match shared.doorkeeper.admit(&published.view, prepared, shared.time.now()) {
        Verdict::Answer(answer) => answer,
        Verdict::Execute => Err(otherwise),
    }
}
