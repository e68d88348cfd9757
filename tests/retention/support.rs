//! What these tests share.

use std::time::Duration;

use counterfoil::testing::{Survival, TestBed};
use counterfoil::{
    Error, Failure, Operation, OperationType, Receipt, Reply, Retention, Store, StoreBuilder, Table, Tx,
};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const DAY: Duration = Duration::from_secs(24 * 3600);
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Replayed for an hour, refused for another.
pub(crate) const KEEP: OperationType = OperationType::new("keep").retention(Retention { replay: HOUR, refuse: HOUR });
/// Due at once.
pub(crate) const BRIEF: OperationType =
    OperationType::new("brief").retention(Retention { replay: Duration::ZERO, refuse: Duration::ZERO });

/// One row for each execution.
pub(crate) const RUNS: Table<u64, String> = Table::new("runs");

pub(crate) fn builder() -> StoreBuilder {
    Store::builder().operation(&KEEP).operation(&BRIEF).table(&RUNS)
}

pub(crate) fn bed() -> TestBed {
    bed_of(builder)
}

pub(crate) fn bed_of(build: impl Fn() -> StoreBuilder + 'static) -> TestBed {
    TestBed::new(build).expect("the store opens")
}

pub(crate) fn op(operation_type: &OperationType, tenant: &str, key: impl AsRef<[u8]>) -> Operation {
    operation_type.request(tenant, "alice", key).expect("a slot").json(&1).expect("a request")
}

/// Writes down that it ran and answers with a body.
pub(crate) fn run(label: &str) -> impl FnOnce(&Tx<'_>) -> Result<Reply, Failure> + Send + use<> {
    let label = label.to_owned();
    move |tx| {
        let runs = tx.table(&RUNS)?;
        let next = runs.last()?.map_or(0, |(number, _)| number + 1);
        runs.put(next, &label)?;
        Ok(Reply::created().resource_id(label.clone()).bytes("text/plain", format!("body of {label}")))
    }
}

pub(crate) fn never(_: &Tx<'_>) -> Result<Reply, Failure> {
    panic!("this closure must not run")
}

pub(crate) fn execute(store: &Store, operation_type: &OperationType, key: &str) -> Result<Receipt, Error> {
    store.execute(op(operation_type, "acme", key), run(key))
}

pub(crate) fn runs(store: &Store) -> usize {
    store.read(|view| view.table(&RUNS).expect("declared").len().expect("readable")).try_into().expect("few")
}

/// Steps until nothing is due.
pub(crate) fn settle(store: &Store) {
    while store.step().expect("the store is open") {}
}

/// Both ways in which a store comes back.
pub(crate) fn reopen(bed: &mut TestBed, crash: bool) {
    if crash { bed.crash_and_reopen(&Survival::Nothing) } else { bed.close_and_reopen() }.expect("it opens");
}
