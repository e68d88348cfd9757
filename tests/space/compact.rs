//! Compaction: the state file is rewritten while the store is at work, and every moment of it may be the last.

use crate::support::*;
use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival, TestBed};
use counterfoil::{Error, Limits, Store, StoreBuilder};

const STATE: &str = "state.redb";

fn small() -> StoreBuilder {
    let mut limits = Limits::default();
    limits.fold_bytes = 4_000;
    limits.checkpoint_log_bytes = 1;
    limits.segment_bytes_first = 4096;
    builder().limits(limits)
}

fn state_bytes(bed: &TestBed) -> usize {
    bed.disk().files()[STATE].len()
}

/// A store whose state file is mostly empty pages: many receipts came and went, and a few are living.
fn mostly_empty(receipts: u32) -> TestBed {
    let bed = bed_of(small);
    let body = "x".repeat(500);
    for number in 0..receipts {
        let large = body.clone();
        let answer = bed.store().execute(op(&KEEP, "acme", format!("old {number}")), move |_| {
            Ok(counterfoil::Reply::ok().bytes("text/plain", large))
        });
        drop(answer.expect("it executes"));
    }
    settle(bed.store());
    bed.clock().advance(2 * HOUR);
    settle(bed.store());
    for number in 0..5 {
        drop(execute(bed.store(), &KEEP, &format!("living {number}")).expect("it executes"));
    }
    settle(bed.store());
    bed
}

/// Every answer that the store owes.
fn check(store: &Store) {
    for number in 0..5 {
        let replay = store.execute(op(&KEEP, "acme", format!("living {number}")), never).expect("a replay");
        assert!(replay.is_replayed());
    }
    assert_eq!(runs(store), 5);
    store.assert_sound();
}

#[test]
fn a_state_file_of_mostly_empty_pages_becomes_small_and_keeps_every_row() {
    let mut bed = mostly_empty(400);
    let before = state_bytes(&bed);
    let mut seen = Vec::new();
    let compacted = bed.store().compact(|copied, total| seen.push((copied, total))).unwrap();
    assert_eq!(compacted.bytes_before, before as u64);
    assert_eq!(compacted.bytes_after, state_bytes(&bed) as u64);
    assert!(compacted.bytes_after * 2 < compacted.bytes_before, "{compacted:?}");
    assert!(seen.last().is_some_and(|(copied, total)| copied == total && *total > 0), "{seen:?}");
    check(bed.store());
    assert!(!bed.disk().files().contains_key("state.redb.new"));
    // The store goes on in the new file.
    drop(execute(bed.store(), &BRIEF, "after").unwrap());
    settle(bed.store());
    for crash in [true, false] {
        reopen(&mut bed, crash);
        assert_eq!(runs(bed.store()), 6);
        bed.store().assert_sound();
    }
    assert!(bed.store().compact(|_, _| ()).is_ok(), "and again");
}

#[test]
fn a_view_from_before_goes_on_showing_what_it_showed() {
    let bed = mostly_empty(50);
    let view = bed.store().view();
    let shown = |view: &counterfoil::ReadView| -> Vec<_> {
        view.table(&RUNS).expect("declared").range(..).expect("readable").map(|row| row.expect("decodes")).collect()
    };
    let before = shown(&view);
    assert!(bed.store().compact(|_, _| ()).is_ok());
    drop(execute(bed.store(), &KEEP, "later").unwrap());
    settle(bed.store());
    assert_eq!(shown(&view), before);
    drop(view);
    settle(bed.store());
    assert_eq!(runs(bed.store()), 6);
}

