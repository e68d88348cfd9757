//! Submissions that share one batch, and callers that share one key.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{Decision, Error, Failure, Reply, Ticket, Tx};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn a_destructor_that_panics_stops_nobody() {
    let bed = bed();
    let store = bed.store();
    let first = store.submit(op("k"), add("n")).unwrap();
    let bomb = Bomb;
    let duplicate = store
        .submit(op("k"), move |_| {
            let _bomb = &bomb;
            Ok(Reply::ok())
        })
        .unwrap();
    let bomb = Bomb;
    let cancelled = store
        .submit(op("cancelled"), move |_| {
            let _bomb = &bomb;
            Ok(Reply::ok())
        })
        .unwrap();
    assert!(cancelled.cancel().is_ok());
    let last = store.submit(op("l"), add("n")).unwrap();
    store.step().unwrap();
    assert!(answer(first).is_ok() && answer(duplicate).unwrap().is_replayed() && answer(last).is_ok());
    assert_eq!((store.stats().stopped, total(store, "n")), (None, 2));
}

#[test]
fn failing_and_panicking_members_leave_their_neighbours_alone() {
    let mut bed = bed();
    let store = bed.store();
    let mut tickets = Vec::new();
    for number in 0..20 {
        let closure = move |tx: &Tx<'_>| -> Result<Decision, Failure> {
            let totals = tx.table(&TOTALS)?;
            let seen = totals.get("sum")?.unwrap_or(0);
            totals.put("sum", &(seen + 1))?;
            match number % 5 {
                1 => Err(Failure::message("own")),
                2 => panic!("panic"),
                3 => Ok(Decision::Reject(Reply::refused())),
                4 => {
                    drop(totals.insert_new("sum", &0));
                    Ok(Reply::ok().into())
                }
                _ => Ok(Reply::ok().json(&seen)?.into()),
            }
        };
        tickets.push(store.submit(op(&number.to_string()), closure).unwrap());
    }
    let batches = store.stats().batches;
    store.step().unwrap();
    assert_eq!(store.stats().batches, batches + 1, "one sync for all of them");
    for (number, ticket) in tickets.into_iter().enumerate() {
        let answer = answer(ticket);
        match number % 5 {
            1 => assert!(matches!(answer, Err(Error::Failed(_)))),
            2 => assert!(matches!(answer, Err(Error::Panicked { .. }))),
            3 => assert!(answer.unwrap().is_rejected()),
            4 => assert!(matches!(answer, Err(Error::Table(_)))),
            // Each sees those before it that were kept, and nothing of the others.
            _ => assert_eq!(answer.unwrap().reply().body_json::<u64>().unwrap(), number as u64 / 5),
        }
    }
    assert_eq!(total(store, "sum"), 4);
    let stats = store.stats();
    assert_eq!((stats.executed, stats.rejected, stats.failed), (4, 4, 12));
    store.assert_sound();
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert_eq!(total(bed.store(), "sum"), 4);
}

#[test]
fn duplicates_in_one_batch_execute_once_and_all_get_the_receipt() {
    let bed = bed();
    let mut tickets = vec![bed.store().submit(op("k"), add("k")).unwrap()];
    tickets.extend((0..9).map(|_| bed.store().submit(op("k"), never).unwrap()));
    bed.store().step().unwrap();
    let receipts: Vec<_> = tickets.into_iter().map(|ticket| answer(ticket).unwrap()).collect();
    assert!(!receipts[0].is_replayed());
    for again in &receipts[1..] {
        assert!(again.is_replayed());
        assert_eq!((again.reply(), again.meta()), (receipts[0].reply(), receipts[0].meta()));
    }
    assert_eq!(total(bed.store(), "k"), 1);
    assert_eq!(bed.store().stats().replayed, 9);
    bed.store().assert_sound();
}

