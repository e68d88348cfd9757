//! The operator's tool: what is in a store, why somebody got the answer they got, and what can be done about it.

mod args;
mod bench;
mod local;
mod render;
mod talk;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

/// Everything went well.
const GOOD: u8 = 0;
/// The store was looked at, and something is wrong with it: `verify` found problems, or `get` no row.
const FOUND: u8 = 1;
/// It could not be done, and standard error says why.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let Arguments { store, json, command } = Arguments::parse();
    let outcome = if let Command::Bench { seconds, clients } = command {
        bench::run(&store, seconds, clients, json)
    } else if matches!(command, Command::Init) {
        local::init(&store, json)
    } else {
        talk::ask(&store, &command, json)
    };
    ExitCode::from(match outcome {
        Ok(true) => GOOD,
        Ok(false) => FOUND,
        Err(message) => {
            eprintln!("counterfoil: {message}");
            FAILED
        }
    })
}
