//! A store whose clock can be moved, and what is done with it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use counterfoil::{
    Clock, Error, Failure, Operation, OperationType, Reply, Retention, Store, SystemClock, Table, Ticket, TimestampMs,
    Tx,
};

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

const HOUR: Duration = Duration::from_secs(3600);
/// Its receipts outlive the benchmark.
pub(crate) const KEEP: OperationType = OperationType::new("keep")
    .retention(Retention { replay: Duration::from_secs(3650 * 86_400), refuse: Duration::ZERO });
/// Its receipts are let to expire.
pub(crate) const BRIEF: OperationType =
    OperationType::new("brief").retention(Retention { replay: HOUR, refuse: Duration::ZERO });
const ROWS: Table<u64, u64> = Table::new("rows");

/// Submissions under way at once when receipts are made: a few batches, and below what one tenant may have queued.
const UNDER_WAY: usize = 900;
/// Nothing here takes longer than this, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The machine's clocks, moved forward; they may stand still.
#[derive(Clone, Debug, Default)]
struct Clocks {
    real: SystemClock,
    ahead_ms: Arc<AtomicU64>,
    /// Where both stand still, as the monotonic one shows it; 0 if they go.
    stands_at_ms: Arc<AtomicU64>,
}

impl Clocks {
    fn monotonic_ms(&self) -> u64 {
        match self.stands_at_ms.load(Ordering::SeqCst) {
            0 => self.going_ms(),
            stands_at => stands_at,
        }
    }

    fn going_ms(&self) -> u64 {
        millis(self.real.monotonic()) + self.ahead_ms.load(Ordering::SeqCst)
    }

    fn advance(&self, by: Duration) {
        let add = |at: u64| (at != 0).then(|| at + millis(by));
        if self.stands_at_ms.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add).is_err() {
            self.ahead_ms.fetch_add(millis(by), Ordering::SeqCst);
        }
    }

    fn stand_still(&self) {
        self.stands_at_ms.store(self.going_ms().max(1), Ordering::SeqCst);
    }

    /// They go on from where they stood: no clock goes back.
    fn go_on(&self) {
        let stood_at = self.stands_at_ms.load(Ordering::SeqCst);
        self.ahead_ms.fetch_add(stood_at.saturating_sub(self.going_ms()), Ordering::SeqCst);
        self.stands_at_ms.store(0, Ordering::SeqCst);
    }
}

impl Clock for Clocks {
    fn wall(&self) -> TimestampMs {
        // Some day in 2027. Both clocks are one, so they agree.
        TimestampMs(1_800_000_000_000 + self.monotonic_ms())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_ms())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A store with its defaults, and a counter of what was made.
pub(crate) struct Shop {
    pub(crate) store: Store,
    clocks: Clocks,
    made: AtomicU64,
}

impl Shop {
    pub(crate) fn open(directory: &Path) -> Result<Self, Failed> {
        let clocks = Clocks::default();
        let builder = Store::builder().operation(&KEEP).operation(&BRIEF).table(&ROWS).clock(clocks.clone());
        Ok(Self { store: builder.open(directory)?, clocks, made: AtomicU64::new(0) })
    }

    pub(crate) fn close(self) -> Result<(), Failed> {
        Ok(self.store.close()?)
    }

    fn operation(operation_type: &OperationType, number: u64) -> Result<Operation, Error> {
        operation_type.request("tenant", "actor", number.to_string())?.json(&number).map_err(Into::into)
    }

    /// A row among ten thousand changes, so that the table does not grow with the receipts.
    fn closure(number: u64) -> impl FnOnce(&Tx<'_>) -> Result<Reply, Failure> + Send + 'static {
        move |tx| {
            tx.table(&ROWS)?.put(number % 10_000, &number)?;
            Ok(Reply::created().bytes("application/octet-stream", number.to_be_bytes().repeat(12)))
        }
    }

    /// One operation more.
    pub(crate) fn execute(&self, operation_type: &OperationType) -> Result<(), Failed> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let receipt = self.store.execute(Self::operation(operation_type, number)?, Self::closure(number))?;
        if receipt.is_replayed() { Err("a key came twice".into()) } else { Ok(()) }
    }

    /// Many operations more, in batches as large as they get. If `spread`, each is completed about a millisecond later
    /// than the one before; if not, all in the same one.
    pub(crate) fn load(&self, operation_type: &OperationType, count: u64, spread: bool) -> Result<(), Failed> {
        self.clocks.stand_still();
        let mut under_way: VecDeque<Ticket> = VecDeque::with_capacity(UNDER_WAY);
        for _ in 0..count {
            if under_way.len() == UNDER_WAY
                && let Some(ticket) = under_way.pop_front()
            {
                drop(ticket.wait()?);
            }
            if spread {
                self.clocks.advance(Duration::from_millis(1));
            }
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let operation = Self::operation(operation_type, number)?;
            under_way.push_back(self.store.submit(operation, Self::closure(number))?);
        }
        for ticket in under_way {
            drop(ticket.wait()?);
        }
        self.clocks.go_on();
        Ok(())
    }

    /// Asks again for some of the first `size` operations, which are of [`KEEP`], in an order without a pattern.
    pub(crate) fn replay(&self, size: u64, count: u64) -> Result<(), Failed> {
        let mut at = self.made.load(Ordering::Relaxed);
        for _ in 0..count {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let receipt = self.store.execute(Self::operation(&KEEP, (at >> 20) % size)?, |_| never())?;
            if !receipt.is_replayed() {
                return Err("a replay executed".into());
            }
        }
        Ok(())
    }

    pub(crate) fn let_brief_ones_expire(&self) {
        self.clocks.advance(2 * HOUR);
    }

    pub(crate) fn is_swept(&self) -> bool {
        self.store.stats().sweep_lag.is_zero()
    }

    pub(crate) fn wait_until_swept(&self) {
        wait_until(|| self.is_swept());
    }

    /// Waits until the folder has nothing to do.
    pub(crate) fn settle(&self) {
        wait_until(|| self.store.stats().frozen_bytes == 0);
    }
}

fn never() -> Result<Reply, Failure> {
    unreachable!("the operation is done")
}

fn wait_until(is_done: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < PATIENCE, "the store has not finished its work in {} s", PATIENCE.as_secs());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Times, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<f64>);

impl Latencies {
    pub(crate) fn add(&mut self, took: Duration) {
        self.0.push(took.as_secs_f64() * 1e6);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time at or below which so many thousandths are: the nearest rank. 0 of none.
    pub(crate) fn at(&self, thousandths: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * thousandths).div_ceil(1000).max(1);
        sorted.get(rank - 1).copied().unwrap_or(0.0)
    }
}
