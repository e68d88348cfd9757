//! What the builder refuses, before anything is made.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::SimDisk;
use counterfoil::{
    Invalid, Key, Limits, OpenError, OperationType, RECORD_BYTES_CEILING, Retention, Slot, Store, StoreBuilder,
};

/// The words of the refusal; nothing was made.
fn refused(builder: StoreBuilder) -> String {
    let disk = SimDisk::new();
    match builder.open_in(&disk) {
        Err(OpenError::Config(words)) => {
            assert_eq!(disk.calls(), 0, "the disk was not touched");
            words
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn limits_that_cannot_be_are_named() {
    type Change = fn(&mut Limits);
    let rows: [(&str, Change); 15] = [
        ("reply_bytes_max", |limits| limits.reply_bytes_max = 0),
        ("record_bytes_max", |limits| limits.record_bytes_max = 0),
        ("row_key_bytes_max", |limits| limits.row_key_bytes_max = 0),
        ("row_bytes_max", |limits| limits.row_bytes_max = 0),
        ("operation_rows_max", |limits| limits.operation_rows_max = 0),
        ("queue_operations_max", |limits| limits.queue_operations_max = 0),
        ("queue_bytes_max", |limits| limits.queue_bytes_max = 0),
        ("queue_tenant_operations_max", |limits| limits.queue_tenant_operations_max = 0),
        ("batch_operations_max", |limits| limits.batch_operations_max = 0),
        ("batch_bytes_max", |limits| limits.batch_bytes_max = 0),
        ("fold_bytes", |limits| limits.fold_bytes = 0),
        ("record_bytes_max", |limits| limits.record_bytes_max = RECORD_BYTES_CEILING + 1),
        ("reply_bytes_max", |limits| limits.reply_bytes_max = limits.record_bytes_max + 1),
        ("row_bytes_max", |limits| limits.row_bytes_max = limits.record_bytes_max + 1),
        ("map_bytes_max", |limits| limits.map_bytes_max = limits.fold_bytes - 1),
    ];
    for (name, change) in rows {
        let mut limits = Limits::default();
        change(&mut limits);
        let words = refused(builder().limits(limits));
        assert!(words.contains(name), "{name}: {words}");
    }
}

#[test]
fn operation_types_that_cannot_be_are_named() {
    const NINE: OperationType = OperationType::new("nine").version(10).accepts(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const EIGHT: OperationType = OperationType::new("eight").version(10).accepts(&[1, 2, 3, 4, 5, 6, 7, 8]);
    const ITSELF: OperationType = OperationType::new("itself").version(2).accepts(&[2]);
    const LATER: OperationType = OperationType::new("later").version(2).accepts(&[1, 3]);
    const LONG: OperationType =
        OperationType::new("a-name-of-more-than-sixty-four-bytes-which-is-what-it-may-have-at-most");
    let rows: [(&OperationType, &str); 6] = [
        (&OperationType::new(""), "empty"),
        (&OperationType::new(" \t"), "blank"),
        (&LONG, "64"),
        (&NINE, "8"),
        (&ITSELF, "version 2"),
        (&LATER, "version 3"),
    ];
    for (operation_type, word) in rows {
        let words = refused(builder().operation(operation_type));
        assert!(words.contains(word), "{words}");
    }
    assert!(refused(builder().operation(&ADD)).contains("twice"));
    assert!(refused(builder().operation(&ADD.version(2))).contains("twice"), "a version is not another type");
    builder().operation(&EIGHT).open_in(&SimDisk::new()).unwrap().close().unwrap();
}

#[test]
fn a_retention_below_the_retry_horizon_and_the_tolerance_is_refused() {
    let of = |replay: u64, refuse: u64, horizon: u64| {
        let retention = Retention { replay: Duration::from_secs(replay), refuse: Duration::from_secs(refuse) };
        Store::builder()
            .operation(&OperationType::new("pay").retention(retention))
            .retry_horizon(Duration::from_secs(horizon))
            .clock_tolerance(Duration::from_secs(10))
    };
    for (replay, refuse, horizon) in [(50, 59, 100), (0, 109, 100), (109, 0, 100), (0, 0, 1)] {
        assert!(refused(of(replay, refuse, horizon)).contains("pay"), "{replay} {refuse} {horizon}");
    }
    for (replay, refuse, horizon) in [(50, 60, 100), (0, 110, 100), (110, 0, 100), (0, 0, 0)] {
        of(replay, refuse, horizon).open_in(&SimDisk::new()).unwrap().close().unwrap();
    }
}

#[test]
fn a_header_that_is_none_is_refused_and_so_are_credentials() {
    for name in ["", "x y", "x:y", "ä"] {
        assert!(refused(builder().allow_header(name)).contains("header"), "{name:?}");
    }
    assert!(refused(builder().allow_header("Set-Cookie")).contains("credentials"));
    let reply = counterfoil::Reply::ok().header("set-cookie", "x");
    assert!(matches!(reply, Err(Invalid::HeaderForbidden(_))));
}

#[test]
fn empty_blank_and_overlong_parts_of_a_slot_are_refused_at_every_door() {
    let long = "x".repeat(257);
    for (tenant, actor, key) in [
        ("", "a", "k"),
        (" ", "a", "k"),
        ("t", "", "k"),
        ("t", "\u{a0}", "k"),
        ("t", "a", ""),
        ("t", "a", "\t\n "),
        (&long, "a", "k"),
        ("t", &long, "k"),
        ("t", "a", &long),
    ] {
        assert!(ADD.request(tenant, actor, key).is_err(), "{tenant:?} {actor:?} {key:?}");
        assert!(Slot::new(tenant, actor, "add", key).is_err());
    }
    assert!(Key::new([b'k'; 255]).is_ok() && Key::new([0xff]).is_ok());
}
