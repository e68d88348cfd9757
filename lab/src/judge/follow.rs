//! One pass over a history.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{HistoryEvent, Line, Plan, PlannedFault};
use crate::rules::{
    action::{Note, StepMark},
    ids::{Endpoint, IncarnationId, IntentId, Key, Millis, RunId},
    knobs::Knobs,
    majority::Members,
    outcome::{Outcome, OutcomeKind},
    plan::{Step, may_have_effect},
    verdict::{Expected, Totals},
};
use crate::screen::strips::Strips;

/// What is known so far.
#[derive(Debug, Default)]
pub struct Follower {
    start: Option<Start>,
    intents: BTreeMap<IntentId, Followed>,
    /// Requests of clients that have no answer yet.
    open: u64,
    faults: Vec<Watched>,
    fell_while_open: u32,
    first_request: Option<Millis>,
    last_answer: Option<Millis>,
    wiped: BTreeSet<IncarnationId>,
    invalid: Vec<String>,
    judged: Option<Totals>,
    ended: bool,
    strips: Strips,
}

#[derive(Debug)]
struct Start {
    run: RunId,
    members: Members,
    knobs: Knobs,
    seed: u64,
    plan: Plan,
}

/// One intent.
#[derive(Debug, Default)]
pub struct Followed {
    /// What the client knew after its last attempt.
    after_attempts: Option<Outcome>,
    /// What it said at the end.
    at_end: Option<OutcomeKind>,
    /// How many attempts it took.
    pub attempts: u32,
    /// Under which keys.
    pub keys: BTreeSet<Key>,
}

impl Followed {
    /// What the client was told in the end, if it came to an end.
    pub fn told(&self) -> Option<OutcomeKind> {
        self.at_end.or_else(|| self.after_attempts.as_ref().map(Outcome::kind))
    }
}

