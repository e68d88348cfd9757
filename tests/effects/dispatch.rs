//! Sending, and what a crash in the middle of it leaves.

use std::sync::{Arc, Mutex};

use counterfoil::effect::{
    Answer, Dispatcher, EffectPhase, HandlerLimits, Intent, LookUpAnswer, LookUpMeaning, Provider, Verdict,
};
use counterfoil::testing::{Survival, TestBed};
use counterfoil::{Failure, Store, Tx};

use crate::support::{
    Bank, HOUR, SECOND, bed, blind, builder, effect, effects, keyed, order, pass_an_hour, pay, pay_with, settle,
};

#[test]
fn sending_is_durable_before_the_handler_is_called() {
    let mut bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    let seen = Arc::new(Mutex::new(None));
    let (put, store) = (Arc::clone(&seen), bed.store().clone());
    let bank = Bank::default().then(move |attempt| {
        *put.lock().unwrap() = store.effect(attempt.id()).unwrap().map(|status| (status.phase, status.attempts));
        Verdict::Applied(Answer::new())
    });
    settle(&bank.dispatcher(bed.store()));
    drop(bank);
    assert_eq!(*seen.lock().unwrap(), Some((EffectPhase::Sending, 1)));
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert_eq!(effect(bed.store()).phase, EffectPhase::Applied);
}

/// Loses power while the first request is with the provider, and opens the store again.
fn cut(provider: fn() -> Provider) -> TestBed {
    let mut bed = bed(provider);
    drop(pay(bed.store(), "k").expect("accepted"));
    let bank = Bank::default().loses_power(bed.disk());
    bank.dispatcher(bed.store()).step().expect_err("the power is gone");
    assert_eq!(bank.payloads().len(), 1);
    bed.crash_and_reopen(&Survival::Nothing).expect("the store opens");
    assert_eq!(effect(bed.store()).phase, EffectPhase::Uncertain, "at once, before any dispatcher");
    bed
}

#[test]
fn with_keys_an_interrupted_effect_is_sent_again_under_the_same_identity() {
    let bed = cut(keyed);
    let id = effect(bed.store()).id;
    let bank = Bank::default();
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(*bank.sent.lock().unwrap(), [(id, "12.00".to_owned())]);
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 200);
    bed.store().assert_sound();
}

#[test]
fn with_keys_nothing_is_sent_once_the_window_may_close() {
    let bed = cut(keyed);
    bed.clock().advance(24 * HOUR - 30 * SECOND);
    let bank = Bank::default();
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads(), [""; 0]);
    assert_eq!(effect(bed.store()).phase, EffectPhase::Parked);
}

#[test]
fn without_keys_and_look_up_an_interrupted_effect_is_parked_and_never_sent_again() {
    let mut bed = cut(blind);
    let bank = Bank::default();
    for _ in 0..3 {
        pass_an_hour(&bed, &bank.dispatcher(bed.store()));
        bed.crash_and_reopen(&Survival::Nothing).unwrap();
    }
    assert_eq!(bank.payloads(), [""; 0]);
    let parked = effect(bed.store());
    assert_eq!(parked.phase, EffectPhase::Parked);
    assert!(parked.reason.unwrap().contains("neither be asked nor be sent"));
    assert!(pay(bed.store(), "k").unwrap().is_accepted(), "a person must decide");
    bed.store().assert_sound();
}

fn bounded() -> Provider {
    blind().look_up(LookUpMeaning::NotAppliedAfter(HOUR))
}

#[test]
fn not_found_counts_only_when_no_request_travels_any_more() {
    let bed = cut(bounded);
    let bank = Bank::default().says(LookUpAnswer::NotFound).says(LookUpAnswer::NotFound);
    let dispatcher = bank.dispatcher(bed.store());
    settle(&dispatcher);
    bed.clock().advance(HOUR - SECOND);
    settle(&dispatcher);
    assert_eq!((bank.asked.lock().unwrap().len(), bank.payloads().len()), (1, 0), "asked, and it settled nothing");
    bed.clock().advance(2 * SECOND);
    settle(&dispatcher);
    pass_an_hour(&bed, &dispatcher);
    assert_eq!((bank.asked.lock().unwrap().len(), bank.payloads().len()), (2, 1));
    assert_eq!(order(bed.store(), "k").as_deref(), Some("paid"));
}

#[test]
fn a_look_up_that_finds_it_settles_it_without_a_second_call() {
    let bed = cut(bounded);
    let bank = Bank::default().says(LookUpAnswer::Applied(Answer::new().reference("ch-7")));
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads(), [""; 0]);
    assert_eq!(pay(bed.store(), "k").unwrap().reply().body_json::<Vec<String>>().unwrap(), ["ch-7"]);
}

#[test]
fn a_look_up_that_bars_the_identity_refuses_it() {
    let bed = cut(|| blind().look_up(LookUpMeaning::Barred));
    let bank = Bank::default().says(LookUpAnswer::NotFound);
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads(), [""; 0]);
    assert_eq!(effect(bed.store()).phase, EffectPhase::Refused);
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 402);
}

