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

use std::collections::BTreeMap;

use crate::rules::{
    action::Action,
    event::Event,
    ids::{Millis, OpId, ReplicaId},
    knobs::Knobs,
    majority::Members,
    record::{DiskIdentity, Fence, Receipt, Slot},
};

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
    next_op: u64,
}

impl Replica {
    /// A replica whose process has just started.
    pub fn new(me: ReplicaId, members: Members, knobs: Knobs, patience: Patience) -> Self {
        Self { me, members, knobs, patience, disk: None, map: BTreeMap::new(), fence: None, next_op: 0 }
    }

    /// Decides what to do about one event.
    pub fn step(&mut self, now: Millis, event: Event) -> Vec<Action> {
        let _ = (now, event);
        self.next_op += 1;
        let _ = (OpId(self.next_op), self.me, self.members, self.knobs, self.patience, &self.disk, &self.map);
        Vec::new()
    }

    /// When it wants a [`Event::Tick`], if it waits for anything.
    pub fn next_deadline(&self) -> Option<Millis> {
        None
    }

    /// The disk that it runs on, once it has opened it.
    pub fn disk(&self) -> Option<&DiskIdentity> {
        self.disk.as_ref()
    }

    /// The right to execute, if it holds one.
    pub fn fence(&self) -> Option<&Fence> {
        self.fence.as_ref()
    }
}
