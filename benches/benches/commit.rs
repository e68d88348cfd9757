//! `cargo bench -p counterfoil-benches --bench commit -- --help`

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    counterfoil_benches::run(Path::new(env!("CARGO_TARGET_TMPDIR")))
}