#[test]
fn a_look_up_that_means_nothing_ends_with_a_person() {
    let bed = cut(|| blind().look_up(LookUpMeaning::Nothing));
    let mut bank = Bank::default();
    for _ in 0..40 {
        bank = bank.says(LookUpAnswer::NotFound);
    }
    pass_an_hour(&bed, &bank.dispatcher(bed.store()));
    assert_eq!((bank.asked.lock().unwrap().len(), bank.payloads().len()), (32, 0));
    assert_eq!(effect(bed.store()).phase, EffectPhase::Parked);
}

#[test]
fn what_certainly_did_nothing_is_tried_a_bounded_number_of_times_and_others_flow() {
    let bed = bed(blind);
    drop(pay(bed.store(), "poisoned").unwrap());
    drop(pay_with(bed.store(), "good", |tx| Ok(vec![tx.intend(Intent::new("bank", "good"))?])).unwrap());
    let mut bank = Bank::default().answers(Verdict::NotApplied).answers(Verdict::Applied(Answer::new()));
    for _ in 0..9 {
        bank = bank.answers(Verdict::NotApplied);
    }
    let dispatcher = bank.dispatcher(bed.store());
    dispatcher.step().unwrap();
    assert_eq!(order(bed.store(), "good").as_deref(), Some("paid"));
    pass_an_hour(&bed, &dispatcher);
    assert_eq!(bank.payloads(), ["12.00", "good", "12.00", "12.00", "12.00"], "four attempts");
    let parked = effects(bed.store()).into_iter().find(|status| status.phase == EffectPhase::Parked).unwrap();
    assert!(parked.reason.unwrap().contains("none was applied"));
}

#[test]
fn a_definite_no_is_final_and_the_continuation_hears_it() {
    let bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    let bank = Bank::default().answers(Verdict::Refused(Answer::new().body("no funds")));
    pass_an_hour(&bed, &bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads().len(), 1);
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 402);
    assert_eq!(order(bed.store(), "k").as_deref(), Some("unpaid"));
}

#[test]
fn an_attempt_that_did_nothing_does_not_settle_an_earlier_one() {
    let bed = cut(keyed);
    let mut bank = Bank::default();
    for _ in 0..9 {
        bank = bank.answers(Verdict::NotApplied);
    }
    pass_an_hour(&bed, &bank.dispatcher(bed.store()));
    let parked = effect(bed.store());
    assert_eq!(parked.phase, EffectPhase::Parked);
    assert!(parked.reason.unwrap().contains("may have been applied"), "the first one may have been");
}

#[test]
fn a_handler_that_panics_leaves_its_effect_uncertain_and_others_alone() {
    let bed = bed(blind);
    drop(pay(bed.store(), "a").unwrap());
    drop(pay(bed.store(), "b").unwrap());
    let bank = Bank::default().then(|_| panic!("a fault of the handler"));
    let dispatcher = bank.dispatcher(bed.store());
    settle(&dispatcher);
    assert_eq!(order(bed.store(), "b").as_deref(), Some("paid"));
    assert_eq!(dispatcher.stats().panicked, 1);
    pass_an_hour(&bed, &dispatcher);
    assert_eq!(bank.payloads().len(), 2);
    assert_eq!(effects(bed.store())[0].phase, EffectPhase::Parked);
}

fn ordered(tx: &Tx<'_>, key: &str, payload: &str) -> Result<Vec<counterfoil::effect::EffectId>, Failure> {
    Ok(vec![tx.intend(Intent::new("bank", payload).order_key(key))?])
}

#[test]
fn effects_with_an_order_key_leave_one_after_another_and_a_parked_one_holds_back_only_those_behind_it() {
    let bed = bed(blind);
    let store = bed.store();
    for (operation, key) in [("1", "x"), ("2", "x"), ("3", "y"), ("4", "x"), ("5", "y")] {
        drop(pay_with(store, operation, move |tx| ordered(tx, key, &format!("{key}{operation}"))).unwrap());
    }
    let bank = Bank::default().answers(Verdict::Unknown);
    let dispatcher = bank.dispatcher(store);
    dispatcher.step().unwrap();
    assert_eq!(bank.payloads(), ["x1", "y3"]);
    pass_an_hour(&bed, &dispatcher);
    assert_eq!(bank.payloads(), ["x1", "y3", "y5"]);
    let parked = effects(store).into_iter().find(|status| status.phase == EffectPhase::Parked).unwrap();
    let decision = counterfoil::effect::EffectDecision::Applied;
    assert!(store.decide_effect(parked.id, decision, "ann", "seen in the bank's ledger").unwrap());
    settle(&dispatcher);
    assert_eq!(bank.payloads(), ["x1", "y3", "y5", "x2", "x4"]);
    store.assert_sound();
}

