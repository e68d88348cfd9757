//! The queue: shares and turns, deadlines, cancelling, and callers that leave.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Waker};
use std::time::Duration;

use crate::support::*;
use counterfoil::testing::{SimDisk, TestBed};
use counterfoil::{Error, Limits, Reply, Store, StoreBuilder, Tx};

const SECOND: Duration = Duration::from_secs(1);

fn tight() -> StoreBuilder {
    let mut limits = Limits::default();
    limits.queue_operations_max = 6;
    limits.queue_tenant_operations_max = 4;
    limits.queue_bytes_max = 1000;
    builder().limits(limits)
}

#[test]
fn tenants_are_served_in_turn() {
    let bed = bed();
    let store = bed.store();
    for (tenant, key) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1"), ("c", "2")] {
        drop(store.submit(op_of(tenant, key, 1), note(&format!("{tenant}{key}"))).unwrap());
    }
    settle(store);
    assert_eq!(runs(store), ["a1", "b1", "c1", "a2", "c2", "a3"]);
}

#[test]
fn one_tenant_cannot_fill_the_queue_and_a_full_queue_is_overloaded_and_not_executed() {
    let bed = bed_of(tight);
    let store = bed.store();
    let submit = |tenant: &str, key: &str| store.submit(op_of(tenant, key, 1), note(&format!("{tenant}{key}")));
    for key in ["1", "2", "3", "4"] {
        drop(submit("a", key).unwrap());
    }
    let error = submit("a", "5").unwrap_err();
    assert!(matches!(error, Error::Overloaded) && error.is_retryable(), "{error:?}");
    drop(submit("b", "1").unwrap());
    drop(submit("c", "1").unwrap());
    assert!(matches!(submit("d", "1"), Err(Error::Overloaded)), "the whole queue is full");
    assert_eq!(store.stats().queued, 6);
    settle(store);
    assert_eq!(runs(store).len(), 6);
    drop(submit("a", "5").unwrap());
    settle(store);
    assert_eq!(runs(store).len(), 7, "the refused one is free to come again");
}

#[test]
fn the_queue_is_bounded_by_bytes() {
    let bed = bed_of(tight);
    let big = |key: &str| ADD.request("acme", "alice", key).unwrap().bytes(vec![0; 600]);
    drop(bed.store().submit(big("1"), note("1")).unwrap());
    assert!(matches!(bed.store().submit(big("2"), note("2")), Err(Error::Overloaded)));
    settle(bed.store());
    drop(bed.store().submit(big("2"), note("2")).unwrap());
    settle(bed.store());
    assert_eq!(runs(bed.store()), ["1", "2"]);
}

#[test]
fn a_full_queue_is_waited_for_within_the_deadline() {
    let disk = SimDisk::new();
    let store = tight().open_in(&disk).unwrap();
    let gate = hold(&disk);
    let first = store.submit(op("first"), note("first")).unwrap();
    gate.wait_until_blocked();
    let mut tickets: Vec<_> = (0..4).map(|n| store.submit(op(&n.to_string()), note("queued")).unwrap()).collect();
    // Without a deadline, and with one that is too short, it is refused.
    assert!(matches!(store.execute(op("none"), never), Err(Error::Overloaded)));
    let short = store.execute(op("short").deadline(Duration::from_millis(5)), never).unwrap_err();
    assert!(matches!(short, Error::Overloaded | Error::DeadlineExceeded), "{short:?}");
    let waiter = std::thread::spawn({
        let store = store.clone();
        move || store.execute(op("patient").deadline(60 * SECOND), note("patient"))
    });
    gate.release();
    tickets.push(first);
    for ticket in tickets {
        drop(ticket.wait().unwrap());
    }
    assert!(!waiter.join().unwrap().unwrap().is_replayed());
    assert!(runs(&store).contains(&"patient".to_owned()));
    assert_eq!(runs(&store).len(), 6);
    store.close().unwrap();
}

#[test]
fn a_queued_submission_can_be_cancelled_and_never_runs() {
    let bed = bed();
    let store = bed.store();
    let stays = store.submit(op("stays"), note("stays")).unwrap();
    let goes = store.submit(op("goes"), never).unwrap();
    goes.cancel().unwrap();
    settle(store);
    drop(answer(stays).unwrap());
    assert_eq!(store.stats().cancelled, 1);
    assert_eq!(store.receipt(op("goes").slot()).unwrap(), None);
    assert!(!store.execute(op("goes"), note("goes")).unwrap().is_replayed());
    let ticket = store.submit(op("late"), note("late")).unwrap();
    store.step().unwrap();
    let ticket = ticket.cancel().expect_err("it was answered");
    assert!(!answer(ticket).unwrap().is_replayed());
    store.assert_sound();
}

#[test]
fn what_was_started_is_not_cancelled() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let gate = hold(&disk);
    let ticket = store.submit(op("k"), note("k")).unwrap();
    gate.wait_until_blocked();
    let ticket = ticket.cancel().expect_err("its closure has run");
    let ticket = ticket.wait_for(Duration::ZERO).expect_err("the sync is under way");
    gate.release();
    assert!(!ticket.wait().unwrap().is_replayed());
    store.close().unwrap();
}

