//! Sweeping: it frees space, a little at a time, and changes no answer.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival, TestBed, VirtualClock, WALL_AT_START};
use counterfoil::{EntryKind, Error, Limits, LogStart, OperationType, Retention, Store};

/// How many expiry rows a step sweeps at most.
const STEP: u64 = 64;

fn sweeps(store: &Store) -> usize {
    let mut log = store.log(LogStart::Oldest).expect("retained");
    let mut count = 0;
    while let Some(entry) = log.try_next().expect("readable") {
        count += usize::from(matches!(entry.kind, EntryKind::Swept { .. }));
    }
    count
}

#[test]
fn the_reply_goes_first_and_the_receipt_later_and_no_answer_changes_by_it() {
    for crash in [false, true] {
        let mut bed = bed();
        let first = execute(bed.store(), &KEEP, "k").unwrap();
        bed.clock().advance(HOUR - MS);
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 0, "at the last millisecond it is replayed");
        assert!(bed.store().execute(op(&KEEP, "acme", "k"), never).unwrap().is_replayed());

        bed.clock().advance(MS);
        let gone = |store: &Store| match store.execute(op(&KEEP, "acme", "k"), never) {
            Err(Error::Gone(gone)) => gone,
            other => panic!("{other:?}"),
        };
        let before = gone(bed.store());
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 1);
        let after = gone(bed.store());
        assert_eq!(before, after, "whether it was swept is not to be seen");
        assert_eq!((after.resource_id.as_deref(), after.position), (Some("k"), first.position()));
        bed.store().assert_sound();
        reopen(&mut bed, crash);
        assert_eq!(gone(bed.store()), before, "crash {crash}");

        bed.clock().advance(HOUR - MS);
        settle(bed.store());
        assert_eq!(gone(bed.store()), before, "to the last millisecond");
        bed.clock().advance(MS);
        assert_eq!(bed.store().receipt(first.slot()).unwrap(), None, "forgotten at once, before it is swept");
        settle(bed.store());
        bed.store().assert_sound();
        assert_eq!(bed.store().verify().unwrap().receipts, 0);
        let again = bed.store().execute(op(&KEEP, "acme", "k"), run("k")).unwrap();
        assert!(!again.is_replayed(), "after both windows the key is a new operation");
        reopen(&mut bed, crash);
        assert_eq!(runs(bed.store()), 2);
        bed.store().assert_sound();
    }
}

#[test]
fn a_duplicate_does_not_lengthen_what_is_kept() {
    let bed = bed();
    drop(execute(bed.store(), &KEEP, "k").unwrap());
    for _ in 0..59 {
        bed.clock().advance(Duration::from_secs(60));
        assert!(bed.store().execute(op(&KEEP, "acme", "k"), never).unwrap().is_replayed());
    }
    bed.clock().advance(Duration::from_secs(60));
    assert!(matches!(bed.store().execute(op(&KEEP, "acme", "k"), never), Err(Error::Gone(_))));
}

#[test]
fn many_that_fall_due_together_are_swept_in_steps_while_operations_go_on() {
    let bed = bed();
    for number in 0..3 * STEP {
        drop(execute(bed.store(), &KEEP, &format!("k{number}")).unwrap());
    }
    bed.clock().advance(HOUR);
    // Behind an operation goes one step, whatever is due.
    for round in 1..=2 {
        drop(execute(bed.store(), &KEEP, &format!("new {round}")).unwrap());
        assert_eq!(bed.store().stats().swept, round * STEP);
        assert!(bed.store().stats().sweep_lag <= HOUR, "what is left is no older than its deadline");
    }
    settle(bed.store());
    assert_eq!(bed.store().stats().swept, 3 * STEP);
    assert_eq!(bed.store().stats().sweep_lag, Duration::ZERO);
    bed.store().assert_sound();
}

#[test]
fn three_that_are_due_among_many_that_are_not_are_found_at_once() {
    const LONG: OperationType = OperationType::new("long");
    let bed = bed_of(|| builder().operation(&LONG));
    for number in 0..500 {
        drop(execute(bed.store(), &LONG, &format!("long {number}")).unwrap());
    }
    for number in 0..3 {
        drop(execute(bed.store(), &BRIEF, &format!("brief {number}")).unwrap());
    }
    settle(bed.store());
    let before = sweeps(bed.store());
    assert_eq!(bed.store().stats().swept, 6, "each in both tiers");
    settle(bed.store());
    assert_eq!(sweeps(bed.store()), before, "nothing is due, so nothing is written");
    assert_eq!(bed.store().verify().unwrap().receipts, 500);
    bed.store().assert_sound();
}

#[test]
fn a_key_that_is_executed_again_before_it_was_swept_keeps_its_new_receipt() {
    for crash in [false, true] {
        let mut bed = bed();
        drop(execute(bed.store(), &KEEP, "k").unwrap());
        bed.clock().advance(2 * HOUR);
        // Forgotten, and not swept: the batch that executes it again sweeps behind it.
        let second = execute(bed.store(), &KEEP, "k").unwrap();
        assert!(!second.is_replayed());
        settle(bed.store());
        reopen(&mut bed, crash);
        settle(bed.store());
        let replay = bed.store().execute(op(&KEEP, "acme", "k"), never).unwrap();
        assert_eq!((replay.is_replayed(), replay.position()), (true, second.position()), "crash {crash}");
        bed.store().assert_sound();
    }
}

