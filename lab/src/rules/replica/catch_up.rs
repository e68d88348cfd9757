//! Copying what the own disk lacks.
//!
//! A replaced disk has a vote again when it has copied the records of a counted majority of the configured members whose
//! disks are unbroken, **not counting itself**. Then every record that a majority ever held is among them: of that
//! majority at most one disk was lost, so fewer than half of the others were without it. With three members that takes
//! both others; with two, a replaced disk never votes again. That is the price, and it is not a fault of the count.

use std::collections::BTreeMap;

use super::{Replica, Task, tally::Tally};
use crate::rules::{
    action::{Action, DiskCommand, Note},
    event::Event,
    ids::{Millis, OpId},
    message::{Message, Reply},
    record::{Record, Slot, Standing},
};

/// Copying, under way.
#[derive(Debug, Clone)]
pub(super) struct CatchUp {
    records: BTreeMap<Slot, Record>,
    /// Others with unbroken disks that have given all of theirs.
    copied: Tally,
    /// Others from whom something or nothing has come.
    heard: usize,
    /// Until when to wait for others; nothing, while the own disk writes.
    pub(super) wait_until: Option<Millis>,
    /// Whether the write under way gives the vote back.
    caught_up: bool,
}

impl Replica {
    /// A cut is gone. With the switch on, whatever others hold is copied; it is no condition for anything.
    pub(super) fn healed(&mut self, now: Millis, out: &mut Vec<Action>) {
        if self.core.knobs.catch_up_on_heal.is_on() && self.core.disk.is_some() {
            self.catch_up(now, out);
        }
    }

    /// Asks every other member for all its records.
    pub(super) fn catch_up(&mut self, now: Millis, out: &mut Vec<Action>) {
        self.catch_up_at = None;
        if self.tasks.values().any(|task| matches!(task, Task::CatchUp(_))) {
            return;
        }
        let op = self.take_op();
        let others = self.core.members.others(self.core.me);
        out.extend(others.map(|to| Action::Send { op, to, message: Message::Records }));
        let catch_up = CatchUp {
            records: BTreeMap::new(),
            copied: Tally::default(),
            heard: 0,
            wait_until: Some(now.plus(self.core.patience.answer_ms)),
            caught_up: false,
        };
        if self.core.members.configured() == 1 {
            return self.copied(now, op, catch_up, out);
        }
        self.tasks.insert(op, Task::CatchUp(catch_up));
    }

    pub(super) fn catch_up_arrived(
        &mut self,
        now: Millis,
        op: OpId,
        mut catch_up: CatchUp,
        event: Event,
        out: &mut Vec<Action>,
    ) {
        if matches!(event, Event::DiskDone { .. }) {
            return self.adopted(now, &catch_up, out);
        }
        if matches!(event, Event::DiskFailed { .. }) {
            // What was not written is asked for again.
            return self.try_again_later(now);
        }
        // While the write is under way nothing more is taken in; it is copied the next time.
        if catch_up.wait_until.is_some() {
            catch_up.hear(event);
            let all = catch_up.heard >= usize::from(self.core.members.configured() - 1);
            if all || self.is_enough(&catch_up) {
                return self.copied(now, op, catch_up, out);
            }
        }
        self.tasks.insert(op, Task::CatchUp(catch_up));
    }

    /// Whoever has not answered by now is not copied.
    pub(super) fn catch_up_waited(&mut self, now: Millis, op: OpId, catch_up: CatchUp, out: &mut Vec<Action>) {
        self.copied(now, op, catch_up, out);
    }

    fn is_behind(&self) -> bool {
        self.core.disk.as_ref().is_some_and(|disk| disk.standing == Standing::Behind)
    }

    fn is_enough(&self, catch_up: &CatchUp) -> bool {
        self.is_behind() && self.core.members.is_majority(usize::from(catch_up.copied.counted()))
    }

    /// Writes what was copied; the vote comes back in the same write, or not at all.
    fn copied(&mut self, now: Millis, op: OpId, mut catch_up: CatchUp, out: &mut Vec<Action>) {
        catch_up.caught_up = self.is_enough(&catch_up);
        catch_up.wait_until = None;
        if catch_up.records.is_empty() && !catch_up.caught_up {
            return self.adopted(now, &catch_up, out);
        }
        let records = catch_up.records.values().cloned().collect();
        let command = DiskCommand::Adopt { records, caught_up: catch_up.caught_up };
        out.push(Action::Disk { op, command });
        self.tasks.insert(op, Task::CatchUp(catch_up));
    }

    fn adopted(&mut self, now: Millis, catch_up: &CatchUp, out: &mut Vec<Action>) {
        if let Some(disk) = self.core.disk.as_mut().filter(|_| catch_up.caught_up) {
            disk.standing = Standing::CaughtUp;
        }
        out.push(Action::Note(Note::Copied {
            records: catch_up.records.len(),
            counted: catch_up.copied.counted(),
            needed: self.core.members.majority(),
            caught_up: catch_up.caught_up,
        }));
        self.try_again_later(now);
    }

    fn try_again_later(&mut self, now: Millis) {
        let again = self.is_behind() && self.core.knobs.incarnation.is_on();
        self.catch_up_at = again.then(|| now.plus(self.core.patience.catch_up_ms));
    }
}

impl CatchUp {
    /// One of the others has answered, or has not.
    fn hear(&mut self, event: Event) {
        self.heard += 1;
        if let Event::PeerAnswered { peer, reply: Reply::Records { records, disk }, .. } = event {
            self.copied.cast(peer, disk.standing.has_vote());
            for record in records {
                self.records.entry(record.slot.clone()).or_insert(record);
            }
        }
    }
}
