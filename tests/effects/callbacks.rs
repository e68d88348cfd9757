//! Callbacks: before, after and instead of the answer.

use counterfoil::effect::{EffectPhase, Intent, LookUpMeaning, Provider, Report, ReportAnswer, Verdict};
use counterfoil::testing::Survival;
use counterfoil::{Error, Failure, IntentError, Tx};

use crate::support::{Bank, HOUR, SECOND, bed, blind, effect, keyed, order, pay, pay_with, settle};

fn news(delivery: &str) -> Report {
    Report::new("bank", delivery).reference("ref-1")
}

fn with_reference(tx: &Tx<'_>) -> Result<Vec<counterfoil::effect::EffectId>, Failure> {
    Ok(vec![tx.intend(Intent::new("bank", "1").reference("ref-1"))?])
}

#[test]
fn a_callback_instead_of_an_answer_finishes_the_operation() {
    let mut bed = bed(blind);
    drop(pay_with(bed.store(), "k", with_reference).unwrap());
    settle(&Bank::default().answers(Verdict::Unknown).dispatcher(bed.store()));
    assert_eq!(bed.store().report(news("d1").applied()).unwrap(), ReportAnswer::Applied);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 200);
    assert_eq!(bed.store().report(news("d1").applied()).unwrap(), ReportAnswer::Duplicate);
    assert_eq!(bed.store().report(news("d2").applied()).unwrap(), ReportAnswer::Stale);
    bed.store().assert_sound();
}

#[test]
fn an_early_callback_is_parked_and_matched_in_the_commit_that_brings_the_intent() {
    let mut bed = bed(blind);
    assert_eq!(bed.store().report(news("d1").applied()).unwrap(), ReportAnswer::Parked);
    assert_eq!(bed.store().report(news("d1").applied()).unwrap(), ReportAnswer::Duplicate);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    drop(pay_with(bed.store(), "k", with_reference).unwrap());
    assert_eq!(effect(bed.store()).phase, EffectPhase::Applied);
    let bank = Bank::default();
    settle(&bank.dispatcher(bed.store()));
    assert_eq!(bank.payloads(), [""; 0], "it had happened");
    assert_eq!(order(bed.store(), "k").as_deref(), Some("paid"));
    bed.store().assert_sound();
}

#[test]
fn the_first_outcome_wins_and_a_contradiction_is_kept_for_a_person() {
    let bed = bed(blind);
    drop(pay_with(bed.store(), "k", with_reference).unwrap());
    let store = bed.store().clone();
    // The callback comes while the request is still out, and the answer says the opposite.
    let bank = Bank::default().then(move |attempt| {
        let report = Report::new("bank", "d1").effect(attempt.id()).applied();
        assert_eq!(store.report(report).expect("taken"), ReportAnswer::Applied);
        Verdict::Refused(counterfoil::effect::Answer::new())
    });
    settle(&bank.dispatcher(bed.store()));
    let disputed = effect(bed.store());
    assert_eq!((disputed.phase, disputed.disputed), (EffectPhase::Applied, true));
    assert_eq!(pay(bed.store(), "k").unwrap().reply().status(), 200, "nothing changed");
    assert_eq!(bed.store().report(news("d2").refused()).unwrap(), ReportAnswer::Disputed);
    let decision = counterfoil::effect::EffectDecision::CloseDispute;
    assert!(bed.store().decide_effect(disputed.id, decision, "ann", "the answer was wrong").unwrap());
    assert!(!effect(bed.store()).disputed);
    bed.store().assert_sound();
}

#[test]
fn older_news_changes_nothing() {
    let bed = bed(blind);
    drop(pay_with(bed.store(), "k", with_reference).unwrap());
    assert_eq!(bed.store().report(news("d2").order(2)).unwrap(), ReportAnswer::Applied, "under way");
    assert_eq!(bed.store().report(news("d1").order(1).refused()).unwrap(), ReportAnswer::Stale);
    assert_eq!(effect(bed.store()).phase, EffectPhase::Planned);
    assert_eq!(bed.store().report(news("d3").order(3).applied()).unwrap(), ReportAnswer::Applied);
    assert_eq!(effect(bed.store()).phase, EffectPhase::Applied);
}

#[test]
fn a_callback_names_its_effect_by_the_reference_that_an_answer_brought() {
    let bed = bed(|| keyed().look_up(LookUpMeaning::Nothing));
    drop(pay(bed.store(), "k").unwrap());
    settle(&Bank::default().dispatcher(bed.store()));
    let report = Report::new("bank", "d1").reference("ch-1").refused();
    assert_eq!(bed.store().report(report).unwrap(), ReportAnswer::Disputed);
}

#[test]
fn callbacks_for_nothing_are_typed() {
    let bed = bed(keyed);
    drop(pay(bed.store(), "k").unwrap());
    let unknown = counterfoil::effect::EffectId::parse(&"00".repeat(32)).unwrap();
    let report = Report::new("bank", "d1").effect(unknown).applied();
    assert_eq!(bed.store().report(report).unwrap(), ReportAnswer::Nothing);
    assert_eq!(bed.store().report(Report::new("bank", "d2").applied()).unwrap(), ReportAnswer::Nothing);
    let nobody = bed.store().report(Report::new("nobody", "d3").applied());
    assert!(matches!(nobody, Err(Error::Intent(IntentError::UnknownProvider(_)))), "{nobody:?}");
    let long = bed.store().report(Report::new("bank", "d".repeat(300)).applied());
    assert!(matches!(long, Err(Error::Intent(IntentError::TooLong { .. }))), "{long:?}");
}

#[test]
fn a_parked_callback_is_forgotten_in_time() {
    fn provider() -> Provider {
        blind().callbacks_kept(HOUR)
    }
    let bed = bed(provider);
    assert_eq!(bed.store().report(news("d1").applied()).unwrap(), ReportAnswer::Parked);
    bed.store().assert_sound();
    bed.clock().advance(HOUR + SECOND);
    bed.store().sweep(|_| ()).unwrap();
    drop(pay_with(bed.store(), "k", with_reference).unwrap());
    assert_eq!(effect(bed.store()).phase, EffectPhase::Planned);
    bed.store().assert_sound();
}
