//! What stands in a history.

use serde::{Deserialize, Serialize};

use crate::rules::{
    action::Note,
    barrier::{At, Barrier},
    fault::{Direction, RuleId},
    ids::{Amount, Attempt, Endpoint, IncarnationId, IntentId, Key, Millis, ReplicaId, RunId},
    knobs::Knobs,
    lamps::Counted,
    majority::Members,
    message::MessageKind,
    outcome::Outcome,
    record::DiskIdentity,
    verdict::{Expected, Totals},
};

/// The format of this file. A reader that does not know it refuses it.
pub const FORMAT: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When, by the clock of the process in which it happened; all are on one machine.
    pub at: Millis,
    /// Where.
    pub by: Endpoint,
    /// What.
    pub event: HistoryEvent,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryEvent {
    /// The first line.
    RunStarted {
        /// The format of the file.
        format: u32,
        /// Which run.
        run: RunId,
        /// How many replicas are configured.
        members: Members,
        /// The switches.
        knobs: Knobs,
        /// Where every random choice came from.
        seed: u64,
        /// What was planned.
        plan: Plan,
    },
    /// Somebody wrote down what will happen, before it did.
    Predicted {
        /// What was asked.
        question: String,
        /// What was answered.
        answer: String,
    },
    /// A process is there.
    ProcessStarted {
        /// Its number with the operating system.
        pid: u32,
        /// Its disk, of a replica.
        disk: Option<DiskIdentity>,
    },
    /// A process is gone.
    ProcessEnded {
        /// How, as it is read out.
        how: String,
        /// Whether the script or somebody at a terminal wanted it.
        wanted: bool,
    },
    /// A process stands still.
    Paused,
    /// It goes on.
    Resumed,
    /// A replica's disk was moved to the evidence, and the name has none.
    Wiped {
        /// Which disk.
        incarnation: IncarnationId,
    },
    /// A fault rule is there.
    RuleArmed {
        /// Its number.
        rule: RuleId,
        /// What it does, as it is read out.
        what: String,
    },
    /// A fault rule has hit.
    RuleHit {
        /// Its number.
        rule: RuleId,
    },
    /// A fault rule is gone.
    RuleDisarmed {
        /// Its number.
        rule: RuleId,
        /// How often it hit.
        hits: u32,
    },
    /// A planned fault has taken place: the process is dead or still, the message is lost.
    FaultFell {
        /// Its name in the plan.
        fault: String,
        /// Whom it hit.
        whom: Endpoint,
    },
    /// A client wants something once.
    IntentStarted {
        /// What it is called.
        intent: IntentId,
        /// How much it is about.
        amount: Amount,
    },
    /// A client sends.
    AttemptStarted {
        /// For what.
        intent: IntentId,
        /// Under which key.
        key: Key,
        /// For the how manieth time.
        attempt: Attempt,
        /// To whom.
        to: ReplicaId,
        /// How much.
        amount: Amount,
    },
    /// A client has an answer, or has given up waiting.
    AttemptEnded {
        /// For what.
        intent: IntentId,
        /// Under which key.
        key: Key,
        /// Which time.
        attempt: Attempt,
        /// What it knows of this attempt.
        outcome: Outcome,
    },
    /// A client is done with it.
    IntentEnded {
        /// With what.
        intent: IntentId,
        /// What it knows of the operation, all attempts together.
        outcome: Outcome,
    },
    /// A message has left.
    Sent(Message),
    /// A message has come.
    Received(Message),
    /// A replica stands in a gap, because a script keeps it there.
    Held(At),
    /// It was let go.
    LetGo(At),
    /// The decision function has something to say.
    Noted(Note),
    /// The replicas were counted.
    Sampled {
        /// One count for each lamp.
        counts: Vec<Counted>,
    },
    /// Whoever counts did not come to it: the machine slept, or had no time.
    Starved {
        /// For how long nothing was observed.
        gap_ms: u64,
    },
    /// What a judge said of this run. `check` computes it again and compares.
    Judged {
        /// What it had counted.
        totals: Totals,
    },
    /// The last line of a run that came to its end.
    RunEnded,
}

/// A message, as a diagram shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who asks. Of a reply too.
    pub from: Endpoint,
    /// Who is asked.
    pub to: Endpoint,
    /// Which half of the call.
    pub direction: Direction,
    /// What kind.
    pub kind: MessageKind,
    /// With which key.
    pub key: Option<Key>,
    /// In which attempt.
    pub attempt: Option<Attempt>,
}

/// What a run was to show, and by which faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is called.
    pub name: String,
    /// What it is to show.
    pub expected: Expected,
    /// Faults that must have fallen where they were planned.
    pub faults: Vec<PlannedFault>,
    /// How many faults must have fallen while at least one request was open, wherever.
    pub faults_min: u32,
    /// How long clients must have been at work, from the first request to the last answer.
    pub load_ms_min: u64,
}

/// A fault, and the two moments between which it means something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// Its name, that [`HistoryEvent::FaultFell`] repeats.
    pub name: String,
    /// Not before this has happened.
    pub after: Moment,
    /// Not after this has happened.
    pub before: Moment,
}

/// A moment of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// The beginning.
    Start,
    /// The end.
    End,
    /// A client has sent its n-th attempt at anything.
    AttemptStarted(Attempt),
    /// A client is done with its n-th attempt at anything.
    AttemptEnded(Attempt),
    /// A replica stands in a gap with the n-th attempt.
    Held {
        /// Where.
        barrier: Barrier,
        /// With which attempt.
        attempt: Attempt,
    },
    /// Another fault of the plan has fallen.
    Fell(String),
}

impl Moment {
    /// Whether this event is the moment.
    pub fn is(&self, event: &HistoryEvent) -> bool {
        match (self, event) {
            (Self::Start, HistoryEvent::RunStarted { .. }) | (Self::End, HistoryEvent::RunEnded) => true,
            (Self::AttemptStarted(wanted), HistoryEvent::AttemptStarted { attempt, .. })
            | (Self::AttemptEnded(wanted), HistoryEvent::AttemptEnded { attempt, .. }) => wanted == attempt,
            (Self::Held { barrier, attempt }, HistoryEvent::Held(at)) => {
                (at.barrier, at.attempt) == (*barrier, *attempt)
            }
            (Self::Fell(wanted), HistoryEvent::FaultFell { fault, .. }) => wanted == fault,
            (_, _) => false,
        }
    }
}
