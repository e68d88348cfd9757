//! What comes out of judging, for people and for scripts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::history::{HistoryEvent, Line};
use crate::judge::{evidence::Evidence, follow::Follower};
use crate::rules::{
    ids::{IncarnationId, IntentId, Millis, ReplicaId, RunId},
    knobs::Knobs,
    lamps::Lamp,
    verdict::{IntentFacts, Totals, Verdict},
};

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

/// Two lines over the same time: what the majority counter said, and what was executed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Strips {
    /// The first line's time.
    pub from: Millis,
    /// The last line's time.
    pub to: Millis,
    /// When the count changed: how many complete a durable write, and whether that is a majority.
    pub counter: Vec<(Millis, u8, bool)>,
    /// When something was executed: how often by then, all intents together.
    pub executions: Vec<(Millis, u64)>,
}

/// Among many intents only so many are listed.
const LISTED_MAX: usize = 50;

/// Changes closer together than this are one: a strip has some dozen columns.
const STRIP_STEP_MS: u64 = 20;

/// The first few executions are told apart however close they are: a lesson is about two of them.
const TOLD_APART_MAX: u64 = 8;

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

impl Strips {
    pub(super) fn follow(&mut self, line: &Line, executes: bool) {
        // A judgement is about the run and no part of it.
        if matches!(line.event, HistoryEvent::Judged { .. }) {
            return;
        }
        if self.from == Millis(0) {
            self.from = line.at;
        }
        self.to = self.to.max(line.at);
        if let HistoryEvent::Sampled { counts } = &line.event {
            let writes = counts.iter().find(|counted| counted.lamp == Lamp::Writes);
            let now = writes.map(|counted| (counted.count, counted.majority));
            let before = self.counter.last().map(|(_, count, majority)| (*count, *majority));
            self.counter.extend(now.filter(|_| now != before).map(|(count, majority)| (line.at, count, majority)));
        }
        if executes {
            let before = self.executions.last().map_or(0, |last| last.1);
            match self.executions.last_mut() {
                // In a load nobody can tell them apart on a strip.
                Some(last) if before >= TOLD_APART_MAX && line.at.since(last.0) < STRIP_STEP_MS => last.1 += 1,
                _ => self.executions.push((line.at, before + 1)),
            }
        }
    }
}
