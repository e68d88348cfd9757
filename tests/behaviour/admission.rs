//! What a submission is answered, by what is stored under its slot: the admission table, end to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::*;
use counterfoil::testing::Survival;
use counterfoil::{Decision, Error, Execution, OperationType, Outcome, Reply, Retention, Slot, Store, Tx};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);
const KEEP: OperationType = OperationType::new("keep").retention(Retention { replay: HOUR, refuse: HOUR });

fn kept() -> counterfoil::StoreBuilder {
    builder().operation(&KEEP).allow_header("x-shop")
}

fn full_reply() -> Reply {
    let reply = Reply::new(418).expect("valid").resource_id("orders/7");
    let reply = reply.header("Location", "/orders/7").expect("valid").header("x-shop", "north").expect("valid");
    reply.bytes("application/octet-stream", [0_u8, 255, 10, 13])
}

#[test]
fn a_replay_equals_the_first_answer_to_the_byte_and_is_marked() {
    let mut bed = bed_of(kept);
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let first_op = typed_op(&KEEP, "acme", "k", 1).attempt(3).trace_id(trace).unwrap();
    let first = bed.store().execute(first_op, |_: &Tx<'_>| Ok(full_reply())).unwrap();
    assert!(!first.is_replayed());
    assert_eq!(first.reply(), &full_reply());
    bed.clock().advance(HOUR - MS);

    let retry = || typed_op(&KEEP, "acme", "k", 1).attempt(4).trace_id("another").unwrap();
    let check = |store: &Store, by: &str| {
        for again in [
            store.execute(retry(), never).unwrap(),
            store.submit(retry(), never).unwrap().wait().unwrap(),
            store.receipt(first.slot()).unwrap().unwrap(),
        ] {
            assert!(again.is_replayed(), "{by}");
            assert_eq!((again.reply(), again.meta()), (first.reply(), first.meta()), "{by}");
            assert_eq!((again.position(), again.slot()), (first.position(), first.slot()), "{by}");
            assert_eq!(again.meta().attempt, 3, "the attempt that executed");
            assert_eq!(again.meta().trace_id.as_deref(), Some(trace));
        }
    };
    check(bed.store(), "from the map");
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    check(bed.store(), "after a loss of power");
    bed.close_and_reopen().unwrap();
    check(bed.store(), "from the state file");
    bed.store().assert_sound();
}

#[test]
fn a_conflict_shows_nothing_of_the_earlier_request() {
    let bed = bed();
    let secret = ADD.request("acme", "alice", "k").unwrap().json(&"card 4711").unwrap();
    drop(bed.store().execute(secret, |_: &Tx<'_>| Ok(Reply::ok().json("paid 815")?)).unwrap());
    let error = bed.store().execute(op("k"), never).unwrap_err();
    assert!(matches!(error, Error::Conflict { stored_version: None }), "{error:?}");
    assert_eq!(error.execution(), Execution::NotExecuted);
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("4711") && !text.contains("815"), "{text}");
    }
    assert_eq!(bed.store().stats().conflicts, 1);
}

#[test]
fn a_receipt_answers_by_its_two_deadlines_exact_to_the_millisecond() {
    // Milliseconds since completion, the same request, another request, a look-up.
    let rows = [
        (0, "replay", "conflict", "replay"),
        (3_599_999, "replay", "conflict", "replay"),
        (3_600_000, "gone", "conflict", "gone"),
        (7_199_999, "gone", "conflict", "gone"),
        (7_200_000, "execute", "execute", "nothing"),
    ];
    for (ms, same, other, look_up) in rows {
        for with_same in [true, false] {
            let bed = bed_of(kept);
            let first = bed.store().execute(typed_op(&KEEP, "acme", "k", 1), |_| Ok(full_reply())).unwrap();
            bed.clock().advance(Duration::from_millis(ms));
            let name = |result: Result<counterfoil::Receipt, Error>| match result {
                Ok(receipt) if receipt.is_replayed() => "replay",
                Ok(_) => "execute",
                Err(Error::Gone(gone)) => {
                    assert_eq!(gone.resource_id.as_deref(), Some("orders/7"));
                    assert_eq!((gone.completed_at, gone.position), (first.meta().completed_at, first.position()));
                    "gone"
                }
                Err(Error::Conflict { .. }) => "conflict",
                Err(other) => panic!("{other:?}"),
            };
            let seen = match bed.store().receipt(first.slot()) {
                Ok(None) => "nothing",
                Ok(Some(receipt)) => name(Ok(receipt)),
                Err(error) => name(Err(error)),
            };
            assert_eq!(seen, look_up, "look-up after {ms} ms");
            // One of them only, since an execution replaces what is stored.
            let (content, expected) = if with_same { (1, same) } else { (2, other) };
            let answer = bed.store().execute(typed_op(&KEEP, "acme", "k", content), |_| Ok(Reply::ok()));
            assert_eq!(name(answer), expected, "content {content} after {ms} ms");
            bed.store().assert_sound();
        }
    }
}

#[test]
fn gone_means_executed_and_an_expired_key_executes_anew_and_leaves_no_old_rows() {
    let mut bed = bed_of(kept);
    let first = bed.store().execute(typed_op(&KEEP, "acme", "k", 1), add("k-keep")).unwrap();
    bed.clock().advance(HOUR);
    let error = bed.store().execute(typed_op(&KEEP, "acme", "k", 1), never).unwrap_err();
    assert_eq!(error.execution(), Execution::Executed);
    assert!(!error.is_retryable());
    bed.clock().advance(HOUR);
    let second = bed.store().execute(typed_op(&KEEP, "acme", "k", 2), add("k-keep")).unwrap();
    assert!(!second.is_replayed() && second.position() > first.position());
    assert_eq!(second.meta().completed_at, first.meta().completed_at.saturating_add(2 * HOUR));
    let report = bed.store().verify().unwrap();
    assert_eq!((report.receipts, report.problems.len()), (1, 0), "{report:?}");
    bed.store().assert_sound();
    // The old receipt does not come back, and the new one is not due at the old one's time.
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert!(bed.store().execute(typed_op(&KEEP, "acme", "k", 2), never).unwrap().is_replayed());
    assert_eq!(total(bed.store(), "k-keep"), 2);
    bed.store().assert_sound();
}

#[test]
fn duplicates_do_not_extend_the_window() {
    let bed = bed_of(kept);
    drop(bed.store().execute(typed_op(&KEEP, "acme", "k", 1), |_| Ok(full_reply())).unwrap());
    for minute in 1..60 {
        bed.clock().advance(Duration::from_secs(60));
        assert!(bed.store().execute(typed_op(&KEEP, "acme", "k", 1), never).is_ok(), "minute {minute}");
    }
    bed.clock().advance(Duration::from_secs(60));
    assert!(matches!(bed.store().execute(typed_op(&KEEP, "acme", "k", 1), never), Err(Error::Gone(_))));
}

#[test]
fn another_actor_tenant_operation_or_key_is_another_slot() {
    let bed = bed_of(kept);
    let slots = [
        KEEP.request("acme", "alice", "k"),
        KEEP.request("acme", "bob", "k"),
        KEEP.request("umbrella", "alice", "k"),
        ADD.request("acme", "alice", "k"),
        KEEP.request("acme", "alice", "K"),
        KEEP.request("acme", "alice", "k "),
        // Names that run into each other when they are joined.
        KEEP.request("acm", "ealice", "k"),
        KEEP.request("acmealice", "k", "k"),
    ];
    for (number, request) in slots.into_iter().enumerate() {
        let operation = request.unwrap().json(&number).unwrap();
        assert!(!bed.store().execute(operation, add("all")).unwrap().is_replayed(), "slot {number}");
    }
    assert_eq!(total(bed.store(), "all"), 8);
    bed.store().assert_sound();
}

#[test]
fn a_failed_first_operation_of_a_tenant_leaves_no_scope_for_the_next_tenant_to_share() {
    let bed = bed();
    bed.store()
        .execute(op_of("first", "k", 1), |_: &Tx<'_>| -> Result<Reply, _> { Err(counterfoil::Failure::message("no")) })
        .unwrap_err();
    drop(bed.store().execute(op_of("second", "k", 1), add("second")).unwrap());
    let slot = Slot::new("first", "alice", "add", "k").unwrap();
    assert_eq!(bed.store().receipt(&slot).unwrap(), None);
    assert!(!bed.store().execute(op_of("first", "k", 1), add("first")).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn a_deploy_between_two_attempts_replays_while_the_old_version_is_accepted() {
    const V1: OperationType = OperationType::new("pay").version(1);
    const V2: OperationType = OperationType::new("pay").version(2).accepts(&[1]);
    const V3: OperationType = OperationType::new("pay").version(3).accepts(&[2]);
    let version = Arc::new(AtomicU32::new(1));
    let chosen = Arc::clone(&version);
    let mut bed = bed_of(move || {
        let pay = [V1, V2, V3][chosen.load(Ordering::SeqCst) as usize - 1];
        builder().operation(&pay)
    });
    let first = bed.store().execute(typed_op(&V1, "acme", "k", 1), add("paid")).unwrap();
    version.store(2, Ordering::SeqCst);
    bed.close_and_reopen().unwrap();
    let again = bed.store().execute(typed_op(&V2, "acme", "k", 1), never).unwrap();
    assert_eq!((again.meta().operation_version, again.position()), (1, first.position()));
    assert!(matches!(
        bed.store().execute(typed_op(&V2, "acme", "k", 2), never),
        Err(Error::Conflict { stored_version: None })
    ));
    // The request type of another version than the declared one is a mistake in the program.
    assert!(matches!(bed.store().execute(typed_op(&V1, "acme", "k", 1), never), Err(Error::Undeclared { .. })));

    version.store(3, Ordering::SeqCst);
    bed.close_and_reopen().unwrap();
    let error = bed.store().execute(typed_op(&V3, "acme", "k", 1), never).unwrap_err();
    assert!(matches!(error, Error::Conflict { stored_version: Some(1) }), "{error:?}");
    assert!(error.to_string().contains("version 1"), "{error}");
    assert_eq!(total(bed.store(), "paid"), 1);
}

#[test]
fn a_stored_no_is_replayed_as_the_same_no() {
    let mut bed = bed();
    let no = |tx: &Tx<'_>| {
        tx.table(&TOTALS)?.put("k", &99)?;
        Ok(Decision::Reject(Reply::refused().json("out of stock")?))
    };
    let first = bed.store().execute(op("k"), no).unwrap();
    assert!(first.is_rejected() && !first.is_replayed());
    assert_eq!(first.meta().outcome, Outcome::Rejected);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    let again = bed.store().execute(op("k"), never).unwrap();
    assert!(again.is_rejected() && again.is_replayed());
    assert_eq!((again.reply().status(), again.reply()), (409, first.reply()));
    assert_eq!(total(bed.store(), "k"), 0, "the mutation of a no is dropped");
}

#[test]
fn an_operation_type_that_was_not_declared_is_refused_at_every_door() {
    const STRANGE: OperationType = OperationType::new("strange");
    let bed = bed();
    for error in [
        bed.store().execute(typed_op(&STRANGE, "acme", "k", 1), never).unwrap_err(),
        bed.store().submit(typed_op(&STRANGE, "acme", "k", 1), never).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Undeclared { what: "operation type", .. }), "{error:?}");
    }
}

#[test]
fn equal_content_in_another_spelling_is_the_same_request() {
    let bed = bed();
    let text = |text: &str| ADD.request("acme", "alice", "k").unwrap().json_text(text);
    drop(bed.store().execute(text(r#"{"a":{"x":1,"y":[1,2]},"b":100}"#).unwrap(), add("k")).unwrap());
    assert!(bed.store().execute(text(r#" {"b":1e2,"a":{"y":[1.0,2],"x":1}} "#).unwrap(), never).unwrap().is_replayed());
    for other in [
        r#"{"a":{"x":1,"y":[2,1]},"b":100}"#,
        r#"{"a":{"x":1,"y":[1,2]}}"#,
        r#"{"a":{"x":1,"y":[1,2]},"b":100,"c":null}"#,
    ] {
        assert!(matches!(bed.store().execute(text(other).unwrap(), never), Err(Error::Conflict { .. })), "{other}");
    }
    assert!(text(r#"{"a":1,"a":1}"#).is_err(), "a duplicate member is refused before anything is hashed");
    let bytes = ADD.request("acme", "alice", "k").unwrap().bytes(r#"{"a":{"x":1,"y":[1,2]},"b":100}"#);
    assert!(matches!(bed.store().execute(bytes, never), Err(Error::Conflict { .. })), "bytes are not JSON");
}
