//! Calls that fail without a loss of power: what is answered then, and what is there afterwards.

use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival};

use crate::crash::check::{Workload, for_each};
use crate::crash::harness::{Process, unmanned};
use crate::crash::model::Tables;
use crate::crash::script::{Kind, Op, Step, script};

fn fault(on: CallKind, nth: u64, name: &str, error: FaultError) -> Fault {
    Fault { on, nth, name_contains: Some(name.to_owned()), error, permanent: false }
}

/// Runs the workload with one failing call after the other. After each: the process ends, another one opens the store
/// and answers, and power is lost with nothing un-synced surviving.
fn each_call_fails(on: CallKind, name: &'static str, error: FaultError, evict: bool) {
    let workload = Workload::new(script());
    let count = {
        let disk = SimDisk::new();
        disk.fail(Fault { permanent: true, ..fault(on, u64::MAX, name, error) });
        disk.start_trace();
        Process::new(disk.clone()).run(&workload.script).expect("nothing fails");
        let kind = format!(": {on:?} ");
        disk.trace().iter().filter(|call| call.contains(&kind) && call.contains(name)).count() as u64
    };
    assert!(count > 0, "no {on:?} of {name}");
    // Of kinds of which there are hundreds, some from every part of the workload.
    let every = count.div_ceil(16);
    for_each(count / every, |number| {
        let nth = number * every;
        let disk = SimDisk::new();
        disk.fail(fault(on, nth, name, error));
        let mut process = Process::new(disk.clone());
        let ended = process.run(&workload.script);
        assert_eq!(disk.faults_struck(), 1);
        let context = format!("{on:?} {nth} of {name} fails by {error:?}, {ended:?}");
        process.abandon();
        process.disk = disk.kill();
        if evict {
            process.disk.evict_clean_pages();
        }
        process.open().unwrap_or_else(|error| panic!("{context}, then {error}"));
        process.hear_replays(&workload.operations);
        let crashed = process.disk.crash(&Survival::Nothing);
        workload.check(&crashed, &process.told).unwrap_or_else(|fault| panic!("{context}: {fault}"));
    });
    println!("{count} calls: {on:?} of {name}, {error:?}");
}

#[test]
fn after_a_failed_sync_of_the_log_that_dropped_its_data_nothing_answered_is_lost() {
    each_call_fails(CallKind::Sync, "log/", FaultError::SyncDropsData, false);
    each_call_fails(CallKind::Sync, "log/", FaultError::SyncDropsData, true);
}

#[test]
fn after_a_failed_sync_of_the_log_that_made_everything_durable_nothing_is_doubled() {
    each_call_fails(CallKind::Sync, "log/", FaultError::SyncErrorsButDurable, false);
}

#[test]
fn after_a_failed_sync_of_the_state_file_nothing_is_missing() {
    each_call_fails(CallKind::Sync, "state.redb", FaultError::SyncDropsData, false);
    each_call_fails(CallKind::Sync, "state.redb", FaultError::SyncDropsData, true);
    each_call_fails(CallKind::Sync, "state.redb", FaultError::SyncErrorsButDurable, false);
}

#[test]
fn a_write_that_fails_loses_nothing_answered() {
    each_call_fails(CallKind::Write, "log/", FaultError::EioPartWritten, false);
    each_call_fails(CallKind::Write, "log/", FaultError::ShortWrite, false);
    each_call_fails(CallKind::Write, "log/", FaultError::Eintr, false);
    each_call_fails(CallKind::Write, "state.redb", FaultError::Enospc, false);
    each_call_fails(CallKind::Write, "state.redb", FaultError::EioPartWritten, false);
}

#[test]
fn a_directory_call_that_fails_loses_nothing_answered() {
    each_call_fails(CallKind::Rename, "", FaultError::Eio, false);
    each_call_fails(CallKind::SyncDir, "", FaultError::Eio, false);
    each_call_fails(CallKind::Create, "", FaultError::Enospc, false);
    each_call_fails(CallKind::Remove, "", FaultError::Eio, false);
    each_call_fails(CallKind::SetLen, "", FaultError::Eio, false);
}

#[test]
fn a_disk_that_lies_about_syncs_is_caught_by_the_checker() {
    let workload = Workload::new(script());
    let disk = SimDisk::new();
    let mut process = Process::new(disk.clone());
    process.open().unwrap();
    let (first, rest) = workload.script.split_at(8);
    first.iter().try_for_each(|step| process.step(step)).unwrap();
    disk.fail(Fault { permanent: true, ..fault(CallKind::Sync, 1, "log/", FaultError::SyncLies) });
    rest[..4].iter().try_for_each(|step| process.step(step)).unwrap();
    let fault = workload.check(&disk.crash(&Survival::Nothing), &process.told).unwrap_err();
    assert!(fault.contains("is lost") || fault.contains("is damaged"), "{fault}");
}

