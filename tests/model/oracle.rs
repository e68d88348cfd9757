//! The model: what is stored under each slot, what the log holds, and what each submission must be answered.

use std::collections::BTreeMap;
use std::time::Duration;

use counterfoil::{Operation, OperationType, Outcome, Oversize, Position, Reply, Retention, Slot};

use crate::script::{Change, Ran, Script};
use crate::tables::Tables;

const SECOND: Duration = Duration::from_secs(1);

/// The operation types as three releases of a program declare them: the second accepts receipts of the first, the third
/// those of the second alone.
const ORDER: OperationType = OperationType::new("order")
    .retention(Retention { replay: Duration::from_secs(60), refuse: Duration::from_secs(90) });
pub(crate) const ORDERS: [OperationType; 3] = [ORDER, ORDER.version(2).accepts(&[1]), ORDER.version(3).accepts(&[2])];
/// Kept for a short time, without a second tier, and with bodies that may be dropped.
pub(crate) const PING: OperationType = OperationType::new("ping")
    .retention(Retention { replay: Duration::from_secs(10), refuse: Duration::ZERO })
    .oversize(Oversize::DropBody);

pub(crate) const TENANTS: [&str; 3] = ["acme", "bolt", "cork"];

/// A slot, in small numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) is_ping: bool,
    pub(crate) tenant: u8,
    pub(crate) key: u8,
}

impl Who {
    pub(crate) fn slot(self) -> Slot {
        let name = if self.is_ping { PING.name() } else { ORDER.name() };
        Slot::new(TENANTS[usize::from(self.tenant)], "alice", name, [b'k', self.key]).expect("a valid slot")
    }
}

/// One submission.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) who: Who,
    pub(crate) body: u8,
    pub(crate) attempt: u32,
    /// Milliseconds.
    pub(crate) deadline: Option<u16>,
    /// Asks in the name of a release that is not deployed.
    pub(crate) stale_release: bool,
    pub(crate) script: Script,
}

impl Call {
    /// Under the release that is deployed, or another one.
    pub(crate) fn operation(&self, release: usize) -> Operation {
        let release = if self.stale_release { (release + 1) % ORDERS.len() } else { release };
        let kind = if self.who.is_ping { PING } else { ORDERS[release] };
        let request = kind.request(TENANTS[usize::from(self.who.tenant)], "alice", [b'k', self.who.key]);
        let operation = request.expect("a valid slot").json(&("body", self.body)).expect("a valid request");
        let operation = operation.attempt(self.attempt);
        match self.deadline() {
            Some(deadline) => operation.deadline(deadline),
            None => operation,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline.map(|ms| Duration::from_millis(ms.into()))
    }

    fn is_undeclared(&self) -> bool {
        self.stale_release && !self.who.is_ping
    }
}

/// What is stored under a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) body: u8,
    pub(crate) version: u32,
    pub(crate) position: Position,
    pub(crate) completed: u64,
    pub(crate) replay_until: u64,
    pub(crate) refuse_until: u64,
    pub(crate) outcome: Outcome,
    pub(crate) attempt: u32,
    pub(crate) reply: Reply,
    pub(crate) body_dropped: bool,
}

/// What a submission must be answered.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Executed(Stored),
    Replayed(Stored),
    Gone(Stored),
    Conflict(Option<u32>),
    Denied,
    Failed,
    Panicked,
    Table,
    ReplyTooLarge,
    UndeclaredHeader,
    UndeclaredVersion,
    Deadline,
    Cancelled,
    Overloaded,
    /// The process ended with it in the queue: any answer but that it was executed.
    Lost,
}

/// One entry of the log.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) position: Position,
    pub(crate) time: u64,
    pub(crate) kind: LineKind,
    pub(crate) changes: Vec<Change>,
}

#[derive(Clone, Debug)]
pub(crate) enum LineKind {
    Declared(&'static str),
    Write,
    Operation(Who, Stored),
}

/// What a plain write must come to.
#[derive(Debug)]
pub(crate) enum Wrote {
    Kept { seen: Vec<String>, position: Option<Position> },
    Failed,
    Panicked,
    Table,
}

/// The whole model.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) tables: Tables,
    pub(crate) lines: Vec<Line>,
    /// The store's time in milliseconds.
    pub(crate) now: u64,
    /// How often the store was opened.
    pub(crate) epoch: u64,
    pub(crate) release: usize,
    /// The tenant whom the guard says no to.
    pub(crate) denied: Option<u8>,
    stored: BTreeMap<Who, Stored>,
}

impl Oracle {
    /// A new store, which has declared its tables.
    pub(crate) fn new(now: u64) -> Self {
        let mut new = Self {
            tables: Tables::default(),
            lines: Vec::new(),
            now,
            epoch: 1,
            release: 0,
            denied: None,
            stored: BTreeMap::new(),
        };
        for table in [crate::tables::NOTES.name(), crate::tables::CELLS.name()] {
            new.append(LineKind::Declared(table), Vec::new());
        }
        new
    }

