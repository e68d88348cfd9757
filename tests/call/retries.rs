//! One owner, a budget, and hints that are obeyed.

use std::cell::Cell;
use std::time::Duration;

use counterfoil::call::{
    Answer, Attempt, AttemptError, Budget, BudgetConfig, Call, Caller, ConfigError, DeadlinePolicy, Kind, Outcome,
    OverloadSource, Pool, StopReason, Verdict,
};
use proptest::prelude::*;

use super::support::{World, ms, play};

const CUT: Verdict = Verdict::maybe_applied(Kind::Transient);

fn no_reserve(ratio: f64) -> Budget {
    Budget::new(BudgetConfig::default().ratio(ratio).reserve_per_second(0)).unwrap()
}

#[test]
fn three_nested_layers_of_three_attempts_are_three_calls_at_the_bottom() {
    let world = World::new();
    let layers = [(); 3].map(|()| world.builder().attempts(3).build().unwrap());
    let bottom = Cell::new(0);
    let identity = layers[0].mint();
    let failed = |outcome: Outcome<(), &'static str>| match outcome {
        Outcome::Uncertain { .. } => Err::<Answer<()>, _>(AttemptError::new(CUT, "uncertain below")),
        other => panic!("{other:?}"),
    };
    let keyed = |attempt: &Attempt| Call::mutation("create", attempt.identity().unwrap().clone()).nested(attempt);
    let finished = layers[0].call_blocking(Call::mutation("create", identity), |outer| {
        let middle = layers[1].call_blocking(keyed(&outer), |middle| {
            let inner = layers[2].call_blocking(keyed(&middle), |inner| {
                assert!(inner.onward().unwrap().owned);
                bottom.set(bottom.get() + 1);
                Err::<Answer<()>, _>(AttemptError::new(CUT, "cut"))
            });
            failed(inner.outcome)
        });
        failed(middle.outcome)
    });
    assert_eq!(bottom.get(), 3);
    assert_eq!(finished.report.attempts, 3);
    assert!(matches!(finished.outcome, Outcome::Uncertain { reason: StopReason::Attempts, .. }));
}

#[test]
fn only_the_owner_deposits_for_a_logical_call() {
    let world = World::new();
    let budget = no_reserve(1.0);
    let outer = world.builder_with(budget.clone(), Pool::Unlimited).build().unwrap();
    let inner = world.builder_with(budget.clone(), Pool::Unlimited).build().unwrap();
    let call = |attempt: Attempt| {
        let finished =
            inner.call_blocking(Call::read("get").nested(&attempt), |_| Ok::<_, AttemptError<()>>(Answer::new(())));
        finished.success().map(Answer::new).ok_or(AttemptError::new(CUT, ()))
    };
    assert!(outer.call_blocking(Call::read("get"), call).success().is_some());
    assert_eq!(budget.balance(world.now()), 1);
    let once = outer.call_once_blocking(Call::read("get"), |_| Ok::<_, AttemptError<()>>(Answer::new(())));
    assert!(once.success().is_some());
    assert_eq!(budget.balance(world.now()), 1, "whoever is called by call_once owns the retries, and deposits");
}

#[test]
fn call_once_makes_one_attempt_and_lets_those_below_retry() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let below = Cell::new(0);
    let finished = caller.call_once_blocking(Call::read("get"), |attempt| {
        assert!(!attempt.onward().unwrap().owned);
        let inner = caller.call_blocking(Call::read("get").nested(&attempt), |_| {
            below.set(below.get() + 1);
            Err::<Answer<()>, _>(AttemptError::new(CUT, ()))
        });
        inner.success().map(Answer::new).ok_or(AttemptError::new(CUT, ()))
    });
    assert_eq!((finished.report.attempts, below.get()), (1, 3));
    assert!(matches!(finished.outcome, Outcome::Exhausted { reason: StopReason::NotOwner, .. }));
}

#[test]
fn a_nested_call_keeps_the_deadline_of_the_one_above() {
    let world = World::new();
    let outer = world.builder().deadline(DeadlinePolicy::within(ms(600)).margin(ms(40))).build().unwrap();
    let inner = world.builder().deadline(DeadlinePolicy::within(ms(5000)).margin(ms(20))).build().unwrap();
    let seen = outer.call_blocking(Call::read("get"), |attempt| {
        world.advance(ms(100));
        let inner = inner.call_blocking(Call::read("get").nested(&attempt), |attempt| {
            Ok::<_, AttemptError<()>>(Answer::new((attempt.remaining(), attempt.trace_id())))
        });
        inner.success().map(Answer::new).ok_or(AttemptError::new(CUT, ()))
    });
    assert_eq!(seen.success().unwrap().0, ms(600 - 40 - 100 - 20));
}

