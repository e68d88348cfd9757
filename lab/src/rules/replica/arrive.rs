//! What comes back for each step, and what does not.

use super::{
    Core,
    operation::{Operation, Progress},
    tally::Count,
};
use crate::rules::{
    action::{Action, Note},
    event::{CallFailure, DiskDone, Event},
    ids::{Epoch, ReplicaId},
    knobs::NoMajority,
    message::{ProviderReply, Reply},
    outcome::{Outcome, Refused, Unknown},
    plan::{Needs, Step},
    record::{Executed, Receipt, Standing},
};

impl Core {
    /// Something has come back for the step that runs. What belongs to an earlier step is of no use any more.
    pub(super) fn arrive(
        &mut self,
        operation: &mut Operation,
        step: Step,
        event: Event,
        out: &mut Vec<Action>,
    ) -> Progress {
        match event {
            Event::DiskDone { done, .. } => self.disk_done(operation, step, done, out),
            Event::DiskFailed { certain, .. } => self.disk_failed(operation, step, certain, out),
            Event::PeerAnswered { peer, reply, .. } => self.peer_answered(operation, step, peer, reply, out),
            Event::PeerFailed { peer, failure, .. } => self.peer_failed(operation, step, peer, failure, out),
            Event::ProviderAnswered { reply, .. } => self.provider_answered(operation, step, reply),
            Event::ProviderFailed { failure, .. } => {
                let certain = failure == CallFailure::BeforeConnection;
                operation.failed(certain, Refused::ProviderNotReached, Unknown::ProviderSilent)
            }
            Event::Started(_)
            | Event::Request { .. }
            | Event::Peer { .. }
            | Event::Released { .. }
            | Event::Healed
            | Event::TakeOver { .. }
            | Event::Tick => Progress::Waits,
        }
    }

    fn disk_done(&mut self, operation: &mut Operation, step: Step, done: DiskDone, out: &mut Vec<Action>) -> Progress {
        match (step, done) {
            (Step::LookOnDisk | Step::AskMajority, DiskDone::Looked(Some(record))) => {
                self.found(operation, record.receipt)
            }
            (Step::LookOnDisk, DiskDone::Looked(None)) => Progress::Done,
            (Step::AskMajority, DiskDone::Looked(None)) => self.vote(operation, step, self.me, self.own_vote(), out),
            (Step::RecordToAll, DiskDone::Written) => self.vote(operation, step, self.me, self.own_vote(), out),
            (Step::LookAtReceipts, DiskDone::Kept { receipt, .. }) => match receipt {
                Some(receipt) => self.found(operation, receipt),
                None => Progress::Done,
            },
            (Step::LookAtKeeper, DiskDone::Kept { receipt, newest }) => self.kept(operation, receipt, newest, out),
            (Step::Intend | Step::Effect | Step::RecordOnDisk, DiskDone::Written) => Progress::Done,
            (Step::Execute | Step::ExecuteAtKeeper, DiskDone::Executed(executed)) => {
                self.executed(operation, executed, out)
            }
            (_, _) => Progress::Waits,
        }
    }

    fn disk_failed(&mut self, operation: &mut Operation, step: Step, certain: bool, out: &mut Vec<Action>) -> Progress {
        match step.needs() {
            // One disk of several: the others may still be a majority.
            Needs::Majority => self.vote(operation, step, self.me, false, out),
            Needs::Nobody | Needs::Disk | Needs::Owner | Needs::Provider => {
                operation.failed(certain, Refused::Disk, Unknown::Disk)
            }
        }
    }

