//! Breakers stop what fails, and nothing else.

use std::time::Duration;

use counterfoil::Tenant;
use counterfoil::call::{
    Answer, AttemptError, BreakerConfig, BreakerState, Call, Caller, DeadlinePolicy, Kind, Outcome, OverloadSource,
    StopReason, Verdict,
};

use super::support::{World, ms, play, take};

const CUT: Verdict = Verdict::maybe_applied(Kind::Transient);

fn caller(world: &std::sync::Arc<World>) -> Caller {
    let policy = DeadlinePolicy::within(Duration::from_secs(5)).attempt(ms(100)).admission(ms(50));
    let breaker = BreakerConfig::new(10, 0.5).probes(1);
    world.builder().deadline(policy).attempts(1).breaker(breaker).build().unwrap()
}

fn fail(world: &std::sync::Arc<World>, caller: &Caller, times: usize) {
    for _ in 0..times {
        drop(play(world, caller, Call::read("get"), &[(1, Err(CUT))]));
    }
}

#[test]
fn an_open_breaker_answers_at_once_that_nothing_was_sent_and_when_to_come_again() {
    let world = World::new();
    let caller = caller(&world);
    fail(&world, &caller, 10);
    assert_eq!(caller.breaker_state("get", None), Some(BreakerState::Open));
    let before = world.now();
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(1, Ok("answer"))]);
    assert!(seen.is_empty() && world.now() == before);
    match finished.outcome {
        Outcome::Overloaded { source: OverloadSource::Breaker, retry_after: Some(after), error: None } => {
            assert!(ms(500) <= after && after <= ms(1000), "{after:?}");
            world.advance(after);
        }
        other => panic!("{other:?}"),
    }
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(1, Ok("well again"))]);
    assert_eq!(finished.success(), Some("well again"));
    assert_eq!(caller.breaker_state("get", None), Some(BreakerState::Closed));
}

#[test]
fn a_breaker_that_opens_within_the_admission_allowance_is_waited_for_and_the_wait_is_reported() {
    let world = World::new();
    let caller = caller(&world);
    fail(&world, &caller, 10);
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(1, Ok("answer"))]);
    let Outcome::Overloaded { retry_after: Some(after), .. } = finished.outcome else { panic!("{finished:?}") };
    world.advance(after - ms(30));
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(1, Ok("answer"))]);
    assert_eq!(finished.report.waited_for_breaker, ms(30));
    assert_eq!(finished.success(), Some("answer"));
}

#[test]
fn an_uncertain_mutation_stays_uncertain_when_the_breaker_opens_before_its_retry() {
    let world = World::new();
    let policy = DeadlinePolicy::within(Duration::from_secs(5)).attempt(ms(100)).admission(ms(50));
    let caller = world.builder().deadline(policy).breaker(BreakerConfig::new(1, 0.5)).build().unwrap();
    let call = Call::mutation("create", caller.mint());
    let (finished, seen) = play(&world, &caller, call, &[(1, Err(CUT)), (1, Ok("answer"))]);
    assert_eq!(seen.len(), 1);
    assert!(matches!(finished.outcome, Outcome::Uncertain { reason: StopReason::BreakerOpen, .. }));
}

#[test]
fn negative_answers_cancellations_and_short_deadlines_of_callers_do_not_open_it() {
    let world = World::new();
    let caller = caller(&world);
    for kind in [Kind::Permanent, Kind::Conflict, Kind::Throttled, Kind::Cancelled] {
        for _ in 0..20 {
            drop(play(&world, &caller, Call::read("get"), &[(1, Err(Verdict::not_applied(kind)))]));
        }
    }
    for _ in 0..50 {
        let call = Call::read("get").within(ms(5));
        let finished = world.run(caller.call(call, |_| take(&world, 50, Ok("slow"))));
        assert!(matches!(finished.outcome, Outcome::DeadlineExceeded { .. }));
    }
    for _ in 0..50 {
        let mut dropped = Box::pin(caller.call(Call::read("get"), |_| take(&world, 50, Ok("slow"))));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(dropped.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(caller.breaker_state("get", None), Some(BreakerState::Closed));
    world.advance(Duration::from_secs(11));
    for _ in 0..10 {
        drop(world.run(caller.call(Call::read("get"), |_| take(&world, 500, Ok("slow")))));
    }
    assert_eq!(caller.breaker_state("get", None), Some(BreakerState::Open), "timeouts in full do");
}

#[test]
fn a_probe_that_is_dropped_or_panics_makes_room_for_the_next() {
    let world = World::new();
    let caller = caller(&world);
    fail(&world, &caller, 10);
    world.advance(Duration::from_secs(1));
    let mut hanging = Box::pin(caller.call(Call::read("get"), |_| take(&world, 50, Ok("slow"))));
    assert!(hanging.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(1, Ok("answer"))]);
    let refused =
        matches!(finished.outcome, Outcome::Overloaded { source: OverloadSource::Breaker, retry_after: None, .. });
    assert!(refused, "one probe at a time: {finished:?}");
    drop(hanging);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let panic = |_| -> Result<Answer<()>, AttemptError<()>> { std::panic::resume_unwind(Box::new("oh")) };
        caller.call_blocking(Call::read("get"), panic)
    }));
    assert!(panicked.is_err());
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(1, Ok("answer"))]);
    assert_eq!(finished.success(), Some("answer"));
}

#[test]
fn one_tenant_does_not_open_it_for_another() {
    let world = World::new();
    let caller = caller(&world);
    let of = |tenant: &str| Call::read("get").tenant(Tenant::new(tenant).unwrap());
    for _ in 0..10 {
        drop(play(&world, &caller, of("bad"), &[(1, Err(CUT))]));
    }
    assert!(play(&world, &caller, of("bad"), &[(1, Ok("answer"))]).1.is_empty());
    assert_eq!(play(&world, &caller, of("good"), &[(1, Ok("answer"))]).0.success(), Some("answer"));
    assert_eq!(play(&world, &caller, Call::read("get"), &[(1, Ok("answer"))]).0.success(), Some("answer"));
}