#[test]
fn a_deadline_that_passed_in_the_queue_is_not_started() {
    let bed = bed();
    let store = bed.store();
    // Remaining time, time in the queue, whether it runs.
    for (key, remaining, waits, runs) in
        [("early", 1000, 999, true), ("exact", 1000, 1000, false), ("late", 1000, 5000, false), ("zero", 0, 0, false)]
    {
        let deadline = Duration::from_millis(remaining);
        let ticket = store.submit(op(key).deadline(deadline), move |tx: &Tx<'_>| {
            let left = tx.remaining().expect("a deadline was given");
            Ok(Reply::ok().json(&u64::try_from(left.as_millis())?)?)
        });
        bed.clock().advance(Duration::from_millis(waits));
        store.step().unwrap();
        match answer(ticket.unwrap()) {
            Ok(receipt) => assert!(runs && receipt.reply().body_json::<u64>().unwrap() == remaining - waits, "{key}"),
            Err(error) => assert!(!runs && matches!(error, Error::DeadlineExceeded), "{key}: {error:?}"),
        }
        assert_eq!(store.receipt(op(key).slot()).unwrap().is_some(), runs, "{key}");
    }
    let none = store.execute(op("none"), |tx: &Tx<'_>| Ok(Reply::ok().json(&tx.remaining().is_none())?)).unwrap();
    assert_eq!(none.reply().body(), b"true");
    store.assert_sound();
}

#[test]
fn a_deadline_of_a_blocking_call_that_passes_in_the_queue_is_not_executed_and_one_that_passes_later_is_unknown() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let gate = hold(&disk);
    let soon = Duration::from_millis(20);
    // Started at once, and its sync does not end in time.
    let running = store.execute(op("running").deadline(soon), note("running"));
    assert!(matches!(running, Err(Error::Unknown(_))), "{running:?}");
    let queued = store.execute(op("queued").deadline(soon), never);
    assert!(matches!(queued, Err(Error::DeadlineExceeded)), "{queued:?}");
    gate.release();
    let again = store.execute(op("running"), note("twice")).unwrap();
    assert!(again.is_replayed(), "asking again with the same key decides it");
    assert_eq!(runs(&store), ["running"]);
    assert_eq!(store.receipt(op("queued").slot()).unwrap(), None);
    store.close().unwrap();
}

#[test]
fn a_dropped_ticket_and_a_dropped_future_lose_nothing() {
    let bed = bed();
    let store = bed.store();
    drop(store.submit(op("ticket"), note("ticket")).unwrap());
    let mut future = store.submit(op("future"), note("future")).unwrap();
    assert!(Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(future);
    settle(store);
    assert_eq!(runs(store), ["ticket", "future"]);
    assert!(store.execute(op("ticket"), never).unwrap().is_replayed());
    assert!(store.execute(op("future"), never).unwrap().is_replayed());
    store.assert_sound();
}

#[test]
fn a_ticket_is_awaited_without_any_runtime() {
    let store = threaded(&SimDisk::new());
    let first = block_on(store.submit(op("k"), note("k")).unwrap()).unwrap();
    let again = block_on(store.submit(op("k"), never).unwrap()).unwrap();
    assert_eq!((again.meta(), again.is_replayed()), (first.meta(), true));
    assert!(matches!(block_on(store.submit(op_of("acme", "k", 2), never).unwrap()), Err(Error::Conflict { .. })));
    store.close().unwrap();
}

#[test]
fn a_ticket_can_be_waited_for_in_manual_mode() {
    let bed = bed();
    let ticket = bed.store().submit(op("k"), note("k")).unwrap();
    let (send, done) = channel();
    let waiter = std::thread::spawn(move || send.send(ticket.wait()).unwrap());
    let answer = done.recv_timeout(20 * SECOND).expect("blocking calls step by themselves");
    assert!(!answer.unwrap().is_replayed());
    waiter.join().unwrap();
}

#[test]
fn many_tenants_and_threads_are_all_served() {
    let store = tight().open_in(&SimDisk::new()).unwrap();
    let callers: Vec<_> = (0..8)
        .map(|tenant| {
            let store: Store = store.clone();
            std::thread::spawn(move || {
                for key in 0..25 {
                    let operation = op_of(&format!("t{tenant}"), &key.to_string(), 1).deadline(60 * SECOND);
                    drop(store.execute(operation, add("n")).expect("served within its deadline"));
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().unwrap());
    assert_eq!(total(&store, "n"), 200);
    store.assert_sound();
    store.close().unwrap();
}

#[test]
fn a_slow_closure_is_counted() {
    let bed: TestBed = bed();
    let clock = bed.clock().clone();
    drop(bed.store().execute(op("fast"), add("n")).unwrap());
    assert_eq!(bed.store().stats().slow_closures, 0);
    let slow = move |_: &Tx<'_>| {
        clock.advance(SECOND);
        Ok(Reply::ok())
    };
    drop(bed.store().execute(op("slow"), slow).unwrap());
    assert_eq!(bed.store().stats().slow_closures, 1);
}