#[test]
fn several_intents_of_one_operation_finish_it_when_the_last_is_settled() {
    let bed = bed(keyed);
    let plan = |tx: &Tx<'_>| -> Result<_, Failure> {
        Ok(vec![
            tx.intend(Intent::new("bank", "now"))?,
            tx.intend(Intent::new("bank", "later").delay(HOUR))?,
            tx.intend(Intent::new("bank", "never").delay(2 * HOUR).within(HOUR))?,
        ])
    };
    drop(pay_with(bed.store(), "k", plan).unwrap());
    let bank = Bank::default();
    let dispatcher = bank.dispatcher(bed.store());
    settle(&dispatcher);
    assert_eq!(bank.payloads(), ["now"]);
    pass_an_hour(&bed, &dispatcher);
    pass_an_hour(&bed, &dispatcher);
    assert_eq!(bank.payloads(), ["now", "later"]);
    assert!(pay(bed.store(), "k").unwrap().is_accepted());
    let late = effects(bed.store()).into_iter().find(|status| status.phase == EffectPhase::Parked).unwrap();
    let decision = counterfoil::effect::EffectDecision::Refused;
    assert!(bed.store().decide_effect(late.id, decision, "ann", "too late").unwrap());
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 402);
    bed.store().assert_sound();
}

#[test]
fn a_continuation_that_fails_keeps_the_outcome_and_is_tried_again() {
    let fail = Arc::new(Mutex::new(true));
    let of_store = Arc::clone(&fail);
    let build = move || {
        let fail = Arc::clone(&of_store);
        builder(keyed()).continuation(&crate::support::PAY, move |tx, settled| {
            if *fail.lock().unwrap() {
                return Err(Failure::message("not now"));
            }
            crate::support::finish(tx, settled)
        })
    };
    let mut bed = TestBed::new(build).unwrap();
    drop(pay(bed.store(), "k").unwrap());
    let bank = Bank::default();
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(effect(bed.store()).phase, EffectPhase::Applied);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert!(pay(bed.store(), "k").unwrap().is_accepted());
    *fail.lock().unwrap() = false;
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 200);
    assert_eq!(bank.payloads().len(), 1, "the money moved once");
    bed.store().assert_sound();
}

#[test]
fn a_continuation_may_go_on_with_further_effects() {
    let build = || {
        builder(keyed()).continuation(&crate::support::PAY, |tx, settled| {
            if settled.effects.len() == 1 {
                tx.intend(Intent::new("bank", "second"))?;
                return Ok(counterfoil::Decision::Accept(counterfoil::Reply::accepted()));
            }
            crate::support::finish(tx, settled)
        })
    };
    let bed = TestBed::new(build).unwrap();
    drop(pay(bed.store(), "k").unwrap());
    let bank = Bank::default();
    let dispatcher = bank.dispatcher(bed.store());
    dispatcher.step().unwrap();
    assert!(pay(bed.store(), "k").unwrap().is_accepted());
    settle(&dispatcher);
    assert_eq!(bank.payloads(), ["12.00", "second"]);
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 200);
    bed.store().assert_sound();
}

#[test]
fn a_thousand_messages_of_an_outbox_go_out_after_a_crash_half_way() {
    let build = || builder(keyed()).operation(&NOTIFY);
    const NOTIFY: counterfoil::OperationType = counterfoil::OperationType::new("notify");
    let mut bed = TestBed::new(build).unwrap();
    let notify = |store: &Store, number: u32| {
        let operation = NOTIFY.request("acme", "alice", number.to_string()).unwrap().json(&number).unwrap();
        store.execute(operation, move |tx: &Tx<'_>| {
            tx.intend(Intent::new("bank", number.to_string()))?;
            Ok(counterfoil::Reply::ok())
        })
    };
    for number in 0..1000 {
        drop(notify(bed.store(), number).unwrap());
    }
    let mut bank = Bank::default();
    for _ in 0..500 {
        bank = bank.answers(Verdict::Applied(Answer::new()));
    }
    bank = bank.loses_power(bed.disk());
    let dispatcher = bank.dispatcher(bed.store());
    while dispatcher.step().is_ok() {}
    drop(dispatcher);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    settle(&bank.dispatcher(bed.store()));
    let sent = bank.payloads();
    let distinct: std::collections::BTreeSet<&String> = sent.iter().collect();
    assert_eq!((distinct.len(), sent.len()), (1000, 1001), "one again, under the same identity");
    bed.store().assert_sound();
}

#[test]
fn a_handler_for_nobody_or_with_limits_of_zero_is_refused() {
    let bed = bed(keyed);
    let with = |limits| Dispatcher::new(bed.store()).handler("bank", Bank::default(), limits).map(drop);
    let mut limits = HandlerLimits::default();
    assert!(Dispatcher::new(bed.store()).handler("nobody", Bank::default(), limits.clone()).is_err());
    limits.concurrency = 0;
    assert!(with(limits.clone()).is_err());
    limits = HandlerLimits::default();
    limits.time = std::time::Duration::ZERO;
    assert!(with(limits).is_err());
    let twice = Bank::default().dispatcher(bed.store()).handler("bank", Bank::default(), HandlerLimits::default());
    assert!(twice.is_err());
}
