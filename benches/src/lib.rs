//! Counterfoil beside its peers, in one run.
//!
//! In reading order: `workload` is what one operation is; `peer` what is asked of whoever commits it; `ours`, `floor`,
//! `redb_peer` and `sqlite_peer` answer that; `harness` lets them take turns; `summary` makes figures of what it
//! measured and `table` shows them. How to read the output is in the README.

mod args;
mod failure;
mod figures;
mod floor;
mod harness;
mod ours;
mod peer;
mod place;
mod progress;
mod redb_peer;
mod sqlite_peer;
mod summary;
mod table;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;

use args::Args;
use failure::{During as _, Outcome};
use harness::{Plan, World};
use peer::PeerKind;
use place::Place;
use progress::Progress;
use summary::Summary;

/// Checkpoints that a run must contain, so that its worst case has seen what a checkpoint costs.
const CHECKPOINTS_MIN: u64 = 2;

/// Runs the benchmark as the command line says. `scratch` is a directory on a real disk, used unless `--dir` is given.
#[must_use]
pub fn run(scratch: &Path) -> ExitCode {
    let args = Args::parse();
    match measure(&args, scratch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args, scratch: &Path) -> Outcome<()> {
    let place = Place::make(args.dir.as_deref(), scratch)?;
    let plan = Plan::new(args, ours::frame_bytes(place.path(), args.seed)?);
    let mut progress = Progress::new(plan.slices());
    progress.say(&format!("data on {}, removed when done", place.describe()));
    if let Some(warning) = place.warning() {
        progress.say(&warning);
    }

    let world = World::open(&plan, place.path())?;
    let run = world.measure(&plan, &mut progress)?;
    progress.say("counting what every peer stored");
    world.close()?;

    let summary = Summary::new(&plan, &place, &run);
    if args.json {
        let text = serde_json::to_string_pretty(&summary).during("writing the figures as JSON")?;
        println!("{text}");
    } else {
        print!("{}", table::render(&summary));
    }
    check_checkpoints(&plan, &summary)
}

fn check_checkpoints(plan: &Plan, summary: &Summary) -> Outcome<()> {
    if !plan.peers.contains(&PeerKind::Counterfoil) || summary.checkpoints.count >= CHECKPOINTS_MIN {
        return Ok(());
    }
    Err(failure::Failure::new(
        format!(
            "this run contained {} checkpoints of the store and needs {CHECKPOINTS_MIN}, so its worst case says nothing",
            summary.checkpoints.count
        ),
        "measure for longer (--seconds-per-cell, --rounds), or make checkpoints more frequent (--checkpoint-mib)",
    ))
}
