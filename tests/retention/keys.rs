//! Keys that say when they were minted.

use crate::support::*;
use counterfoil::testing::{TestBed, WALL_AT_START};
use counterfoil::{Error, Invalid, KeyForm, OpenError, OperationType, Retention, Store, StoreBuilder, TimestampMs};

const PAY: OperationType =
    OperationType::new("pay").retention(Retention { replay: HOUR, refuse: DAY }).time_ordered_keys(KeyForm::Uuid7, DAY);
const SHIP: OperationType =
    OperationType::new("ship").retention(Retention { replay: HOUR, refuse: DAY }).time_ordered_keys(KeyForm::Ulid, DAY);

fn timed() -> StoreBuilder {
    builder().operation(&PAY).operation(&SHIP)
}

fn uuid_at(minted: TimestampMs) -> String {
    format!("{:08x}-{:04x}-7707-8707-070707070707", minted.0 >> 16, minted.0 & 0xffff)
}

fn pay(bed: &TestBed, key: &str) -> Result<counterfoil::Receipt, Error> {
    bed.store().execute(op(&PAY, "acme", key), run("pay"))
}

#[test]
fn a_key_older_than_the_horizon_is_refused_with_nothing_stored_and_the_stores_time() {
    let bed = bed_of(timed);
    let key = uuid_at(WALL_AT_START);
    bed.clock().advance(DAY);
    match pay(&bed, &key) {
        Err(Error::Expired { store_time }) => assert_eq!(store_time, bed.store().now()),
        other => panic!("{other:?}"),
    }
    assert_eq!((runs(bed.store()), bed.store().verify().unwrap().receipts), (0, 0));
}

#[test]
fn a_retry_after_its_receipt_was_forgotten_never_executes_again() {
    let bed = bed_of(timed);
    let key = uuid_at(WALL_AT_START);
    drop(pay(&bed, &key).unwrap());
    for hours in 0..60 {
        let answer = pay(&bed, &key);
        match (hours, answer) {
            (0, Ok(receipt)) => assert!(receipt.is_replayed()),
            (1..25, Err(Error::Gone(_))) | (25.., Err(Error::Expired { .. })) => {}
            (hours, other) => panic!("after {hours} hours: {other:?}"),
        }
        bed.clock().advance(HOUR);
        settle(bed.store());
    }
    assert_eq!(runs(bed.store()), 1);
    bed.store().assert_sound();
}

#[test]
fn a_key_from_the_future_is_refused_beyond_what_clocks_may_disagree() {
    let bed = bed_of(timed);
    let minute = std::time::Duration::from_secs(60);
    assert!(pay(&bed, &uuid_at(WALL_AT_START.saturating_add(5 * minute))).is_ok());
    let minted = WALL_AT_START.saturating_add(6 * minute);
    match pay(&bed, &uuid_at(minted)) {
        Err(Error::FromTheFuture { minted_at, store_time }) => {
            assert_eq!((minted_at, store_time), (minted, bed.store().now()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(runs(bed.store()), 1);
}

#[test]
fn an_old_key_does_not_become_young_when_either_clock_goes_back() {
    let mut bed = bed_of(timed);
    let key = uuid_at(WALL_AT_START);
    bed.clock().advance(DAY);
    drop(execute(bed.store(), &KEEP, "moves the mark").unwrap());
    bed.clock().set_wall(WALL_AT_START);
    assert!(matches!(pay(&bed, &key), Err(Error::Expired { .. })));
    reopen(&mut bed, true);
    assert!(matches!(pay(&bed, &key), Err(Error::Expired { .. })));
    // And the wall clock counts where the store's time is behind it.
    bed.clock().set_wall(WALL_AT_START.saturating_add(100 * DAY));
    reopen(&mut bed, true);
    let yesterday = uuid_at(WALL_AT_START.saturating_add(98 * DAY));
    assert!(matches!(pay(&bed, &yesterday), Err(Error::Expired { .. })));
}

#[test]
fn a_key_of_another_form_is_refused_at_the_door() {
    let bed = bed_of(timed);
    for key in ["order-1", "0e1b4f5c-3c63-4a31-9b5d-0f7b54b1f2aa"] {
        let refused = pay(&bed, key);
        assert!(matches!(refused, Err(Error::Invalid(Invalid::KeyForm { form: "UUID of version 7" }))), "{refused:?}");
    }
    let refused = bed.store().execute(op(&SHIP, "acme", uuid_at(WALL_AT_START)), never);
    assert!(matches!(refused, Err(Error::Invalid(Invalid::KeyForm { form: "ULID" }))), "{refused:?}");
}

#[test]
fn a_store_that_forgets_sooner_than_its_keys_grow_too_old_is_not_opened() {
    const SHORT: OperationType = OperationType::new("short")
        .retention(Retention { replay: HOUR, refuse: HOUR })
        .time_ordered_keys(KeyForm::Ulid, HOUR.saturating_mul(2));
    let refused = TestBed::new(|| Store::builder().operation(&SHORT)).unwrap_err();
    assert!(matches!(&refused, OpenError::Config(text) if text.contains("short")), "{refused}");
}
