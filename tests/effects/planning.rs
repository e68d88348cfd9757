//! Planning: what is durable with an operation, and what is refused.

use counterfoil::effect::{EffectPhase, Intent, Provider};
use counterfoil::testing::Survival;
use counterfoil::{
    Decision, Error, Execution, Failure, INTENT_BYTES_MAX, INTENTS_MAX, IntentError, OperationType, Reply, Store, Tx,
};

use crate::support::{
    Bank, ORDERS, PAY, SECOND, bed, blind, builder, effect, effects, keyed, order, pay, pay_with, settle,
};

fn run(store: &Store, decide: impl FnOnce(&Tx<'_>) -> Result<Decision, Failure> + Send + 'static) -> Error {
    let operation = PAY.request("acme", "alice", "k").expect("a slot").json(&1).expect("a request");
    let error = store.execute(operation, decide).expect_err("it is refused");
    assert_eq!((error.execution(), error.is_retryable()), (Execution::NotExecuted, false), "{error}");
    assert_eq!(effects(store), []);
    error
}

#[test]
fn an_intent_is_there_exactly_if_its_operation_is() {
    let mut bed = bed(keyed);
    let store = bed.store();
    let request = |key| PAY.request("acme", "alice", key).unwrap().json(&1).unwrap();
    let rejected = store.execute(request("rejected"), |tx: &Tx<'_>| {
        tx.intend(Intent::new("bank", "1"))?;
        Ok(Decision::Reject(Reply::refused()))
    });
    assert!(rejected.unwrap().is_rejected());
    let failed = store.execute(request("failed"), |tx: &Tx<'_>| {
        tx.intend(Intent::new("bank", "1"))?;
        Err::<Reply, _>(Failure::message("no"))
    });
    assert!(matches!(failed, Err(Error::Failed(_))));
    assert_eq!(effects(store), []);
    let accepted = pay(store, "k").unwrap();
    assert!(accepted.is_accepted() && !accepted.is_replayed());
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    let planned = effect(bed.store());
    assert_eq!((planned.phase, planned.attempts), (EffectPhase::Planned, 0));
    assert_eq!(planned.slot.as_ref(), Some(accepted.slot()));
    let ids: Vec<String> = accepted.reply().body_json().unwrap();
    assert_eq!(ids, [planned.id.to_string()], "the closure knows the identity");
    bed.store().assert_sound();
}

#[test]
fn an_accepted_operation_does_not_expire_and_is_finished_in_one_write() {
    let mut bed = bed(keyed);
    let first = pay(bed.store(), "k").unwrap();
    bed.clock().advance(SECOND * 3600 * 24 * 1000);
    assert!(pay(bed.store(), "k").unwrap().is_accepted(), "it is still known");
    settle(&Bank::default().dispatcher(bed.store()));
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    let finished = pay(bed.store(), "k").unwrap();
    assert!(finished.is_replayed() && !finished.is_accepted());
    assert_eq!((finished.reply().status(), finished.position()), (200, first.position()));
    assert_eq!(finished.reply().body_json::<Vec<String>>().unwrap(), ["ch-1"]);
    assert_eq!(order(bed.store(), "k").as_deref(), Some("paid"));
    assert!(finished.meta().completed_at > first.meta().completed_at, "retention counts from here");
    assert_eq!(bed.store().stats().position.sequence, first.position().sequence + 2, "sending, and one resolution");
    bed.store().assert_sound();
}

#[test]
fn effects_go_with_their_receipt() {
    let bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    settle(&Bank::default().dispatcher(bed.store()));
    assert_eq!(effect(bed.store()).phase, EffectPhase::Applied);
    bed.clock().advance(SECOND * 3600 * 24 * 40);
    bed.store().sweep(|_| ()).unwrap();
    bed.store().sweep(|_| ()).unwrap();
    assert_eq!(effects(bed.store()), []);
    assert!(!pay(bed.store(), "k").unwrap().is_replayed(), "a new operation");
    bed.store().assert_sound();
}

#[test]
fn an_operation_is_known_at_least_as_long_as_its_provider_knows_it() {
    const SHORT: OperationType =
        OperationType::new("short").retention(counterfoil::Retention { replay: SECOND, refuse: SECOND });
    let bed = counterfoil::testing::TestBed::new(|| builder(keyed()).operation(&SHORT)).unwrap();
    let request = || SHORT.request("acme", "alice", "k").unwrap().json(&1).unwrap();
    let send = |tx: &Tx<'_>| {
        tx.intend(Intent::new("bank", "1"))?;
        Ok(Reply::ok())
    };
    drop(bed.store().execute(request(), send).unwrap());
    settle(&Bank::default().dispatcher(bed.store()));
    bed.clock().advance(SECOND * 3600 * 24 - SECOND);
    assert!(matches!(bed.store().execute(request(), send), Err(Error::Gone(_))));
    bed.clock().advance(SECOND);
    assert!(!bed.store().execute(request(), send).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn an_effect_that_outlives_its_receipt_refuses_a_second_one_of_its_identity() {
    const SHORT: OperationType =
        OperationType::new("short").retention(counterfoil::Retention { replay: SECOND, refuse: SECOND });
    let bed = counterfoil::testing::TestBed::new(|| builder(blind()).operation(&SHORT)).unwrap();
    let request = || SHORT.request("acme", "alice", "k").unwrap().json(&1).unwrap();
    let send = |tx: &Tx<'_>| {
        tx.intend(Intent::new("bank", "1"))?;
        Ok(Reply::ok())
    };
    drop(bed.store().execute(request(), send).unwrap());
    bed.clock().advance(SECOND * 10);
    let again = bed.store().execute(request(), send);
    assert!(matches!(again, Err(Error::Intent(IntentError::StillOpen))), "{again:?}");
    bed.store().sweep(|_| ()).unwrap();
    settle(&Bank::default().dispatcher(bed.store()));
    assert_eq!(effects(bed.store()), [], "settled, and its receipt is gone");
    assert!(!bed.store().execute(request(), send).unwrap().is_replayed());
    bed.store().assert_sound();
}

