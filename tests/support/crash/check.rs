//! What must hold whenever the store is opened again, whatever happened to its disk.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil::testing::SimDisk;
use counterfoil::{Decision, EntryKind, Limits, LogStart, Position, Receipt, Reply, Store};

use crate::crash::harness::{Process, Told, limits};
use crate::crash::model::{Model, Tables};
use crate::crash::script::{Kind, Op, Step, operations};

/// A workload and what it comes to.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) script: Vec<Step>,
    pub(crate) operations: Vec<Op>,
    pub(crate) model: Model,
    pub(crate) limits: Limits,
}

/// Work for a store that came back.
const NEW_WORK: Op = Op { id: 9000, kind: Kind::Create };

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}

impl Workload {
    pub(crate) fn new(script: Vec<Step>) -> Self {
        Self::with_limits(script, limits())
    }

    pub(crate) fn with_limits(script: Vec<Step>, limits: Limits) -> Self {
        let mut operations = operations(&script);
        operations.push(NEW_WORK);
        let model = Model::of(&operations);
        operations.pop();
        Self { script, operations, model, limits }
    }

    /// Opens what is there and checks everything; then tries every operation again and checks once more.
    pub(crate) fn check(&self, disk: &SimDisk, told: &Told) -> Result<(), String> {
        let mut process = Process::with(disk.clone(), self.limits.clone(), Told::default());
        process.open().map_err(|error| format!("it does not open: {error}"))?;
        let entries = self.check_state(process.store(), told)?;
        let report = process.store().verify().map_err(|error| format!("it cannot be checked: {error}"))?;
        ensure!(report.is_clean(), "verify found {:#?}", report.problems);
        self.retry_everything(&mut process, told, entries)?;
        process.settle();
        // The log is applied from its first entry, so that what came back is covered as well.
        process.store().assert_sound();
        process.close().map_err(|error| format!("it does not close: {error}"))
    }

    /// The state is that after some entry, not before the last that was answered. Returns how many entries there are.
    pub(crate) fn check_state(&self, store: &Store, told: &Told) -> Result<usize, String> {
        let tables = Tables::read(store);
        let entries = self.check_receipts(store)?;
        for (op, position) in told.positions() {
            let place = self.model.place(op).ok_or("an operation without an entry was answered")?;
            ensure!(place < entries, "operation {op:?} was answered at {position} and is lost");
        }
        for op in told.not_executed.values() {
            let executed = self.model.place(*op).is_some_and(|place| place < entries);
            ensure!(!executed, "operation {op:?} was executed after the answer that it was not");
        }
        ensure!(told.seen <= entries, "{} entries were seen in the tables and {entries} are left", told.seen);
        ensure!(tables == *self.model.after(entries), "after {entries} entries the tables are {tables:#?}");
        check_shown(store, told)?;
        check_log(store, told)?;
        Ok(entries)
    }

    /// Receipts are there for the first so many entries and for no other: whole or absent, and in order.
    fn check_receipts(&self, store: &Store) -> Result<usize, String> {
        let mut present = Vec::new();
        for entry in &self.model.entries {
            if entry.op.has_receipt() {
                let receipt = store.receipt(&entry.op.slot()).map_err(|error| error.to_string())?;
                if let Some(receipt) = &receipt {
                    let rejected = matches!(entry.decision, Decision::Reject(_));
                    ensure!(
                        receipt.reply() == entry.reply() && receipt.is_rejected() == rejected,
                        "{:?} is answered otherwise than it should be",
                        entry.op
                    );
                }
                present.push(receipt.is_some());
            } else {
                present.push(self.has_written(store, entry.op)?);
            }
        }
        let entries = present.iter().take_while(|there| **there).count();
        let later = present[entries..].iter().position(|there| *there);
        ensure!(later.is_none(), "entry {} is there, but not {entries}", entries + later.unwrap_or(0));
        for op in self.operations.iter().filter(|op| !op.has_frame()) {
            let receipt = store.receipt(&op.slot()).map_err(|error| error.to_string())?;
            ensure!(receipt.is_none(), "{op:?} left a receipt");
        }
        Ok(entries)
    }

