//! When the disk fails: what is certain is said, nothing more is executed, and reopening is the cure.

use crate::support::*;
use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, TestBed};
use counterfoil::{Decision, Error, Execution, Failure, Limits, LogStart, Reply, Tx};

fn log_fault(on: CallKind, error: FaultError) -> Fault {
    Fault { on, nth: 1, name_contains: Some(ACTIVE.to_owned()), error, permanent: false }
}

const FAULTS: [(CallKind, FaultError); 5] = [
    (CallKind::Sync, FaultError::Eio),
    (CallKind::Sync, FaultError::SyncDropsData),
    (CallKind::Sync, FaultError::SyncErrorsButDurable),
    (CallKind::Write, FaultError::Eio),
    (CallKind::Write, FaultError::EioPartWritten),
];

fn reopen(bed: &mut TestBed) {
    bed.kill_and_reopen().expect("reopening is the cure");
}

#[test]
fn after_a_failed_append_or_sync_every_answer_says_what_may_be_assumed() {
    for (on, fault) in FAULTS {
        let name = format!("{on:?} {fault:?}");
        let mut bed = bed();
        let store = bed.store();
        let before = store.execute(op("before"), add("n")).unwrap();
        settle(store);
        let mut follower = store.log(LogStart::Oldest).unwrap();
        while follower.try_next().unwrap().is_some() {}

        let writing = store.submit(op("writing"), add("n")).unwrap();
        let twin = store.submit(op("writing"), never).unwrap();
        let other = store.submit(op_of("acme", "writing", 2), never).unwrap();
        let rejected = store.submit(op("rejected"), |_: &Tx<'_>| Ok(Decision::Reject(Reply::refused()))).unwrap();
        // It fails because of what `writing` wrote, which nobody may hear of.
        let failing = store.submit(op("failing"), |tx: &Tx<'_>| -> Result<Reply, _> {
            Err(Failure::message(format!("there are {:?}", tx.table(&TOTALS)?.get("n")?)))
        });
        let failing = failing.unwrap();
        bed.disk().fail(log_fault(on, fault));
        store.step().unwrap();

        for (who, ticket) in [("writing", writing), ("twin", twin), ("other", other), ("rejected", rejected)] {
            let error = answer(ticket).unwrap_err();
            assert!(matches!(error, Error::Unknown(_)), "{name}, {who}: {error:?}");
            assert_eq!(error.execution(), Execution::Unknown);
        }
        let error = answer(failing).unwrap_err();
        assert!(matches!(error, Error::Poisoned(_)), "{name}: {error:?}");
        assert!(store.stats().stopped.is_some(), "{name}");

        // Later: the same slots stay unknown, others are answered from what is published, or not executed.
        for later in [store.execute(op("writing"), never), store.receipt(op("writing").slot()).map(Option::unwrap)] {
            assert!(matches!(later, Err(Error::Unknown(_))), "{name}: {later:?}");
        }
        assert_eq!(store.execute(op("before"), never).unwrap().meta(), before.meta(), "{name}");
        let error = store.execute(op("new"), never).unwrap_err();
        assert!(matches!(error, Error::Poisoned(_)) && error.execution() == Execution::NotExecuted, "{name}");
        assert!(matches!(store.write(|_| -> Result<(), _> { panic!("ran") }), Err(Error::Poisoned(_))), "{name}");
        assert_eq!(total(store, "n"), 1, "{name}: reads go on, without what is unknown");
        assert_eq!(store.receipt(op("before").slot()).unwrap().unwrap().meta(), before.meta());
        assert!(follower.try_next().unwrap().is_none(), "{name}: a follower is shown nothing that is not certain");
        assert_eq!(store.stats().executed, 1, "{name}: counted only what was answered");

        reopen(&mut bed);
        let again = bed.store().execute(op("writing"), add("n")).unwrap();
        assert_eq!(total(bed.store(), "n"), 2, "{name}: once, whether or not it was {}", again.is_replayed());
        assert!(again.is_replayed() || fault != FaultError::SyncErrorsButDurable, "{name}: it was durable");
        drop(bed.store().execute(op("new"), add("n")).unwrap());
        bed.store().assert_sound();
    }
}

