use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const KINDS: [Kind; 8] = [
    Kind::Transient,
    Kind::Timeout,
    Kind::Throttled,
    Kind::Overloaded,
    Kind::InProgress,
    Kind::Permanent,
    Kind::Conflict,
    Kind::Cancelled,
];
const EFFECTS: [EffectState; 4] =
    [EffectState::NotSent, EffectState::NotApplied, EffectState::MaybeApplied, EffectState::Applied];
const CLASSES: [OperationClass; 3] = [OperationClass::Read, OperationClass::Keyed, OperationClass::Unkeyed];

fn situation(class: OperationClass, verdict: Verdict) -> Situation {
    Situation {
        class,
        verdict,
        owner: true,
        attempts: 1,
        attempts_max: 3,
        remaining: ms(1000),
        margin: ms(40),
        useful_min: ms(10),
        hint_ceiling: Duration::from_secs(60),
        backoff: ms(50),
    }
}

fn verdict(effect: EffectState, kind: Kind, hint: Hint) -> Verdict {
    let of_effect = match effect {
        EffectState::NotSent => Verdict::not_sent(kind),
        EffectState::NotApplied => Verdict::not_applied(kind),
        EffectState::MaybeApplied => Verdict::maybe_applied(kind),
        EffectState::Applied => Verdict::applied(kind),
    };
    of_effect.hint(hint)
}

fn after(class: OperationClass, verdict: Verdict) -> Result<Duration, StopReason> {
    decide(&situation(class, verdict), || true)
}

#[test]
fn what_did_nothing_may_be_tried_again_by_anyone() {
    for class in CLASSES {
        for effect in [EffectState::NotSent, EffectState::NotApplied] {
            for kind in [Kind::Transient, Kind::Timeout, Kind::Throttled] {
                assert_eq!(
                    after(class, verdict(effect, kind, Hint::None)),
                    Ok(ms(50)),
                    "{class:?} {effect:?} {kind:?}"
                );
            }
        }
    }
}

#[test]
fn what_may_have_been_done_is_tried_again_only_as_a_read_or_under_its_identity() {
    for kind in [Kind::Transient, Kind::Timeout, Kind::Throttled, Kind::InProgress] {
        let maybe = Verdict::maybe_applied(kind);
        assert_eq!(after(OperationClass::Read, maybe), Ok(ms(50)));
        assert_eq!(after(OperationClass::Keyed, maybe), Ok(ms(50)));
        assert_eq!(after(OperationClass::Unkeyed, maybe), Err(StopReason::NoIdentity));
    }
}

#[test]
fn a_lost_answer_is_asked_for_again_only_with_an_identity() {
    let lost = Verdict::applied(Kind::Transient);
    assert_eq!(after(OperationClass::Read, lost), Ok(ms(50)));
    assert_eq!(after(OperationClass::Keyed, lost), Ok(ms(50)));
    assert_eq!(after(OperationClass::Unkeyed, lost), Err(StopReason::ResultLost));
}

#[test]
fn an_operation_in_progress_is_asked_for_again_after_its_hint() {
    let running = Verdict::in_progress().after(ms(200));
    assert_eq!(after(OperationClass::Keyed, running), Ok(ms(250)));
    assert_eq!(after(OperationClass::Unkeyed, running), Err(StopReason::NoIdentity));
}

#[test]
fn four_kinds_and_the_hint_never_stop_whatever_the_operation_is() {
    for class in CLASSES {
        for effect in EFFECTS {
            for (kind, reason) in [
                (Kind::Overloaded, StopReason::Overloaded),
                (Kind::Permanent, StopReason::Permanent),
                (Kind::Conflict, StopReason::Conflict),
                (Kind::Cancelled, StopReason::Cancelled),
            ] {
                assert_eq!(after(class, verdict(effect, kind, Hint::After(ms(1)))), Err(reason));
            }
            assert_eq!(after(class, verdict(effect, Kind::Transient, Hint::Never)), Err(StopReason::HintNever));
        }
    }
}

