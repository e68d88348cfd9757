//! Time: what is forgotten, and what a wrong clock does not do.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival, TestBed, VirtualClock, WALL_AT_START};
use counterfoil::{ClockState, Error, OperationType, Retention, StoreBuilder, TimestampMs};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
const KEEP: OperationType = OperationType::new("keep").retention(Retention { replay: HOUR, refuse: HOUR });
const LONG: OperationType =
    OperationType::new("long").retention(Retention { replay: Duration::from_secs(20 * 24 * 3600), refuse: DAY });
const EVER: OperationType =
    OperationType::new("ever").retention(Retention { replay: Duration::MAX, refuse: Duration::MAX });
const NEVER: OperationType = OperationType::new("never").retention(Retention { replay: Duration::ZERO, refuse: HOUR });

fn kept() -> StoreBuilder {
    builder().operation(&KEEP).operation(&LONG).operation(&EVER).operation(&NEVER)
}

fn keep() -> counterfoil::Operation {
    typed_op(&KEEP, "acme", "k", 1)
}

fn reopen(bed: &mut TestBed, crash: bool) {
    if crash { bed.crash_and_reopen(&Survival::Nothing) } else { bed.close_and_reopen() }.expect("it opens");
}

#[test]
fn a_clock_that_steps_back_reopens_nothing() {
    for crash in [false, true] {
        let mut bed = bed_of(kept);
        drop(bed.store().execute(keep(), add("n")).unwrap());
        bed.clock().advance(HOUR);
        assert!(matches!(bed.store().execute(keep(), never), Err(Error::Gone(_))));
        // While it is open the wall clock does not matter.
        let now = bed.store().now();
        bed.clock().set_wall(WALL_AT_START);
        assert_eq!(bed.store().now(), now);
        let other = bed.store().execute(op("other"), add("n")).unwrap();
        assert_eq!((other.meta().completed_at, other.meta().completed_at_wall), (now, WALL_AT_START));
        reopen(&mut bed, crash);
        assert!(bed.store().now() >= now, "crash {crash}");
        assert_eq!(bed.store().stats().clock, ClockState::Behind(HOUR), "crash {crash}");
        assert!(matches!(bed.store().execute(keep(), never), Err(Error::Gone(_))), "crash {crash}");
        // It goes on from there by the monotonic clock.
        bed.clock().advance(HOUR);
        let again = bed.store().execute(keep(), add("n")).unwrap();
        assert!(!again.is_replayed() && again.meta().completed_at == now.saturating_add(HOUR));
        bed.store().assert_sound();
    }
}

#[test]
fn a_clock_that_is_ten_years_ahead_forgets_nothing() {
    for crash in [false, true] {
        let mut bed = bed_of(kept);
        drop(bed.store().execute(typed_op(&LONG, "acme", "k", 1), add("n")).unwrap());
        // While it is open, a leap of the wall clock is nothing.
        bed.clock().set_wall(WALL_AT_START.saturating_add(10 * YEAR));
        assert!(bed.store().execute(typed_op(&LONG, "acme", "k", 1), never).unwrap().is_replayed());
        reopen(&mut bed, crash);
        assert_eq!(bed.store().now(), WALL_AT_START.saturating_add(7 * DAY));
        assert_eq!(bed.store().stats().clock, ClockState::Ahead(10 * YEAR - 7 * DAY), "crash {crash}");
        assert!(bed.store().execute(typed_op(&LONG, "acme", "k", 1), never).unwrap().is_replayed());
        bed.store().assert_sound();
    }
}

#[test]
fn a_store_that_is_opened_often_under_a_wrong_clock_forgets_only_by_its_own_time() {
    let mut bed = bed_of(kept);
    drop(bed.store().execute(typed_op(&EVER, "acme", "k", 1), add("n")).unwrap());
    bed.clock().set_wall(WALL_AT_START.saturating_add(100 * YEAR));
    for _ in 0..3 {
        reopen(&mut bed, false);
        assert!(bed.store().execute(typed_op(&EVER, "acme", "k", 1), never).unwrap().is_replayed());
    }
    bed.store().assert_sound();
}

#[test]
fn a_frozen_clock_and_a_clock_at_zero_are_fine() {
    for wall in [WALL_AT_START, TimestampMs(0), TimestampMs(u64::MAX)] {
        let (disk, clock) = (SimDisk::new(), VirtualClock::new(wall));
        let open = || kept().manual().clock(clock.clone()).open_in(&disk).unwrap();
        let store = open();
        for key in 0..20 {
            drop(store.execute(op(&key.to_string()), add("n")).unwrap());
        }
        store.close().unwrap();
        let store = open();
        assert_eq!((total(&store, "n"), store.now()), (20, wall));
        store.assert_sound();
    }
}

#[test]
fn a_retention_that_overflows_keeps_for_ever_and_one_of_zero_never_replays() {
    let mut bed = bed_of(kept);
    drop(bed.store().execute(typed_op(&EVER, "acme", "k", 1), add("n")).unwrap());
    drop(bed.store().execute(typed_op(&NEVER, "acme", "k", 1), add("n")).unwrap());
    assert!(matches!(bed.store().execute(typed_op(&NEVER, "acme", "k", 1), never), Err(Error::Gone(_))));
    bed.clock().advance(1000 * YEAR);
    assert!(bed.store().execute(typed_op(&EVER, "acme", "k", 1), never).unwrap().is_replayed());
    bed.store().assert_sound();
    reopen(&mut bed, true);
    assert!(bed.store().execute(typed_op(&EVER, "acme", "k", 1), never).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn times_of_receipts_never_go_back_and_closures_see_the_stores_time() {
    let mut bed = bed_of(kept);
    let mut last = TimestampMs(0);
    for (number, wall) in [0, 5_000_000, 1_000, 9_000_000_000, 2].into_iter().enumerate() {
        bed.clock().set_wall(TimestampMs(WALL_AT_START.0 + wall));
        if number % 2 == 1 {
            reopen(&mut bed, number % 4 == 1);
        }
        let receipt = bed.store().execute(op(&number.to_string()), |tx: &counterfoil::Tx<'_>| {
            Ok(counterfoil::Reply::ok().json(&tx.now().0)?)
        });
        let receipt = receipt.unwrap();
        assert!(receipt.meta().completed_at >= last);
        last = receipt.meta().completed_at;
        assert_eq!(receipt.reply().body_json::<u64>().unwrap(), last.0);
    }
}

#[test]
fn weeks_of_good_time_without_a_checkpoint_are_not_taken_for_a_leap() {
    let mut bed = bed_of(kept);
    for day in 0..20 {
        bed.clock().advance(DAY);
        drop(bed.store().execute(op(&format!("day {day}")), add("n")).unwrap());
    }
    let now = bed.store().now();
    reopen(&mut bed, true);
    assert_eq!((bed.store().stats().clock, bed.store().now()), (ClockState::Good, now));
    bed.clock().advance(DAY);
    reopen(&mut bed, true);
    assert_eq!(bed.store().stats().clock, ClockState::Good);
}
