//! The one binary of the lab: supervisor, replica, provider, watcher and every command.

use std::process::ExitCode;

fn main() -> ExitCode {
    counterfoil_lab::cli::main()
}