    /// Whether a plain write is there: its row is, or the receipt of the operation that moved it away.
    fn has_written(&self, store: &Store, op: Op) -> Result<bool, String> {
        let there = store.read(|view| view.table(&crate::crash::script::ORDERS)?.contains(op.row()));
        if there.map_err(|error| error.to_string())? {
            return Ok(true);
        }
        let moved =
            |reply: &Reply| matches!(reply.body_json::<(u64, Option<String>)>(), Ok((_, Some(row))) if row == op.row());
        let mut movers = self.model.entries.iter().filter(|entry| entry.op.kind == Kind::Move && moved(entry.reply()));
        let mover = movers.next().map(|entry| store.receipt(&entry.op.slot()).map_err(|error| error.to_string()));
        Ok(mover.transpose()?.flatten().is_some())
    }

    /// What is there is replayed, the rest is executed, and in the end everything is there once.
    pub(crate) fn retry_everything(&self, process: &mut Process, told: &Told, entries: usize) -> Result<(), String> {
        let last_shown = told.positions().map(|(_, position)| position).max();
        for op in self.operations.iter().chain([&NEW_WORK]) {
            let place = self.model.place(*op);
            let is_there = place.is_some_and(|place| place < entries);
            if op.has_frame() && !op.has_receipt() {
                if !is_there {
                    process.write(*op).map_err(|stopped| format!("{op:?}: {stopped:?}"))?;
                }
                continue;
            }
            let closure = *op;
            let answer = process.store().execute(op.request(), move |tx| closure.execute(tx));
            let Some(place) = place else { continue };
            let receipt: Receipt = answer.map_err(|error| format!("retrying {op:?}: {error}"))?;
            ensure!(receipt.is_replayed() == is_there, "{op:?} was replayed: {}", receipt.is_replayed());
            ensure!(*receipt.reply() == *self.model.entries[place].reply(), "{op:?} has another reply");
            let is_new = is_there || last_shown.is_none_or(|shown| receipt.position() > shown);
            ensure!(is_new, "{op:?} got the position {}, but {last_shown:?} was shown", receipt.position());
        }
        let tables = Tables::read(process.store());
        ensure!(tables == *self.model.after(self.model.entries.len()), "after retrying the tables are {tables:#?}");
        Ok(())
    }
}

/// What was shown once is shown again.
fn check_shown(store: &Store, told: &Told) -> Result<(), String> {
    for (op, position, reply) in told.receipts.values() {
        let receipt = store.receipt(&op.slot()).map_err(|error| error.to_string())?;
        let same = receipt.is_some_and(|receipt| receipt.position() == *position && receipt.reply() == reply);
        ensure!(same, "{op:?} was answered at {position} with another receipt");
    }
    Ok(())
}

/// Sequences have no gap, epochs never fall, and every position that was shown is that of its own operation, as far as the
/// log is kept.
fn check_log(store: &Store, told: &Told) -> Result<(), String> {
    let floor = store.stats().oldest_sequence;
    let mut log = store.log(LogStart::Oldest).map_err(|error| error.to_string())?;
    let mut last: Option<Position> = None;
    let mut found = BTreeSet::new();
    while let Some(entry) = log.try_next().map_err(|error| error.to_string())? {
        let follows =
            last.is_none_or(|last| entry.position.sequence == last.sequence + 1 && entry.position.epoch >= last.epoch);
        ensure!(follows, "entry {} follows {last:?}", entry.position);
        last = Some(entry.position);
        if let EntryKind::Operation { slot, .. } = entry.kind {
            found.insert((entry.position, Some(slot)));
        } else {
            found.insert((entry.position, None));
        }
    }
    for (op, position) in told.positions() {
        let slot = op.has_slot().then(|| op.slot());
        ensure!(
            position.sequence < floor || found.contains(&(position, slot)),
            "the entry at {position} is no longer that of {op:?}"
        );
    }
    let end = store.stats().position;
    ensure!(last.is_none_or(|last| last == end), "the log ends at {last:?} and the store says {end}");
    let after = store.log(LogStart::After(end)).map(drop);
    after.map_err(|error| format!("following after {end}: {error}"))
}

/// Runs `work` for every number up to `to`, on all cores; the first failure is the test's.
pub(crate) fn for_each(to: u64, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(1);
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(4);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number > to {
                        return;
                    }
                    work(number);
                }
            });
        }
    });
}
