//! Processes with several threads at work are killed at seeded moments, on a real file system, hundreds of times; the
//! next opening is held to every acknowledgement that came over the pipe.
//!
//! What this cannot show: anything about a loss of power. SIGKILL takes the process and leaves the page cache, so that
//! a store that never synced would pass. Power is the power-loss suite's matter, on the simulated disk.
#![cfg(feature = "store")]

mod check;
mod child;
mod process;
#[path = "../support/crash/scale.rs"]
mod scale;
#[path = "../support/table.rs"]
mod table;

use std::collections::BTreeMap;

use check::{Checked, Told};
use process::{Phase, Seeded, run_and_kill};
use table::Table;

/// Kills at the full size.
const KILLS: u64 = 300;
/// Kills in debug builds, unless the size is asked for.
const KILLS_AT_LEAST: u64 = 12;
/// A store is left after so many rounds, so that what is checked after each stays small.
const ROUNDS_OF_A_STORE: u64 = 8;

/// The other process. By itself it does nothing.
#[test]
fn child_works_until_it_is_killed() {
    child::work_until_killed();
}

#[derive(Debug, Default)]
struct Figures {
    kills: u64,
    acknowledged: u64,
    beyond: u64,
    violations: u64,
}

/// What is killed before the store is looked at: the second process finds what the first one left.
const ROUNDS: [&[Phase]; 4] = [
    &[Phase::Working, Phase::Opening],
    &[Phase::Closing, Phase::Opening],
    &[Phase::Working, Phase::Working],
    &[Phase::Closing, Phase::Opening, Phase::Opening],
];

#[test]
fn whenever_a_process_is_killed_everything_that_it_acknowledged_is_there_once() {
    let wanted = scale::scaled(KILLS).max(KILLS_AT_LEAST);
    let mut seeded = Seeded(9);
    let mut figures: BTreeMap<Phase, Figures> = BTreeMap::new();
    let (mut kills, mut child, mut ended, mut violations) = (0, 0, 0, Vec::new());
    let (mut directory, mut told) = (tempfile::tempdir().unwrap(), Told::default());
    let (mut checked, mut phases) = (0, BTreeMap::new());
    for round in 0.. {
        let all_phases = figures.values().filter(|phase| phase.kills > 0).count() == 3;
        if (kills >= wanted && all_phases) || kills >= 4 * wanted {
            break;
        }
        if round % ROUNDS_OF_A_STORE == 0 && round > 0 {
            (directory, told) = (tempfile::tempdir().unwrap(), Told::default());
        }
        for meant in ROUNDS[usize::try_from(round % 4).unwrap()] {
            child += 1;
            let heard = run_and_kill(directory.path(), child, *meant, &mut seeded);
            told.note(child, &heard);
            violations.extend(heard.violations.iter().map(|what| format!("process {child}: {what}")));
            let Some(phase) = heard.killed else {
                ended += 1;
                continue;
            };
            phases.insert(child, phase);
            let of_phase = figures.entry(phase).or_default();
            of_phase.kills += 1;
            of_phase.acknowledged += heard.acknowledged.len() as u64;
            kills += 1;
        }
        match told.check(directory.path()) {
            Ok(Checked { acknowledgements, beyond }) => {
                checked += acknowledgements;
                for child in beyond {
                    // One that had ended had also said what it did.
                    figures.entry(phases[&child]).or_default().beyond += 1;
                }
            }
            Err(fault) => {
                figures.entry(phases.get(&child).copied().unwrap_or(Phase::Closing)).or_default().violations += 1;
                violations.push(format!("round {round}, process {child}: {fault}"));
                // What is wrong once is wrong in every later check as well.
                (directory, told) = (tempfile::tempdir().unwrap(), Told::default());
            }
        }
    }
    let mut table = Table::new(&["killed while", "kills", "acknowledged", "found beyond", "violations"]);
    for (phase, of_phase) in &figures {
        let Figures { kills, acknowledged, beyond, violations } = of_phase;
        table.row(&[&format!("{phase:?}").to_lowercase()], &[*kills, *acknowledged, *beyond, *violations]);
    }
    println!("\nSIGKILL on a real file system, {} threads at work\n\n{table}", child::THREADS);
    println!("{kills} kills, {checked} acknowledgements checked (each after every later kill of its store),");
    println!("{ended} processes had ended before they were killed, {} violations", violations.len());
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(figures.len(), 3, "a phase in which nobody was killed was not tried");
    assert!(kills >= wanted && checked > 0);
}
