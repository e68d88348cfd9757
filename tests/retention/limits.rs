//! Quotas of tenants, redaction, and replies of short validity.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::TestBed;
use counterfoil::{Error, Execution, Quota, Reply, StoreBuilder, Tx};

fn quota(receipts: u64, bytes: u64) -> impl Fn() -> StoreBuilder {
    move || builder().quota(Quota { receipts, bytes }).tenant_quota("large", Quota::UNBOUNDED)
}

#[test]
fn a_tenant_at_its_quota_is_refused_the_newest_and_keeps_what_is_living() {
    let bed = bed_of(quota(3, u64::MAX));
    for key in ["a", "b", "c"] {
        drop(execute(bed.store(), &KEEP, key).unwrap());
    }
    let refused = bed.store().execute(op(&KEEP, "acme", "d"), never).unwrap_err();
    assert!(matches!(refused, Error::QuotaExceeded { what: "receipts", actual: 4, limit: 3 }), "{refused:?}");
    assert_eq!((refused.execution(), refused.is_retryable()), (Execution::NotExecuted, true));
    for key in ["a", "b", "c"] {
        assert!(bed.store().execute(op(&KEEP, "acme", key), never).unwrap().is_replayed(), "replays cost nothing");
    }
    for number in 0..10 {
        drop(bed.store().execute(op(&KEEP, "large", number.to_string()), run("other tenant")).unwrap());
    }
    bed.store().assert_sound();
}

#[test]
fn a_quota_gives_back_exactly_what_it_took_also_across_crashes() {
    for crash in [false, true] {
        let mut bed = bed_of(quota(3, u64::MAX));
        for round in 0..4 {
            for number in 0..3 {
                drop(execute(bed.store(), &KEEP, &format!("{round} {number}")).unwrap());
            }
            reopen(&mut bed, crash);
            assert!(matches!(execute(bed.store(), &KEEP, "more"), Err(Error::QuotaExceeded { .. })), "crash {crash}");
            // Tombstones count as well: they keep the key.
            bed.clock().advance(HOUR);
            settle(bed.store());
            assert!(matches!(execute(bed.store(), &KEEP, "more"), Err(Error::QuotaExceeded { .. })), "crash {crash}");
            bed.clock().advance(HOUR);
            settle(bed.store());
            bed.store().assert_sound();
        }
    }
}

#[test]
fn the_bytes_of_replies_count_until_they_are_swept() {
    let bed = bed_of(quota(u64::MAX, 3_000));
    let large = |_: &Tx<'_>| Ok(Reply::ok().bytes("text/plain", vec![b'x'; 2_000]));
    drop(bed.store().execute(op(&KEEP, "acme", "a"), large).unwrap());
    let refused = bed.store().execute(op(&KEEP, "acme", "b"), large).unwrap_err();
    assert!(matches!(refused, Error::QuotaExceeded { what: "bytes", limit: 3_000, .. }), "{refused:?}");
    drop(execute(bed.store(), &KEEP, "small").unwrap());
    bed.clock().advance(HOUR);
    settle(bed.store());
    drop(bed.store().execute(op(&KEEP, "acme", "b"), large).unwrap());
    bed.store().assert_sound();
}

#[test]
fn a_key_that_is_executed_again_after_it_was_forgotten_counts_once() {
    let bed = bed_of(quota(1, u64::MAX));
    for _ in 0..3 {
        drop(execute(bed.store(), &KEEP, "k").unwrap());
        bed.clock().advance(2 * HOUR);
        settle(bed.store());
    }
    bed.store().assert_sound();
}

fn redacted() -> StoreBuilder {
    builder().redact(|_, reply| {
        if reply.body().starts_with(b"secret") {
            let status = reply.status();
            *reply = Reply::new(status).expect("it was one").bytes("text/plain", "shown once");
        }
    })
}

#[test]
fn a_secret_is_shown_once_and_a_replay_says_that_it_was_taken_out() {
    for crash in [false, true] {
        let mut bed = bed_of(redacted);
        let secret = |_: &Tx<'_>| Ok(Reply::created().bytes("text/plain", "secret 4711"));
        let first = bed.store().execute(op(&KEEP, "acme", "k"), secret).unwrap();
        assert_eq!(first.reply().body(), b"secret 4711");
        assert!(first.meta().redacted);
        reopen(&mut bed, crash);
        let replay = bed.store().execute(op(&KEEP, "acme", "k"), never).unwrap();
        assert_eq!((replay.reply().body(), replay.reply().status()), (&b"shown once"[..], 201));
        assert!(replay.is_replayed() && replay.meta().redacted);
        let plain = execute(bed.store(), &KEEP, "plain").unwrap();
        assert!(!plain.meta().redacted);
        for (name, bytes) in bed.disk().files() {
            assert!(!bytes.windows(11).any(|window| window == b"secret 4711"), "{name} has the secret");
        }
        bed.store().assert_sound();
    }
}

#[test]
fn a_redaction_that_panics_is_the_operations_panic_and_stores_nothing() {
    let bed = bed_of(|| builder().redact(|_, _| panic!("no such field")));
    let refused = execute(bed.store(), &KEEP, "k").unwrap_err();
    assert!(matches!(&refused, Error::Panicked { message } if message.contains("no such field")), "{refused:?}");
    assert_eq!((runs(bed.store()), bed.store().verify().unwrap().receipts), (0, 0));
}

#[test]
fn a_reply_of_short_validity_is_gone_after_it_and_is_never_executed_again() {
    let minute = Duration::from_secs(60);
    let held = move |_: &Tx<'_>| Ok(Reply::created().resource_id("seat/7").allowed_for(minute));
    let bed: TestBed = bed();
    let first = bed.store().execute(op(&KEEP, "acme", "k"), held).unwrap();
    assert_eq!(first.meta().replay_until, first.meta().completed_at.saturating_add(minute));
    bed.clock().advance(minute - MS);
    let replay = bed.store().execute(op(&KEEP, "acme", "k"), never).unwrap();
    assert_eq!(replay.reply(), first.reply());
    bed.clock().advance(MS);
    match bed.store().execute(op(&KEEP, "acme", "k"), never) {
        Err(Error::Gone(gone)) => assert_eq!(gone.resource_id.as_deref(), Some("seat/7")),
        other => panic!("{other:?}"),
    }
    bed.clock().advance(2 * HOUR - minute - MS);
    assert!(
        matches!(bed.store().execute(op(&KEEP, "acme", "k"), never), Err(Error::Gone(_))),
        "as long as the type says"
    );
    bed.store().assert_sound();
}
