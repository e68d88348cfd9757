//! What the store answered beside what the model says.

use counterfoil::{Entry, EntryKind, Error, Execution, Outcome, Position, Receipt, Written};

use super::{Answered, Session, ensure};
use crate::oracle::{Answer, Call, Line, LineKind, Stored, Who, Wrote};
use crate::tally::Tally;

impl Session<'_> {
    pub(super) fn count_answer(&self, call: &Call, answer: &Answer, was_forgotten: bool, from_queue: bool) {
        let count = |kind| self.tally.count("answer", kind);
        match answer {
            Answer::Executed(stored) => {
                count(match stored {
                    Stored { outcome: Outcome::Rejected, .. } => "rejected",
                    Stored { body_dropped: true, .. } => "executed, body dropped",
                    _ => "executed",
                });
                if was_forgotten {
                    count("executed again after it was forgotten");
                }
            }
            Answer::Replayed(stored) => {
                count(if from_queue { "replayed within its batch" } else { "replayed" });
                if !call.who.is_ping && stored.version as usize != self.oracle.release + 1 {
                    count("replayed across versions");
                }
            }
            Answer::Gone(_) => count("gone"),
            Answer::Conflict(Some(_)) => count("conflict of versions"),
            Answer::Conflict(None) => count(if from_queue { "conflict within its batch" } else { "conflict" }),
            Answer::Denied => count(if from_queue { "denied on the writer" } else { "denied" }),
            Answer::Failed => count("failed"),
            Answer::Panicked => count("panicked"),
            Answer::Table => count("table error ignored"),
            Answer::ReplyTooLarge => count("reply above the limit"),
            Answer::UndeclaredHeader => count("undeclared header"),
            Answer::UndeclaredVersion => count("undeclared version"),
            Answer::Deadline => count("deadline passed in the queue"),
            Answer::Cancelled => count("cancelled"),
            Answer::Overloaded => count("overloaded"),
            Answer::Lost => count("lost with the process"),
        }
    }

    pub(super) fn check(&self, who: Who, expected: &Answer, actual: Answered) -> Result<(), String> {
        self.learn()?;
        let own = self.own.borrow();
        let at = |position| own.without(position);
        let holds = match (expected, &actual) {
            (Answer::Executed(stored), Ok(receipt)) => {
                !receipt.is_replayed() && is_of(receipt, at(receipt.position()), who, stored)
            }
            (Answer::Replayed(stored), Ok(receipt)) => {
                receipt.is_replayed() && is_of(receipt, at(receipt.position()), who, stored)
            }
            (Answer::Gone(stored), Err(Error::Gone(gone))) => {
                gone.resource_id.as_deref() == stored.reply.resource()
                    && gone.completed_at.0 == stored.completed
                    && at(gone.position) == stored.position
            }
            (Answer::Conflict(version), Err(Error::Conflict { stored_version })) => version == stored_version,
            (Answer::UndeclaredHeader, Err(Error::Undeclared { what, .. })) => *what == "reply header",
            (Answer::UndeclaredVersion, Err(Error::Undeclared { what, .. })) => *what == "operation type",
            (Answer::ReplyTooLarge, Err(Error::Limit { what, .. })) => *what == "the reply",
            (Answer::Denied, Err(Error::Denied))
            | (Answer::Failed, Err(Error::Failed(_)))
            | (Answer::Panicked, Err(Error::Panicked { .. }))
            | (Answer::Table, Err(Error::Table(_)))
            | (Answer::Deadline, Err(Error::DeadlineExceeded))
            | (Answer::Cancelled, Err(Error::Cancelled))
            | (Answer::Overloaded, Err(Error::Overloaded)) => true,
            (Answer::Lost, Err(error)) => error.execution() != Execution::Executed,
            _ => false,
        };
        ensure!(holds, "{who:?} should be answered {expected:?}, but was {actual:?}");
        Ok(())
    }

    pub(super) fn check_write(
        &self,
        expected: &Wrote,
        actual: Result<Written<Vec<String>>, Error>,
    ) -> Result<(), String> {
        self.learn()?;
        let own = self.own.borrow();
        let (kind, holds) = match (expected, &actual) {
            (Wrote::Kept { seen, position }, Ok(written)) => {
                let kind = if position.is_some() { "written" } else { "nothing to write" };
                (kind, written.value == *seen && written.position.map(|at| own.without(at)) == *position)
            }
            (Wrote::Failed, Err(Error::Failed(_))) => ("write failed", true),
            (Wrote::Panicked, Err(Error::Panicked { .. })) => ("write panicked", true),
            (Wrote::Table, Err(Error::Table(_))) => ("write with a table error ignored", true),
            _ => ("written", false),
        };
        ensure!(holds, "the write should come to {expected:?}, but came to {actual:?}");
        self.tally.count("answer", kind);
        Ok(())
    }
}

/// Every field of a receipt.
fn is_of(receipt: &Receipt, position: Position, who: Who, stored: &Stored) -> bool {
    let meta = receipt.meta();
    *receipt.slot() == who.slot()
        && *receipt.reply() == stored.reply
        && meta.outcome == stored.outcome
        && meta.operation_version == stored.version
        && meta.position == receipt.position()
        && position == stored.position
        && meta.completed_at.0 == stored.completed
        && meta.completed_at_wall.0 == stored.completed
        && meta.replay_until.0 == stored.replay_until
        && meta.refuse_until.0 == stored.refuse_until
        && meta.attempt == stored.attempt
        && meta.trace_id.is_none()
        && meta.resource_id.as_deref() == stored.reply.resource()
        && meta.body_dropped == stored.body_dropped
}

/// One entry of the log.
pub(super) fn entry(entry: &Entry, line: &Line, tally: &Tally) -> Result<(), String> {
    let is_same_kind = match (&entry.kind, &line.kind) {
        (EntryKind::TableDeclared { table, version: 1 }, LineKind::Declared(name)) => table == name,
        (EntryKind::Write, LineKind::Write) => {
            tally.count("answer", "entry of a write");
            true
        }
        (
            EntryKind::Operation { slot, version, outcome, reply, attempt, trace_id: None },
            LineKind::Operation(who, stored),
        ) => {
            tally.count("answer", "entry of an operation");
            *slot == who.slot()
                && *version == stored.version
                && *outcome == stored.outcome
                && *reply == stored.reply
                && *attempt == stored.attempt
        }
        _ => false,
    };
    let changes: Vec<_> = entry.changes.iter().map(|row| (&*row.table, &row.key, &row.value)).collect();
    let expected: Vec<_> = line.changes.iter().map(|(table, key, value)| (*table, key, value)).collect();
    let is_same = is_same_kind
        && entry.position == line.position
        && (entry.time.0, entry.wall.0) == (line.time, line.time)
        && changes == expected;
    ensure!(is_same, "the log has {entry:?}, the model {line:?}");
    Ok(())
}
