//! A dependency in trouble, and what four ways to retry make of it: `--help` says the rest.
//!
//! In reading order: [`simulation`] runs one policy through one scenario in virtual time, [`report`] and [`plot`] show what
//! came of it.

mod args;
mod plot;
mod report;
mod simulation;

use std::error::Error;
use std::process::ExitCode;

use args::Args;
use simulation::policy::Policy;
use simulation::scenario::Scenario;
use simulation::{Scale, run};

/// Wrong usage, or the plot cannot be written.
const EXIT_USAGE: u8 = 2;

fn main() -> ExitCode {
    let args = match args::parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{}", args::HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("storm: {message}; see --help");
            return ExitCode::from(EXIT_USAGE);
        }
    };
    show(&args).map_or_else(
        |error| {
            eprintln!("storm: {error}");
            ExitCode::from(EXIT_USAGE)
        },
        |()| ExitCode::SUCCESS,
    )
}

fn show(args: &Args) -> Result<(), Box<dyn Error>> {
    let runs = all(args);
    print!("{}", report::table(&runs)?);
    if let Some(path) = &args.svg {
        std::fs::write(path, plot::svg(&runs)?).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("\nplot: {}", path.display());
    }
    Ok(())
}

fn all(args: &Args) -> Vec<report::Run> {
    let scale = Scale { capacity: args.capacity };
    let runs = Scenario::ALL.into_iter().flat_map(|scenario| Policy::ALL.map(|policy| (scenario, policy)));
    runs.map(|(scenario, policy)| report::Run { scenario, policy, trace: run(scenario, policy, args.seed, scale) })
        .collect()
}
