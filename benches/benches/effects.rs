//! `cargo bench -p counterfoil-benches --bench effects [-- DIRECTORY]`: intents dispatched per second, how long it takes
//! from an answer to the finished receipt, and an opening with 100,000 open intents.
//!
//! The provider answers at once, so what is measured is the store: two entries and two syncs for each effect that comes
//! alone, and shared ones for those that come together. Give a directory on a disk; in memory a sync costs nothing.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use counterfoil::effect::{
    Answer, Attempt, Dispatcher, EffectHandler, HandlerLimits, Intent, Provider, RunningDispatcher, Settled, Verdict,
};
use counterfoil::{Decision, LogStart, OperationType, Reply, Store, Tx};

const PAY: OperationType = OperationType::new("pay");
const DISPATCHED: u64 = 5_000;
const RESOLVED: usize = 300;
const OPEN: u64 = 100_000;

struct AtOnce;

impl EffectHandler for AtOnce {
    fn send(&self, _: &Attempt) -> Verdict {
        Verdict::Applied(Answer::new())
    }
}

fn open(path: &Path) -> Result<Store, counterfoil::OpenError> {
    Store::builder()
        .operation(&PAY)
        .provider(Provider::new("bank").deduplicates(Duration::from_secs(24 * 3600)))
        .continuation(&PAY, |_: &Tx<'_>, _: &Settled| Ok(Reply::ok()))
        .open(path)
}

fn start(store: &Store, concurrency: usize) -> Result<RunningDispatcher, Box<dyn Error>> {
    let mut limits = HandlerLimits::default();
    limits.concurrency = concurrency;
    Ok(Dispatcher::new(store).handler("bank", AtOnce, limits)?.start()?)
}

fn plan(tx: &Tx<'_>) -> Result<Decision, counterfoil::Failure> {
    tx.intend(Intent::new("bank", [7; 200]))?;
    Ok(Decision::Accept(Reply::accepted()))
}

/// Accepts operations, many at a time, so that few syncs are paid.
fn accept(store: &Store, count: u64) -> Result<(), Box<dyn Error>> {
    let mut number = 0;
    while number < count {
        let end = count.min(number + 500);
        let tickets: Result<Vec<_>, Box<dyn Error>> = (number..end)
            .map(|number| Ok(store.submit(PAY.request("acme", "alice", number.to_string())?.json(&number)?, plan)?))
            .collect();
        for ticket in tickets? {
            drop(ticket.wait()?);
        }
        number = end;
    }
    Ok(())
}

fn dispatched(path: &Path, concurrency: usize) -> Result<f64, Box<dyn Error>> {
    let store = open(path)?;
    accept(&store, DISPATCHED)?;
    let mut log = store.log(LogStart::Now)?;
    let started = Instant::now();
    let dispatcher = start(&store, concurrency)?;
    // A sending and a resolution for each.
    for _ in 0..2 * DISPATCHED {
        drop(log.next().ok_or("the log has ended")??);
    }
    let took = started.elapsed();
    dispatcher.stop();
    drop(log);
    store.close()?;
    Ok(f64::from(u32::try_from(DISPATCHED)?) / took.as_secs_f64())
}

fn resolved(path: &Path) -> Result<Vec<Duration>, Box<dyn Error>> {
    let store = open(path)?;
    let dispatcher = start(&store, 16)?;
    let mut log = store.log(LogStart::Now)?;
    let mut times = Vec::new();
    for number in 0..RESOLVED {
        drop(store.execute(PAY.request("acme", "alice", number.to_string())?.json(&number)?, plan)?);
        let started = Instant::now();
        for _ in 0..3 {
            drop(log.next().ok_or("the log has ended")??);
        }
        times.push(started.elapsed());
    }
    dispatcher.stop();
    drop(log);
    store.close()?;
    times.sort_unstable();
    Ok(times)
}

/// Opens a store that was left with open intents, and says how long that took and when the first went out.
fn recovered(path: &Path) -> Result<(Duration, Duration), Box<dyn Error>> {
    let store = open(path)?;
    accept(&store, OPEN)?;
    store.close()?;
    let started = Instant::now();
    let store = open(path)?;
    let opened = started.elapsed();
    let mut log = store.log(LogStart::Now)?;
    let dispatcher = start(&store, 16)?;
    drop(log.next().ok_or("the log has ended")??);
    let first = started.elapsed();
    dispatcher.stop();
    drop(log);
    store.close()?;
    Ok((opened, first))
}

fn main() -> Result<(), Box<dyn Error>> {
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).map(PathBuf::from);
    let parent = named.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    std::fs::create_dir_all(&parent)?;
    let directory = tempfile::Builder::new().prefix("effects-").tempdir_in(&parent)?;
    for concurrency in [1, 16, 64] {
        let rate = dispatched(&directory.path().join(format!("d{concurrency}")), concurrency)?;
        println!("{rate:>10.0} intents a second, {concurrency} calls at a time");
    }
    let times = resolved(&directory.path().join("r"))?;
    let (median, late) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!(
        "{:>10} us from accepted to finished, median; {} us at the 99th percentile",
        median.as_micros(),
        late.as_micros()
    );
    let (opened, first) = recovered(&directory.path().join("o"))?;
    println!(
        "{:>10} ms to open with {OPEN} open intents; the first is being sent after {} ms",
        opened.as_millis(),
        first.as_millis()
    );
    Ok(())
}
