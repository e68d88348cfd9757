//! Taking over: asking the keeper for an epoch, because a script said so.
//!
//! No replica ever does this on its own. A replica that took over when it believed another one dead would be an election,
//! and a bad one: see the lesson `the-sleeper`.

use super::{Core, Replica, Task};
use crate::rules::{
    action::{Action, DiskCommand, Note},
    event::{DiskDone, Event},
    ids::{CallId, Millis},
    knobs::Placement,
    message::{Message, Reply},
};

/// A request for an epoch on its way.
#[derive(Debug, Clone)]
pub(super) struct TakeOver {
    call: CallId,
    pub(super) wait_until: Millis,
}

impl Replica {
    pub(super) fn take_over(&mut self, now: Millis, call: CallId, out: &mut Vec<Action>) {
        if self.core.disk.is_none() || self.core.knobs.placement != Placement::AtomicFenced {
            return out.push(Action::Reply { call, reply: Reply::NotMine });
        }
        let op = self.take_op();
        let wait_until = now.plus(self.core.patience.answer_ms);
        self.tasks.insert(op, Task::TakeOver(TakeOver { call, wait_until }));
        let (me, keeper) = (self.core.me, self.core.knobs.owner);
        out.push(match keeper == me {
            true => Action::Disk { op, command: DiskCommand::IssueEpoch { to: me } },
            false => Action::Send { op, to: keeper, message: Message::IssueEpoch },
        });
    }
}

impl Core {
    pub(super) fn take_over_arrived(&mut self, take_over: &TakeOver, event: Event, out: &mut Vec<Action>) {
        let call = take_over.call;
        let (Event::DiskDone { done: DiskDone::Issued(fence), .. }
        | Event::PeerAnswered { reply: Reply::Issued(fence), .. }) = event
        else {
            return take_over.give_up(out);
        };
        self.fence = Some(fence.clone());
        out.push(Action::Note(Note::TookOver(fence.clone())));
        out.push(Action::Reply { call, reply: Reply::Issued(fence) });
    }
}

impl TakeOver {
    /// The epoch may have been given out all the same. Then it is the newest one, and nobody holds it: safe, and the
    /// script takes over again.
    pub(super) fn give_up(&self, out: &mut Vec<Action>) {
        out.push(Action::Reply { call: self.call, reply: Reply::KeeperSilent });
    }
}
