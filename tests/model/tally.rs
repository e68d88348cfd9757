//! What was tried and what was answered, counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;

/// Everything that a run must have met at least once, by group.
const KINDS: [(&str, &[&str]); 4] = [
    (
        "step",
        &[
            "execute",
            "batch",
            "write",
            "look up",
            "scan",
            "hold a view",
            "compare held views",
            "guard",
            "time passes",
            "settle",
            "follow the log",
            "deploy",
            "close and reopen",
            "kill and reopen",
            "crash and reopen",
        ],
    ),
    (
        "in a closure",
        &[
            "put",
            "insert new",
            "insert new, refused",
            "remove",
            "remove nothing",
            "get",
            "update",
            "scan forward",
            "scan backward",
            "scan from both ends",
            "count",
            "first and last",
            "key above the limit",
            "value above the limit",
            "rows above the limit",
        ],
    ),
    (
        "fate",
        &[
            "waited for",
            "cancelled while queued",
            "cancelled too late",
            "dropped",
            "queued at close",
            "queued at a crash",
            "behind a plain write",
        ],
    ),
    (
        "answer",
        &[
            "executed",
            "executed, body dropped",
            "rejected",
            "replayed",
            "replayed within its batch",
            "gone",
            "executed again after it was forgotten",
            "conflict",
            "conflict within its batch",
            "conflict of versions",
            "replayed across versions",
            "denied",
            "denied on the writer",
            "failed",
            "panicked",
            "table error ignored",
            "reply above the limit",
            "undeclared header",
            "undeclared version",
            "deadline passed in the queue",
            "cancelled",
            "overloaded",
            "lost with the process",
            "no receipt",
            "a receipt",
            "looked up and gone",
            "looked up and denied",
            "written",
            "nothing to write",
            "write failed",
            "write panicked",
            "write with a table error ignored",
            "entry of the store's own",
            "entry of an operation",
            "entry of a write",
            "view unchanged",
            "view of a closed store",
        ],
    ),
];

/// Counts of one run.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<BTreeMap<(&'static str, &'static str), u64>>);

impl Tally {
    pub(crate) fn count(&self, group: &'static str, kind: &'static str) {
        let known = KINDS.iter().any(|(name, kinds)| *name == group && kinds.contains(&kind));
        assert!(known, "{group}: {kind} is not in the table");
        *self.0.lock().expect("no panic while counting").entry((group, kind)).or_default() += 1;
    }

    pub(crate) fn total(&self, group: &str) -> u64 {
        let counts = self.0.lock().expect("no panic while counting");
        counts.iter().filter(|((name, _), _)| *name == group).map(|(_, count)| count).sum()
    }

    /// Kinds that never occurred.
    pub(crate) fn missing(&self) -> Vec<(&'static str, &'static str)> {
        let counts = self.0.lock().expect("no panic while counting");
        let all = KINDS.iter().flat_map(|(group, kinds)| kinds.iter().map(|kind| (*group, *kind)));
        all.filter(|kind| !counts.contains_key(kind)).collect()
    }

    pub(crate) fn table(&self) -> String {
        let counts = self.0.lock().expect("no panic while counting");
        let mut text = String::new();
        for (group, kinds) in KINDS {
            for kind in kinds {
                let count = counts.get(&(group, *kind)).copied().unwrap_or(0);
                writeln!(text, "{group:<12}  {kind:<40}  {count:>9}").expect("writing to a string");
            }
        }
        text
    }
}
