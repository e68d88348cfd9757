//! `cargo bench -p counterfoil-benches --bench retention`: what forgetting costs those who are served meanwhile.
//!
//! Three questions, each answered side by side in one run, the sides taking turns round by round, so that a machine that
//! is busy for a while is busy for all of them:
//!
//! * latency in the foreground while nothing else happens, while the store sweeps, and while it compacts its state file;
//! * many receipts whose deadlines pass in one millisecond, beside as many whose deadlines are spread over time;
//! * execute, replay and sweep in a store of many receipts, beside one of few.
//!
//! Syncs are the disk's: what counts are the ratios.

mod shop;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use shop::{BRIEF, Failed, KEEP, Latencies, Shop};

/// Threads that execute one operation after the other.
const CLIENTS: u64 = 4;
/// Operations of one client, or of one submitter, before the sides change.
const TURN: u64 = 400;
/// Replays before the sides change.
const REPLAYS: u64 = 20_000;
/// Receipts that one turn of sweeping takes away in each of the two stores.
const SWEPT: u64 = 5_000;
/// What the p99 in the foreground may be, as a multiple of that of a quiet store.
const P99_RATIO_MAX: f64 = 2.0;

/// What forgetting costs those who are served meanwhile.
#[derive(Debug, Parser)]
struct Args {
    /// Where the data goes, and is removed afterwards. On a file system in memory the figures say nothing.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Rounds, in each of which every side has one turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Seconds of one turn in which latency is measured.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Receipts that expire in one millisecond.
    #[arg(long, default_value_t = 100_000)]
    expiring: u64,
    /// Receipts of the large store. The small one has a hundredth of them.
    #[arg(long, default_value_t = 1_000_000)]
    receipts: u64,
    /// Fail if the p99 in the foreground is above twice that of a quiet store.
    #[arg(long)]
    check: bool,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match measure(&args) {
        Ok(within) if within || !args.check => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Result<bool, Failed> {
    let parent = args.dir.as_deref().unwrap_or(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let place = tempfile::Builder::new().prefix("retention-").tempdir_in(parent)?;
    println!("data in {}, removed when done", place.path().display());
    let within = foreground(place.path(), args)?;
    same_millisecond(place.path(), args)?;
    many_beside_few(place.path(), args)?;
    Ok(within)
}

/// Latency in the foreground while nothing else happens, while the store sweeps, and while it compacts.
fn foreground(place: &Path, args: &Args) -> Result<bool, Failed> {
    let shop = Shop::open(&place.join("foreground"))?;
    let turn = Duration::from_secs(args.seconds);
    // What sweeping takes in a turn, with something left at its end.
    let due = 25_000 * args.seconds;
    let (mut quiet, mut sweeping, mut compacting) = <(Latencies, Latencies, Latencies)>::default();
    let (mut swept, mut swept_up, mut compactions) = (0, 0, 0);
    for _ in 0..args.rounds {
        shop.load(&BRIEF, due, false)?;
        shop.settle();
        quiet.extend(clients(&shop, turn)?);

        let before = shop.store.stats().swept;
        shop.let_brief_ones_expire();
        sweeping.extend(clients(&shop, turn)?);
        let stats = shop.store.stats();
        swept += stats.swept - before;
        swept_up += u32::from(stats.sweep_lag.is_zero());
        shop.wait_until_swept();
        shop.settle();

        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let compactor = scope.spawn(|| {
                let mut done = 0;
                while !stop.load(Ordering::SeqCst) {
                    shop.store.compact(|_, _| ())?;
                    done += 1;
                }
                Ok::<u32, Failed>(done)
            });
            let measured = clients(&shop, turn);
            stop.store(true, Ordering::SeqCst);
            compactions += compactor.join().map_err(|_| "the compacting thread panicked")??;
            compacting.extend(measured?);
            Ok::<(), Failed>(())
        })?;
    }
    shop.close()?;

    println!("\nforeground, {CLIENTS} clients, {} rounds of {} s", args.rounds, args.seconds);
    println!(
        "  {:<12}{:>12}{:>10}{:>10}{:>10}{:>10}",
        "meanwhile", "operations", "p50 us", "p99 us", "p99.9 us", "p99 x"
    );
    let mut within = true;
    for (name, latencies) in [("nothing", &quiet), ("sweeping", &sweeping), ("compacting", &compacting)] {
        let ratio = latencies.at(990) / quiet.at(990);
        within &= ratio <= P99_RATIO_MAX;
        println!(
            "  {name:<12}{:>12}{:>10.0}{:>10.0}{:>10.0}{ratio:>10.2}",
            latencies.len(),
            latencies.at(500),
            latencies.at(990),
            latencies.at(999),
        );
    }
    println!("  swept meanwhile: {swept} rows, nothing left before the end in {swept_up} of {} turns", args.rounds);
    println!("  compactions meanwhile: {compactions}");
    println!("  p99 at most {P99_RATIO_MAX} times that of a quiet store: {}", if within { "yes" } else { "NO" });
    Ok(within)
}

/// What each of some clients waited for, with small operations one after the other.
fn clients(shop: &Shop, turn: Duration) -> Result<Latencies, Failed> {
    let ends = Instant::now() + turn;
    thread::scope(|scope| {
        let run = || {
            let mut latencies = Latencies::default();
            while Instant::now() < ends {
                let started = Instant::now();
                shop.execute(&KEEP)?;
                latencies.add(started.elapsed());
            }
            Ok::<Latencies, Failed>(latencies)
        };
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(run)).collect();
        let mut all = Latencies::default();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a client panicked")??);
        }
        Ok(all)
    })
}