#[test]
fn refusals_of_intents_are_typed_and_sticky() {
    let bed = bed(keyed);
    let store = bed.store();
    let unknown = run(store, |tx| {
        assert!(tx.intend(Intent::new("nobody", "1")).is_err());
        tx.intend(Intent::new("bank", "1"))?;
        Ok(Reply::ok().into())
    });
    assert!(matches!(&unknown, Error::Intent(IntentError::UnknownProvider(name)) if name == "nobody"), "{unknown}");
    let long = run(store, |tx| {
        assert!(tx.intend(Intent::new("bank", vec![0; INTENT_BYTES_MAX + 1])).is_err());
        Ok(Reply::ok().into())
    });
    assert!(matches!(long, Error::Intent(IntentError::TooLong { what: "the payload", .. })), "{long}");
    let many = run(store, |tx| {
        assert!((0..=INTENTS_MAX).any(|_| tx.intend(Intent::new("bank", "1")).is_err()));
        Ok(Reply::ok().into())
    });
    assert!(matches!(many, Error::Intent(IntentError::TooMany(INTENTS_MAX))), "{many}");
    let nothing = run(store, |_| Ok(Decision::Accept(Reply::accepted())));
    assert!(matches!(nothing, Error::Intent(IntentError::AcceptedWithoutIntent)), "{nothing}");
    let outside = store.write(|tx| {
        assert!(tx.intend(Intent::new("bank", "1")).is_err());
        Ok(tx.table(&ORDERS)?.put("k", &"x".to_owned())?)
    });
    assert!(matches!(outside, Err(Error::Intent(IntentError::OutsideOperation))), "{outside:?}");
}

#[test]
fn without_a_continuation_nothing_is_accepted() {
    let build = || Store::builder().operation(&PAY).table(&ORDERS).provider(keyed());
    let bed = counterfoil::testing::TestBed::new(build).unwrap();
    let error = pay(bed.store(), "k").unwrap_err();
    assert!(matches!(error, Error::Intent(IntentError::NoContinuation)), "{error}");
}

#[test]
fn a_provider_that_makes_no_sense_is_refused_at_open() {
    for (provider, part) in [
        (Provider::new(""), "name"),
        (Provider::new("a b"), "name"),
        (keyed().attempts_max(0), "attempts_max"),
        (keyed().deduplicates(std::time::Duration::ZERO), "window"),
    ] {
        let disk = counterfoil::testing::SimDisk::new();
        let error = builder(provider).provider(Provider::new("other")).open_in(&disk).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let disk = counterfoil::testing::SimDisk::new();
    assert!(builder(keyed()).provider(keyed()).open_in(&disk).unwrap_err().to_string().contains("twice"));
}

#[test]
fn identities_differ_within_an_operation_and_are_the_same_in_every_run() {
    let plan = |tx: &Tx<'_>| -> Result<_, Failure> {
        Ok(vec![tx.intend(Intent::new("bank", "1"))?, tx.intend(Intent::new("bank", "1"))?])
    };
    let ids = || {
        let build = || builder(keyed()).identity_seed(7);
        let bed = counterfoil::testing::TestBed::new(build).unwrap();
        let ids: Vec<String> = pay_with(bed.store(), "k", plan).unwrap().reply().body_json().unwrap();
        ids
    };
    let first = ids();
    assert_ne!(first[0], first[1]);
    assert_eq!(first, ids());
}

#[test]
fn an_operation_that_is_erased_while_it_is_accepted_stays_erased_and_its_effect_is_settled() {
    let mut bed = bed(keyed);
    let receipt = pay(bed.store(), "k").unwrap();
    let erase = counterfoil::Erase::operation(receipt.slot().clone());
    bed.store().erase(&erase, Some("ann"), "asked for", |_| ()).unwrap();
    assert!(matches!(pay(bed.store(), "k"), Err(Error::Gone(_))));
    let bank = Bank::default();
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads(), ["12.00"], "what was to be sent is sent");
    assert_eq!(effect(bed.store()).phase, EffectPhase::Applied);
    assert_eq!(order(bed.store(), "k").as_deref(), Some("paid"));
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert!(matches!(pay(bed.store(), "k"), Err(Error::Gone(_))), "known, and never executed again");
    bed.store().assert_sound();
}
