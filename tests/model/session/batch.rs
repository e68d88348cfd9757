//! Several submissions in the queue at once, and what becomes of them.

use std::time::Duration;

use counterfoil::{Error, Ticket};

use super::{Answered, BATCH_MAX, Session, ensure};
use crate::oracle::{Answer, Call, Wrote};
use crate::queue::Queue;
use crate::script::Script;
use crate::steps::{After, Fate, Stop};

/// Something in the model's queue.
enum Waiting<'a> {
    Call(usize),
    Write(&'a Script),
}

/// A submission and what it must be answered, as soon as the model knows.
struct Submitted<'a> {
    call: &'a Call,
    fate: Fate,
    expected: Option<Answer>,
    /// None once it was cancelled, dropped or refused.
    ticket: Option<Ticket>,
}

impl Session<'_> {
    pub(super) fn batch(
        &mut self,
        calls: &[(Call, Fate)],
        revoked: Option<Option<u8>>,
        pause: u16,
        after: &After,
    ) -> Result<(), String> {
        let mut queue = Queue::new();
        let mut all = Vec::new();
        for (call, fate) in calls {
            let submitted = self.submit(call, *fate, all.len(), &mut queue)?;
            all.push(submitted);
        }
        for submitted in &mut all {
            self.treat(submitted)?;
        }
        if let Some(tenant) = revoked {
            self.set_guard(tenant);
        }
        self.advance(u64::from(pause));
        let waited = Duration::from_millis(pause.into());
        match after {
            After::Step => {
                self.serve(&mut queue, &mut all, waited);
                for _ in 0..=calls.len().div_ceil(BATCH_MAX) {
                    self.store().step().map_err(|error| error.to_string())?;
                }
                self.hear(all)?;
            }
            After::Write(script) => self.write_behind(script, &mut queue, &mut all, waited)?,
            After::Reopen(stop) => {
                if matches!(stop, Stop::Close) {
                    self.serve(&mut queue, &mut all, waited);
                }
                for submitted in all.iter_mut().filter(|submitted| submitted.ticket.is_some()) {
                    let kind = if matches!(stop, Stop::Close) { "queued at close" } else { "queued at a crash" };
                    self.tally.count("fate", kind);
                    if submitted.expected.is_none() {
                        submitted.expected = Some(Answer::Lost);
                        self.count_answer(submitted.call, &Answer::Lost, false, true);
                    }
                }
                self.reopen(*stop)?;
                return self.hear(all);
            }
        }
        self.compare_all()
    }

    /// Hands one submission to the store and the model's queue.
    fn submit<'c>(
        &self,
        call: &'c Call,
        fate: Fate,
        number: usize,
        queue: &mut Queue<Waiting<'_>>,
    ) -> Result<Submitted<'c>, String> {
        let mut expected = self.oracle.early(call);
        if expected.is_none() && !queue.push(Some(call.who.tenant), Waiting::Call(number)) {
            expected = Some(Answer::Overloaded);
        }
        if let Some(answer) = &expected {
            self.count_answer(call, answer, false, false);
        }
        let script = call.script.clone();
        let operation = call.operation(self.oracle.release);
        let ticket = match self.store().submit(operation, move |tx| script.run(tx).map(|(_, decision)| decision)) {
            Ok(ticket) => Some(ticket),
            Err(error) => {
                let answer = expected.as_ref().ok_or_else(|| format!("{:?} was refused: {error:?}", call.who))?;
                self.check(call.who, answer, Err(error))?;
                None
            }
        };
        Ok(Submitted { call, fate, expected, ticket })
    }

    /// Cancels or drops a ticket, if that is its fate.
    fn treat(&self, submitted: &mut Submitted<'_>) -> Result<(), String> {
        let is_queued = submitted.expected.is_none();
        let Some(ticket) = submitted.ticket.take() else { return Ok(()) };
        ensure!(ticket.is_answered() != is_queued, "{:?} is queued: {is_queued}", submitted.call.who);
        match submitted.fate {
            Fate::Cancel => match ticket.cancel() {
                Ok(()) => {
                    ensure!(is_queued, "what was answered was cancelled");
                    self.tally.count("fate", "cancelled while queued");
                    submitted.expected = Some(Answer::Cancelled);
                    self.count_answer(submitted.call, &Answer::Cancelled, false, true);
                }
                Err(ticket) => {
                    ensure!(!is_queued, "what was queued could not be cancelled");
                    submitted.ticket = Some(ticket);
                }
            },
            Fate::Drop => {
                self.tally.count("fate", "dropped");
                drop(ticket);
            }
            Fate::Wait | Fate::CancelLate => submitted.ticket = Some(ticket),
        }
        Ok(())
    }

    /// The model serves its queue; gives back what a plain write in it comes to.
    fn serve(&mut self, queue: &mut Queue<Waiting<'_>>, all: &mut [Submitted<'_>], waited: Duration) -> Option<Wrote> {
        let mut wrote = None;
        while let Some(waiting) = queue.pop() {
            match waiting {
                Waiting::Write(script) => {
                    self.count_acts(script);
                    wrote = Some(self.oracle.write(script));
                }
                Waiting::Call(number) => {
                    let Submitted { call, expected, .. } = &mut all[number];
                    if expected.is_some() {
                        continue;
                    }
                    let was_forgotten = self.oracle.was_forgotten(call.who);
                    self.count_acts(&call.script);
                    let answer = self.oracle.serve(call, waited);
                    self.count_answer(call, &answer, was_forgotten, true);
                    *expected = Some(answer);
                }
            }
        }
        debug_assert!(queue.is_empty());
        wrote
    }

    /// A plain write takes its turn in the queue and waits for it.
    fn write_behind<'s>(
        &mut self,
        script: &'s Script,
        queue: &mut Queue<Waiting<'s>>,
        all: &mut Vec<Submitted<'_>>,
        waited: Duration,
    ) -> Result<(), String> {
        self.tally.count("fate", "behind a plain write");
        let is_full = !queue.push(None, Waiting::Write(script));
        let wrote = self.serve(queue, all, waited);
        let closure = script.clone();
        let actual = self.store().write(move |tx| closure.run(tx).map(|(seen, _)| seen));
        match wrote {
            Some(expected) => self.check_write(&expected, actual)?,
            None => ensure!(is_full && matches!(actual, Err(Error::Overloaded)), "a full queue, but {actual:?}"),
        }
        self.settle()?;
        self.hear(std::mem::take(all))
    }

    /// Compares the answers of all tickets that are left.
    fn hear(&self, all: Vec<Submitted<'_>>) -> Result<(), String> {
        for Submitted { call, fate, expected, ticket } in all {
            let (Some(mut ticket), Some(expected)) = (ticket, expected) else { continue };
            ensure!(ticket.is_answered(), "{:?} has no answer", call.who);
            if fate == Fate::CancelLate {
                self.tally.count("fate", "cancelled too late");
                ticket = ticket.cancel().err().ok_or("what was answered was cancelled")?;
            } else {
                self.tally.count("fate", "waited for");
            }
            let actual: Answered = ticket.wait();
            self.check(call.who, &expected, actual)?;
        }
        Ok(())
    }
}
