//! Claims: work that is done elsewhere, under a lease and a fence.

use std::time::Duration;

use counterfoil::testing::{Survival, TestBed};
use counterfoil::{
    Claim, ClaimAnswer, ClaimDecision, EntryKind, Error, Execution, Holder, Invalid, LeaseEnd, LogStart, Operation,
    OperationType, Reply, Store, Tx,
};

use crate::support::SECOND;

const ASK: OperationType = OperationType::new("ask");
const AGAIN: OperationType = OperationType::new("again").lease_end(LeaseEnd::Execute);
const LEASE: Duration = Duration::from_secs(60);

fn bed() -> TestBed {
    TestBed::new(|| Store::builder().operation(&ASK).operation(&AGAIN)).expect("the store opens")
}

fn op(operation_type: &OperationType, content: u32) -> Operation {
    operation_type.request("acme", "alice", "k").expect("a slot").json(&content).expect("a request")
}

fn outside() -> Holder {
    Holder::External("worker-1".to_owned())
}

fn take(store: &Store, operation_type: &OperationType, holder: Holder) -> Claim {
    match store.claim(op(operation_type, 1), LEASE, holder).expect("taken") {
        ClaimAnswer::Claimed(claim) => claim,
        ClaimAnswer::Answered(receipt) => panic!("{receipt:?}"),
    }
}

fn done(_: &Tx<'_>) -> Result<Reply, counterfoil::Failure> {
    Ok(Reply::ok())
}

fn never(_: &Tx<'_>) -> Result<Reply, counterfoil::Failure> {
    panic!("this closure must not run")
}

#[test]
fn a_claim_is_in_progress_for_others_and_its_completion_is_their_receipt() {
    let mut bed = bed();
    let claim = take(bed.store(), &ASK, Holder::ThisRun);
    let waiting = bed.store().execute(op(&ASK, 1), never);
    let Err(Error::InProgress { retry_after }) = waiting else { panic!("{waiting:?}") };
    assert!(retry_after <= LEASE);
    assert!(matches!(bed.store().claim(op(&ASK, 1), LEASE, outside()), Err(Error::InProgress { .. })));
    assert!(matches!(bed.store().claim(op(&ASK, 2), LEASE, outside()), Err(Error::Conflict { .. })));
    let receipt = claim.complete("", done).unwrap();
    drop(claim);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    let ClaimAnswer::Answered(again) = bed.store().claim(op(&ASK, 1), LEASE, outside()).unwrap() else {
        panic!("it was done")
    };
    assert_eq!((again.reply(), again.is_replayed()), (receipt.reply(), true));
    assert_eq!(bed.store().claims().unwrap(), []);
    bed.store().assert_sound();
}