    fn next_position(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.lines.len() as u64 + 1 }
    }

    fn append(&mut self, kind: LineKind, changes: Vec<Change>) {
        let position = self.next_position();
        self.lines.push(Line { position, time: self.now, kind, changes });
    }

    /// What is known of a slot now: past both deadlines, nothing.
    pub(crate) fn known(&self, who: Who) -> Option<&Stored> {
        self.stored.get(&who).filter(|stored| self.now < stored.refuse_until)
    }

    pub(crate) fn was_forgotten(&self, who: Who) -> bool {
        self.stored.contains_key(&who) && self.known(who).is_none()
    }

    pub(crate) fn is_replayable(&self, stored: &Stored) -> bool {
        self.now < stored.replay_until
    }

    /// What is answered without the queue; none if the closure has to run.
    pub(crate) fn early(&self, call: &Call) -> Option<Answer> {
        if call.is_undeclared() {
            return Some(Answer::UndeclaredVersion);
        }
        self.admit(call)
    }

    fn admit(&self, call: &Call) -> Option<Answer> {
        if self.denied == Some(call.who.tenant) {
            return Some(Answer::Denied);
        }
        let stored = self.known(call.who)?;
        let (current, accepted): (u32, &[u32]) = match (call.who.is_ping, self.release) {
            (true, _) | (false, 0) => (1, &[]),
            (false, 1) => (2, &[1]),
            (false, _) => (3, &[2]),
        };
        Some(if stored.version != current && !accepted.contains(&stored.version) {
            Answer::Conflict(Some(stored.version))
        } else if stored.body != call.body {
            Answer::Conflict(None)
        } else if self.is_replayable(stored) {
            Answer::Replayed(stored.clone())
        } else {
            Answer::Gone(stored.clone())
        })
    }

    /// The queue has come to it, so many milliseconds after it was submitted.
    pub(crate) fn serve(&mut self, call: &Call, waited: Duration) -> Answer {
        let remaining = call.deadline().map(|deadline| deadline.saturating_sub(waited));
        if remaining == Some(Duration::ZERO) {
            return Answer::Deadline;
        }
        if let Some(answer) = self.admit(call) {
            return answer;
        }
        match call.script.expect(&self.tables, remaining, self.now) {
            Ran::Failed => Answer::Failed,
            Ran::Panicked => Answer::Panicked,
            Ran::Table => Answer::Table,
            Ran::Kept { .. } if call.script.has_undeclared_header() => Answer::UndeclaredHeader,
            Ran::Kept { .. } if call.script.is_huge() && !call.who.is_ping => Answer::ReplyTooLarge,
            Ran::Kept { outcome, reply, draft, .. } => {
                let body_dropped = call.script.is_huge();
                let reply = match (body_dropped, reply.resource()) {
                    (true, Some(id)) => Reply::created().resource_id(id),
                    (_, _) => reply,
                };
                let (kind, replay, refuse) = match call.who.is_ping {
                    true => (1, 10 * SECOND, Duration::ZERO),
                    false => (u32::try_from(self.release).expect("three releases") + 1, 60 * SECOND, 90 * SECOND),
                };
                let ms = |duration: Duration| u64::try_from(duration.as_millis()).expect("minutes");
                let stored = Stored {
                    body: call.body,
                    version: kind,
                    position: self.next_position(),
                    completed: self.now,
                    replay_until: self.now + ms(replay),
                    refuse_until: self.now + ms(replay + refuse),
                    outcome,
                    attempt: call.attempt,
                    reply,
                    body_dropped,
                };
                let mut changes = Vec::new();
                if outcome == Outcome::Completed {
                    changes = draft.changes();
                    self.tables = draft.tables;
                }
                self.append(LineKind::Operation(call.who, stored.clone()), changes);
                self.stored.insert(call.who, stored.clone());
                Answer::Executed(stored)
            }
        }
    }

    pub(crate) fn write(&mut self, script: &Script) -> Wrote {
        match script.expect(&self.tables, None, self.now) {
            Ran::Failed => Wrote::Failed,
            Ran::Panicked => Wrote::Panicked,
            Ran::Table => Wrote::Table,
            Ran::Kept { seen, draft, .. } => {
                let changes = draft.changes();
                if changes.is_empty() {
                    return Wrote::Kept { seen, position: None };
                }
                let position = Some(self.next_position());
                self.append(LineKind::Write, changes);
                self.tables = draft.tables;
                Wrote::Kept { seen, position }
            }
        }
    }

    /// The store is opened again.
    pub(crate) fn reopen(&mut self) {
        self.epoch += 1;
    }
}