/// Many deadlines that pass in one millisecond, beside as many that were a millisecond apart.
fn same_millisecond(place: &Path, args: &Args) -> Result<(), Failed> {
    println!("\n{} receipts expire, one client executes until they are swept", args.expiring);
    println!(
        "  {:<16}{:>10}{:>12}{:>10}{:>10}{:>10}",
        "deadlines", "swept in s", "rows a s", "p50 us", "p99 us", "max us"
    );
    for (name, spread) in [("spread", true), ("one millisecond", false)] {
        let shop = Shop::open(&place.join(name))?;
        shop.load(&BRIEF, args.expiring, spread)?;
        shop.settle();
        let before = shop.store.stats().swept;
        let started = Instant::now();
        shop.let_brief_ones_expire();
        let mut latencies = Latencies::default();
        let took = loop {
            let began = Instant::now();
            shop.execute(&KEEP)?;
            latencies.add(began.elapsed());
            if shop.is_swept() {
                break started.elapsed().as_secs_f64();
            }
        };
        let swept = shop.store.stats().swept - before;
        if swept < args.expiring {
            return Err(format!("{swept} rows were swept of {} receipts", args.expiring).into());
        }
        let rows = u32::try_from(swept).map(f64::from)? / took;
        println!(
            "  {name:<16}{took:>10.2}{rows:>12.0}{:>10.0}{:>10.0}{:>10.0}",
            latencies.at(500),
            latencies.at(990),
            latencies.at(1000)
        );
        shop.close()?;
    }
    Ok(())
}

/// One receipt more, one replay, one receipt less: in a store that has many, and in one that has few.
fn many_beside_few(place: &Path, args: &Args) -> Result<(), Failed> {
    let sizes = [(args.receipts / 100).max(1), args.receipts];
    let mut shops = Vec::new();
    for (name, size) in ["few", "many"].into_iter().zip(sizes) {
        let shop = Shop::open(&place.join(name))?;
        let started = Instant::now();
        shop.load(&KEEP, size, false)?;
        shop.settle();
        println!("\n{size} receipts made in {:.1} s", started.elapsed().as_secs_f64());
        shops.push(shop);
    }
    let mut costs: [[Latencies; 4]; 2] = Default::default();
    for _ in 0..args.rounds {
        for ((shop, size), [alone, batched, replayed, swept]) in shops.iter().zip(sizes).zip(&mut costs) {
            for _ in 0..TURN {
                let started = Instant::now();
                shop.execute(&KEEP)?;
                alone.add(started.elapsed());
            }
            let started = Instant::now();
            shop.load(&BRIEF, SWEPT, false)?;
            batched.add(started.elapsed() / u32::try_from(SWEPT)?);
            let started = Instant::now();
            shop.replay(size, REPLAYS)?;
            replayed.add(started.elapsed() / u32::try_from(REPLAYS)?);
            shop.settle();
            let before = shop.store.stats().swept;
            let started = Instant::now();
            shop.let_brief_ones_expire();
            shop.store.sweep(|_| ())?;
            let rows = u32::try_from(shop.store.stats().swept - before)?;
            swept.add(started.elapsed() / rows.max(1));
        }
    }
    println!(
        "\nmedian of {} rounds, us      {:>12} receipts{:>12} receipts{:>8}",
        args.rounds, sizes[0], sizes[1], "x"
    );
    for (at, name) in
        ["execute, one client", "execute, in batches", "replay", "sweep, each row"].into_iter().enumerate()
    {
        let (few, many) = (costs[0][at].at(500), costs[1][at].at(500));
        println!("  {name:<26}{few:>21.2}{many:>21.2}{:>8.2}", many / few);
    }
    for shop in shops {
        shop.close()?;
    }
    Ok(())
}
