//! A request on its way: gap, step, gap, step, answer.

use super::{Core, Replica, Task, tally::Tally};
use crate::rules::{
    action::{Action, Note, RequestName, StepMark},
    barrier::{At, Barrier},
    event::Event,
    ids::{CallId, Endpoint, Millis, OpId},
    message::Reply,
    outcome::{Outcome, Refused, Unknown},
    plan::{self, Needs, Step},
    record::{Receipt, Request, Slot},
};

/// Who waits for the answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The client itself.
    Client(CallId),
    /// A replica that forwarded a client's request.
    Forwarder(CallId),
}

/// One request, at one replica.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) origin: Origin,
    pub(super) request: Request,
    pub(super) slot: Slot,
    pub(super) steps: Vec<Step>,
    /// The step that runs, or comes next.
    pub(super) index: usize,
    /// The gap that it stands in; nothing, while a step runs.
    gap: Option<Barrier>,
    /// The step in which the effect began. Before that a failure is *refused*, after it *unknown*.
    pub(super) effect_in: Option<usize>,
    /// What proves the execution, once there is one.
    pub(super) receipt: Option<Receipt>,
    /// Whether the receipt is that of an earlier execution.
    pub(super) replayed: bool,
    /// Looks or copies that were counted in this step.
    pub(super) tally: Tally,
    /// Until when this step waits for others.
    pub(super) wait_until: Option<Millis>,
    /// The answer, while it waits in the gap before it leaves.
    answer: Option<Outcome>,
}

/// What has become of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// It still runs.
    Waits,
    /// It is done; the next one may begin, after the gap.
    Done,
    /// The request is over.
    Over(Outcome),
}

impl Operation {
    pub(super) fn name(&self) -> RequestName {
        RequestName { key: self.request.key.clone(), attempt: self.request.attempt }
    }

    pub(super) fn current(&self) -> Option<Step> {
        self.steps.get(self.index).copied()
    }

    fn note(&self, step: Step, mark: StepMark) -> Action {
        Action::Note(Note::Step { of: self.name(), step, mark })
    }

    /// A step has failed. `certain` says whether this step certainly did nothing; what earlier steps did stays done.
    pub(super) fn failed(&self, certain: bool, refused: Refused, unknown: Unknown) -> Progress {
        let may_have_happened = match self.effect_in {
            None => false,
            Some(index) if index == self.index => !certain,
            Some(_) => true,
        };
        Progress::Over(if may_have_happened { Outcome::Unknown(unknown) } else { Outcome::Refused(refused) })
    }
}

impl Core {
    /// The receipt of an execution by this replica.
    pub(super) fn receipt(&self, request: &Request) -> Receipt {
        Receipt {
            key: request.key.clone(),
            amount: request.amount,
            attempt: request.attempt,
            by: Endpoint::Replica(self.me),
            position: None,
        }
    }

    /// A record was found: it is the answer, unless it is about something else.
    pub(super) fn found(&self, operation: &Operation, receipt: Receipt) -> Progress {
        let other = self.knobs.compares_amounts() && receipt.amount != operation.request.amount;
        Progress::Over(match other {
            true => Outcome::Mismatch { held: receipt.amount },
            false => Outcome::Done { receipt, replayed: true },
        })
    }
}

impl Replica {
    /// Takes a request in. Nothing is looked at before the first gap is passed.
    pub(super) fn admit(&mut self, origin: Origin, request: Request, out: &mut Vec<Action>) {
        if self.core.disk.is_none() {
            return out.push(origin.answer(Outcome::Refused(Refused::NotReady)));
        }
        let op = self.take_op();
        let operation = Operation {
            origin,
            slot: self.core.knobs.slot(&request),
            steps: plan::steps(&self.core.knobs, self.core.me),
            request,
            index: 0,
            gap: None,
            effect_in: None,
            receipt: None,
            replayed: false,
            tally: Tally::default(),
            wait_until: None,
            answer: None,
        };
        self.stand(op, operation, Barrier::Arrived, out);
    }

