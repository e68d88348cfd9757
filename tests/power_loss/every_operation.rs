//! The table of everything that was tried, and what holds without any crash.

use std::collections::HashSet;

use counterfoil::testing::SimDisk;

use crate::crash::check::Workload;
use crate::crash::harness::Process;
use crate::crash::hunt::{Effort, Figures, ONLY, Scenario, hunt};
use crate::crash::phase::Phase;
use crate::crash::script::script;
use crate::crash::{scale, scenarios};

/// Distinct images of a full run.
const IMAGES_AT_LEAST: usize = 100_000;

#[test]
fn whatever_survives_a_power_loss_at_any_operation_what_was_answered_is_there_and_nothing_is_doubled() {
    let (scenarios, effort, is_whole) = chosen();
    println!("\n{}", header());
    let (mut distinct, mut images) = (HashSet::new(), HashSet::new());
    let mut wrong_cells = Vec::new();
    for scenario in &scenarios {
        let figures = hunt(scenario, effort).unwrap_or_else(|violation| panic!("{violation}"));
        println!("{}", row(scenario, &figures));
        wrong_cells.extend(wrong(scenario, &figures));
        distinct.extend(figures.states.into_keys());
        images.extend(figures.distinct_images);
    }
    println!("{} distinct images, each with what had been told by then:", images.len());
    println!("{} distinct crash states, 0 violations", distinct.len());
    assert!(!is_whole || scale::percent() < 100 || images.len() >= IMAGES_AT_LEAST, "a full run has become smaller");
    assert!(!is_whole || wrong_cells.is_empty(), "{}", wrong_cells.join("\n"));
}

/// All scenarios, or what the environment names.
fn chosen() -> (Vec<Scenario>, Effort, bool) {
    let all = scenarios::all();
    let Ok(only) = std::env::var(ONLY) else { return (all, Effort::from_environment(), true) };
    let (name, point) = only.split_once(':').map_or((only.as_str(), None), |(name, point)| (name, Some(point)));
    let chosen: Vec<_> = all.into_iter().filter(|scenario| scenario.name == name).collect();
    assert!(!chosen.is_empty(), "{ONLY}={only}: no scenario is called {name:?}");
    let point = point.map(|point| point.parse().unwrap_or_else(|error| panic!("{ONLY}={only}: {error}")));
    (chosen, point.map_or_else(Effort::from_environment, Effort::only), false)
}

fn header() -> String {
    let phases: String = Phase::ALL.iter().map(|phase| format!("{phase:>12}")).collect();
    format!("{:<22}{:>9}{:>9}{:>9}{phases}", "scenario", "crashes", "images", "states")
}

fn row(scenario: &Scenario, figures: &Figures) -> String {
    let cell = |phase: &Phase| match figures.of(*phase) {
        0 => format!("{:>12}", "-"),
        states => format!("{states:>12}"),
    };
    let cells: String = Phase::ALL.iter().map(cell).collect();
    let states = figures.states.len();
    format!("{:<22}{:>9}{:>9}{states:>9}{cells}", scenario.name, figures.crashes, figures.images)
}

/// Cells that are empty without a reason, or have a reason to be and are not.
fn wrong(scenario: &Scenario, figures: &Figures) -> Vec<String> {
    let fault = |phase: Phase| match (figures.of(phase), scenario.lacks(phase)) {
        (0, None) => Some(format!("{}: nothing was tried in the phase {phase}", scenario.name)),
        (1.., Some(reason)) => Some(format!("{}: {phase} was not to occur, since {reason}", scenario.name)),
        (0, Some(_)) | (1.., None) => None,
    };
    Phase::ALL.into_iter().filter_map(fault).collect()
}

#[test]
fn a_workload_repeats_to_the_byte() {
    let run = || {
        let disk = SimDisk::new();
        disk.start_trace();
        Process::new(disk.clone()).run(&script()).unwrap();
        (disk.trace(), disk.image_hash())
    };
    let (first, second) = (run(), run());
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
}

#[test]
fn openings_without_work_change_no_position() {
    let workload = Workload::new(script());
    let mut process = Process::new(SimDisk::new());
    process.run(&workload.script).unwrap();
    for _ in 0..3 {
        process.open().unwrap();
        workload.check_state(process.store(), &process.told).unwrap();
        process.close().unwrap();
        process.open().unwrap();
        process.kill_and_open().unwrap();
        workload.check_state(process.store(), &process.told).unwrap();
        process.close().unwrap();
    }
}