#[test]
fn after_the_verdict_come_owner_attempts_time_and_budget_in_this_order() {
    let mut now = situation(OperationClass::Unkeyed, Verdict::maybe_applied(Kind::Transient));
    (now.owner, now.attempts, now.remaining) = (false, 3, Duration::ZERO);
    let asked = |now: &Situation| decide(now, || false).unwrap_err();
    assert_eq!(asked(&now), StopReason::NoIdentity);
    now.class = OperationClass::Keyed;
    assert_eq!(asked(&now), StopReason::NotOwner);
    now.owner = true;
    assert_eq!(asked(&now), StopReason::Attempts);
    now.attempts = 2;
    assert_eq!(asked(&now), StopReason::Deadline);
    now.remaining = ms(100);
    assert_eq!(asked(&now), StopReason::Budget);
    assert_eq!(decide(&now, || true), Ok(ms(50)));
}

#[test]
fn the_next_attempt_must_still_be_useful_after_its_delay() {
    let mut now = situation(OperationClass::Read, Verdict::maybe_applied(Kind::Transient));
    now.remaining = ms(100);
    assert_eq!(decide(&now, || true), Ok(ms(50)), "50 + 40 + 10 fits exactly");
    now.remaining = ms(100) - Duration::from_nanos(1);
    assert_eq!(decide(&now, || true), Err(StopReason::Deadline));
}

#[test]
fn a_hint_is_never_undercut_and_never_cut_down() {
    let keyed = |hint| after(OperationClass::Keyed, Verdict::not_applied(Kind::Throttled).after(hint));
    assert_eq!(keyed(ms(300)), Ok(ms(350)), "jitter comes on top");
    assert_eq!(keyed(ms(930)), Ok(ms(950)), "and gives way to the deadline");
    assert_eq!(keyed(ms(951)), Err(StopReason::HintPastDeadline));
    assert_eq!(keyed(Duration::from_secs(61)), Err(StopReason::HintTooLong));
    assert_eq!(keyed(Duration::ZERO), Ok(ms(50)), "a hint of nothing is the usual delay");
}

#[test]
fn nothing_is_charged_for_a_retry_that_something_else_forbids() {
    let mut now = situation(OperationClass::Read, Verdict::maybe_applied(Kind::Transient));
    now.attempts = now.attempts_max;
    assert_eq!(decide(&now, || panic!("the budget was asked")), Err(StopReason::Attempts));
}

#[test]
fn each_reason_has_a_name_of_its_own() {
    let mut labels: Vec<_> = StopReason::ALL.iter().map(|reason| reason.label()).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), StopReason::ALL.len());
}

fn any_situation() -> impl Strategy<Value = Situation> {
    let hints = prop_oneof![Just(Hint::None), Just(Hint::Never), any::<Duration>().prop_map(Hint::After)];
    let times = (any::<Duration>(), any::<Duration>(), any::<Duration>(), any::<Duration>(), any::<Duration>());
    let what = (0..CLASSES.len(), 0..EFFECTS.len(), 0..KINDS.len(), hints);
    (what, any::<bool>(), any::<u32>(), any::<u32>(), times).prop_map(|(what, owner, attempts, attempts_max, times)| {
        let (remaining, margin, useful_min, hint_ceiling, backoff) = times;
        let verdict = verdict(EFFECTS[what.1], KINDS[what.2], what.3);
        let class = CLASSES[what.0];
        Situation {
            class,
            verdict,
            owner,
            attempts,
            attempts_max,
            remaining,
            margin,
            useful_min,
            hint_ceiling,
            backoff,
        }
    })
}

proptest! {
    #[test]
    fn whatever_the_numbers_a_retry_is_safe_owned_counted_and_in_time(now in any_situation()) {
        if let Ok(delay) = decide(&now, || true) {
            prop_assert!(now.owner && now.attempts < now.attempts_max);
            prop_assert!(delay.saturating_add(now.margin).saturating_add(now.useful_min) <= now.remaining);
            let unsafe_effect = [EffectState::MaybeApplied, EffectState::Applied].contains(&now.verdict.effect);
            prop_assert!(now.class != OperationClass::Unkeyed || !unsafe_effect);
            prop_assert!(now.verdict.hint != Hint::Never);
            if let Hint::After(hint) = now.verdict.hint {
                prop_assert!(hint <= delay && hint <= now.hint_ceiling);
            }
        }
    }

    #[test]
    fn without_budget_there_is_no_retry_whatever_the_numbers(now in any_situation()) {
        prop_assert!(decide(&now, || false).is_err());
    }
}
