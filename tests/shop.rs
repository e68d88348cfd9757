//! The shop example does what the README says of it: kills and retries, and nothing is done twice or lost.

#![cfg(feature = "store")]

// An example is no test target, so its judgement is asked here.
#[path = "../examples/shop/verdict.rs"]
mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use serde_json::Value;
use verdict::{Audit, Evidence, KillReport, Verdict, judge};

#[test]
fn orders_are_made_exactly_once_across_kills_and_the_habits_show_what_that_is_worth() {
    let directory = tempfile::tempdir().unwrap();
    let stores = directory.path().join("stores");
    let output = shop(&["--orders", "300", "--kills", "2", "--seed", "7", "--json", "--dir", stores.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert_eq!(report["verdict"], "ok");

    let counterfoil = &report["runs"][0];
    assert_eq!(counterfoil["habit"], "counterfoil");
    for fault in ["duplicates", "lost", "executed_though_refused", "reused_keys_executed", "stock_off", "unsettled"] {
        assert_eq!(counterfoil["audit"][fault], 0, "{fault}: {text}");
    }
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(number(&counterfoil["created"]) + number(&counterfoil["rejected"]), 300);
    assert_eq!(counterfoil["created"], counterfoil["audit"]["orders_found"]);
    assert_eq!(counterfoil["conflicts"], 6, "one key in fifty is used again");
    assert_eq!(counterfoil["kills"].as_array().unwrap().len(), 2);
    assert!(counterfoil["kills"].as_array().unwrap().iter().all(|kill| number(&kill["executed_unanswered"]) > 0));
    assert!(stores.join("counterfoil").join("IDENTITY").is_file(), "--dir keeps the stores");
}

#[test]
fn what_cannot_be_run_is_refused_with_a_hint_and_status_2() {
    let full = tempfile::tempdir().unwrap();
    std::fs::write(full.path().join("mine"), "precious").unwrap();
    for (args, hint) in [
        (&["--order", "300"][..], "unknown argument \"--order\""),
        (&["--orders"], "--orders needs a value"),
        (&["--orders", "many"], "it must be a whole number"),
        (&["--kills=0"], "it must be from 1 to 100"),
        (&["--orders", "60", "--kills", "5"], "--kills 5 needs at least --orders 250"),
        (&["--json=yes"], "--json takes no value"),
        (&["--dir", full.path().to_str().unwrap()], "it is not empty"),
    ] {
        let output = shop(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(error.contains(hint), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn help_names_every_option_and_exit_status() {
    let output = shop(&["--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for text in ["--orders", "--kills", "--seed", "--dir", "--json", "Exit status", "NOT EXERCISED", "Examples"] {
        assert!(help.contains(text), "{text}");
    }
}

/// Three runs with two kills each, in which everything happened that makes a run worth something.
struct Runs {
    audits: [Audit; 3],
    kills: [Vec<KillReport>; 3],
}

impl Runs {
    fn telling() -> Self {
        let kill = KillReport {
            after_answers: 100,
            in_flight: 16,
            executed_unanswered: 3,
            recovery_ms: 20.0,
            store_open_ms: 18.0,
        };
        let audit = Audit { orders_found: 300, ..Audit::default() };
        let audits = [audit.clone(), Audit { duplicates: 4, ..audit.clone() }, Audit { duplicates: 9, ..audit }];
        Self {
            audits,
            kills: [vec![kill.clone(), kill.clone()], vec![kill.clone(), kill.clone()], vec![kill.clone(), kill]],
        }
    }

    /// The exit status and the reasons, joined.
    fn judged(&self) -> (u8, String) {
        let names = ["counterfoil", "second-transaction", "in-memory"];
        let runs: Vec<Evidence<'_>> = names
            .into_iter()
            .zip(&self.audits)
            .zip(&self.kills)
            .map(|((name, audit), kills)| Evidence { name, audit, kills })
            .collect();
        let (verdict, reasons) = judge(2, &runs);
        assert_eq!(verdict == Verdict::Ok, reasons.is_empty(), "whatever is not ok has a reason: {reasons:?}");
        (verdict.exit_code(), reasons.join("; "))
    }
}

#[test]
fn a_run_in_which_enough_happened_and_nothing_went_wrong_is_ok() {
    assert_eq!(Runs::telling().judged(), (0, String::new()));
}

/// The verdict on telling runs after one thing about them was changed.
fn judged_with(change: impl FnOnce(&mut Runs)) -> (u8, String) {
    let mut runs = Runs::telling();
    change(&mut runs);
    runs.judged()
}

#[test]
fn a_run_that_was_too_harmless_is_not_exercised_and_says_why() {
    let (status, reason) = judged_with(|runs| runs.kills[0].truncate(1));
    assert_eq!((status, &*reason), (3, "counterfoil: 1 of 2 kills took place"));
    let (status, reason) = judged_with(|runs| runs.kills[2][1].in_flight = 0);
    assert_eq!((status, &*reason), (3, "in-memory: a kill had nothing in flight"));
    let (status, reason) = judged_with(|runs| runs.kills[0].iter_mut().for_each(|kill| kill.executed_unanswered = 0));
    assert_eq!((status, &*reason), (3, "no unanswered operation was found executed after any kill"));
    let (status, reason) = judged_with(|runs| runs.audits[1..].iter_mut().for_each(|audit| audit.duplicates = 0));
    assert_eq!((status, &*reason), (3, "neither habit showed a duplicate or a loss"));
    assert_eq!(judge(0, &[]).0.exit_code(), 3, "no run at all proves nothing");
}

#[test]
fn one_kill_that_left_something_and_one_loss_of_one_habit_are_enough() {
    let (status, reason) = judged_with(|runs| {
        runs.kills[0][0].executed_unanswered = 0;
        runs.audits[1].duplicates = 0;
        runs.audits[2] = Audit { lost: 1, ..Audit::default() };
    });
    assert_eq!((status, &*reason), (0, ""));
}

#[test]
fn any_fault_of_the_counterfoil_run_fails_even_if_it_was_too_harmless_as_well() {
    let faults: [fn(&mut Audit); 7] = [
        |audit| audit.duplicates = 1,
        |audit| audit.lost = 1,
        |audit| audit.executed_though_refused = 1,
        |audit| audit.reused_keys_executed = 1,
        |audit| audit.stock_off = 1,
        |audit| audit.unsettled = 1,
        |audit| audit.remarks.push("log: damaged".to_owned()),
    ];
    for (index, fault) in faults.into_iter().enumerate() {
        let (status, reason) = judged_with(|runs| fault(&mut runs.audits[0]));
        assert_eq!((status, &*reason), (1, "the counterfoil run did not do every order exactly once"), "fault {index}");
        let (status, _) = judged_with(|runs| {
            fault(&mut runs.audits[0]);
            runs.kills = Default::default();
        });
        assert_eq!(status, 1, "fault {index} is not covered up by a run that proves nothing");
    }
}

fn shop(args: &[&str]) -> Output {
    Command::new(example()).args(args).output().expect("the example starts")
}

/// The example's binary. `cargo test` has built it; `cargo test --test shop` alone has not, or not lately.
fn example() -> PathBuf {
    static EXAMPLE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    EXAMPLE
        .get_or_init(|| {
            let test = std::env::current_exe().expect("a test has a path");
            let profile = test.parent().and_then(Path::parent).expect("tests are in target/<profile>/deps");
            let binary = profile.join("examples").join(format!("shop{}", std::env::consts::EXE_SUFFIX));
            if modified(&binary) < newest_source() {
                build(profile);
            }
            binary
        })
        .clone()
}

fn build(profile: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    // The profile of this test, so that the dependencies need not be built again.
    let name = if profile.ends_with("release") { "release" } else { "test" };
    cargo.args(["build", "--example", "shop", "--profile", name]);
    cargo.arg("--target-dir").arg(profile.parent().expect("profiles are in target"));
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
    assert!(status.success(), "the example does not build");
}

fn newest_source() -> Option<SystemTime> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shop");
    let entries = std::fs::read_dir(sources).expect("the sources are there");
    entries.flatten().filter_map(|entry| modified(&entry.path())).max()
}

/// None, which is before any time, if there is no such file.
fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
