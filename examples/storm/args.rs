//! The command line.

use std::path::PathBuf;

pub(crate) const HELP: &str = "\
A dependency in trouble for ten seconds, and what four ways to retry make of it.

One dependency with a limited number of workers and a queue, 70 % of its capacity asked of it, users who wait for one
second. Virtual time: a run of 65 seconds takes less than one. The last policy is the caller of this crate, as it is used
in production, on another clock.

    cargo run --release --example storm -- [options]

    --seed N        decides everything that is left to chance (default 1)
    --capacity N    requests a second that the dependency can serve, 50 to 5000 (default 500)
    --svg PATH      writes a plot
    --help          this text

useful      operations that were answered while their user still waited, of all that were begun
attempts    requests sent for each operation
abandoned   the part of the dependency's work that was done for nobody
late        useful 30 s after the dependency was healthy again, of what it was before
recovers    how long after that it took until 95 % of what it was before was useful again
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) seed: u64,
    pub(crate) capacity: u32,
    pub(crate) svg: Option<PathBuf>,
}

/// `None` asks for help.
pub(crate) fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let mut parsed = Args { seed: 1, capacity: 500, svg: None };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--seed" => parsed.seed = number(&value()?)?,
            "--capacity" => parsed.capacity = number(&value()?)?,
            "--svg" => parsed.svg = Some(value()?.into()),
            _ => return Err(format!("{arg} is not known")),
        }
    }
    if !(50..=5000).contains(&parsed.capacity) {
        return Err("--capacity must be 50 to 5000".to_owned());
    }
    Ok(Some(parsed))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no number that fits"))
}
