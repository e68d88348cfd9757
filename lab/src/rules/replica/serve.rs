//! Questions of other replicas: one disk command each, and its result as the reply.

use super::{Core, Replica, Task, operation::Origin};
use crate::rules::{
    action::{Action, DiskCommand},
    event::{DiskDone, Event},
    ids::{CallId, ReplicaId},
    knobs::Placement,
    message::{Message, Reply},
    record::DiskIdentity,
};

/// A question that waits for the disk.
#[derive(Debug, Clone)]
pub(super) struct Serve {
    call: CallId,
}

impl Replica {
    pub(super) fn serve(&mut self, call: CallId, from: ReplicaId, message: Message, out: &mut Vec<Action>) {
        let core = &self.core;
        let answer = |reply| Action::Reply { call, reply };
        let Some(disk) = &core.disk else { return out.push(answer(Reply::NotMine)) };
        let is_owner = |placement| core.knobs.placement == placement && core.knobs.owner == core.me;
        let keeper = is_owner(Placement::AtomicFenced);
        let command = match message {
            Message::Forward(request) if is_owner(Placement::Atomic) => {
                return self.admit(Origin::Forwarder(call), request, out);
            }
            Message::ExecuteAtKeeper(execution) if keeper => {
                if disk.may_have_forgotten(execution.request.minted_at) {
                    return out.push(answer(Reply::OlderThanDisk));
                }
                if let Some(refused) = core.refused_fence(&execution) {
                    return out.push(answer(Reply::Executed(refused)));
                }
                DiskCommand::Execute(execution)
            }
            Message::LookAtKeeper(slot) if keeper => DiskCommand::LookReceipt(slot),
            Message::IssueEpoch if keeper => DiskCommand::IssueEpoch { to: from },
            Message::Forward(_) | Message::ExecuteAtKeeper(_) | Message::LookAtKeeper(_) | Message::IssueEpoch => {
                return out.push(answer(Reply::NotMine));
            }
            Message::Look(slot) => DiskCommand::Look(slot),
            Message::Store(record) => DiskCommand::Record(record),
            Message::Records => DiskCommand::Records,
        };
        let op = self.take_op();
        self.tasks.insert(op, Task::Serve(Serve { call }));
        out.push(Action::Disk { op, command });
    }
}

impl Core {
    pub(super) fn serve_arrived(&self, serve: &Serve, event: Event, out: &mut Vec<Action>) {
        let Some(disk) = self.disk.clone() else { return };
        let reply = match (event, disk) {
            (Event::DiskDone { done, .. }, disk) => reply_to(done, disk),
            (Event::DiskFailed { certain, .. }, _) => Reply::DiskFailed { certain },
            (_, _) => return,
        };
        out.push(Action::Reply { call: serve.call, reply });
    }
}

/// What the disk has done, as it is said to the one who asked.
fn reply_to(done: DiskDone, disk: DiskIdentity) -> Reply {
    match done {
        DiskDone::Looked(record) => Reply::Looked { record, disk },
        DiskDone::Written => Reply::Stored { disk },
        DiskDone::Kept { receipt, newest } => Reply::Kept { receipt, newest },
        DiskDone::Executed(executed) => Reply::Executed(executed),
        DiskDone::Issued(fence) => Reply::Issued(fence),
        DiskDone::Records(records) => Reply::Records { records, disk },
    }
}
