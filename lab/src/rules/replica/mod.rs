//! The decision function of a replica.
//!
//! One request goes through the steps of [`crate::rules::plan`], one after the other, with a named gap between each two.
//! All that a replica knows between two events is in [`Replica`], and all of it dies with the process: what is to
//! outlive a crash has to be on the disk before the next step begins, and which steps put it there is the placement.
//!
//! How to drive it:
//!
//! 1. Make one for each start of the process and hand over [`Event::Started`] with the disk's identity.
//! 2. Hand over events one at a time. Carry out the actions in the order given, without waiting for one before the next.
//! 3. Report what became of each disk command, message and call with its `op`, exactly once, or never if the process
//!    died. What comes too late is ignored.
//! 4. Answer [`Action::Reach`] with [`Event::Released`]: at once, or when a script lets go.
//! 5. Send [`Event::Tick`] when [`Replica::next_deadline`] has passed.

mod arrive;
mod begin;
mod catch_up;
mod operation;
mod serve;
mod take_over;
mod tally;

use std::collections::BTreeMap;

use crate::rules::{
    action::Action,
    event::Event,
    ids::{Millis, OpId, ReplicaId},
    knobs::Knobs,
    majority::Members,
    record::{DiskIdentity, Fence, Receipt, Slot},
};
use catch_up::CatchUp;
use operation::{Operation, Origin};
use serve::Serve;
use take_over::TakeOver;

/// How long a replica waits for others. It bounds waiting, never the work itself: a replica that stood still between two
/// steps goes on with the next one, as programs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For answers of other replicas and of the provider, in one step.
    pub answer_ms: u64,
    /// Between two attempts to catch up.
    pub catch_up_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { answer_ms: 1_500, catch_up_ms: 500 }
    }
}

/// One replica, from the start of its process to its end.
#[derive(Debug, Clone)]
pub struct Replica {
    core: Core,
    /// What it has in hand.
    tasks: BTreeMap<OpId, Task>,
    next_op: u64,
    /// When to try again to catch up, if the disk is behind and nothing is under way.
    catch_up_at: Option<Millis>,
}

/// What every decision may look at. A part of its own, so that a task can be changed while this is read.
#[derive(Debug, Clone)]
struct Core {
    me: ReplicaId,
    members: Members,
    knobs: Knobs,
    patience: Patience,
    /// The disk; nothing, before the process has opened it.
    disk: Option<DiskIdentity>,
    /// Placement `memory`: receipts, for as long as the process lives.
    map: BTreeMap<Slot, Receipt>,
    /// Placement `atomic-fenced`: the right to execute, if one was given to this process.
    fence: Option<Fence>,
}

/// One thing in hand. What is not here is either done or, after a crash, forgotten.
#[derive(Debug, Clone)]
enum Task {
    /// A request on its way through the steps.
    Operation(Box<Operation>),
    /// A question of another replica that waits for the disk.
    Serve(Serve),
    /// Copying records of the others.
    CatchUp(CatchUp),
    /// Asking the keeper for an epoch.
    TakeOver(TakeOver),
}

impl Replica {
    /// A replica whose process has just started.
    pub fn new(me: ReplicaId, members: Members, knobs: Knobs, patience: Patience) -> Self {
        let core = Core { me, members, knobs, patience, disk: None, map: BTreeMap::new(), fence: None };
        Self { core, tasks: BTreeMap::new(), next_op: 0, catch_up_at: None }
    }

    /// Decides what to do about one event.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Started(disk) => self.started(now, disk, &mut out),
            Event::Request { call, request } => self.admit(Origin::Client(call), request, &mut out),
            Event::Peer { call, from, message } => self.serve(call, from, message, &mut out),
            Event::TakeOver { call } => self.take_over(now, call, &mut out),
            Event::Healed => self.healed(now, &mut out),
            Event::Released { op, barrier } => self.released(now, op, barrier, &mut out),
            Event::Tick => self.tick(now, &mut out),
            Event::DiskDone { op, .. }
            | Event::DiskFailed { op, .. }
            | Event::PeerAnswered { op, .. }
            | Event::PeerFailed { op, .. }
            | Event::ProviderAnswered { op, .. }
            | Event::ProviderFailed { op, .. } => self.arrived(now, op, event, &mut out),
        }
        out
    }

    /// When it wants a [`Event::Tick`], if it waits for anything.
    pub fn next_deadline(&self) -> Option<Millis> {
        self.tasks.values().filter_map(Task::wait_until).chain(self.catch_up_at).min()
    }

    /// The disk that it runs on, once it has opened it.
    pub fn disk(&self) -> Option<&DiskIdentity> {
        self.core.disk.as_ref()
    }

    /// The right to execute, if it holds one.
    pub fn fence(&self) -> Option<&Fence> {
        self.core.fence.as_ref()
    }

    /// How many things it has in hand.
    pub fn in_hand(&self) -> usize {
        self.tasks.len()
    }

    fn started(&mut self, now: Millis, disk: DiskIdentity, out: &mut Vec<Action>) {
        let behind = !disk.standing.has_vote();
        self.core.disk = Some(disk);
        if behind && self.core.knobs.incarnation.is_on() {
            self.catch_up(now, out);
        }
    }

    fn take_op(&mut self) -> OpId {
        self.next_op += 1;
        OpId(self.next_op)
    }

    /// Something has come back for a task. If the task is over, it came too late and changes nothing.
    fn arrived(&mut self, now: Millis, op: OpId, event: Event, out: &mut Vec<Action>) {
        match self.tasks.remove(&op) {
            Some(Task::Operation(operation)) => self.operation_arrived(op, *operation, event, out),
            Some(Task::Serve(serve)) => self.core.serve_arrived(&serve, event, out),
            Some(Task::CatchUp(catch_up)) => self.catch_up_arrived(now, op, catch_up, event, out),
            Some(Task::TakeOver(take_over)) => self.core.take_over_arrived(&take_over, event, out),
            None => {}
        }
    }

    /// Waiting has its end: whoever has not answered by now counts as one who does not.
    fn tick(&mut self, now: Millis, out: &mut Vec<Action>) {
        let over = |task: &Task| task.wait_until().is_some_and(|until| until <= now);
        let due: Vec<OpId> = self.tasks.iter().filter(|(_, task)| over(task)).map(|(op, _)| *op).collect();
        for op in due {
            match self.tasks.remove(&op) {
                Some(Task::Operation(operation)) => self.operation_waited(op, *operation, out),
                Some(Task::CatchUp(catch_up)) => self.catch_up_waited(now, op, catch_up, out),
                Some(Task::TakeOver(take_over)) => take_over.give_up(out),
                Some(Task::Serve(_)) | None => {}
            }
        }
        if self.catch_up_at.is_some_and(|at| at <= now) {
            self.catch_up(now, out);
        }
    }
}

impl Task {
    fn wait_until(&self) -> Option<Millis> {
        match self {
            Self::Operation(operation) => operation.wait_until,
            Self::CatchUp(catch_up) => catch_up.wait_until,
            Self::TakeOver(take_over) => Some(take_over.wait_until),
            Self::Serve(_) => None,
        }
    }
}