#[test]
fn a_lease_is_extended_by_heartbeats_and_a_released_key_is_free() {
    let bed = bed();
    let claim = take(bed.store(), &ASK, outside());
    for _ in 0..5 {
        bed.clock().advance(LEASE - SECOND);
        claim.heartbeat().unwrap();
    }
    assert_eq!(bed.store().claims().unwrap()[0].holder, outside());
    claim.release().unwrap();
    assert!(!bed.store().execute(op(&ASK, 2), done).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn a_completion_that_lost_its_lease_is_refused_and_kept_as_evidence() {
    let bed = bed();
    let claim = take(bed.store(), &ASK, outside());
    bed.clock().advance(LEASE);
    let error = claim.complete("charge ch-1 was made", never).unwrap_err();
    assert!(matches!(error, Error::LeaseLost), "{error}");
    assert_eq!((error.execution(), error.is_retryable()), (Execution::NotExecuted, false));
    assert!(matches!(claim.heartbeat(), Err(Error::LeaseLost)));
    assert!(matches!(bed.store().execute(op(&ASK, 1), never), Err(Error::NeedsReconciliation)));
    let mut log = bed.store().log(LogStart::Oldest).unwrap();
    let mut claims = 0;
    while let Some(entry) = log.try_next().unwrap() {
        claims += u32::from(matches!(entry.kind, EntryKind::Maintenance { name: "claim" }));
    }
    assert_eq!(claims, 2, "taken, and refused");
}

#[test]
fn the_same_holder_that_claims_again_has_a_new_fence_and_its_old_self_is_stale() {
    let bed = bed();
    let old = take(bed.store(), &AGAIN, outside());
    bed.clock().advance(LEASE);
    let new = take(bed.store(), &AGAIN, outside());
    assert!(new.fence() > old.fence());
    assert!(matches!(old.complete("late", never), Err(Error::LeaseLost)));
    assert!(matches!(old.release(), Err(Error::LeaseLost)));
    let held = bed.store().held_claim(op(&AGAIN, 1), new.fence(), LEASE).unwrap();
    drop(held.complete("", done).unwrap());
    assert!(matches!(new.complete("twice", never), Err(Error::LeaseLost)), "final is final");
    bed.store().assert_sound();
}

#[test]
fn a_holder_inside_dies_with_its_run_and_one_outside_gets_one_lease_more() {
    let mut bed = bed();
    drop(take(bed.store(), &ASK, Holder::ThisRun));
    let outer = take(bed.store(), &AGAIN, outside());
    let fence = outer.fence();
    drop(outer);
    bed.clock().advance(LEASE - SECOND);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert!(matches!(bed.store().execute(op(&ASK, 1), never), Err(Error::NeedsReconciliation)), "at once");
    bed.clock().advance(LEASE - SECOND);
    assert!(matches!(bed.store().execute(op(&AGAIN, 1), never), Err(Error::InProgress { .. })));
    let held = bed.store().held_claim(op(&AGAIN, 1), fence, LEASE).unwrap();
    drop(held.complete("", done).unwrap());
    drop(held);
    bed.store().assert_sound();
    bed.close_and_reopen().unwrap();
    assert_eq!(bed.store().claims().unwrap().len(), 1);
}

#[test]
fn a_run_that_is_gone_lets_its_operation_execute_where_its_type_allows_it() {
    let mut bed = bed();
    drop(take(bed.store(), &AGAIN, Holder::ThisRun));
    bed.kill_and_reopen().unwrap();
    assert!(!bed.store().execute(op(&AGAIN, 1), done).unwrap().is_replayed());
}

#[test]
fn an_outside_claim_that_had_ended_is_not_brought_back_by_an_opening() {
    let mut bed = bed();
    drop(take(bed.store(), &ASK, outside()));
    bed.clock().advance(LEASE + SECOND);
    drop(bed.store().execute(op(&AGAIN, 1), done).unwrap());
    bed.close_and_reopen().unwrap();
    assert!(matches!(bed.store().execute(op(&ASK, 1), never), Err(Error::NeedsReconciliation)));
}

#[test]
fn a_person_frees_a_claim_or_gives_its_holder_time() {
    let bed = bed();
    let claim = take(bed.store(), &ASK, outside());
    let slot = op(&ASK, 1).slot().clone();
    bed.clock().advance(2 * LEASE);
    let decide = |fence, decision| bed.store().decide_claim(&slot, fence, decision, "ann", "asked the worker");
    assert!(!decide(claim.fence() + 1, ClaimDecision::Release).unwrap(), "another fence");
    assert!(decide(claim.fence(), ClaimDecision::Extend(LEASE)).unwrap());
    claim.heartbeat().unwrap();
    assert!(decide(claim.fence(), ClaimDecision::Release).unwrap());
    assert!(matches!(claim.heartbeat(), Err(Error::LeaseLost)));
    assert!(!bed.store().execute(op(&ASK, 1), done).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn a_lease_of_zero_and_a_name_without_end_are_refused() {
    let bed = bed();
    let zero = bed.store().claim(op(&ASK, 1), Duration::ZERO, outside());
    assert!(matches!(zero, Err(Error::Invalid(Invalid::Lease))), "{zero:?}");
    let short = bed.store().claim(op(&ASK, 1), Duration::from_micros(999), outside());
    assert!(matches!(short, Err(Error::Invalid(Invalid::Lease))), "{short:?}");
    let long = bed.store().claim(op(&ASK, 1), LEASE, Holder::External("x".repeat(300)));
    assert!(matches!(long, Err(Error::Invalid(Invalid::TooLong { .. }))), "{long:?}");
}
