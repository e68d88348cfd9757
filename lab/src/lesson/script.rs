//! What a lesson is made of, as data.
//!
//! A script names roles and not replicas, and moments and not milliseconds: *kill the executor when the effect is on its
//! disk and the record is not*. So it does the same on every laptop, and the same script can be run with every position
//! of every switch.

use crate::rules::{
    barrier::Barrier,
    fault::{Direction, Fault, FaultRule},
    ids::{Attempt, Endpoint, ReplicaId},
    knobs::{Knobs, Order, Placement},
    message::MessageKind,
    outcome::OutcomeKind,
    plan,
};

/// Who somebody is in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Whom the client asks first.
    Executor,
    /// Whom the client turns to next. With an owner it hands the request on; without one it is on its own.
    Forwarder,
    /// The configured owner or keeper.
    Owner,
    /// Somebody else who is there.
    Bystander,
}

/// Which replica plays which role. The owner is a switch, so that it is printed with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cast {
    /// The executor.
    pub executor: ReplicaId,
    /// The forwarder.
    pub forwarder: ReplicaId,
    /// The bystander.
    pub bystander: ReplicaId,
}

impl Cast {
    /// The replica in a role.
    #[must_use]
    pub const fn plays(&self, role: Role, knobs: &Knobs) -> ReplicaId {
        match role {
            Role::Executor => self.executor,
            Role::Forwarder => self.forwarder,
            Role::Owner => knobs.owner,
            Role::Bystander => self.bystander,
        }
    }
}

/// Where an attempt is made to stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// The check has passed, and nothing has been done.
    AfterLook,
    /// The first of the two writes is durable, and the second has not begun.
    BetweenWrites,
}

impl Gap {
    /// The barrier that stands for it under these switches.
    #[must_use]
    pub fn barrier(self, knobs: &Knobs, at: ReplicaId) -> Barrier {
        let wanted = match (self, knobs.order) {
            (Self::AfterLook, _) => Barrier::AfterLook,
            (Self::BetweenWrites, Order::EffectFirst) => Barrier::AfterEffect,
            (Self::BetweenWrites, Order::RecordFirst) => Barrier::AfterRecord,
        };
        plan::nearest(knobs, at, wanted)
    }
}

/// A message that does not arrive, or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The answer to the client's attempt is lost.
    LostReply(u32),
    /// Copies of records to somebody wait on the way.
    HeldCopies(Role),
    /// Copies of records to somebody are lost.
    LostCopies(Role),
    /// The questions of a coordinator reach some of the others and not these.
    LostLooks(Role, &'static [ReplicaId]),
}

impl Trouble {
    /// Whether such messages are sent at all under these switches: a placement that copies nothing has no copies to
    /// lose.
    #[must_use]
    pub const fn applies(self, knobs: &Knobs) -> bool {
        let counts = matches!(knobs.placement, Placement::MajorityReadOne | Placement::MajorityCheckThenAct);
        match self {
            Self::LostReply(_) => true,
            Self::HeldCopies(_) | Self::LostCopies(_) => counts,
            Self::LostLooks(..) => matches!(knobs.placement, Placement::MajorityCheckThenAct),
        }
    }

    /// The rules for the links.
    #[must_use]
    pub fn rules(self, cast: &Cast, knobs: &Knobs) -> Vec<FaultRule> {
        let replica = |id| Some(Endpoint::Replica(id));
        let copies = |role, what| FaultRule {
            to: replica(cast.plays(role, knobs)),
            kind: Some(MessageKind::Store),
            direction: Some(Direction::Request),
            ..FaultRule::everything(what)
        };
        match self {
            Self::LostReply(attempt) => {
                vec![FaultRule { attempt: Some(Attempt(attempt)), ..FaultRule::next_reply(None) }]
            }
            Self::HeldCopies(to) => vec![copies(to, Fault::Hold)],
            Self::LostCopies(to) => vec![copies(to, Fault::Drop)],
            Self::LostLooks(from, to) => {
                let from = replica(cast.plays(from, knobs));
                let kind = Some(MessageKind::Look);
                let rule = |to: &ReplicaId| FaultRule {
                    from,
                    to: replica(*to),
                    kind,
                    direction: Some(Direction::Request),
                    ..FaultRule::everything(Fault::Drop)
                };
                to.iter().map(rule).collect()
            }
        }
    }
}