/// Ten operations that are answered, then the two that the failing sync is about.
fn ten_and_two() -> (Workload, Vec<Op>, Vec<Op>) {
    let ten: Vec<_> = (1..=10).map(|id| Op { id, kind: Kind::Create }).collect();
    let two: Vec<_> = (11..=12).map(|id| Op { id, kind: Kind::Create }).collect();
    let steps = ten.iter().chain(&two).map(|op| Step::One(*op)).collect();
    (Workload::new(steps), ten, two)
}

#[test]
fn after_a_failed_sync_the_store_answers_what_is_certain_and_runs_nothing() {
    use counterfoil::Error;
    for error in [FaultError::SyncDropsData, FaultError::SyncErrorsButDurable] {
        let (workload, ten, two) = ten_and_two();
        let disk = SimDisk::new();
        let mut process = Process::new(disk.clone());
        process.open().unwrap();
        ten.iter().try_for_each(|op| process.step(&Step::One(*op))).unwrap();
        disk.fail(fault(CallKind::Sync, 1, "log/", error));
        process.batch(&two).unwrap_err();
        assert_eq!(process.told.unknown.len(), 2, "both members may or may not be there");

        let store = process.store().clone();
        let ran = |_: &counterfoil::Tx<'_>| -> Result<counterfoil::Reply, _> { panic!("a closure ran") };
        assert!(matches!(store.execute(two[0].request(), ran), Err(Error::Unknown(_))));
        assert!(matches!(store.receipt(&two[1].slot()), Err(Error::Unknown(_))));
        let other = Op { id: 77, kind: Kind::Create };
        assert!(matches!(store.execute(other.request(), ran), Err(Error::Poisoned(_))));
        let write = store.write(|_| -> Result<(), _> { panic!("a closure ran") });
        assert!(matches!(write, Err(Error::Poisoned(_))), "{write:?}");
        assert!(store.execute(ten[3].request(), ran).unwrap().is_replayed());
        assert_eq!(Tables::read(&store), *workload.model.after(10), "reads go on");
        assert!(store.stats().stopped.is_some());
        assert!(matches!(store.close(), Err(Error::Poisoned(_))));

        process.kill_and_open().unwrap();
        process.hear_replays(&workload.operations);
        assert_eq!(process.told.receipts.len(), 12, "the cache still has the failed batch, or the disk has it");
        workload.check(&process.disk.crash(&Survival::Nothing), &process.told).unwrap();
    }
}

#[test]
fn a_close_whose_checkpoint_fails_says_so_and_loses_nothing() {
    for threads in [false, true] {
        let (workload, ten, two) = ten_and_two();
        let mut process = Process::new(SimDisk::new());
        process.open().unwrap();
        ten.iter().chain(&two).try_for_each(|op| process.step(&Step::One(*op))).unwrap();
        if threads {
            process.close().unwrap();
            process.store = Some(unmanned(&process.clock).open_in(&process.disk).unwrap());
        }
        process.disk.fail(fault(CallKind::Sync, 1, "state.redb", FaultError::SyncDropsData));
        let closed = process.close();
        assert!(matches!(closed, Err(counterfoil::Error::Poisoned(_))), "threads: {threads}, {closed:?}");
        workload.check(&process.disk.crash(&Survival::Nothing), &process.told).unwrap();
    }
}

#[test]
fn a_fold_that_fails_stops_the_store_after_what_was_synced_was_answered_and_reopening_cures_it() {
    for error in [FaultError::Eio, FaultError::Enospc] {
        let (workload, ten, two) = ten_and_two();
        let mut process = Process::new(SimDisk::new());
        process.limits.fold_bytes = 1;
        // Every fold is a checkpoint, which writes.
        process.limits.checkpoint_log_bytes = 0;
        process.open().unwrap();
        process.settle();
        process.disk.fail(Fault { permanent: true, ..fault(CallKind::Write, 1, "state.redb", error) });
        process.step(&Step::One(ten[0])).unwrap();
        process.settle();
        let stopped = process.store().stats().stopped;
        assert!(stopped.is_some_and(|cause| cause.contains("the state file")), "{error:?}");
        process.step(&Step::One(ten[1])).unwrap_err();
        process.step(&Step::Retry(ten[0])).unwrap();
        assert_eq!(workload.check_state(process.store(), &process.told), Ok(1), "reads go on");
        process.kill_and_open().unwrap();
        ten[1..].iter().chain(&two).try_for_each(|op| process.step(&Step::One(*op))).unwrap();
        workload.check(&process.disk.crash(&Survival::Nothing), &process.told).unwrap();
    }
}

