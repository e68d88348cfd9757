//! `storm`: a load in bad weather, in a lab of its own, judged at its end.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::check::{parse_expected, show};
use super::up::{KnobArguments, interrupts};
use super::{Failed, Global, Outcome, say, say_json};
use crate::client::storm::{StormPlan, StormReport};
use crate::judge::{Evidence, Report, check};
use crate::process::run_dir::Runs;
use crate::rules::verdict::Expected;
use crate::supervisor::lab::{Lab, LabOptions};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  counterfoil-lab storm\n  counterfoil-lab storm --placement memory --expect duplicates\n\n\
                        Exit codes: 0 as expected, 1 a violation, 2 not judged."
)]
pub(super) struct StormArguments {
    /// How many replicas
    #[arg(long, short = 'n', default_value_t = 3)]
    replicas: u8,
    /// How many clients
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// How many operations in all
    #[arg(long, default_value_t = 20_000)]
    operations: u32,
    /// For how many seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Who is hit, and how
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often the owner must be hit while requests are open; fewer is NOT EXERCISED [default: one in four seconds]
    #[arg(long)]
    gusts_min: Option<u32>,
    /// What is expected: honest, duplicates, or a number of executions for each intent
    #[arg(long, default_value = "honest", value_parser = parse_expected)]
    expect: Expected,
    #[command(flatten)]
    knobs: KnobArguments,
}

#[derive(Debug, Serialize)]
struct Judged {
    storm: StormReport,
    report: Report,
}

pub(super) async fn run(global: Global, arguments: StormArguments) -> Outcome {
    let mut interrupts = interrupts()?;
    let plan = StormPlan {
        clients: arguments.clients,
        operations: arguments.operations,
        load_ms: arguments.seconds.saturating_mul(1_000),
        gust_ms: 1_000,
        seed: arguments.seed,
    };
    let options = LabOptions {
        runs: Runs::new(global.data.clone()),
        ..LabOptions::new(arguments.replicas, arguments.knobs.knobs())?
    };
    if !options.members.contains(options.knobs.owner) {
        return Err(Failed::new(format!("the owner, {}, is not one of the replicas", options.knobs.owner)));
    }
    let gusts_min = arguments.gusts_min.unwrap_or_else(|| u32::try_from(arguments.seconds / 4).unwrap_or(u32::MAX));
    let lab = Lab::prepare(plan.prepare(options, arguments.expect, gusts_min))?;
    let storm = async {
        lab.bring_up().await?;
        plan.run(&lab).await
    };
    let storm = tokio::select! {
        storm = storm => storm,
        _ = interrupts.wait_for(|count| *count >= 1) => {
            say(lab.stop().await?.to_string());
            return Ok(ExitCode::from(130));
        }
    };
    let stopped = lab.stop_and_collect().await;
    // A storm that could not be run is no verdict.
    let (storm, stopped) = match (storm, stopped) {
        (Ok(storm), Ok(stopped)) => (storm, stopped),
        (Err(error), _) | (_, Err(error)) => return Err(Failed { line: format!("INVALID: {error}"), code: 2 }),
    };
    let report = check(stopped.history.as_slice(), &Evidence::from(stopped.durable))
        .map_err(|error| Failed { line: format!("INVALID: the history does not read: {error}"), code: 2 })?;
    let code = ExitCode::from(report.verdict.exit_code());
    if global.json {
        say_json(&Judged { storm, report })?;
        return Ok(code);
    }
    let load = &storm.load;
    say(format!("{} operations in {} attempts, {} ms", load.operations, load.attempts, load.took_ms));
    say(format!(
        "  {} done, {} refused, {} unknown, {} mismatch",
        load.done, load.refused, load.unknown, load.mismatch
    ));
    say(format!("  {} gusts, {} of them on the owner", storm.gusts, storm.on_owner));
    say(format!(
        "  {} unknown ones were asked again with the same key; {} are left",
        storm.settled, storm.left_unknown
    ));
    show(&report);
    say(stopped.farewell.to_string());
    Ok(code)
}
