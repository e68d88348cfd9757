//! The table of placements, as data: which steps a request goes through, in which order, and what the gaps are called.
//!
//! This file is the whole difference between the placements. Everything else is the same code for all of them, which is
//! why a lesson can change one switch and nothing else.

use crate::rules::{
    barrier::Barrier,
    ids::ReplicaId,
    knobs::{EffectPlace, Knobs, Order, Placement, ProviderIdentity},
    word::words,
};

words! {
    /// One step. Each may fail, and each ends before the next begins.
    pub enum Step, "step" {
        /// Look in the map of this process.
        LookInMap = "look-in-map",
        /// Look at this replica's disk.
        LookOnDisk = "look-on-disk",
        /// Ask all; go on when a majority has said "not found" from disk, this replica among them.
        AskMajority = "ask-majority",
        /// Look at the receipts of the own store.
        LookAtReceipts = "look-at-receipts",
        /// Look at the keeper's receipts and newest epoch.
        LookAtKeeper = "look-at-keeper",
        /// Ask the provider whether it was called.
        LookUp = "look-up",
        /// Put the intent to call on disk, before calling.
        Intend = "intend",
        /// Append the effect to the own ledger.
        Effect = "effect",
        /// Call the provider: the effect is outside.
        CallProvider = "call-provider",
        /// Put the record in the map of this process.
        PutInMap = "put-in-map",
        /// Put the record on this replica's disk.
        RecordOnDisk = "record-on-disk",
        /// Send the record to all; go on when a majority has it on disk, this replica among them.
        RecordToAll = "record-to-all",
        /// One conditional write in the own store: receipt and, when it is inside, the effect.
        Execute = "execute",
        /// The same at the keeper, which compares the epoch in that write.
        ExecuteAtKeeper = "execute-at-keeper",
        /// Hand the request to the owner and pass the answer on.
        Forward = "forward",
    }
}

impl Step {
    /// What the gap behind it is called, unless nothing but the answer follows.
    const fn gap(self) -> Barrier {
        match self {
            Self::LookInMap | Self::LookOnDisk | Self::AskMajority | Self::LookAtReceipts | Self::LookAtKeeper => {
                Barrier::AfterLook
            }
            Self::LookUp => Barrier::AfterLookUp,
            Self::Intend => Barrier::AfterIntent,
            Self::Effect | Self::CallProvider => Barrier::AfterEffect,
            Self::PutInMap | Self::RecordOnDisk | Self::RecordToAll | Self::Execute | Self::ExecuteAtKeeper => {
                Barrier::AfterRecord
            }
            Self::Forward => Barrier::BeforeAnswer,
        }
    }
}

words! {
    /// Whom a step needs.
    pub enum Needs, "party" {
        /// Nobody: it is done at once.
        Nobody = "nobody",
        /// The own disk.
        Disk = "disk",
        /// A counted majority of disks, the own among them.
        Majority = "majority",
        /// The owner or keeper.
        Owner = "owner",
        /// The provider.
        Provider = "provider",
    }
}

impl Step {
    /// Whom it needs: who is away fails it.
    pub const fn needs(self) -> Needs {
        match self {
            Self::LookInMap | Self::PutInMap => Needs::Nobody,
            Self::LookOnDisk
            | Self::LookAtReceipts
            | Self::Intend
            | Self::Effect
            | Self::RecordOnDisk
            | Self::Execute => Needs::Disk,
            Self::AskMajority | Self::RecordToAll => Needs::Majority,
            Self::LookAtKeeper | Self::ExecuteAtKeeper | Self::Forward => Needs::Owner,
            Self::LookUp | Self::CallProvider => Needs::Provider,
        }
    }
}

