//! Every call of a workload fails, by every error that means something to it, once and for ever.
//!
//! What this cannot show: a disk that fails two calls of different kinds in one run, or that returns wrong bytes
//! without an error (that is the corruption suite's).

use std::sync::Mutex;

use counterfoil::testing::CallKind;

use crate::crash::check::for_each;
use crate::crash::faults::plan::{Plan, not_tried};
use crate::crash::faults::{Figures, KINDS, Start, Trouble, plans};
use crate::crash::scale::percent;
use crate::table::Table;

const HEAD: [&str; 13] = [
    "begins at",
    "call",
    "error",
    "fails",
    "calls",
    "tried",
    "answered",
    "not executed",
    "unknown",
    "open",
    "close",
    "stopped",
    "violations",
];

/// One line of the table.
#[derive(Debug)]
struct Line {
    plan: Plan,
    /// How many such calls the workload makes, and which of them fail.
    calls: u64,
    tried: Vec<u64>,
    figures: Figures,
    violations: Vec<String>,
}

/// All calls at the full size, else some from every part of the workload.
fn calls_to_try(calls: u64, percent: u64) -> Vec<u64> {
    let tried = (calls * percent.min(100)).div_ceil(100);
    (0..tried).map(|index| 1 + (index * calls + calls / 2) / tried).map(|nth| nth.min(calls)).collect()
}

fn lines(start: &Start, percent: u64, absent: &[(CallKind, &str)]) -> Vec<Line> {
    let mut lines = Vec::new();
    for on in KINDS.into_iter().filter(|on| absent.iter().all(|(kind, _)| kind != on)) {
        let calls = start.calls(on);
        // At the full size every number from 1 to `calls`.
        let tried = if percent >= 100 { (1..=calls).collect() } else { calls_to_try(calls, percent) };
        for plan in plans(on) {
            let (figures, violations) = (Figures::default(), Vec::new());
            lines.push(Line { plan, calls, tried: tried.clone(), figures, violations });
        }
    }
    lines
}

/// The table of one start. What is absent from it is counted and named, and so are cells without a trial.
fn try_all(title: &str, start: &Start, percent: u64, absent: &[(CallKind, &str)]) -> Figures {
    let mut table = Table::new(&HEAD);
    let lines = lines(start, percent, absent);
    let jobs: Vec<_> =
        (0..lines.len()).flat_map(|line| lines[line].tried.iter().map(move |nth| (line, *nth))).collect();
    let plans: Vec<_> = lines.iter().map(|line| line.plan).collect();
    let lines = Mutex::new(lines);
    for_each(jobs.len() as u64, |number| {
        let (line, nth) = jobs[usize::try_from(number - 1).expect("an index")];
        let tried = start.try_one(Trouble::Fault(plans[line], nth));
        let line = &mut lines.lock().expect("no trial panics")[line];
        match tried {
            Ok(one) => line.figures.add(one),
            Err(violation) => line.violations.push(violation.to_string()),
        }
    });
    let lines = lines.into_inner().expect("no trial panics");
    for Line { plan, calls, tried, figures, violations } in &lines {
        let Figures { answered, not_executed, unknown, open, close, stopped, .. } = *figures;
        let counts = [
            *calls,
            tried.len() as u64,
            answered,
            not_executed,
            unknown,
            open,
            close,
            stopped,
            violations.len() as u64,
        ];
        let lasting = if plan.permanent { "for ever" } else { "once" };
        table.row(&[start.name, &format!("{:?}", plan.on), &format!("{:?}", plan.error), lasting], &counts);
    }
    for (on, reason) in absent {
        assert_eq!(start.calls(*on), 0, "there are such calls: {on:?}, {reason}");
        table.note(&[start.name, &format!("{on:?}"), "", ""], reason);
    }
    let violations: Vec<_> = lines.iter().flat_map(|line| &line.violations).collect();
    println!("\n{title}\n\n{table}");
    println!("{} trials, {} different disks looked at, {} violations", jobs.len(), start.distinct(), violations.len());
    assert!(violations.is_empty(), "{violations:#?}");
    let untried: Vec<_> = lines.iter().filter(|line| line.figures.tried == 0).map(|line| line.plan).collect();
    assert!(untried.is_empty(), "nothing was tried of {untried:?}");
    let mut all = Figures::default();
    lines.iter().for_each(|line| all.add(line.figures));
    // With threads, the Nth call need not come.
    let unstruck: Vec<_> = lines.iter().filter(|line| line.figures.struck < line.figures.tried).collect();
    assert!(start.threads || unstruck.is_empty(), "calls that did not fail: {unstruck:#?}");
    all
}

#[test]
fn whichever_call_fails_no_answer_is_false_and_work_goes_on() {
    try_all("The life of a store, with the failing call anywhere in it", &Start::creation(), percent(), &[]);
}

#[test]
fn whichever_call_fails_while_segments_are_prepared_and_removed_no_answer_is_false_and_work_goes_on() {
    let title = "A life in which every fold is a checkpoint and old segments are removed at once";
    // Few calls of some kinds: all of a debug run's share would be of one place.
    let figures = try_all(title, &Start::removal(), percent().max(5), &[]);
    let Figures { struck_removals, struck_preparations, struck_directories, .. } = figures;
    println!(
        "failed in {struck_removals} trials: the removal of a segment; in {struck_preparations}: its creation or \
         rename; in {struck_directories}: the sync of its directory"
    );
    for (what, struck) in
        [("removal", struck_removals), ("preparation", struck_preparations), ("sync of log/", struck_directories)]
    {
        assert!(struck > 0, "no {what} was struck");
    }
}

#[test]
fn whichever_call_of_a_recovery_fails_the_opening_says_so_and_the_next_one_finds_everything() {
    let absent = [
        (CallKind::SetLen, "an opening cuts and extends nothing"),
        (CallKind::Remove, "there is no leftover to remove"),
    ];
    let title = "The opening after a process that died between a batch's write and its sync";
    try_all(title, &Start::recovery(), percent(), &absent);
}

#[test]
fn whichever_call_fails_under_a_store_with_threads_no_answer_is_false_and_work_goes_on() {
    // Which call is the Nth differs from run to run, so these are samples at any size.
    let title = "The same with a writer, a folder and a preparer of segments at work at once";
    try_all(title, &Start::with_threads(), (percent() / 50).max(1), &[]);
}

#[test]
fn what_is_not_tried_has_a_reason() {
    let mut reasons = Vec::new();
    for on in KINDS {
        let tried = plans(on);
        let errors = tried.iter().map(|plan| plan.error).collect::<Vec<_>>();
        for (error, permanent) in errors.into_iter().flat_map(|error| [(error, false), (error, true)]) {
            let plan = Plan { on, error, permanent };
            if !tried.contains(&plan) {
                reasons.push((plan, not_tried(plan).expect("every plan is tried or has a reason")));
            }
        }
    }
    reasons.dedup();
    reasons.iter().for_each(|(plan, reason)| println!("{plan:?} is not tried: {reason}"));
    assert_eq!(reasons.len(), 2, "reads and writes that are interrupted for ever");
}