#[test]
fn plain_writes_with_a_frame_are_unknown_and_those_without_tell_nothing_of_what_failed() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let gate = hold(&disk);
    let first = store.submit(op("first"), add("n")).unwrap();
    gate.wait_until_blocked();
    let spawn = |read_only: bool| {
        let store = store.clone();
        std::thread::spawn(move || {
            store.write(move |tx| {
                let totals = tx.table(&TOTALS)?;
                if !read_only {
                    totals.put("w", &1)?;
                }
                Ok(totals.get("w")?)
            })
        })
    };
    let queued = |count: usize| {
        while store.stats().queued < count {
            std::thread::yield_now();
        }
    };
    let writing = spawn(false);
    queued(1);
    let reading = spawn(true);
    queued(2);
    // The first batch gets through; the second fails.
    disk.fail(Fault { nth: 2, ..log_fault(CallKind::Sync, FaultError::Eio) });
    gate.release();
    drop(first.wait().unwrap());
    assert!(matches!(writing.join().unwrap(), Err(Error::Unknown(_))));
    let read = reading.join().unwrap();
    assert!(matches!(read, Err(Error::Poisoned(_))), "it read what never became durable: {read:?}");
    assert!(matches!(store.write(|_| Ok(())), Err(Error::Poisoned(_))));
    assert!(matches!(store.close(), Err(Error::Poisoned(_))));
    assert!(threaded(&disk.kill()).execute(op("first"), never).unwrap().is_replayed());
}

#[test]
fn what_waited_in_the_queue_of_a_store_that_stops_is_not_executed() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    drop(store.execute(op("before"), add("n")).unwrap());
    let gate = hold(&disk);
    let writing = store.submit(op("writing"), add("n")).unwrap();
    gate.wait_until_blocked();
    let twin = store.submit(op("writing"), never).unwrap();
    let waiting = store.submit(op("waiting"), never).unwrap();
    disk.fail(log_fault(CallKind::Sync, FaultError::Eio));
    gate.release();
    assert!(matches!(writing.wait(), Err(Error::Unknown(_))));
    assert!(matches!(twin.wait(), Err(Error::Unknown(_))));
    assert!(matches!(waiting.wait(), Err(Error::Poisoned(_))));
    assert!(store.execute(op("before"), never).unwrap().is_replayed());
    let clone = store.clone();
    assert!(matches!(store.close(), Err(Error::Poisoned(_))));
    assert!(matches!(clone.close(), Err(Error::Closed)));
    let reopened = threaded(&disk.kill());
    drop(reopened.execute(op("waiting"), add("n")).unwrap());
    reopened.assert_sound();
}

#[test]
fn the_next_sync_would_succeed_and_is_not_tried() {
    let bed = bed();
    bed.disk().fail(log_fault(CallKind::Sync, FaultError::SyncDropsData));
    assert!(matches!(bed.store().execute(op("k"), add("n")), Err(Error::Unknown(_))));
    let operations = bed.disk().operations();
    for key in ["k", "l", "m"] {
        assert!(bed.store().execute(op(key), add("n")).is_err());
    }
    settle(bed.store());
    assert_eq!(bed.disk().operations(), operations, "a stopped store writes nothing");
}

#[test]
fn a_fold_that_fails_stops_the_store_and_loses_nothing() {
    for on in [CallKind::Write, CallKind::Sync, CallKind::SetLen] {
        let mut bed = bed_of(|| {
            let mut limits = Limits::default();
            limits.fold_bytes = 2000;
            limits.checkpoint_log_bytes = 1;
            builder().limits(limits)
        });
        settle(bed.store());
        let state = Some("state.redb".to_owned());
        bed.disk().fail(Fault { on, nth: 1, name_contains: state, error: FaultError::Eio, permanent: true });
        let mut answered = 0;
        let stopped = loop {
            match bed.store().execute(op(&format!("k-{answered}")), add("n")) {
                Ok(_) => answered += 1,
                Err(error) => break error,
            }
            settle(bed.store());
            if answered == 500 {
                break Error::Poisoned("this kind of call does not occur".to_owned());
            }
        };
        assert!(matches!(stopped, Error::Poisoned(_)), "{on:?}: {stopped:?}");
        assert_eq!(total(bed.store(), "n"), answered, "{on:?}");
        assert!(bed.store().execute(op("k-0"), never).unwrap().is_replayed(), "{on:?}");
        bed.disk().clear_faults();
        reopen(&mut bed);
        assert_eq!(total(bed.store(), "n"), answered, "{on:?}: the log is whole");
        drop(bed.store().execute(op("new"), add("n")).unwrap());
        bed.store().assert_sound();
    }
}