/// The steps that a request goes through at one replica.
pub fn steps(knobs: &Knobs, me: ReplicaId) -> Vec<Step> {
    use Step::{
        AskMajority, Effect, Execute, ExecuteAtKeeper, Forward, Intend, LookAtKeeper, LookAtReceipts, LookInMap,
        LookOnDisk, PutInMap, RecordOnDisk, RecordToAll,
    };
    let outside = knobs.effect == EffectPlace::Outside;
    let effect = if outside { calls(knobs) } else { vec![Effect] };
    match knobs.placement {
        Placement::None => effect,
        Placement::Memory => two_writes(knobs, LookInMap, effect, PutInMap),
        Placement::Local => two_writes(knobs, LookOnDisk, effect, RecordOnDisk),
        Placement::MajorityReadOne => two_writes(knobs, LookOnDisk, effect, RecordToAll),
        Placement::MajorityCheckThenAct => two_writes(knobs, AskMajority, effect, RecordToAll),
        Placement::Atomic if me != knobs.owner => vec![Forward],
        // One step: there is no gap in which the one has happened and the other has not.
        Placement::Atomic if !outside => vec![Execute],
        // With the effect outside there are two systems again, and so a gap. The intent makes it visible; only the
        // provider can close it.
        Placement::Atomic if knobs.order == Order::RecordFirst => two_writes(knobs, LookAtReceipts, effect, Execute),
        Placement::Atomic => [vec![LookAtReceipts, Intend], effect, vec![Execute]].concat(),
        Placement::AtomicFenced if !outside => vec![LookAtKeeper, ExecuteAtKeeper],
        Placement::AtomicFenced => two_writes(knobs, LookAtKeeper, effect, ExecuteAtKeeper),
        Placement::Provider => calls(knobs),
    }
}

/// Look, then two writes in the order of the switch.
fn two_writes(knobs: &Knobs, look: Step, effect: Vec<Step>, record: Step) -> Vec<Step> {
    match knobs.order {
        Order::EffectFirst => [vec![look], effect, vec![record]].concat(),
        Order::RecordFirst => [vec![look, record], effect].concat(),
    }
}

/// How the provider is called: at once, or after asking it.
fn calls(knobs: &Knobs) -> Vec<Step> {
    match knobs.provider {
        ProviderIdentity::LookUp => vec![Step::LookUp, Step::CallProvider],
        ProviderIdentity::None | ProviderIdentity::Key => vec![Step::CallProvider],
    }
}

/// Whether the effect may have happened once a step has begun.
///
/// This is the line between *refused* and *unknown*. An `execute` that keeps the receipt of a call made elsewhere is on
/// neither side of it: the call is the effect.
pub const fn may_have_effect(knobs: &Knobs, step: Step) -> bool {
    match step {
        Step::Effect | Step::CallProvider | Step::Forward => true,
        Step::Execute | Step::ExecuteAtKeeper => matches!(knobs.effect, EffectPlace::Inside),
        Step::LookInMap
        | Step::LookOnDisk
        | Step::AskMajority
        | Step::LookAtReceipts
        | Step::LookAtKeeper
        | Step::LookUp
        | Step::Intend
        | Step::PutInMap
        | Step::RecordOnDisk
        | Step::RecordToAll => false,
    }
}

/// The gap behind the step of a number: before the answer, if it is the last.
pub fn gap_behind(steps: &[Step], index: usize) -> Barrier {
    match steps.get(index) {
        Some(step) if index + 1 < steps.len() => step.gap(),
        Some(_) | None => Barrier::BeforeAnswer,
    }
}

/// Every gap that a request meets at one replica, in order. Scripts and help texts take their names from here.
pub fn barriers(knobs: &Knobs, me: ReplicaId) -> Vec<Barrier> {
    let steps = steps(knobs, me);
    let behind = (0..steps.len()).map(|index| gap_behind(&steps, index));
    std::iter::once(Barrier::Arrived).chain(behind).collect()
}

/// Where a script that asks for `wanted` stops under these switches.
///
/// A script is written for one placement and run with all. Where a placement has no such gap, because it does in one
/// step what others do in two, the nearest one stands for it: the first in which the wanted thing is done, or, if the
/// script wants nothing to be done yet, the last in which nothing is. To kill the executor "after the effect" means, for
/// `atomic`, to kill it after the one write.
pub fn nearest(knobs: &Knobs, executor: ReplicaId, wanted: Barrier) -> Barrier {
    let steps = steps(knobs, executor);
    let there = barriers(knobs, executor);
    if there.contains(&wanted) {
        return wanted;
    }
    // Behind so many steps stands the gap of the same number.
    let behind_first = |done: &dyn Fn(Step) -> bool| steps.iter().position(|step| done(*step)).map(|index| index + 1);
    let index = match wanted {
        Barrier::Arrived => Some(0),
        Barrier::AfterLook | Barrier::AfterIntent | Barrier::AfterLookUp => {
            steps.iter().position(|step| may_have_effect(knobs, *step) || step.gap() > wanted)
        }
        Barrier::AfterEffect => behind_first(&|step| may_have_effect(knobs, step)),
        Barrier::AfterRecord => behind_first(&|step| step.gap() >= Barrier::AfterRecord),
        Barrier::BeforeAnswer => None,
    };
    index.and_then(|index| there.get(index)).copied().unwrap_or(Barrier::BeforeAnswer)
}
