//! What comes out of judging, for people and for scripts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::judge::{evidence::Evidence, follow::Follower};
use crate::rules::{
    ids::{IncarnationId, IntentId, ReplicaId, RunId},
    knobs::Knobs,
    verdict::{IntentFacts, Totals, Verdict},
};
use crate::screen::strips::Strips;

/// A judged run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What was run.
    pub name: String,
    /// Which run.
    pub run: Option<RunId>,
    /// Where its random choices came from.
    pub seed: u64,
    /// Its switches.
    pub knobs: Option<Knobs>,
    /// What it is worth.
    pub verdict: Verdict,
    /// What was counted.
    pub totals: Totals,
    /// The intents, or the ones that are worth a look if there are very many.
    pub intents: BTreeMap<IntentId, IntentFacts>,
    /// What lies where.
    pub holdings: Vec<Holding>,
    /// How many charges the provider has.
    pub charges: u64,
    /// What the counter said over time, and what was executed.
    pub strips: Strips,
}

/// What lies on one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// Under which name it ran.
    pub replica: ReplicaId,
    /// Which disk.
    pub incarnation: IncarnationId,
    /// Whether it was wiped away.
    pub wiped: bool,
    /// How many effects.
    pub effects: u64,
    /// How many records, of either kind.
    pub records: u64,
}

/// Among many intents only so many are listed.
const LISTED_MAX: usize = 50;

impl Report {
    pub(super) fn new(
        follower: &mut Follower,
        evidence: &Evidence,
        mut intents: BTreeMap<IntentId, IntentFacts>,
        totals: Totals,
        verdict: Verdict,
    ) -> Self {
        if intents.len() > LISTED_MAX {
            let mut left = LISTED_MAX;
            intents.retain(|_, facts| {
                let worth = facts.executions != 1 && left > 0;
                left -= usize::from(worth);
                worth
            });
        }
        let (run, seed, knobs) = match follower.run() {
            Some((run, seed, knobs)) => (Some(run), seed, Some(knobs)),
            None => (None, 0, None),
        };
        let holdings = evidence.stores.iter().map(|store| Holding {
            replica: store.replica,
            incarnation: store.disk.incarnation.clone(),
            wiped: store.wiped,
            effects: count(store.effects.len()),
            records: count(store.records.len() + store.receipts.len()),
        });
        Self {
            name: follower.name(),
            run,
            seed,
            knobs,
            verdict,
            totals,
            intents,
            holdings: holdings.collect(),
            charges: count(evidence.charges.len()),
            strips: follower.take_strips(),
        }
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
