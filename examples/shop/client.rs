//! Clients. Each runs its errands one after the other and asks, with the same key, until it has an answer.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::link::{Attempt, Link};
use crate::plan::{Intent, Plan};

/// How long a client waits for a reply at first; twice as long after each disappointment.
const PATIENCE: Duration = Duration::from_millis(50);
const PATIENCE_MAX: Duration = Duration::from_secs(2);
/// A client that was turned away waits this long.
const TURNED_AWAY: Duration = Duration::from_millis(10);
/// More attempts than that are a fault of the service, not bad luck.
const ATTEMPTS_MAX: u32 = 60;

/// What a client was told in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Created,
    Rejected,
    Conflict,
    /// Something that a client cannot work with.
    Fault(String),
}

/// The end of one intent, as its client knows it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) intent: u64,
    pub(crate) told: Told,
    pub(crate) attempts: u32,
    /// The answer was read from a receipt.
    pub(crate) replayed: bool,
    /// At least one attempt had no answer.
    pub(crate) was_unknown: bool,
}

/// Runs errands until none is left, or the run has failed.
pub(crate) fn run_errands(plan: &Plan, link: &Link, next: &AtomicUsize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while let Some(errand) = plan.errands.get(next.fetch_add(1, Ordering::Relaxed)) {
        let Some(outcome) = settle(link, &errand.order) else { break };
        outcomes.push(outcome);
        link.order_settled();
        if let Some(reuse) = &errand.reuse {
            outcomes.extend(settle(link, reuse));
        }
    }
    link.client_done();
    outcomes
}

/// Asks until there is an answer. None if the run has failed.
fn settle(link: &Link, intent: &Intent) -> Option<Outcome> {
    let mut patience = PATIENCE;
    let mut was_unknown = false;
    for attempt in 1..=ATTEMPTS_MAX {
        match link.attempt(intent, attempt, patience) {
            Attempt::Answered(answer) => {
                let told = match answer.status {
                    201 => Told::Created,
                    409 => Told::Rejected,
                    422 => Told::Conflict,
                    503 => {
                        thread::sleep(TURNED_AWAY);
                        continue;
                    }
                    status => Told::Fault(format!("status {status}: {}", answer.body)),
                };
                let intent = intent.order.intent;
                return Some(Outcome { intent, told, attempts: attempt, replayed: answer.replayed, was_unknown });
            }
            Attempt::Unanswered => {
                was_unknown = true;
                patience = (patience * 2).min(PATIENCE_MAX);
            }
            Attempt::Stopped => return None,
        }
    }
    let told = Told::Fault(format!("no answer to {ATTEMPTS_MAX} attempts"));
    Some(Outcome { intent: intent.order.intent, told, attempts: ATTEMPTS_MAX, replayed: false, was_unknown })
}