#[test]
fn an_overload_that_is_answered_is_not_retried() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let overloaded = Verdict::not_applied(Kind::Overloaded).after(ms(5));
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(1, Err(overloaded)), (1, Ok("answer"))]);
    assert_eq!(seen.len(), 1);
    match finished.outcome {
        Outcome::Overloaded { source: OverloadSource::Server, retry_after, error: Some(1) } => {
            assert_eq!(retry_after, Some(ms(5)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hint_is_never_undercut_and_one_that_does_not_fit_is_returned_at_once() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(Duration::from_secs(40))).build().unwrap();
    let throttled = |hint| Verdict::not_applied(Kind::Throttled).after(hint);
    let thirty = Duration::from_secs(30);
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(0, Err(throttled(thirty))), (1, Ok("answer"))]);
    assert!(seen[1].at - seen[0].at >= thirty && finished.success().is_some());
    let forty = Duration::from_secs(40);
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(0, Err(throttled(forty)))]);
    assert_eq!((seen.len(), world.now()), (1, seen[0].at), "stops now");
    match finished.outcome {
        Outcome::Exhausted { reason: StopReason::HintPastDeadline, retry_after, .. } => {
            assert_eq!(retry_after, Some(forty));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hint_above_its_ceiling_is_returned_and_not_cut_down() {
    let world = World::new();
    let policy = DeadlinePolicy::within(Duration::MAX);
    let caller = world.builder().deadline(policy).build().unwrap();
    let years = Duration::from_secs(100_000_000);
    let throttled = Verdict::not_applied(Kind::Throttled).after(years);
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(0, Err(throttled))]);
    assert_eq!(seen.len(), 1);
    assert!(matches!(
        finished.outcome,
        Outcome::Exhausted { reason: StopReason::HintTooLong, retry_after: Some(after), .. } if after == years
    ));
}

#[test]
fn retries_stop_when_the_budget_is_spent_and_begin_again_after_its_window() {
    let world = World::new();
    let caller = world.builder().backoff(ms(1), ms(1)).build().unwrap();
    let retries = |calls: usize| {
        let attempts = (0..calls).map(|_| play(&world, &caller, Call::read("get"), &[(0, Err(CUT))]).1.len());
        attempts.sum::<usize>() - calls
    };
    assert_eq!(retries(100), 10 + 10, "the reserve, and a tenth");
    world.advance(Duration::from_secs(11));
    assert_eq!(retries(100), 10 + 10);
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(0, Err(CUT))]);
    assert!(matches!(finished.outcome, Outcome::Exhausted { reason: StopReason::Budget, .. }));
}

#[test]
fn a_budget_without_reserve_allows_no_retry_at_a_cold_start() {
    let world = World::new();
    let caller = world.builder_with(no_reserve(0.5), Pool::Unlimited).build().unwrap();
    assert_eq!(play(&world, &caller, Call::read("get"), &[(0, Err(CUT))]).1.len(), 1);
    assert_eq!(play(&world, &caller, Call::read("get"), &[(0, Err(CUT))]).1.len(), 2, "two calls earned one");
}

#[test]
fn a_retry_that_is_never_sent_is_not_charged() {
    let world = World::new();
    let caller = world.builder().backoff(ms(500), ms(500)).build().unwrap();
    let before = caller.budget_balance();
    let mut flow = caller.begin(Call::read("get"));
    let counterfoil::call::Step::Send(attempt) = flow.step(world.now()) else { panic!() };
    let failed = counterfoil::call::Answered::failed(CUT);
    flow.answered(&attempt, world.now(), u64::MAX, failed);
    assert_eq!(caller.budget_balance(), before - 1, "charged when it is scheduled");
    drop(flow);
    assert_eq!(caller.budget_balance(), before, "and given back when it is not sent");
}

#[test]
fn callers_that_would_harm_are_not_built() {
    let world = World::new();
    let build = |change: fn(counterfoil::call::CallerBuilder) -> counterfoil::call::CallerBuilder| {
        change(world.builder()).build().map(drop)
    };
    assert!(matches!(build(|b| b.attempts(0)), Err(ConfigError::Zero { .. })));
    assert!(matches!(build(|b| b.attempts(101)), Err(ConfigError::TooLarge { .. })));
    assert!(matches!(build(|b| b.backoff(Duration::ZERO, ms(1))), Err(ConfigError::Zero { .. })));
    assert!(matches!(build(|b| b.backoff(ms(2), ms(1))), Err(ConfigError::Inverted { .. })));
    let micro = |b: counterfoil::call::CallerBuilder| b.backoff(Duration::from_micros(1), ms(1));
    assert!(matches!(build(micro), Err(ConfigError::TooSmall { .. })));
    assert!(matches!(build(|b| b.hint_ceiling(Duration::ZERO)), Err(ConfigError::Zero { .. })));
    assert!(matches!(build(|b| b.deadline(DeadlinePolicy::within(Duration::ZERO))), Err(ConfigError::Zero { .. })));
    let breaker = |b: counterfoil::call::CallerBuilder| b.breaker(counterfoil::call::BreakerConfig::new(10, 0.5));
    assert!(matches!(build(breaker), Err(ConfigError::Needs { .. })));
    assert!(build(|b| b.attempts(100)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_settings_delays_stay_below_the_cap_and_the_deadline_is_kept(
        attempts in 1_u32..=100, first in 1_u64..5_000, more in 0_u64..100_000, total in 1_u64..200_000,
        takes in 0_u64..3_000, seed in any::<u64>()
    ) {
        let world = World::new();
        let budget = Budget::new(BudgetConfig::default().ratio(1.0).reserve_per_second(100)).unwrap();
        let random = std::sync::Arc::new(counterfoil::call::SeededRandom::new(seed));
        let caller: Caller = world.builder_with(budget, Pool::Unlimited)
            .attempts(attempts).backoff(ms(first), ms(first + more)).random(random)
            .deadline(DeadlinePolicy::within(ms(total))).build().unwrap();
        let begun = world.now();
        let (finished, seen) = play(&world, &caller, Call::read("get"), &[(takes, Err(CUT))]);
        prop_assert!(finished.report.attempts <= attempts && !seen.is_empty());
        for pair in seen.windows(2) {
            let pause = pair[1].at - pair[0].at - ms(takes);
            prop_assert!(ms(1) <= pause && pause <= ms(first + more));
        }
        prop_assert!(seen.iter().all(|seen| seen.at < begun + ms(total) && seen.remaining == begun + ms(total) - seen.at));
    }
}