    fn peer_answered(
        &mut self,
        operation: &mut Operation,
        step: Step,
        peer: ReplicaId,
        reply: Reply,
        out: &mut Vec<Action>,
    ) -> Progress {
        match (step, reply) {
            // A record is a fact, on whatever disk it is. An absence is one only on a disk that would know.
            (Step::AskMajority, Reply::Looked { record: Some(record), .. }) => self.found(operation, record.receipt),
            (Step::AskMajority, Reply::Looked { record: None, disk }) => {
                self.vote(operation, step, peer, self.counts(disk.standing), out)
            }
            (Step::RecordToAll, Reply::Stored { disk }) => {
                self.vote(operation, step, peer, self.counts(disk.standing), out)
            }
            (Step::AskMajority | Step::RecordToAll, Reply::DiskFailed { .. } | Reply::NotMine) => {
                self.vote(operation, step, peer, false, out)
            }
            (Step::LookAtKeeper, Reply::Kept { receipt, newest }) => self.kept(operation, receipt, newest, out),
            (Step::ExecuteAtKeeper, Reply::Executed(executed)) => self.executed(operation, executed, out),
            (Step::ExecuteAtKeeper, Reply::OlderThanDisk) => Progress::Over(Outcome::Unknown(Unknown::OlderThanDisk)),
            (Step::Forward, Reply::Answered(outcome)) => answered_by_owner(operation, outcome),
            (Step::LookAtKeeper | Step::ExecuteAtKeeper, Reply::DiskFailed { certain }) => {
                operation.failed(certain, Refused::Disk, Unknown::Disk)
            }
            (Step::LookAtKeeper | Step::ExecuteAtKeeper | Step::Forward, Reply::NotMine) => {
                operation.failed(true, Refused::NotReady, Unknown::NotRecorded)
            }
            (_, _) => Progress::Waits,
        }
    }

    fn peer_failed(
        &mut self,
        operation: &mut Operation,
        step: Step,
        peer: ReplicaId,
        failure: CallFailure,
        out: &mut Vec<Action>,
    ) -> Progress {
        match step.needs() {
            Needs::Majority => self.vote(operation, step, peer, false, out),
            Needs::Owner => {
                let certain = failure == CallFailure::BeforeConnection;
                operation.failed(certain, Refused::OwnerNotReached(peer), Unknown::OwnerSilent(peer))
            }
            Needs::Nobody | Needs::Disk | Needs::Provider => Progress::Waits,
        }
    }

    fn provider_answered(&self, operation: &mut Operation, step: Step, reply: ProviderReply) -> Progress {
        match (step, reply) {
            (Step::LookUp, ProviderReply::NotFound) => Progress::Done,
            (Step::LookUp, ProviderReply::ChargedBefore(receipt)) => {
                if self.knobs.compares_amounts() && receipt.amount != operation.request.amount {
                    return Progress::Over(Outcome::Mismatch { held: receipt.amount });
                }
                // It was called by an attempt that could not tell. The call is skipped; the record is still missing.
                operation.effect_in = Some(operation.index);
                operation.index += 1;
                self.charged(operation, receipt, true)
            }
            (Step::CallProvider, ProviderReply::Charged(receipt)) => self.charged(operation, receipt, false),
            (Step::CallProvider, ProviderReply::ChargedBefore(receipt)) => self.charged(operation, receipt, true),
            (Step::CallProvider, ProviderReply::Mismatch { held }) => Progress::Over(Outcome::Mismatch { held }),
            (_, ProviderReply::Failed { certain }) => {
                operation.failed(certain, Refused::ProviderNotReached, Unknown::ProviderSilent)
            }
            (_, _) => Progress::Waits,
        }
    }

    fn charged(&self, operation: &mut Operation, receipt: Receipt, before: bool) -> Progress {
        operation.receipt.get_or_insert(receipt);
        operation.replayed |= before;
        Progress::Done
    }

    /// The step that runs has waited long enough: whoever is silent now may still do what it was asked.
    pub(super) fn waited(&self, operation: &Operation, step: Step, out: &mut Vec<Action>) -> Progress {
        let owner = self.knobs.owner;
        match step.needs() {
            Needs::Majority => self.no_majority(operation, step, out),
            Needs::Owner => operation.failed(false, Refused::OwnerNotReached(owner), Unknown::OwnerSilent(owner)),
            Needs::Provider => operation.failed(false, Refused::ProviderNotReached, Unknown::ProviderSilent),
            Needs::Nobody | Needs::Disk => Progress::Waits,
        }
    }

