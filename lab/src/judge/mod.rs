//! Judging a run, from what is durable and from its history, and from nothing else.
//!
//! How often something was executed is counted in the stores: of living and dead replicas, of disks that were wiped away,
//! and of the provider. Nobody's word is taken for it, least of all a replica's. The history says what was asked for, what
//! clients were told, and whether the planned faults fell where they were planned.
//!
//! One pass over the history, and memory for its intents: a hundred thousand operations take well under a second.

mod durable;
pub mod evidence;
pub mod follow;
pub mod print;
pub mod report;

pub use evidence::{Evidence, StoreEvidence};
pub use report::{Holding, Report};

use std::collections::BTreeMap;
use std::io::BufRead;

use crate::history::{self, HistoryError};
use crate::rules::{
    ids::IntentId,
    verdict::{self, IntentFacts},
};
use follow::Follower;

/// Judges a run: every number is computed from the evidence, whatever the history says that it was.
///
/// # Errors
///
/// [`HistoryError`] if the history does not read. That is no verdict, and must not be taken for one: exit code 2.
pub fn check(history: impl BufRead, evidence: &Evidence) -> Result<Report, HistoryError> {
    let mut follower = Follower::default();
    history::read(history, |_, line| follower.follow(&line))?;
    Ok(conclude(follower, evidence))
}

fn conclude(mut follower: Follower, evidence: &Evidence) -> Report {
    let mut invalid = follower.invalid();
    invalid.extend(evidence.missing(follower.members(), follower.wiped()));
    let mut intents: BTreeMap<IntentId, IntentFacts> = BTreeMap::new();
    for (intent, followed) in follower.intents() {
        intents.insert(intent.clone(), IntentFacts { executions: 0, told: followed.told() });
    }
    let mut strangers = 0_u64;
    for row in evidence.rows() {
        match intents.get_mut(&row.intent.open_as_judge()) {
            Some(facts) => facts.executions += 1,
            None => strangers += 1,
        }
    }
    if strangers > 0 {
        invalid
            .push(format!("{strangers} effects belong to no intent of this history: the evidence is of another run"));
    }
    let totals = verdict::totals(intents.values());
    let mut verdict = verdict::judge(follower.expected(), &intents, follower.missed(), invalid);
    if let Some(claimed) = follower.judged().filter(|claimed| *claimed != totals) {
        verdict = disagreement(verdict, claimed, totals);
    }
    Report::new(&mut follower, evidence, intents, totals, verdict)
}

/// A history that says other numbers than the stores is wrong about what matters most. What cannot be judged stays so.
fn disagreement(verdict: verdict::Verdict, claimed: verdict::Totals, counted: verdict::Totals) -> verdict::Verdict {
    use verdict::Verdict::{AsExpected, Invalid, NotExercised, Violation};
    let line = format!(
        "the history says {} executions and {} duplicates; the stores say {} and {}",
        claimed.executions, claimed.duplicates, counted.executions, counted.duplicates
    );
    match verdict {
        Invalid(why) => Invalid(why),
        Violation(mut why) => {
            why.push(line);
            Violation(why)
        }
        AsExpected | NotExercised(_) => Violation(vec![line]),
    }
}
