//! The command line.

use std::path::PathBuf;

use clap::Parser;

use crate::peer::PeerKind;
use crate::workload::Keys;

/// Durable operations per second and how long one takes: this store, its peers, and the floor under all of them.
///
/// Every figure comes from one run in which the peers take turns, round after round, so that what else the machine does
/// meets all of them. Believe the ratios; microseconds are this machine's and this minute's.
#[derive(Debug, Parser)]
#[command(name = "commit", bin_name = "cargo bench -p counterfoil-benches --bench commit --", after_help = EXAMPLES)]
pub(crate) struct Args {
    /// End within 60 seconds: 3 short rounds, and checkpoints after fewer bytes, so that the run still contains some
    #[arg(long)]
    pub(crate) quick: bool,

    /// How often every peer has its turn in every cell; figures are medians of these [default: 5, quick 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,

    /// How many clients ask at the same time, each waiting for its answer
    #[arg(long, value_delimiter = ',', default_value = "1,8,64", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) clients: Vec<u16>,

    /// In which order keys come
    #[arg(long, value_delimiter = ',', default_value = "ordered,random")]
    pub(crate) keys: Vec<Keys>,

    /// How long one turn lasts [default: 1; quick at most 0.3, less on a slow disk]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) seconds_per_cell: Option<f64>,

    /// Who takes part
    #[arg(long, value_delimiter = ',', default_value = "floor,counterfoil,redb,redb-batched,sqlite,sqlite-batched")]
    pub(crate) peers: Vec<PeerKind>,

    /// MiB of log between two checkpoints of this store [default: the store's own, 32; quick 4]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) checkpoint_mib: Option<u32>,

    /// Where keys and values come from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Put the data below this directory instead of cargo's target directory; it must be on a real disk
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// Print the figures as one JSON document instead of tables; progress still goes to standard error
    #[arg(long)]
    pub(crate) json: bool,

    /// Passed by `cargo bench`; means nothing
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

const EXAMPLES: &str = "\
Examples:
  Everything, a few minutes:
    cargo bench -p counterfoil-benches --bench commit
  A first impression, within a minute:
    cargo bench -p counterfoil-benches --bench commit -- --quick
  One cell, closely:
    cargo bench -p counterfoil-benches --bench commit -- --clients 64 --keys random --rounds 9
  On another disk, this store beside redb batched by hand only:
    cargo bench -p counterfoil-benches --bench commit -- --dir /mnt/nvme --peers counterfoil,redb-batched
  For a script (`ratio peer=floor clients=1 keys=ordered 0.71`, or everything as JSON):
    cargo bench -p counterfoil-benches --bench commit -- --quick | grep ^ratio
    cargo bench -p counterfoil-benches --bench commit -- --quick --json | jq .checkpoints";

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=600.0).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("give seconds between 0.01 and 600, such as 0.5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_cargo_bench_adds_is_accepted() {
        let args = Args::try_parse_from(["commit", "--quick", "--clients", "1,64", "--bench"]).unwrap();
        assert!(args.quick && args.clients == [1, 64]);
    }

    #[test]
    fn a_turn_has_a_sensible_length() {
        assert!(seconds("0.5").is_ok() && seconds("0").is_err() && seconds("nan").is_err() && seconds("x").is_err());
    }
}