#[test]
fn operations_go_on_while_it_runs_and_are_in_the_new_file() {
    let disk = SimDisk::new();
    let mut limits = Limits::default();
    limits.fold_bytes = 4_000;
    limits.checkpoint_log_bytes = 8_000;
    let store = builder().limits(limits.clone()).open_in(&disk).unwrap();
    for number in 0..300 {
        drop(execute(&store, &KEEP, &format!("before {number}")).unwrap());
    }
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| (0..3).map(|_| store.compact(|_, _| ())).collect::<Vec<_>>());
        let mut number = 300;
        while !compacting.is_finished() || number < 600 {
            drop(execute(&store, &KEEP, &format!("meanwhile {number}")).unwrap());
            number += 1;
        }
        assert!(compacting.join().unwrap().iter().all(Result::is_ok));
        assert_eq!(runs(&store), number);
    });
    let executed = runs(&store);
    assert!(store.verify().unwrap().is_clean());
    store.close().unwrap();
    let store = builder().limits(limits).open_in(&disk).unwrap();
    assert_eq!(runs(&store), executed);
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn a_loss_of_power_at_any_step_leaves_the_old_file_or_the_new_one_and_every_answer() {
    let bed = mostly_empty(20);
    let start = bed.disk().operations();
    assert!(bed.store().compact(|_, _| ()).is_ok());
    settle(bed.store());
    let end = bed.disk().operations();
    assert!(end > start + 10, "{start} to {end}");
    for at in start..=end {
        for survival in Survival::selection(3, 1) {
            let mut bed = mostly_empty(20);
            bed.disk().power_cut_at(at);
            drop(bed.store().compact(|_, _| ()));
            while bed.store().step().is_ok_and(|worked| worked) {}
            bed.crash_and_reopen(&survival).unwrap_or_else(|error| panic!("at {at}, {survival:?}: {error}"));
            check(bed.store());
            assert!(!bed.disk().files().contains_key("state.redb.new"), "at {at}, {survival:?}");
        }
    }
}

#[test]
fn a_disk_that_fails_meanwhile_leaves_the_old_file_and_a_store_that_works_or_says_that_it_stopped() {
    let kinds =
        [CallKind::Create, CallKind::Write, CallKind::SetLen, CallKind::Sync, CallKind::Rename, CallKind::SyncDir];
    for on in kinds {
        for nth in 1..=3 {
            for error in [FaultError::Eio, FaultError::Enospc] {
                let mut bed = mostly_empty(20);
                let name = (on != CallKind::SyncDir).then(|| "state.redb.new".to_owned());
                bed.disk().fail(Fault { nth, name_contains: name, ..Fault::next(on, error) });
                let compacted = bed.store().compact(|_, _| ());
                let struck = bed.disk().faults_struck() > 0;
                bed.disk().clear_faults();
                let stopped = bed.store().stats().stopped;
                match (&compacted, struck, &stopped) {
                    (Ok(_), false, None) | (Err(Error::Corrupt(_)), true, None) => check(bed.store()),
                    (Err(Error::Poisoned(_)), true, Some(_)) => assert_eq!(on, CallKind::SyncDir),
                    other => panic!("{on:?} {nth} {error:?}: {other:?}"),
                }
                for survival in [Survival::Nothing, Survival::Everything] {
                    bed.crash_and_reopen(&survival).unwrap();
                    check(bed.store());
                }
                assert!(bed.store().compact(|_, _| ()).is_ok(), "it can be tried again");
                check(bed.store());
            }
        }
    }
}

#[test]
fn a_store_that_is_closed_meanwhile_keeps_the_old_file_and_tells_whoever_waits() {
    let disk = SimDisk::new();
    let store = small().open_in(&disk).unwrap();
    for number in 0..50 {
        drop(execute(&store, &KEEP, &number.to_string()).unwrap());
    }
    let other = store.clone();
    std::thread::scope(|scope| {
        let compacting = scope.spawn(move || other.compact(|_, _| ()));
        store.close().unwrap();
        // Whichever came first, it is told how it ended.
        match compacting.join().unwrap() {
            Ok(_) | Err(Error::Closed | Error::Corrupt(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    });
    let store = small().open_in(&disk).unwrap();
    assert_eq!(runs(&store), 50);
    assert!(store.verify().unwrap().is_clean());
}
