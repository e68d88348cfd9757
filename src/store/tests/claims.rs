//! Claims: nothing takes them yet, but a log may hold them, and admission answers them.

use std::time::Duration;

use super::{bed, run};
use crate::base::error::{Error, Execution};
use crate::base::operation::{LeaseEnd, Operation, OperationType};
use crate::base::reply::Reply;
use crate::log::record::{Body, ClaimAction, ClaimHolder, ClaimRecord, SlotRecord};
use crate::store::{EntryKind, LogStart, Store};
use crate::testing::{Survival, TestBed, WALL_AT_START};
use crate::{Access, Tx};

const ASK: OperationType = OperationType::new("ask");
const AGAIN: OperationType = OperationType::new("again").lease_end(LeaseEnd::Execute);
const LEASE: Duration = Duration::from_secs(60);
const MS: Duration = Duration::from_millis(1);

fn operation(operation_type: &OperationType, content: u32) -> Operation {
    operation_type.request("t", "a", "k").expect("a slot").json(&content).expect("a request")
}

fn claim(store: &Store, operation_type: &OperationType, action: ClaimAction) -> Body {
    let operation = operation(operation_type, 1);
    let keys = &store.shared().hash_keys;
    let slot = &operation.slot;
    Body::Claim(ClaimRecord {
        slot: SlotRecord {
            scope: keys.scope(slot).0,
            tenant: slot.tenant.as_str().to_owned(),
            actor: slot.actor.as_str().to_owned(),
            operation: slot.operation.as_str().to_owned(),
            key: slot.key.as_bytes().to_vec(),
        },
        digest: keys.digests(&operation)[0].1.0,
        operation_version: 1,
        fence: 1,
        action,
        decided_by: None,
        reason: None,
    })
}

fn taken(until: Duration) -> ClaimAction {
    ClaimAction::Taken {
        lease_ms: u64::try_from(LEASE.as_millis()).expect("a short lease"),
        lease_until_ms: WALL_AT_START.saturating_add(until).0,
        holder: ClaimHolder::External { name: "worker".to_owned() },
        attempt: 1,
        trace_id: None,
    }
}

fn plant(store: &Store, operation_type: &OperationType, action: ClaimAction) {
    run(store).commit_own(vec![claim(store, operation_type, action)]).expect("committed");
}

fn claimed() -> TestBed {
    let bed = bed(|| Store::builder().operation(&ASK).operation(&AGAIN));
    plant(bed.store(), &ASK, taken(LEASE));
    plant(bed.store(), &AGAIN, taken(LEASE));
    bed
}

fn never(_: &Tx<'_>) -> Result<Reply, crate::Failure> {
    panic!("this closure must not run")
}

fn check_in_progress(store: &Store, retry_ms: u64) {
    for operation_type in [&ASK, &AGAIN] {
        for answer in [
            store.execute(operation(operation_type, 1), never).map(drop),
            store.receipt(operation(operation_type, 1).slot()).map(drop),
        ] {
            let Err(error @ Error::InProgress { retry_after }) = &answer else { panic!("{answer:?}") };
            assert_eq!(retry_after.as_millis(), u128::from(retry_ms));
            assert_eq!((error.execution(), error.is_retryable()), (Execution::NotExecuted, true));
        }
        let other = store.execute(operation(operation_type, 2), never);
        assert!(matches!(other, Err(Error::Conflict { stored_version: None })), "{other:?}");
    }
}

#[test]
fn a_claim_is_in_progress_until_the_very_end_of_its_lease() {
    let mut bed = claimed();
    check_in_progress(bed.store(), 5_000);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    check_in_progress(bed.store(), 5_000);
    bed.clock().advance(LEASE - MS);
    check_in_progress(bed.store(), 10);
    assert_eq!(bed.store().verify().unwrap().claims, 2);
    bed.store().assert_sound();
}

