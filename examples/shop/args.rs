//! The command line, read by hand: five options are not worth a dependency.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use crate::service::ServiceArgs;

pub(crate) const HELP: &str = "\
A small order service on the embedded store, killed again and again, and audited.

The program starts itself as a child process with a store on disk. 16 clients submit orders to it. At
random moments the child is killed with SIGKILL and started again, 5% of the replies are dropped, and
whoever got no answer asks again with the same key. At the end orders and stock are counted in the
tables, per thing that a client wanted. Then the same is done twice more with habits that people have
instead: a receipt written in a second transaction, and a receipt kept in memory.

Usage: shop [options]        (cargo run --release --example shop -- [options])

Options:
  --orders N   orders in each of the three runs, 50 to 200000        [3000]
  --kills N    kills in each run, 1 to 100, at least 50 orders each  [5]
  --seed N     decides orders, lost replies and moments of the kills [7]
  --dir DIR    keep the three stores here; a new or empty directory  [a temporary one, removed if all is well]
  --json       print one JSON object instead of tables
  --help       print this

Exit status:
  0  the counterfoil run has 0 duplicates and 0 lost
  1  it has not, or its tables do not add up: please report it, with the seed and the store
  2  wrong usage, or the run could not be carried out
  3  NOT EXERCISED: 0 and 0, but the run was too harmless to prove anything

Examples:
  cargo run --release --example shop
  cargo run --release --example shop -- --orders 20000 --kills 20 --seed 42
  cargo run --release --example shop -- --dir ./shop-stores --json
";

/// What was asked for.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Run(RunArgs),
    /// The child's side; not for people.
    Serve(ServiceArgs),
}

/// How to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunArgs {
    pub(crate) orders: u64,
    pub(crate) kills: u64,
    pub(crate) seed: u64,
    pub(crate) dir: Option<PathBuf>,
    pub(crate) json: bool,
}

/// Fewer than that and a kill finds nothing to do.
const ORDERS_PER_KILL_MIN: u64 = 50;

pub(crate) fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let mut args = args.peekable();
    if args.peek().is_some_and(|first| first == "--serve") {
        return parse_serve(args.skip(1)).map(Command::Serve);
    }
    let mut run = RunArgs { orders: 3000, kills: 5, seed: 7, dir: None, json: false };
    while let Some(arg) = args.next() {
        let arg = arg.into_string().map_err(|arg| format!("unexpected argument {arg:?}"))?;
        let (name, attached) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (arg.as_str(), None),
        };
        let mut value = || attached.clone().or_else(|| args.next()).ok_or_else(|| format!("{name} needs a value"));
        match name {
            "--orders" => run.orders = number(name, value()?, 50..=200_000)?,
            "--kills" => run.kills = number(name, value()?, 1..=100)?,
            "--seed" => run.seed = number(name, value()?, 0..=u64::MAX)?,
            "--dir" => run.dir = Some(PathBuf::from(value()?)),
            "--json" | "--help" | "-h" if attached.is_some() => return Err(format!("{name} takes no value")),
            "--json" => run.json = true,
            "--help" | "-h" => return Ok(Command::Help),
            _ => return Err(format!("unknown argument {arg:?}")),
        }
    }
    if run.orders < run.kills * ORDERS_PER_KILL_MIN {
        return Err(format!(
            "--kills {} needs at least --orders {}, so that there is something to kill",
            run.kills,
            run.kills * ORDERS_PER_KILL_MIN
        ));
    }
    Ok(Command::Run(run))
}

fn number(name: &str, value: OsString, allowed: std::ops::RangeInclusive<u64>) -> Result<u64, String> {
    let value = value.to_string_lossy();
    let digits = value.replace('_', "");
    match u64::from_str(&digits) {
        Ok(number) if allowed.contains(&number) => Ok(number),
        Ok(_) => Err(format!("{name} is {value}: it must be from {} to {}", allowed.start(), allowed.end())),
        Err(_) => Err(format!("{name} is {value:?}: it must be a whole number, such as {name} {}", allowed.start())),
    }
}

fn parse_serve(args: impl Iterator<Item = OsString>) -> Result<ServiceArgs, String> {
    let [habit, store, stock]: [OsString; 3] =
        args.collect::<Vec<_>>().try_into().map_err(|_| "--serve is how the program starts itself".to_owned())?;
    let habit = habit.to_string_lossy().parse()?;
    Ok(ServiceArgs { habit, store: store.into(), stock: stock.to_string_lossy().into_owned() })
}
