//! A clock that cannot hurt: while it is in doubt nothing is deleted, and a person may accept it.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::WALL_AT_START;
use counterfoil::{ClockState, EntryKind, Error, LogStart, OperationType, Retention};

const LONG: OperationType = OperationType::new("long").retention(Retention { replay: YEAR, refuse: DAY });

#[test]
fn while_the_wall_clock_is_in_doubt_nothing_is_deleted_and_answers_are_as_ever() {
    for wall in [WALL_AT_START.saturating_add(10 * YEAR), counterfoil::TimestampMs(WALL_AT_START.0 - 3_600_000)] {
        let bed = bed();
        drop(execute(bed.store(), &KEEP, "k").unwrap());
        bed.clock().advance(HOUR);
        bed.clock().set_wall(wall);
        assert_ne!(bed.store().stats().clock, ClockState::Good);
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 0);
        let told = bed.store().sweep(|_| ()).unwrap();
        assert_eq!((told.rows, told.paused), (0, Some(bed.store().stats().clock)));
        assert!(matches!(bed.store().execute(op(&KEEP, "acme", "k"), never), Err(Error::Gone(_))));
        // It comes right by itself.
        bed.clock().set_wall(bed.store().now());
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 1);
        bed.store().assert_sound();
    }
}

#[test]
fn a_frozen_wall_clock_is_seen_and_the_stores_time_goes_on() {
    let bed = bed();
    drop(execute(bed.store(), &KEEP, "k").unwrap());
    bed.clock().advance(HOUR);
    bed.clock().set_wall(WALL_AT_START);
    assert_eq!(bed.store().stats().clock, ClockState::Behind(HOUR));
    assert!(matches!(bed.store().execute(op(&KEEP, "acme", "k"), never), Err(Error::Gone(_))));
}

#[test]
fn a_store_that_was_closed_for_a_year_forgets_when_a_person_says_so() {
    for crash in [false, true] {
        let mut bed = bed_of(|| builder().operation(&LONG));
        drop(execute(bed.store(), &KEEP, "k").unwrap());
        drop(execute(bed.store(), &LONG, "long").unwrap());
        let store_time = bed.store().now();
        settle(bed.store());
        bed.clock().set_wall(WALL_AT_START.saturating_add(YEAR));
        reopen(&mut bed, crash);
        assert_eq!(bed.store().stats().clock, ClockState::Ahead(YEAR - 7 * DAY));
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 0);
        assert!(bed.store().execute(op(&LONG, "acme", "long"), never).unwrap().is_replayed());

        let accepted = bed.store().accept_clock(Some("ann"), "the machine was in a cupboard").unwrap();
        assert_eq!(accepted.before, ClockState::Ahead(YEAR - 7 * DAY));
        assert_eq!(accepted.store_time, store_time.saturating_add(YEAR));
        assert_eq!(bed.store().stats().clock, ClockState::Good);
        assert!(matches!(bed.store().execute(op(&LONG, "acme", "long"), never), Err(Error::Gone(_))));
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 3, "the reply and the receipt of one, the reply of the other");
        reopen(&mut bed, crash);
        assert_eq!(bed.store().stats().clock, ClockState::Good, "crash {crash}");
        assert!(bed.store().now() >= accepted.store_time, "crash {crash}");
        let mut log = bed.store().log(LogStart::Oldest).unwrap();
        let decided = std::iter::from_fn(|| log.try_next().unwrap()).find_map(|entry| {
            let EntryKind::ClockAccepted { decided_by, reason } = entry.kind else { return None };
            Some((entry.position, decided_by, reason))
        });
        let reason = "the machine was in a cupboard".to_owned();
        assert_eq!(decided, Some((accepted.position, Some("ann".to_owned()), reason)));
        bed.store().assert_sound();
    }
}

#[test]
fn a_clock_that_is_behind_is_accepted_without_going_back_and_across_a_restart() {
    for crash in [false, true] {
        let mut bed = bed();
        drop(execute(bed.store(), &KEEP, "k").unwrap());
        bed.clock().advance(2 * HOUR);
        drop(execute(bed.store(), &KEEP, "other").unwrap());
        settle(bed.store());
        let now = bed.store().now();
        bed.clock().set_wall(WALL_AT_START);
        reopen(&mut bed, crash);
        let behind = bed.store().now().since(WALL_AT_START);
        assert_eq!(bed.store().stats().clock, ClockState::Behind(behind));
        let accepted = bed.store().accept_clock(None, "it was set right").unwrap();
        assert!(accepted.store_time >= now, "the store's time does not go back");
        assert_eq!(bed.store().stats().clock, ClockState::Good);
        reopen(&mut bed, crash);
        assert_eq!(bed.store().stats().clock, ClockState::Good, "crash {crash}");
        bed.clock().advance(HOUR);
        settle(bed.store());
        assert_eq!(bed.store().stats().swept, 1, "deletion goes on");
        // One that falls further behind is again in doubt.
        bed.clock().set_wall(WALL_AT_START);
        assert!(matches!(bed.store().stats().clock, ClockState::Behind(_)));
        bed.store().assert_sound();
    }
}

#[test]
fn deadlines_that_overflow_keep_for_ever_however_far_a_person_lets_the_clock_leap() {
    const EVER: OperationType =
        OperationType::new("ever").retention(Retention { replay: Duration::MAX, refuse: Duration::MAX });
    let mut bed = bed_of(|| builder().operation(&EVER));
    drop(execute(bed.store(), &EVER, "k").unwrap());
    bed.clock().set_wall(counterfoil::TimestampMs(u64::MAX - 1_000_000));
    let accepted = bed.store().accept_clock(None, "the end of time").unwrap();
    assert_eq!(accepted.store_time.0, u64::MAX - 1_000_000);
    settle(bed.store());
    reopen(&mut bed, true);
    assert!(bed.store().execute(op(&EVER, "acme", "k"), never).unwrap().is_replayed());
    bed.store().assert_sound();
}
