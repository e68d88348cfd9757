//! How fast this machine's disk lets a store be.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use counterfoil::{Clock, Failure, Histogram, OperationType, Reply, Store, SystemClock, Table, Tx};

const PUT: OperationType = OperationType::new("bench_put");
const ROWS: Table<u64, Vec<u8>> = Table::raw("bench_rows");

/// Bytes of each row.
const ROW_BYTES: usize = 200;

/// Executes durable operations for some seconds in a directory beside the store's, and removes it.
pub(crate) fn run(directory: &Path, seconds: u64, clients: u32, json: bool) -> Result<bool, String> {
    let parent = if directory.is_dir() { directory } else { Path::new(".") };
    let scratch = parent.join(format!("counterfoil-bench-{}", std::process::id()));
    let measured = measure(&scratch, Duration::from_secs(seconds), clients);
    let removed = std::fs::remove_dir_all(&scratch);
    let (syncs, executed, took) = measured?;
    removed.map_err(|error| format!("{} could not be removed: {error}", scratch.display()))?;
    let per_second = executed as f64 / took.as_secs_f64();
    let micros = |quantile| syncs.quantile(quantile).map_or(0, |took| took.as_micros());
    if json {
        println!(
            "{}",
            serde_json::json!({
                "operations": executed, "clients": clients, "seconds": took.as_secs_f64(),
                "operations_per_second": per_second, "sync_p50_us": micros(0.5), "sync_p99_us": micros(0.99),
            })
        );
    } else {
        println!(
            "{executed} durable operations of {clients} clients in {:.1} s: {per_second:.0} a second",
            took.as_secs_f64()
        );
        println!("a sync of this disk took {} us, one in a hundred {} us or more", micros(0.5), micros(0.99));
    }
    Ok(true)
}

fn measure(scratch: &Path, time: Duration, clients: u32) -> Result<(Histogram, u64, Duration), String> {
    let store = Store::builder().operation(&PUT).table(&ROWS).open(scratch).map_err(|error| error.to_string())?;
    let clock = SystemClock::default();
    let next = AtomicU64::new(0);
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..clients).map(|_| scope.spawn(|| work(&store, &clock, time, &next))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a client panicked".to_owned())))
    });
    let took = clock.monotonic();
    let stats = store.stats();
    let closed = store.close();
    outcome?;
    closed.map_err(|error| error.to_string())?;
    Ok((stats.sync, stats.executed, took))
}

fn work(store: &Store, clock: &SystemClock, time: Duration, next: &AtomicU64) -> Result<(), String> {
    while clock.monotonic() < time {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let request = PUT.request("bench", "bench", number.to_string()).map_err(|fault| fault.to_string())?;
        let operation = request.json(&number).map_err(|fault| fault.to_string())?;
        let put = move |tx: &Tx<'_>| -> Result<Reply, Failure> {
            tx.table(&ROWS)?.put(number, &vec![7; ROW_BYTES])?;
            Ok(Reply::ok())
        };
        drop(store.execute(operation, put).map_err(|error| error.to_string())?);
    }
    Ok(())
}
