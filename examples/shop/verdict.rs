//! What a run is judged by, and the judgement: a pure function of what was counted. It names no other part of the
//! example, so that `tests/shop.rs` can ask it about runs that never were.

use serde::Serialize;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Ok,
    /// The counterfoil run duplicated or lost something.
    Failed,
    /// It did not, but nothing happened that could have shown it.
    NotExercised,
}

impl Verdict {
    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::NotExercised => 3,
        }
    }
}

/// What was found in the tables. All but the first are faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Audit {
    /// Orders in the table.
    pub(crate) orders_found: u64,
    /// Intents with more than one order, or more than one line in the customer's history.
    pub(crate) duplicates: u64,
    /// Intents whose client was told "created" and that have no such order, or no line in the history.
    pub(crate) lost: u64,
    /// Intents whose client was told "no" and that have an order all the same, and orders that nobody wanted.
    pub(crate) executed_though_refused: u64,
    /// Reused keys whose client was told "created".
    pub(crate) reused_keys_executed: u64,
    /// Items where what was there, less what was ordered, is not what is left.
    pub(crate) stock_off: u64,
    /// Intents whose client got no answer that it could work with.
    pub(crate) unsettled: u64,
    /// What the store's own check of itself found, and what clients could not work with; a few of each.
    pub(crate) remarks: Vec<String>,
}

impl Audit {
    pub(crate) fn is_clean(&self) -> bool {
        let faults = [
            self.duplicates,
            self.lost,
            self.executed_though_refused,
            self.reused_keys_executed,
            self.stock_off,
            self.unsettled,
        ];
        faults.iter().all(|count| *count == 0) && self.remarks.is_empty()
    }
}

/// One kill and what came of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct KillReport {
    /// Answers that clients had heard before it.
    pub(crate) after_answers: u64,
    /// Operations whose clients were waiting for an answer.
    pub(crate) in_flight: usize,
    /// Those of them that had their order in the table when the service was back, before anyone asked again.
    pub(crate) executed_unanswered: usize,
    /// From before the process was started again until it was ready.
    pub(crate) recovery_ms: f64,
    /// As much of it as the store took to open.
    pub(crate) store_open_ms: f64,
}

/// What the judgement looks at in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) name: &'a str,
    pub(crate) audit: &'a Audit,
    pub(crate) kills: &'a [KillReport],
}

/// The verdict on all runs, Counterfoil's first, in each of which so many kills were asked for; and why it is not "ok".
pub(crate) fn judge(kills_asked: u64, runs: &[Evidence<'_>]) -> (Verdict, Vec<String>) {
    let Some((counterfoil, habits)) = runs.split_first() else {
        return (Verdict::NotExercised, vec!["nothing was run".to_owned()]);
    };
    if !counterfoil.audit.is_clean() {
        return (Verdict::Failed, vec!["the counterfoil run did not do every order exactly once".to_owned()]);
    }
    let mut reasons = Vec::new();
    for run in runs {
        let happened = run.kills.len() as u64;
        if happened < kills_asked {
            reasons.push(format!("{}: {happened} of {kills_asked} kills took place", run.name));
        }
        if run.kills.iter().any(|kill| kill.in_flight == 0) {
            reasons.push(format!("{}: a kill had nothing in flight", run.name));
        }
    }
    if counterfoil.kills.iter().all(|kill| kill.executed_unanswered == 0) {
        reasons.push("no unanswered operation was found executed after any kill".to_owned());
    }
    if habits.iter().all(|run| run.audit.duplicates == 0 && run.audit.lost == 0) {
        reasons.push("neither habit showed a duplicate or a loss".to_owned());
    }
    let verdict = if reasons.is_empty() { Verdict::Ok } else { Verdict::NotExercised };
    (verdict, reasons)
}