#[test]
fn receipts_that_are_due_at_once_are_swept_though_they_come_behind_what_was_swept() {
    let bed = bed();
    for round in 0..5 {
        drop(execute(bed.store(), &BRIEF, &format!("a{round}")).unwrap());
        settle(bed.store());
        drop(execute(bed.store(), &KEEP, &format!("b{round}")).unwrap());
        settle(bed.store());
    }
    assert_eq!(bed.store().verify().unwrap().receipts, 5, "those that are kept");
    assert_eq!(bed.store().stats().swept, 10);
    bed.clock().advance(YEAR);
    settle(bed.store());
    assert_eq!(bed.store().verify().unwrap().receipts, 0);
    bed.store().assert_sound();
}

/// Ten receipts whose replies are due, and ten that are not.
fn half_due() -> TestBed {
    let bed = bed_of(|| {
        let mut limits = Limits::default();
        limits.fold_bytes = 2_000;
        limits.checkpoint_log_bytes = 1;
        builder().limits(limits)
    });
    for number in 0..10 {
        drop(execute(bed.store(), &KEEP, &format!("old {number}")).expect("it executes"));
    }
    settle(bed.store());
    bed.clock().advance(HOUR - MS);
    for number in 0..10 {
        drop(execute(bed.store(), &KEEP, &format!("new {number}")).expect("it executes"));
    }
    settle(bed.store());
    bed.clock().advance(MS);
    bed
}

#[test]
fn a_loss_of_power_at_any_step_of_sweeping_loses_nothing_and_forgets_nothing_early() {
    let bed = half_due();
    let start = bed.disk().operations();
    settle(bed.store());
    let end = bed.disk().operations();
    assert!(end > start + 10, "there was something to do: {start} to {end}");
    for at in start..=end {
        for survival in [Survival::Nothing, Survival::Everything, Survival::OnlyLast, Survival::Random(at)] {
            let mut bed = half_due();
            bed.disk().power_cut_at(at);
            while bed.store().step().is_ok_and(|worked| worked) {}
            bed.crash_and_reopen(&survival).unwrap();
            settle(bed.store());
            for number in 0..10 {
                let old = bed.store().execute(op(&KEEP, "acme", format!("old {number}")), never);
                assert!(matches!(old, Err(Error::Gone(_))), "{old:?}");
                assert!(bed.store().execute(op(&KEEP, "acme", format!("new {number}")), never).unwrap().is_replayed());
            }
            bed.store().assert_sound();
        }
    }
}

#[test]
fn a_store_that_is_told_to_sweep_does_all_of_it_and_says_how_far_it_is() {
    let bed = bed();
    for number in 0..(2 * STEP + 5) {
        drop(execute(bed.store(), &KEEP, &format!("k{number}")).unwrap());
    }
    bed.clock().advance(2 * HOUR);
    let mut seen = Vec::new();
    let swept = bed.store().sweep(|rows| seen.push(rows)).unwrap();
    assert_eq!((swept.rows, swept.paused), (2 * (2 * STEP + 5), None), "replies, then receipts");
    assert!(seen.is_sorted() && seen.last() == Some(&swept.rows), "{seen:?}");
    assert_eq!(bed.store().sweep(|_| ()).unwrap().rows, 0);
    assert_eq!(bed.store().verify().unwrap().receipts, 0);
    bed.store().assert_sound();
}

#[test]
fn a_store_with_threads_sweeps_by_itself_when_something_falls_due_while_it_is_idle() {
    let disk = SimDisk::new();
    let clock = VirtualClock::new(WALL_AT_START);
    let store = builder().clock(clock.clone()).open_in(&disk).unwrap();
    drop(execute(&store, &KEEP, "k").unwrap());
    clock.advance(2 * HOUR);
    // The next operation wakes the writer, which then goes on until nothing is due.
    drop(execute(&store, &KEEP, "other").unwrap());
    let mut log = store.log(LogStart::Oldest).unwrap();
    let mut swept = 0;
    while swept < 2 {
        if let EntryKind::Swept { rows } = log.next().unwrap().expect("the store is open").kind {
            swept += rows;
        }
    }
    assert_eq!(store.verify().unwrap().receipts, 1);
    store.close().unwrap();
}

#[test]
fn a_full_disk_keeps_what_is_due_and_sweeping_goes_on_when_there_is_room() {
    let small = || {
        let mut limits = Limits::default();
        limits.segment_bytes_first = 4096;
        builder().limits(limits)
    };
    let bed = bed_of(small);
    for number in 0..40 {
        drop(execute(bed.store(), &KEEP, &format!("k{number}")).unwrap());
    }
    settle(bed.store());
    bed.clock().advance(2 * HOUR);
    bed.disk().set_capacity(Some(bed.disk().allocated()));
    settle(bed.store());
    bed.disk().set_capacity(None);
    // A failed sweep is tried again after a second.
    bed.clock().advance(Duration::from_secs(2));
    settle(bed.store());
    assert_eq!(bed.store().verify().unwrap().receipts, 0);
    assert_eq!(bed.store().stats().stopped, None);
    bed.store().assert_sound();
}

#[test]
fn an_expired_receipt_whose_retention_was_never_ends_by_no_sweep() {
    const EVER: OperationType =
        OperationType::new("ever").retention(Retention { replay: Duration::MAX, refuse: Duration::MAX });
    let bed = bed_of(|| builder().operation(&EVER));
    drop(execute(bed.store(), &EVER, "k").unwrap());
    for _ in 0..10 {
        bed.clock().advance(1_000 * YEAR);
        settle(bed.store());
    }
    assert!(bed.store().execute(op(&EVER, "acme", "k"), never).unwrap().is_replayed());
    bed.store().assert_sound();
}