    /// Stands in a gap until it is let go.
    fn stand(&mut self, op: OpId, mut operation: Operation, barrier: Barrier, out: &mut Vec<Action>) {
        operation.gap = Some(barrier);
        operation.wait_until = None;
        let RequestName { key, attempt } = operation.name();
        out.push(Action::Reach { op, at: At { barrier, key, attempt } });
        self.tasks.insert(op, Task::Operation(Box::new(operation)));
    }

    /// A gap lets go: the answer leaves, or the next step begins.
    pub(super) fn released(&mut self, now: Millis, op: OpId, barrier: Barrier, out: &mut Vec<Action>) {
        match self.tasks.remove(&op) {
            Some(Task::Operation(mut operation)) if operation.gap == Some(barrier) => {
                operation.gap = None;
                match operation.answer.take() {
                    Some(outcome) => out.push(operation.origin.answer(outcome)),
                    None => self.begin_next(now, op, *operation, out),
                }
            }
            // It stands somewhere else, so this letting go was for another gap.
            Some(task) => drop(self.tasks.insert(op, task)),
            None => {}
        }
    }

    fn begin_next(&mut self, now: Millis, op: OpId, mut operation: Operation, out: &mut Vec<Action>) {
        let Some(step) = operation.current() else { return };
        out.push(operation.note(step, StepMark::Began));
        operation.tally = Tally::default();
        if plan::may_have_effect(&self.core.knobs, step) && operation.effect_in.is_none() {
            operation.effect_in = Some(operation.index);
        }
        let progress = self.core.begin(now, op, &mut operation, step, out);
        self.go_on(op, operation, step, progress, out);
    }

    /// Something has come back for the step that runs.
    pub(super) fn operation_arrived(
        &mut self,
        op: OpId,
        mut operation: Operation,
        event: Event,
        out: &mut Vec<Action>,
    ) {
        let running = operation.current().filter(|_| operation.gap.is_none());
        let Some(step) = running else {
            // In a gap nothing is asked for any more: this is the answer of a straggler.
            self.tasks.insert(op, Task::Operation(Box::new(operation)));
            return;
        };
        let progress = self.core.arrive(&mut operation, step, event, out);
        self.go_on(op, operation, step, progress, out);
    }

    /// The step that runs has waited long enough.
    pub(super) fn operation_waited(&mut self, op: OpId, operation: Operation, out: &mut Vec<Action>) {
        let Some(step) = operation.current() else { return };
        let progress = self.core.waited(&operation, step, out);
        self.go_on(op, operation, step, progress, out);
    }

    fn go_on(&mut self, op: OpId, mut operation: Operation, step: Step, progress: Progress, out: &mut Vec<Action>) {
        match progress {
            Progress::Waits => drop(self.tasks.insert(op, Task::Operation(Box::new(operation)))),
            Progress::Done => {
                // What the provider had done before was found, and not done by this step.
                out.push(match step.needs() == Needs::Provider && operation.replayed {
                    true => Action::Note(Note::Found { of: operation.name(), step }),
                    false => operation.note(step, StepMark::Done),
                });
                let barrier = plan::gap_behind(&operation.steps, operation.index);
                operation.index += 1;
                if operation.index >= operation.steps.len() {
                    let receipt = operation.receipt.take().unwrap_or_else(|| self.core.receipt(&operation.request));
                    operation.answer = Some(Outcome::Done { receipt, replayed: operation.replayed });
                }
                self.stand(op, operation, barrier, out);
            }
            Progress::Over(outcome @ Outcome::Done { .. }) => {
                out.push(Action::Note(Note::Found { of: operation.name(), step }));
                operation.answer = Some(outcome);
                self.stand(op, operation, Barrier::BeforeAnswer, out);
            }
            Progress::Over(outcome) => {
                out.push(operation.note(step, StepMark::Failed));
                out.push(operation.origin.answer(outcome));
            }
        }
    }
}

impl Origin {
    pub(super) fn answer(self, outcome: Outcome) -> Action {
        match self {
            Self::Client(call) => Action::Answer { call, outcome },
            Self::Forwarder(call) => Action::Reply { call, reply: Reply::Answered(outcome) },
        }
    }
}