#[test]
fn a_plain_write_never_shows_what_a_failed_batch_would_have_written() {
    for on_full_disk in [false, true] {
        let (_, ten, two) = ten_and_two();
        let disk = SimDisk::new();
        let mut process = Process::new(disk.clone());
        process.open().unwrap();
        ten.iter().try_for_each(|op| process.step(&Step::One(*op))).unwrap();
        let store = process.store().clone();
        let mut op = two[0];
        if on_full_disk {
            op.kind = Kind::Large(600_000);
            disk.set_capacity(Some(disk.allocated()));
        } else {
            disk.fail(fault(CallKind::Sync, 1, "log/", FaultError::SyncDropsData));
        }
        let ticket = store.submit(op.request(), move |tx| op.execute(tx)).unwrap();
        let seen = store.write(move |tx| Ok(tx.table(&crate::crash::script::ORDERS)?.contains(op.row())?));
        assert!(ticket.wait().is_err());
        assert!(!seen.is_ok_and(|seen| seen.value), "it saw a row that was never committed");
    }
}

#[test]
fn a_full_disk_refuses_what_needs_a_segment_and_goes_on_when_there_is_space() {
    use counterfoil::Error;
    let large = |id| Op { id, kind: Kind::Large(100_000) };
    let ops: Vec<_> = (1..=8).map(large).collect();
    let workload = Workload::new(ops.iter().map(|op| Step::One(*op)).collect());
    let disk = SimDisk::new();
    let mut process = Process::new(disk.clone());
    process.limits.fold_bytes = 1 << 21;
    process.open().unwrap();
    disk.set_capacity(Some(disk.allocated() + 1000));
    for op in &ops[..2] {
        process.step(&Step::One(*op)).unwrap();
        process.settle();
    }
    let store = process.store().clone();
    for _ in 0..3 {
        let op = ops[2];
        let answer = store.execute(op.request(), move |tx| op.execute(tx));
        assert!(matches!(answer, Err(Error::DiskFull(_))), "{answer:?}");
        process.settle();
    }
    assert_eq!(store.stats().stopped, None);
    assert_eq!(workload.check_state(&store, &process.told).unwrap(), 2);
    disk.set_capacity(None);
    for op in &ops[2..] {
        process.step(&Step::One(*op)).unwrap();
    }
    assert_eq!(workload.check_state(&store, &process.told).unwrap(), 8);
    drop(store);
    workload.check(&disk.crash(&Survival::Nothing), &process.told).unwrap();
}

/// redb answers nothing after one failed call of its file. Without being told, the store would refuse every operation
/// that needs a row from there, and nobody would know that it must be reopened.
#[test]
fn one_read_of_the_state_file_that_fails_stops_the_store_and_reopening_cures_it() {
    for threads in [false, true] {
        let script = script();
        let workload = Workload::new(script.clone());
        let mut process = Process::new(SimDisk::new());
        process.run(&script[..30]).unwrap();
        if threads {
            process.store = Some(unmanned(&process.clock).open_in(&process.disk).unwrap());
        } else {
            process.open().unwrap();
        }
        process.disk.fail(fault(CallKind::Read, 1, "state.redb", FaultError::Eio));
        let failed = script[30..].iter().find(|step| process.step(step).is_err()).expect("rows are read from the file");
        assert_eq!(process.disk.faults_struck(), 1);
        let other = Op { id: 77, kind: Kind::Create };
        let ran = |_: &counterfoil::Tx<'_>| -> Result<counterfoil::Reply, _> { panic!("a closure ran") };
        let next = process.store().execute(other.request(), ran);
        assert!(next.is_err_and(|error| error.execution() == counterfoil::Execution::NotExecuted));
        let stopped = process.store().stats().stopped;
        assert!(stopped.is_some_and(|cause| cause.contains("the state file")), "threads: {threads}, {failed:?}");
        process.store = None;
        process.open().unwrap();
        process.step(failed).unwrap();
        workload.check_state(process.store(), &process.told).unwrap();
    }
}
