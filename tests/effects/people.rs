//! What people decide.

use counterfoil::effect::{EffectDecision, EffectId, EffectPhase, Verdict};
use counterfoil::testing::Survival;

use crate::support::{Bank, bed, blind, effect, keyed, order, pass_an_hour, pay, settle};

fn parked() -> (counterfoil::testing::TestBed, EffectId) {
    let bed = bed(blind);
    drop(pay(bed.store(), "k").expect("accepted"));
    pass_an_hour(&bed, &Bank::default().answers(Verdict::Unknown).dispatcher(bed.store()));
    let parked = effect(bed.store());
    assert_eq!(parked.phase, EffectPhase::Parked);
    (bed, parked.id)
}

#[test]
fn a_person_settles_a_parked_effect_and_the_operation_is_finished() {
    for (decision, status, became) in [(EffectDecision::Applied, 200, "paid"), (EffectDecision::Refused, 402, "unpaid")]
    {
        let (mut bed, id) = parked();
        assert!(bed.store().decide_effect(id, decision, "ann", "the bank's ledger says so").unwrap());
        bed.crash_and_reopen(&Survival::Nothing).unwrap();
        let settled = effect(bed.store());
        assert_eq!(settled.decided_by.as_deref(), Some("ann"));
        assert_eq!(settled.reason.as_deref(), Some("the bank's ledger says so"));
        assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), status);
        assert_eq!(order(bed.store(), "k").as_deref(), Some(became));
        bed.store().assert_sound();
    }
}

#[test]
fn a_retry_by_a_person_is_sent_once_more() {
    let (bed, id) = parked();
    assert!(bed.store().decide_effect(id, EffectDecision::Retry, "ann", "the bank knows nothing of it").unwrap());
    let bank = Bank::default();
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads().len(), 1);
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 200);
}

#[test]
fn final_states_are_final_for_people_too() {
    let bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    settle(&Bank::default().dispatcher(bed.store()));
    let id = effect(bed.store()).id;
    for decision in [
        EffectDecision::Applied,
        EffectDecision::Refused,
        EffectDecision::Retry,
        EffectDecision::AskAgain,
        EffectDecision::Park,
        EffectDecision::CloseDispute,
    ] {
        assert!(!bed.store().decide_effect(id, decision, "ann", "no").unwrap(), "{decision:?}");
    }
    let nobody = EffectId::parse(&"ab".repeat(32)).unwrap();
    assert!(!bed.store().decide_effect(nobody, EffectDecision::Park, "ann", "no").unwrap());
}

#[test]
fn a_parked_intent_is_not_sent_until_it_is_let_go() {
    let bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    let id = effect(bed.store()).id;
    assert!(bed.store().decide_effect(id, EffectDecision::Park, "ann", "the customer called").unwrap());
    let bank = Bank::default();
    pass_an_hour(&bed, &bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads(), [""; 0]);
    assert!(!bed.store().decide_effect(id, EffectDecision::AskAgain, "ann", "never sent").unwrap());
    assert!(bed.store().decide_effect(id, EffectDecision::Retry, "ann", "go on").unwrap());
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads().len(), 1);
}

#[test]
fn identities_are_read_back_from_what_is_shown() {
    let bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    let id = effect(bed.store()).id;
    assert_eq!(EffectId::parse(&id.to_string()), Some(id));
    for bad in ["", "ab", &"zz".repeat(32), &"é".repeat(32)] {
        assert_eq!(EffectId::parse(bad), None, "{bad}");
    }
}