#[test]
fn a_lease_that_has_ended_needs_reconciliation_or_executes_as_the_operation_chose() {
    let mut bed = claimed();
    bed.clock().advance(LEASE);
    let store = bed.store();
    for answer in [
        store.execute(operation(&ASK, 1), never).map(drop),
        store.receipt(operation(&ASK, 1).slot()).map(drop),
        store.receipt(operation(&AGAIN, 1).slot()).map(drop),
    ] {
        let Err(error @ Error::NeedsReconciliation) = &answer else { panic!("{answer:?}") };
        assert_eq!((error.execution(), error.is_retryable()), (Execution::Unknown, false));
    }
    for operation_type in [&ASK, &AGAIN] {
        let other = store.execute(operation(operation_type, 2), never);
        assert!(matches!(other, Err(Error::Conflict { .. })), "{other:?}");
    }
    let first = store.execute(operation(&AGAIN, 1), |_: &Tx<'_>| Ok(Reply::ok())).unwrap();
    assert!(!first.is_replayed());
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert_eq!(bed.store().execute(operation(&AGAIN, 1), never).unwrap().meta(), first.meta());
    let report = bed.store().verify().unwrap();
    assert_eq!((report.claims, report.receipts), (1, 1), "{report:?}");
    bed.store().assert_sound();
}

#[test]
fn an_extended_claim_goes_on_a_released_one_frees_the_key_and_a_stale_holder_changes_nothing() {
    let bed = claimed();
    let store = bed.store();
    let until = WALL_AT_START.saturating_add(2 * LEASE).0;
    let extended = ClaimAction::Extended { lease_ms: until - WALL_AT_START.0, lease_until_ms: until };
    let stale = |action| {
        let Body::Claim(record) = claim(store, &ASK, action) else { unreachable!("it makes claims") };
        Body::Claim(ClaimRecord { fence: 9, ..record })
    };
    run(store).commit_own(vec![stale(ClaimAction::Released), stale(extended.clone())]).unwrap();
    bed.clock().advance(LEASE);
    assert!(matches!(store.execute(operation(&ASK, 1), never), Err(Error::NeedsReconciliation)));
    plant(store, &ASK, extended);
    assert!(matches!(store.execute(operation(&ASK, 1), never), Err(Error::InProgress { .. })));
    plant(store, &ASK, ClaimAction::Released);
    assert!(!store.execute(operation(&ASK, 2), |_: &Tx<'_>| Ok(Reply::ok())).unwrap().is_replayed());
    store.assert_sound();
    let kinds = store.log(LogStart::Oldest).unwrap();
    let mut kinds = kinds;
    let mut claims = 0;
    while let Some(entry) = kinds.try_next().unwrap() {
        claims += u32::from(matches!(entry.kind, EntryKind::Maintenance { name: "claim" }));
    }
    assert_eq!(claims, 6, "every one of them stays in the log");
}

#[test]
fn a_claim_that_takes_over_a_receipt_leaves_none_of_its_rows() {
    let bed = bed(|| Store::builder().operation(&ASK));
    let store = bed.store();
    drop(store.execute(operation(&ASK, 1), |_: &Tx<'_>| Ok(Reply::ok())).unwrap());
    plant(store, &ASK, taken(LEASE));
    assert!(matches!(store.execute(operation(&ASK, 1), never), Err(Error::InProgress { .. })));
    let report = store.verify().unwrap();
    assert_eq!((report.claims, report.receipts, report.problems.len()), (1, 0, 0), "{report:?}");
    store.assert_sound();
}

#[test]
fn a_no_of_the_guard_hides_claims_as_well() {
    let bed = bed(|| {
        Store::builder().operation(&ASK).replay_guard(|_, meta| {
            assert!(meta.is_none(), "a claim has no receipt to show");
            Access::Denied
        })
    });
    plant(bed.store(), &ASK, taken(LEASE));
    for lapse in [Duration::ZERO, LEASE] {
        bed.clock().advance(lapse);
        for content in [1, 2] {
            assert!(matches!(bed.store().execute(operation(&ASK, content), never), Err(Error::Denied)));
            assert!(matches!(bed.store().receipt(operation(&ASK, content).slot()), Err(Error::Denied)));
        }
    }
}
