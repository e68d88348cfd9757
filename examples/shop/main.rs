//! A small order service on the embedded store, killed again and again, and audited: `--help` says the rest.
//!
//! In reading order: [`shop`] is the business, [`habits`] the three ways to keep a receipt, [`service`] the child
//! process; [`plan`] is what the seed decides, [`client`], [`link`] and [`process`] are the parent's side of the
//! network, [`run`] puts them together, and [`audit`], [`verdict`] and [`report`] say what came of it.

mod args;
mod audit;
mod client;
mod habits;
mod link;
mod plan;
mod process;
mod progress;
mod protocol;
mod report;
mod run;
mod service;
mod shop;
mod verdict;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use args::{Command, RunArgs};
use habits::Habit;
use plan::Plan;
use progress::Meter;
use protocol::FromService;
use report::Report;
use verdict::Verdict;

/// Wrong usage, or something went wrong that says nothing about the store.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    match args::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => {
            print!("{}", args::HELP);
            ExitCode::SUCCESS
        }
        Ok(Command::Serve(args)) => service::serve(&args).map_or_else(
            |error| {
                // The parent reports it. If it is gone, nobody minds.
                drop(service::say(&FromService::Failed { message: error.to_string() }));
                ExitCode::FAILURE
            },
            |()| ExitCode::SUCCESS,
        ),
        Ok(Command::Run(args)) => run_all(&args).unwrap_or_else(|error| {
            eprintln!("shop: {error}");
            ExitCode::from(EXIT_USAGE)
        }),
        Err(message) => {
            eprintln!("shop: {message}; see --help");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn run_all(args: &RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let place = Place::make(args.dir.as_deref())?;
    eprintln!(
        "Three runs of {} orders, one for each way to keep receipts; the service is killed {} times in each.\n\
         Stores are in {}.",
        args.orders,
        args.kills,
        place.path().display()
    );
    let outcome = run_in(&place, args);
    // Whatever went wrong, the stores are the evidence.
    let keep = outcome.as_ref().map_or(true, |verdict| *verdict == Verdict::Failed);
    if let Some(kept) = place.leave(keep) {
        eprintln!("The stores are kept in {}.", kept.display());
    }
    Ok(ExitCode::from(outcome?.exit_code()))
}

/// Runs all three, and prints what came of it.
fn run_in(place: &Place, args: &RunArgs) -> Result<Verdict, Box<dyn Error>> {
    let plan = Arc::new(Plan::new(args.seed, args.orders, args.kills));
    let mut meter = Meter::new(args.orders, plan.kills.len());
    let mut runs = Vec::new();
    for habit in Habit::ALL {
        meter.begin(habit);
        let run = run::run(&plan, habit, &place.path().join(habit.name()), &mut meter);
        meter.end();
        runs.push(run.map_err(|error| format!("the {habit} run could not be carried out: {error}"))?);
    }
    let report = Report::new(args, runs);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
        if report.verdict == Verdict::NotExercised {
            eprintln!("NOT EXERCISED: {}", report.reasons.join("; "));
        }
    } else {
        print!("{}", report::text(&report));
    }
    Ok(report.verdict)
}

/// Where the stores are.
#[derive(Debug)]
enum Place {
    Temporary(tempfile::TempDir),
    Given(PathBuf),
}

impl Place {
    fn make(dir: Option<&Path>) -> Result<Self, Box<dyn Error>> {
        let Some(dir) = dir else {
            return Ok(Self::Temporary(tempfile::Builder::new().prefix("counterfoil-shop-").tempdir()?));
        };
        let failed = |error: std::io::Error| format!("--dir {}: {error}", dir.display());
        std::fs::create_dir_all(dir).map_err(failed)?;
        if std::fs::read_dir(dir).map_err(failed)?.next().is_some() {
            return Err(format!("--dir {}: it is not empty; give a new directory", dir.display()).into());
        }
        Ok(Self::Given(dir.to_path_buf()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Temporary(dir) => dir.path(),
            Self::Given(dir) => dir,
        }
    }

    /// Removes what nobody will look at. Returns where the rest is.
    fn leave(self, keep: bool) -> Option<PathBuf> {
        match self {
            Self::Given(dir) => Some(dir),
            Self::Temporary(dir) => keep.then(|| dir.keep()),
        }
    }
}