/// One thing that a script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// The replicas are counted, as any dashboard would.
    Count,
    /// The client sends, and the script goes on. A client that has been told "done" does not.
    Send(u32, Role),
    /// The client waits for what becomes of an attempt.
    Hear(u32),
    /// It gives up waiting.
    GiveUp(u32),
    /// It sends and waits, unless it has been told "done".
    Ask(u32, Role),
    /// It sends and waits, whatever it has been told.
    Insist(u32, Role),
    /// From now on the client wants another amount under the same key.
    OtherAmount(u64),
    /// Messages do not arrive from now on. Named like the fault of the plan.
    Arm(&'static str, Trouble),
    /// Goes on when that has hit, and it has fallen.
    Hit(&'static str),
    /// An attempt is to stand still in a gap.
    Stop(u32, Role, Gap),
    /// Goes on when it stands there.
    Stands(u32),
    /// It is let go.
    Go(u32),
    /// `kill -9`.
    Kill(Role),
    /// Its disk is taken away.
    Wipe(Role),
    /// A new process on the disk that is there.
    Restart(Role),
    /// `kill -STOP`.
    Pause(Role),
    /// `kill -CONT`.
    Resume(Role),
    /// Somebody is cut off from all other replicas. The client still reaches it.
    CutOff(Role),
    /// Every message arrives again.
    Heal,
    /// Goes on when somebody has the record on its disk.
    HasRecord(Role),
    /// Somebody takes over, where there is something to take over: an act of the script, never an election.
    TakeOver(Role),
    /// A fault of the plan has fallen.
    Fell(&'static str, Role),
}

/// An act, and whether it goes when the fault is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// What is done.
    pub act: Act,
    /// Whether it is part of the fault.
    pub fault: bool,
}

/// What happens anyway.
#[must_use]
pub const fn always(act: Act) -> Line {
    Line { act, fault: false }
}

/// What is the fault, or is there because of it.
#[must_use]
pub const fn fault(act: Act) -> Line {
    Line { act, fault: true }
}

/// A moment of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The client has sent it.
    Sent(u32),
    /// The client has heard of it, or has given up.
    Heard(u32),
    /// It stands in the gap in which the script stops it.
    Stands(u32),
}

/// A fault, and the two moments between which it has to fall. Elsewhere it shows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fall {
    /// Its name.
    pub name: &'static str,
    /// Not before.
    pub after: Point,
    /// Not later.
    pub before: Point,
}

/// When a variant is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Turn {
    /// It shows harm: before the question.
    Harm,
    /// It is half a repair: when the question has been answered.
    Half,
    /// It is the repair.
    Repair,
    /// What is worth knowing beside.
    Beside,
}

/// A way to run a lesson: switches, a script, and what its author says will come out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// What it is called.
    pub name: &'static str,
    /// When it is run.
    pub turn: Turn,
    /// What it shows, in a sentence.
    pub shows: &'static str,
    /// The switches.
    pub knobs: Knobs,
    /// What is done.
    pub script: Vec<Line>,
    /// How often the operation is executed.
    pub executed: u64,
    /// Whether an attempt finds the record of an earlier one.
    pub found: bool,
    /// What the client is told of each attempt.
    pub told: Vec<OutcomeKind>,
}

/// A lesson.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lesson {
    /// Its number in the curriculum.
    pub number: u8,
    /// What it is called on the command line.
    pub name: &'static str,
    /// Three sentences.
    pub set_up: &'static str,
    /// What to ask the room.
    pub question: &'static str,
    /// What to listen for.
    pub answer: &'static str,
    /// How many replicas.
    pub replicas: u8,
    /// Who plays whom.
    pub cast: Cast,
    /// Faults that must fall in their place.
    pub falls: Vec<Fall>,
    /// The four lamps at the last count before the faults are mended, where the lesson is about them.
    pub lamps: Option<[u8; 4]>,
    /// The one with the harm.
    pub broken: Variant,
    /// The same script with other switches, and without the harm.
    pub repaired: Variant,
    /// What else is worth a run.
    pub more: Vec<Variant>,
}

impl Lesson {
    /// All variants, in the order in which they are run and shown.
    #[must_use]
    pub fn variants(&self) -> Vec<&Variant> {
        let mut all: Vec<&Variant> = [&self.broken].into_iter().chain(&self.more).chain([&self.repaired]).collect();
        all.sort_by_key(|variant| variant.turn);
        all
    }
}