    /// Whether a disk may vote. If disks are not told apart, a name is enough.
    pub(super) fn counts(&self, standing: Standing) -> bool {
        !self.knobs.incarnation.is_on() || standing.has_vote()
    }

    fn own_vote(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| self.counts(disk.standing))
    }

    fn vote(
        &self,
        operation: &mut Operation,
        step: Step,
        who: ReplicaId,
        yes: bool,
        out: &mut Vec<Action>,
    ) -> Progress {
        operation.tally.cast(who, yes);
        match operation.tally.count(self.members) {
            Count::Open => Progress::Waits,
            Count::OutOfReach => self.no_majority(operation, step, out),
            Count::Reached => {
                out.push(self.counted(operation, step));
                Progress::Done
            }
        }
    }

    fn counted(&self, operation: &Operation, step: Step) -> Action {
        let (counted, needed) = (operation.tally.counted(), self.members.majority());
        Action::Note(Note::Counted { of: operation.name(), step, counted, needed })
    }

    /// No majority. If the effect has happened, what is said now decides whether the client does it again.
    fn no_majority(&self, operation: &Operation, step: Step, out: &mut Vec<Action>) -> Progress {
        out.push(self.counted(operation, step));
        let (counted, needed) = (operation.tally.counted(), self.members.majority());
        Progress::Over(match (operation.effect_in, self.knobs.no_majority) {
            (None, _) => Outcome::Refused(Refused::NoMajority { counted, needed }),
            (Some(_), NoMajority::Failed) => Outcome::Refused(Refused::SaidFailed { counted, needed }),
            (Some(_), NoMajority::Unknown) => Outcome::Unknown(Unknown::NoMajority { counted, needed }),
        })
    }

    fn kept(
        &mut self,
        operation: &Operation,
        receipt: Option<Receipt>,
        newest: Epoch,
        out: &mut Vec<Action>,
    ) -> Progress {
        if let Some(receipt) = receipt {
            return self.found(operation, receipt);
        }
        match self.fence.as_ref().map(|fence| fence.epoch) {
            None => Progress::Over(Outcome::Refused(Refused::NoEpoch)),
            Some(held) if held < newest => {
                self.told_stale(operation, newest, out);
                Progress::Over(Outcome::Refused(Refused::Stale { newest }))
            }
            Some(_) => Progress::Done,
        }
    }

    /// What the one write said.
    fn executed(&mut self, operation: &mut Operation, executed: Executed, out: &mut Vec<Action>) -> Progress {
        let called_before = operation.effect_in.is_some_and(|index| index < operation.index);
        match executed {
            Executed::First(receipt) => {
                operation.receipt.get_or_insert(receipt);
                Progress::Done
            }
            Executed::Replayed(receipt) => Progress::Over(Outcome::Done { receipt, replayed: true }),
            Executed::Mismatch { .. } if called_before => Progress::Over(Outcome::Unknown(Unknown::NotRecorded)),
            Executed::Mismatch { held } => Progress::Over(Outcome::Mismatch { held }),
            Executed::Stale { newest, receipt } => {
                self.told_stale(operation, newest, out);
                match receipt {
                    // Too late to execute, and just in time to be told what became of it.
                    Some(receipt) => self.found(operation, receipt),
                    None => operation.failed(true, Refused::Stale { newest }, Unknown::NotRecorded),
                }
            }
        }
    }

    /// Another one has taken over. What this one held is worth nothing any more.
    fn told_stale(&mut self, operation: &Operation, newest: Epoch, out: &mut Vec<Action>) {
        if let Some(fence) = self.fence.take() {
            out.push(Action::Note(Note::Stale { of: operation.name(), held: fence.epoch, newest }));
        }
    }
}

fn answered_by_owner(operation: &mut Operation, outcome: Outcome) -> Progress {
    match outcome {
        Outcome::Done { receipt, replayed } => {
            operation.receipt = Some(receipt);
            operation.replayed = replayed;
            Progress::Done
        }
        other @ (Outcome::Refused(_) | Outcome::Unknown(_) | Outcome::Mismatch { .. }) => Progress::Over(other),
    }
}