#[test]
fn a_full_disk_is_not_executed_and_the_store_goes_on_when_there_is_room() {
    let bed = bed();
    let store = bed.store();
    drop(store.execute(op("small"), add("n")).unwrap());
    settle(store);
    bed.disk().set_capacity(Some(bed.disk().allocated()));
    let big = |tx: &Tx<'_>| {
        tx.table(&TOTALS)?.put("big", &1)?;
        Ok(Reply::ok().bytes("a/b", vec![7; 200 * 1024]))
    };
    let mut full = None;
    for number in 0..200 {
        match store.execute(op(&format!("big-{number}")), big) {
            Ok(_) => settle(store),
            Err(error) => {
                full = Some((number, error));
                break;
            }
        }
    }
    let (number, error) = full.expect("a disk without room is noticed");
    assert!(matches!(error, Error::DiskFull(_)), "{error:?}");
    assert_eq!(error.to_string().matches("the disk is full").count(), 1, "said once: {error}");
    assert_eq!(error.execution(), Execution::NotExecuted);
    assert!(store.stats().stopped.is_none());
    // In one batch: who needs room is refused, and nobody hears of what was not kept.
    let refused = store.submit(op("refused"), |tx: &Tx<'_>| {
        tx.table(&TOTALS)?.put("phantom", &1)?;
        Ok(Reply::ok().bytes("a/b", vec![7; 200 * 1024]))
    });
    let saw = store.submit(op("saw"), |tx: &Tx<'_>| -> Result<Reply, _> {
        Err(Failure::message(format!("there are {:?}", tx.table(&TOTALS)?.get("phantom")?)))
    });
    store.step().unwrap();
    assert!(matches!(answer(refused.unwrap()), Err(Error::DiskFull(_))));
    let saw = answer(saw.unwrap()).unwrap_err();
    assert!(!saw.to_string().contains("Some(1)"), "it tells of what was never kept: {saw}");
    assert!(store.execute(op("small"), never).unwrap().is_replayed());
    bed.disk().set_capacity(None);
    assert!(!store.execute(op(&format!("big-{number}")), big).unwrap().is_replayed());
    store.assert_sound();
}

#[test]
fn a_follower_that_waits_is_told_when_the_store_stops() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    drop(store.execute(op("k"), add("n")).unwrap());
    let follower = store.log(LogStart::Now).unwrap();
    let waiting = std::thread::spawn(move || follower.count());
    disk.fail(log_fault(CallKind::Sync, FaultError::Eio));
    assert!(matches!(store.execute(op("l"), add("n")), Err(Error::Unknown(_))));
    assert_eq!(waiting.join().unwrap(), 0, "nothing became durable, and nothing will");
}

/// An error whose destructor panics.
#[derive(Debug)]
struct Bomb;

impl std::fmt::Display for Bomb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a bomb")
    }
}

impl std::error::Error for Bomb {}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn an_error_that_panics_when_it_is_dropped_does_not_stop_a_store_that_refuses_a_batch() {
    let bed = bed();
    let store = bed.store();
    settle(store);
    bed.disk().set_capacity(Some(bed.disk().allocated()));
    let failing = store.submit(op("failing"), |_| -> Result<Reply, _> { Err(Failure::from(Bomb)) }).unwrap();
    let big = store.submit(op("big"), |_| Ok(Reply::ok().bytes("a/b", vec![7; 250 * 1024]))).unwrap();
    let also = store.submit(op("also"), |_| Ok(Reply::ok().bytes("a/b", vec![7; 250 * 1024]))).unwrap();
    let third = store.submit(op("third"), |_| Ok(Reply::ok().bytes("a/b", vec![7; 250 * 1024]))).unwrap();
    store.step().unwrap();
    for ticket in [failing, big, also, third] {
        assert!(matches!(answer(ticket), Err(Error::DiskFull(_))));
    }
    assert_eq!(store.stats().stopped, None);
    // A batch that fits goes on into the segment that is there, and after it into the one that was prepared.
    for number in 0..4 {
        drop(store.execute(op(&format!("small {number}")), add("n")).unwrap());
    }
    bed.disk().set_capacity(None);
    drop(store.execute(op("big"), |_| Ok(Reply::ok().bytes("a/b", vec![7; 250 * 1024]))).unwrap());
    store.assert_sound();
}
