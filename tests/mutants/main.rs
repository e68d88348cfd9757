//! Stores with one safety off. The suites that hunt for losses, doubles and lies must notice each of them; what they do
//! is the same to the letter as in their own tests, where they find nothing.
//!
//! `cargo test --release --all-features --test mutants -- --nocapture` prints who noticed what, and where.
//! `COUNTERFOIL_MUTANT=SyncSkipped` looks at that one only.
#![cfg(feature = "mutants")]

#[path = "../support/crash/mod.rs"]
#[expect(dead_code, reason = "other suites use the rest")]
mod crash;

use counterfoil::testing::Mutant;

use crate::crash::faults::fault_hunt;
use crate::crash::hunt::{Effort, hunt};
use crate::crash::{damage, doubt, harness, scenarios, threads};

/// Each mutant, who notices it (a scenario of the crash suites by its name, or one of the other suites' parts), and what
/// is said of it.
const NOTICED_BY: [(Mutant, &str, &str); 17] = [
    (Mutant::SyncSkipped, "append", "is lost"),
    (Mutant::AnsweredBeforeSync, "append", "is lost"),
    (Mutant::DirectoryNotSynced, "rollover", "is lost"),
    (Mutant::SegmentNamesTrusted, "failed sync, recovery", "does not open"),
    (Mutant::IdentityTrusted, "failed sync, creation", "is lost"),
    (Mutant::FloorIgnored, "failed sync, names", "does not open"),
    (Mutant::DurableBeforeIgnored, LOST_FRAMES, "lost"),
    (Mutant::TailNotCopied, "killed, cache kept", "does not open"),
    (Mutant::AppendedInPlace, TORN_BATCH, "the tables are"),
    (Mutant::EpochNotInChecksum, FRAME_OF_ANOTHER_EPOCH, "is there, but not"),
    (Mutant::PublishedBeforeSync, "failed sync, log", "were seen in the tables"),
    (Mutant::ExpiryRowLeft, CLOCK_IN_DOUBT, "verify found"),
    (Mutant::PoisonIgnored, FAULTS, "nobody noticed"),
    (Mutant::OnePhaseCheckpoint, "failed sync, state", "does not open"),
    (Mutant::FolderPublishes, LONG_CHECKPOINT, "answered"),
    (Mutant::RemovedBeforeCheckpoint, "removal", "does not open"),
    (Mutant::TableErrorsForgotten, "forgotten receipts", "the tables are"),
];

const LOST_FRAMES: &str = "corruption: lost frames";
const TORN_BATCH: &str = "corruption: a torn batch";
const FRAME_OF_ANOTHER_EPOCH: &str = "corruption: another epoch's";
const CLOCK_IN_DOUBT: &str = "a clock in doubt";
const FAULTS: &str = "failing disk: every call";
const LONG_CHECKPOINT: &str = "failing disk: a slow sync";

/// One call in so many, for the mutants and for the store that is none.
const FAULTS_EVERY: u64 = 7;

/// Lets one of the suites look at a store. An error is what it found.
fn look(suite: &str, mutant: Option<Mutant>, effort: Effort) -> Result<(), (String, String)> {
    let limits = || {
        let mut limits = harness::limits();
        limits.mutant = mutant;
        limits
    };
    let found = |fault| ("-".to_owned(), fault);
    match suite {
        TORN_BATCH => damage::torn_batch(&limits()).map_err(found),
        LOST_FRAMES => damage::lost_frames(&limits()).map_err(found),
        FRAME_OF_ANOTHER_EPOCH => damage::frame_of_another_epoch(&limits()).map_err(found),
        LONG_CHECKPOINT => threads::a_checkpoint_that_takes_long(&limits()).map_err(found),
        CLOCK_IN_DOUBT => doubt::a_receipt_that_is_replaced_before_it_is_swept(&limits()).map_err(found),
        FAULTS => fault_hunt(&limits(), FAULTS_EVERY).map(drop).map_err(|violation| found(violation.to_string())),
        name => {
            let named = scenarios::all().into_iter().find(|scenario| scenario.name == name);
            let mut scenario = named.unwrap_or_else(|| panic!("there is no scenario {name}"));
            scenario.workload.limits.mutant = mutant;
            match hunt(&scenario, effort) {
                Ok(_) => Ok(()),
                Err(violation) => {
                    Err((violation.point.to_string(), format!("{}: {}", violation.path, violation.fault)))
                }
            }
        }
    }
}

/// The scenarios that notice a mutant, for whoever has to find out why the one that should does not.
fn others(mutant: Mutant) -> Vec<&'static str> {
    let names = scenarios::all().into_iter().map(|scenario| scenario.name);
    names.filter(|name| look(name, Some(mutant), Effort::percent(4)).is_err()).collect()
}

/// Mutants panic all the time, and the table says what was noticed: only the control's own panics are printed.
fn print_panics_of_the_control_only() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().name().is_some_and(|name| name.starts_with("a_store_that_is_no_mutant")) {
            print(info);
        }
    }));
}

/// In one line, and not too much of it.
fn short(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(110).collect()
}

#[test]
fn every_mutant_is_noticed_by_the_suites() {
    assert_eq!(NOTICED_BY.map(|(mutant, ..)| mutant), Mutant::ALL);
    print_panics_of_the_control_only();
    println!("{:<24}{:<28}{:>6}  what it said", "mutant", "noticed by", "point");
    let (mut survivors, mut misread) = (Vec::new(), Vec::new());
    let only = std::env::var("COUNTERFOIL_MUTANT").ok();
    for (mutant, suite, fragment) in NOTICED_BY {
        if only.as_ref().is_some_and(|only| *only != format!("{mutant:?}")) {
            continue;
        }
        match look(suite, Some(mutant), Effort::percent(100)) {
            Err((point, said)) => {
                println!("{:<24}{suite:<28}{point:>6}  {}", format!("{mutant:?}"), short(&said));
                if !said.contains(fragment) {
                    misread.push(format!("{mutant:?} is noticed, and not by {fragment:?}: {said}"));
                }
            }
            Ok(()) => {
                println!("{:<24}{suite:<28}{:>6}  NOTHING", format!("{mutant:?}"), "-");
                survivors.push(mutant);
            }
        }
    }
    for mutant in &survivors {
        println!("{mutant:?} is noticed by {:?} instead", others(*mutant));
    }
    let message = format!("not noticed by those that should: {survivors:?}");
    if !survivors.is_empty() {
        println!("{message}");
    }
    assert!(survivors.is_empty(), "{message}");
    misread.iter().for_each(|misread| println!("{misread}"));
    assert!(misread.is_empty(), "{}", misread.join("\n"));
}

#[test]
fn a_store_that_is_no_mutant_is_found_sound_by_the_same_suites() {
    let mut suites = NOTICED_BY.map(|(_, suite, _)| suite).to_vec();
    suites.sort_unstable();
    suites.dedup();
    for suite in suites {
        if let Err((point, said)) = look(suite, None, Effort::from_environment()) {
            panic!("{suite}, crash point {point}: {said}");
        }
    }
}