#[test]
fn a_duplicate_whose_first_failed_runs_its_own_closure() {
    let bed = bed();
    let store = bed.store();
    let failed = store.submit(op("k"), |_: &Tx<'_>| -> Result<Reply, _> { Err(Failure::message("not now")) }).unwrap();
    let panicked = store.submit(op("k"), |_: &Tx<'_>| -> Result<Reply, _> { panic!("oh") }).unwrap();
    let third = store.submit(op("k"), add("k")).unwrap();
    let fourth = store.submit(op("k"), never).unwrap();
    store.step().unwrap();
    assert!(matches!(answer(failed), Err(Error::Failed(_))));
    assert!(matches!(answer(panicked), Err(Error::Panicked { .. })));
    assert!(!answer(third).unwrap().is_replayed());
    assert!(answer(fourth).unwrap().is_replayed());
    assert_eq!(total(store, "k"), 1);
    store.assert_sound();
}

#[test]
fn a_conflict_inside_a_batch_is_one_and_the_first_stands() {
    let bed = bed();
    let first = bed.store().submit(op_of("acme", "k", 1), add("k")).unwrap();
    let other = bed.store().submit(op_of("acme", "k", 2), never).unwrap();
    let again = bed.store().submit(op_of("acme", "k", 1), never).unwrap();
    bed.store().step().unwrap();
    assert!(!answer(first).unwrap().is_replayed());
    assert!(matches!(answer(other), Err(Error::Conflict { stored_version: None })));
    assert!(answer(again).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn a_rejection_in_a_batch_answers_its_duplicates() {
    let bed = bed();
    let no = |tx: &Tx<'_>| {
        tx.table(&TOTALS)?.put("k", &1)?;
        Ok(Decision::Reject(Reply::refused()))
    };
    let first = bed.store().submit(op("k"), no).unwrap();
    let again = bed.store().submit(op("k"), never).unwrap();
    bed.store().step().unwrap();
    assert!(answer(first).unwrap().is_rejected());
    let again = answer(again).unwrap();
    assert!(again.is_rejected() && again.is_replayed());
    assert_eq!(total(bed.store(), "k"), 0);
}

#[test]
fn a_batch_that_is_full_by_bytes_leaves_the_rest_for_the_next() {
    let bed = bed_of(|| {
        let mut limits = counterfoil::Limits::default();
        limits.batch_bytes_max = 1000;
        builder().limits(limits)
    });
    let body = |_: &Tx<'_>| Ok(Reply::ok().bytes("a/b", vec![0; 600]));
    let tickets: Vec<Ticket> = (0..6).map(|n| bed.store().submit(op(&n.to_string()), body).unwrap()).collect();
    bed.store().step().unwrap();
    let answered = tickets.iter().filter(|ticket| ticket.is_answered()).count();
    assert_eq!(answered, 2, "the one that fills the batch is its last");
    settle(bed.store());
    assert!(tickets.into_iter().all(|ticket| answer(ticket).is_ok()));
    bed.store().assert_sound();
}

#[test]
fn many_callers_of_one_key_at_once_are_one_execution_and_all_get_its_receipt() {
    const CALLERS: usize = 16;
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let ran = Arc::new(AtomicU32::new(0));
    for key in ["one", "two", "three"] {
        let start = Arc::new(Barrier::new(CALLERS));
        let callers: Vec<_> = (0..CALLERS)
            .map(|_| {
                let (store, start, ran) = (store.clone(), Arc::clone(&start), Arc::clone(&ran));
                std::thread::spawn(move || {
                    start.wait();
                    let closure = move |tx: &Tx<'_>| {
                        ran.fetch_add(1, Ordering::SeqCst);
                        add("sum")(tx)
                    };
                    store.execute(op(key), closure).unwrap()
                })
            })
            .collect();
        let receipts: Vec<_> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        assert_eq!(receipts.iter().filter(|receipt| !receipt.is_replayed()).count(), 1, "{key}");
        assert!(receipts.iter().all(|receipt| receipt.meta() == receipts[0].meta()), "{key}");
        assert!(receipts.iter().all(|receipt| receipt.reply() == receipts[0].reply()), "{key}");
    }
    assert_eq!((ran.load(Ordering::SeqCst), total(&store, "sum")), (3, 3));
    store.assert_sound();
    store.close().unwrap();
}
