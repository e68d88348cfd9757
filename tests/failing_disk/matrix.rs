//! Every call of a workload fails, by every error that means something to it, once and for ever.
//!
//! What this cannot show: a disk that fails two calls of different kinds in one run, or that returns wrong bytes
//! without an error (that is the corruption suite's).

use std::sync::Mutex;

use counterfoil::testing::CallKind;

use crate::crash::check::for_each;
use crate::crash::faults::Start;
use crate::crash::faults::plan::{Figures, KINDS, Plan, Trouble, Violation, not_tried, plans};
use crate::crash::scale::percent;
use crate::table::Table;

/// Calls of one plan that are tried: all of them at the full size, some from every part of the workload otherwise.
fn calls_to_try(start: &Start, on: CallKind, percent: u64) -> Vec<u64> {
    let calls = start.calls(on);
    if percent >= 100 {
        return (1..=calls).collect();
    }
    let tried = (calls * percent).div_ceil(100).min(calls);
    (0..tried).map(|index| 1 + (index * calls + calls / 2) / tried).map(|nth| nth.min(calls)).collect()
}

fn try_all(start: &Start, plan: Plan, calls: &[u64]) -> (Figures, Vec<Violation>) {
    let seen = Mutex::new((Figures::default(), Vec::new()));
    for_each(calls.len() as u64, |number| {
        let nth = calls[usize::try_from(number - 1).expect("an index")];
        let tried = start.try_one(Trouble::Fault(plan, nth));
        let (figures, violations) = &mut *seen.lock().unwrap();
        match tried {
            Ok(one) => figures.add(one),
            Err(violation) => violations.push(violation),
        }
    });
    seen.into_inner().unwrap()
}

fn try_kinds(title: &str, starts: &[Start], percent: u64, absent: &[(CallKind, &str)]) {
    let mut table = Table::new(&[
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
    ]);
    let (mut total, mut violations) = (0, Vec::new());
    for start in starts {
        for on in KINDS {
            if let Some((_, reason)) = absent.iter().find(|(kind, _)| *kind == on) {
                assert_eq!(start.calls(on), 0, "there are such calls: {on:?}, {reason}");
                table.note(&[start.name, &format!("{on:?}")], reason);
                continue;
            }
            let calls = calls_to_try(start, on, percent);
            let all = start.calls(on);
            for plan in plans(on) {
                let (figures, found) = try_all(start, plan, &calls);
                let lasting = if plan.permanent { "for ever" } else { "once" };
                let (call, error) = (format!("{on:?}"), format!("{:?}", plan.error));
                let counts = [
                    all,
                    calls.len() as u64,
                    figures.answered,
                    figures.not_executed,
                    figures.unknown,
                    figures.open,
                    figures.close,
                    figures.stopped,
                    found.len() as u64,
                ];
                table.row(&[start.name, &call, &error, lasting], &counts);
                assert!(!calls.is_empty(), "nothing was tried of {plan:?}\n{table}");
                assert_eq!(figures.tried + found.len() as u64, calls.len() as u64);
                total += calls.len();
                violations.extend(found);
            }
        }
    }
    println!("\n{title}\n\n{table}\n{total} trials, {} violations", violations.len());
    assert!(violations.is_empty(), "{}", violations.iter().map(|found| format!("\n{found}")).collect::<String>());
}

#[test]
fn whichever_call_fails_no_answer_is_false_and_work_goes_on() {
    let absent = [];
    try_kinds(
        "The whole life of a store, with the failing call anywhere in it",
        &[Start::creation()],
        percent(),
        &absent,
    );
}

#[test]
fn whichever_call_of_a_recovery_fails_the_opening_says_so_and_the_next_one_finds_everything() {
    let absent =
        [(CallKind::SetLen, "an opening cuts and extends nothing"), (CallKind::Remove, "this one finds no leftover")];
    let title = "The opening after a process that died between a batch's write and its sync";
    try_kinds(title, &[Start::recovery()], percent(), &absent);
}

#[test]
fn whichever_call_fails_under_a_store_with_threads_no_answer_is_false_and_work_goes_on() {
    // Which call is the Nth differs from run to run, so these are samples at any size.
    let title = "The same with a writer, a folder and a preparer of segments at work at once";
    try_kinds(title, &[Start::with_threads()], (percent() / 20).max(1), &[]);
}

#[test]
fn what_is_not_tried_has_a_reason() {
    let all = KINDS.into_iter().flat_map(|on| {
        let errors = plans(on).into_iter().map(|plan| plan.error).collect::<Vec<_>>();
        errors.into_iter().flat_map(move |error| [false, true].map(|permanent| Plan { on, error, permanent }))
    });
    let mut reasons = 0;
    for plan in all.filter(|plan| !plans(plan.on).contains(plan)) {
        let reason = not_tried(plan).expect("every plan is tried or has a reason");
        println!("{plan:?} is not tried: {reason}");
        reasons += 1;
    }
    assert!(reasons > 0, "one is known");
}