/// A planned fault and whether its time has come.
#[derive(Debug)]
struct Watched {
    planned: PlannedFault,
    window: Window,
    fell: Fell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Window {
    NotYet,
    Open,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fell {
    No,
    InPlace,
    TooEarly,
    TooLate,
}

impl Watched {
    fn watch(&mut self, event: &HistoryEvent) {
        if self.window == Window::NotYet && self.planned.after.is(event) {
            self.window = Window::Open;
        } else if self.window == Window::Open && self.planned.before.is(event) {
            self.window = Window::Over;
        }
        if matches!(event, HistoryEvent::FaultFell { fault, .. } if *fault == self.planned.name) {
            // The first time decides, unless a later one is in place.
            self.fell = match (self.fell, self.window) {
                (Fell::InPlace, _) | (_, Window::Open) => Fell::InPlace,
                (_, Window::NotYet) => Fell::TooEarly,
                (_, Window::Over) => Fell::TooLate,
            };
        }
    }

    fn missed(&self) -> Option<String> {
        let name = &self.planned.name;
        match self.fell {
            Fell::InPlace => None,
            Fell::No => Some(format!("{name}: planned, and never took place")),
            Fell::TooEarly => Some(format!("{name}: it fell before the moment that it was planned for")),
            Fell::TooLate => Some(format!("{name}: it fell after the moment that it was planned for")),
        }
    }
}

impl Follower {
    /// Takes the next line in.
    pub fn follow(&mut self, line: &Line) {
        for fault in &mut self.faults {
            fault.watch(&line.event);
        }
        let executes = self.start.as_ref().is_some_and(|start| is_execution(&start.knobs, &line.event));
        self.strips.follow(line, executes);
        match &line.event {
            HistoryEvent::RunStarted { run, members, knobs, seed, plan, .. } => {
                let watched = |planned: &PlannedFault| Watched {
                    planned: planned.clone(),
                    window: Window::NotYet,
                    fell: Fell::No,
                };
                self.faults = plan.faults.iter().map(watched).collect();
                self.faults.iter_mut().for_each(|fault| fault.watch(&line.event));
                let (run, plan) = (run.clone(), plan.clone());
                self.start = Some(Start { run, members: *members, knobs: *knobs, seed: *seed, plan });
            }
            HistoryEvent::IntentStarted { intent, .. } => {
                self.intents.entry(intent.clone()).or_default();
            }
            HistoryEvent::AttemptStarted { intent, key, .. } => {
                self.open += 1;
                self.first_request.get_or_insert(line.at);
                let followed = self.intents.entry(intent.clone()).or_default();
                followed.attempts += 1;
                if !followed.keys.contains(key) {
                    followed.keys.insert(key.clone());
                }
            }
            HistoryEvent::AttemptEnded { intent, outcome, .. } => {
                self.open = self.open.saturating_sub(1);
                self.last_answer = self.last_answer.max(Some(line.at));
                let followed = self.intents.entry(intent.clone()).or_default();
                followed.after_attempts = Some(outcome.clone().after(followed.after_attempts.as_ref()));
            }
            HistoryEvent::IntentEnded { intent, outcome } => {
                self.intents.entry(intent.clone()).or_default().at_end = Some(outcome.kind());
            }
            HistoryEvent::FaultFell { .. } if self.open > 0 => self.fell_while_open += 1,
            HistoryEvent::Wiped { incarnation } => drop(self.wiped.insert(incarnation.clone())),
            HistoryEvent::Starved { gap_ms } => {
                self.invalid.push(format!("nothing was observed for {gap_ms} ms: the machine slept or had no time"));
            }
            HistoryEvent::ProcessEnded { how, wanted: false } => self.invalid.push(fell_over(line.by, how)),
            HistoryEvent::Judged { totals } => self.judged = Some(*totals),
            HistoryEvent::RunEnded => self.ended = true,
            HistoryEvent::Predicted { .. }
            | HistoryEvent::ProcessStarted { .. }
            | HistoryEvent::ProcessEnded { .. }
            | HistoryEvent::Paused
            | HistoryEvent::Resumed
            | HistoryEvent::RuleArmed { .. }
            | HistoryEvent::RuleHit { .. }
            | HistoryEvent::RuleDisarmed { .. }
            | HistoryEvent::FaultFell { .. }
            | HistoryEvent::Sent(_)
            | HistoryEvent::Received(_)
            | HistoryEvent::Held(_)
            | HistoryEvent::LetGo(_)
            | HistoryEvent::Noted(_)
            | HistoryEvent::Sampled { .. } => {}
        }
    }

    /// Why the run cannot be judged.
    pub(super) fn invalid(&self) -> Vec<String> {
        let mut invalid = self.invalid.clone();
        if !self.ended {
            invalid.push("the history has no end: the run was interrupted".to_owned());
        }
        invalid
    }

    /// What was planned and not put to the test.
    pub(super) fn missed(&self) -> Vec<String> {
        let mut missed: Vec<String> = self.faults.iter().filter_map(Watched::missed).collect();
        let Some(Start { plan, .. }) = &self.start else { return missed };
        if self.fell_while_open < plan.faults_min {
            let (fell, min) = (self.fell_while_open, plan.faults_min);
            missed.push(format!("{fell} faults fell while requests were open; {min} were planned"));
        }
        let load = self.first_request.zip(self.last_answer).map_or(0, |(first, last)| last.since(first));
        if load < plan.load_ms_min {
            missed.push(format!("clients were at work for {load} ms; {} were planned", plan.load_ms_min));
        }
        missed
    }

    pub(super) fn expected(&self) -> Expected {
        self.start.as_ref().map_or(Expected::Honest, |start| start.plan.expected)
    }

    pub(super) fn members(&self) -> Option<Members> {
        self.start.as_ref().map(|start| start.members)
    }

    pub(super) fn intents(&self) -> &BTreeMap<IntentId, Followed> {
        &self.intents
    }

    pub(super) fn wiped(&self) -> &BTreeSet<IncarnationId> {
        &self.wiped
    }

    pub(super) fn judged(&self) -> Option<Totals> {
        self.judged
    }

    pub(super) fn take_strips(&mut self) -> Strips {
        std::mem::take(&mut self.strips)
    }

    pub(super) fn name(&self) -> String {
        self.start.as_ref().map_or_else(String::new, |start| start.plan.name.clone())
    }

    pub(super) fn run(&self) -> Option<(RunId, u64, Knobs)> {
        self.start.as_ref().map(|start| (start.run.clone(), start.seed, start.knobs))
    }
}

fn fell_over(who: Endpoint, how: &str) -> String {
    format!("{who} ended, and nobody had asked for it: {how}")
}

/// Whether this says that something was executed just now, as far as the replica knows. For the strips only: the number
/// that counts comes from the stores.
fn is_execution(knobs: &Knobs, event: &HistoryEvent) -> bool {
    let HistoryEvent::Noted(Note::Step { step, mark: StepMark::Done, .. }) = event else { return false };
    *step != Step::Forward && may_have_effect(knobs, *step)
}
