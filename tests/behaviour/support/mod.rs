//! What the behaviour tests share: one operation type, two tables, and stores on a simulated disk.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use counterfoil::testing::{SimDisk, SyncGate, TestBed};
use counterfoil::{
    Error, Failure, Operation, OperationType, Reply, Store, StoreBuilder, Table, Ticket, Tx, VerifyReport,
};

pub(crate) const ADD: OperationType = OperationType::new("add");
pub(crate) const TOTALS: Table<String, u64> = Table::new("totals");
/// One row for each execution, in their order.
pub(crate) const RUNS: Table<u64, String> = Table::new("runs");

pub(crate) fn builder() -> StoreBuilder {
    Store::builder().operation(&ADD).table(&TOTALS).table(&RUNS)
}

/// A store in `manual` mode on a virtual clock.
pub(crate) fn bed() -> TestBed {
    bed_of(builder)
}

pub(crate) fn bed_of(build: impl Fn() -> StoreBuilder + 'static) -> TestBed {
    TestBed::new(build).expect("the store opens")
}

/// A store with its threads, on a disk whose syncs can be held.
pub(crate) fn threaded(disk: &SimDisk) -> Store {
    builder().open_in(disk).expect("the store opens")
}

/// Part of the name of the segment that an opening writes to first, and of none that is being prepared.
pub(crate) const ACTIVE: &str = "-00000000.seg";

/// Holds the syncs of batches, and not those of segments that are prepared meanwhile.
pub(crate) fn hold(disk: &SimDisk) -> SyncGate {
    disk.hold_syncs_of(ACTIVE)
}

/// The operation of a key: always the same content.
pub(crate) fn op(key: &str) -> Operation {
    op_of("acme", key, 1)
}

pub(crate) fn op_of(tenant: &str, key: &str, content: u32) -> Operation {
    typed_op(&ADD, tenant, key, content)
}

pub(crate) fn typed_op(operation_type: &OperationType, tenant: &str, key: &str, content: u32) -> Operation {
    let request = operation_type.request(tenant, "alice", key).expect("a valid slot");
    request.json(&content).expect("a valid request")
}

/// Adds one to a total and answers the new total.
pub(crate) fn add(name: &str) -> impl FnOnce(&Tx<'_>) -> Result<Reply, Failure> + Send + use<> {
    let name = name.to_owned();
    move |tx| {
        let totals = tx.table(&TOTALS)?;
        let total = totals.get(name.as_str())?.unwrap_or(0) + 1;
        totals.put(name.as_str(), &total)?;
        Ok(Reply::ok().json(&total)?)
    }
}

/// Writes down that it ran.
pub(crate) fn note(label: &str) -> impl FnOnce(&Tx<'_>) -> Result<Reply, Failure> + Send + use<> {
    let label = label.to_owned();
    move |tx| {
        let runs = tx.table(&RUNS)?;
        let next = runs.last()?.map_or(0, |(number, _)| number + 1);
        runs.put(next, &label)?;
        Ok(Reply::ok().json(&label)?)
    }
}

/// For a submission whose closure must not run.
pub(crate) fn never(_: &Tx<'_>) -> Result<Reply, Failure> {
    panic!("this closure must not run")
}

pub(crate) fn total(store: &Store, name: &str) -> u64 {
    store.read(|view| view.table(&TOTALS).expect("declared").get(name).expect("readable")).unwrap_or(0)
}

pub(crate) fn runs(store: &Store) -> Vec<String> {
    store.read(|view| {
        let runs = view.table(&RUNS).expect("declared");
        runs.range(..).expect("readable").map(|row| row.expect("decodes").1).collect()
    })
}

/// Steps until nothing is due.
pub(crate) fn settle(store: &Store) {
    while store.step().expect("the store is open") {}
}

/// What a report says is wrong, one problem to a line.
pub(crate) fn problems(report: &VerifyReport) -> String {
    report.problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// The answer of a ticket that was answered already.
pub(crate) fn answer<T: std::fmt::Debug>(ticket: Ticket<T>) -> Result<T, Error> {
    assert!(ticket.is_answered(), "{ticket:?} has no answer yet");
    ticket.wait()
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Awaits without any runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
