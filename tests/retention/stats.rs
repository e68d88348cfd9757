//! What the stats and `explain` show.

use std::time::Duration;

use crate::support::*;
use counterfoil::{Error, KeyEventKind, Limits, NextAnswer, Outcome, Quota, Slot};

fn slot(key: &str) -> Slot {
    Slot::new("acme", "alice", "keep", key).expect("a slot")
}

#[test]
fn late_retries_are_counted_by_age_and_suggest_a_window_that_would_have_answered_them() {
    let bed = bed();
    for key in ["a", "b", "c"] {
        drop(execute(bed.store(), &KEEP, key).unwrap());
    }
    assert_eq!(bed.store().stats().late_retries.suggest_replay(0.99), None, "nobody came too late");
    bed.clock().advance(HOUR + Duration::from_secs(600));
    for key in ["a", "b"] {
        assert!(matches!(bed.store().execute(op(&KEEP, "acme", key), never), Err(Error::Gone(_))));
    }
    let late = bed.store().stats().late_retries;
    assert_eq!(late.count(), 2);
    let age = late.age(1.0).unwrap();
    assert!(HOUR <= age && age < 2 * HOUR, "{age:?}");
    assert_eq!(late.suggest_replay(0.99), Some(2 * HOUR));
}

#[test]
fn the_numbers_of_batches_syncs_folds_and_refusals_are_those_of_what_happened() {
    let bed = bed_of(|| {
        let mut limits = Limits::default();
        limits.fold_bytes = 2_000;
        limits.checkpoint_log_bytes = 1;
        builder().limits(limits).quota(Quota { receipts: 10, bytes: u64::MAX })
    });
    for number in 0..10 {
        drop(execute(bed.store(), &KEEP, &number.to_string()).unwrap());
    }
    assert!(matches!(execute(bed.store(), &KEEP, "more"), Err(Error::QuotaExceeded { .. })));
    settle(bed.store());
    let stats = bed.store().stats();
    assert_eq!((stats.executed, stats.quota_refusals, stats.failed), (10, 1, 1));
    assert!(stats.sync.count() >= 10 && stats.batch_operations.count() == stats.sync.count(), "{stats:?}");
    assert_eq!(stats.batch_operations.quantile(1.0), Some(1));
    assert_eq!(stats.checkpoint.count(), stats.checkpoints);
    assert!(stats.checkpoints > 0 && stats.checkpoint_age == Some(Duration::ZERO), "{stats:?}");
    assert!(stats.state_bytes > 0 && stats.fold_lag < stats.position.sequence, "{stats:?}");
    bed.clock().advance(HOUR);
    assert_eq!(bed.store().stats().checkpoint_age, Some(HOUR));
}

#[test]
fn a_key_is_explained_from_its_execution_to_what_a_retry_is_answered_now() {
    for crash in [false, true] {
        let mut bed = bed();
        let first = bed.store().execute(op(&KEEP, "acme", "k").attempt(2).trace_id("t-1").unwrap(), run("k")).unwrap();
        drop(execute(bed.store(), &KEEP, "other").unwrap());
        for _ in 0..3 {
            assert!(bed.store().execute(op(&KEEP, "acme", "k"), never).unwrap().is_replayed());
        }
        let other = KEEP.request("acme", "alice", "k").unwrap().json(&2).unwrap();
        assert!(matches!(bed.store().execute(other, never), Err(Error::Conflict { .. })));

        let told = bed.store().explain(&slot("k"), |_, _| ()).unwrap();
        assert_eq!(told.now, NextAnswer::Replay { until: first.meta().replay_until });
        assert_eq!(told.receipt.as_ref(), Some(first.meta()));
        let activity = told.activity.unwrap();
        assert_eq!((activity.replays, activity.conflicts), (3, 1));
        let [event] = &told.events[..] else { panic!("{:?}", told.events) };
        assert_eq!(event.position, first.position());
        let trace_id = Some("t-1".to_owned());
        assert_eq!(
            event.kind,
            KeyEventKind::Executed { outcome: Outcome::Completed, status: 201, attempt: 2, trace_id }
        );

        reopen(&mut bed, crash);
        let told = bed.store().explain(&slot("k"), |_, _| ()).unwrap();
        let counted = told.activity.map(|activity| (activity.replays, activity.conflicts));
        // A clean close writes down what was counted; a crash may forget it, and never makes it more.
        assert_eq!(counted, if crash { None } else { Some((3, 1)) }, "crash {crash}");
        bed.clock().advance(HOUR);
        let told = bed.store().explain(&slot("k"), |_, _| ()).unwrap();
        assert_eq!(told.now, NextAnswer::Gone { until: first.meta().refuse_until });
        bed.clock().advance(HOUR);
        settle(bed.store());
        let told = bed.store().explain(&slot("k"), |_, _| ()).unwrap();
        assert_eq!((told.now, told.receipt, told.activity), (NextAnswer::Execute, None, None));
        assert_eq!(told.events.len(), 1, "the log remembers longer");
        bed.store().assert_sound();
    }
}

#[test]
fn a_key_is_found_in_every_scope_that_has_it() {
    let bed = bed();
    for tenant in ["zeta", "acme"] {
        drop(bed.store().execute(op(&KEEP, tenant, "k"), run("k")).unwrap());
    }
    drop(execute(bed.store(), &KEEP, "other").unwrap());
    let key = slot("k").key;
    let tenants: Vec<_> = bed.store().slots_of_key(&key).unwrap().into_iter().map(|slot| slot.tenant).collect();
    assert_eq!(tenants.iter().map(counterfoil::Tenant::as_str).collect::<Vec<_>>(), ["acme", "zeta"]);
}

#[test]
fn replays_of_more_keys_than_are_counted_are_answered_and_the_table_stays_bounded() {
    let bed = bed();
    for number in 0..1_100 {
        let key = format!("k{number}");
        drop(execute(bed.store(), &KEEP, &key).unwrap());
        assert!(bed.store().execute(op(&KEEP, "acme", &key), never).unwrap().is_replayed());
    }
    let counted =
        (0..1_100).filter(|n| bed.store().explain(&slot(&format!("k{n}")), |_, _| ()).unwrap().activity.is_some());
    assert_eq!(counted.count(), 1_024);
    bed.store().assert_sound();
}
