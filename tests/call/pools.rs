//! Pools are bounded, and nothing leaks from them.

use std::task::{Context, Waker};

use counterfoil::call::{
    Answer, AttemptError, Budget, BudgetConfig, Bulkhead, Call, Caller, DeadlinePolicy, Kind, Outcome, OverloadSource,
    Pool, StopReason, Verdict,
};

use super::support::{World, all, boxed, ms, play, take};

fn caller(world: &std::sync::Arc<World>, permits: usize, queue: usize) -> (Caller, Bulkhead) {
    let pool = Bulkhead::new(permits, queue).unwrap();
    let budget = Budget::new(BudgetConfig::default()).unwrap();
    let policy = DeadlinePolicy::within(ms(1000));
    let builder = world.builder_with(budget, Pool::Bounded(pool.clone())).deadline(policy);
    (builder.build().unwrap(), pool)
}

#[test]
fn beyond_the_queue_the_answer_is_immediate_and_definite_also_for_a_mutation() {
    let world = World::new();
    let (caller, _) = caller(&world, 1, 0);
    let mut holder = Box::pin(caller.call(Call::read("get"), |_| take(&world, 50, Ok("held"))));
    assert!(holder.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let before = world.now();
    let (finished, seen) = play(&world, &caller, Call::unkeyed("transfer"), &[(1, Ok("done"))]);
    assert!(seen.is_empty() && world.now() == before);
    assert!(matches!(finished.outcome, Outcome::Overloaded { source: OverloadSource::Pool, .. }));
}

#[test]
fn attempts_run_one_after_the_other_in_a_pool_of_one() {
    let world = World::new();
    let (caller, pool) = caller(&world, 1, 10);
    let begun = world.now();
    let calls = (0..5).map(|_| boxed(caller.call(Call::read("get"), |_| take(&world, 10, Ok("answer")))));
    let finished = world.run(all(calls.collect()));
    let waited: Vec<_> = finished.iter().map(|finished| finished.report.waited_for_pool).collect();
    assert_eq!(waited, [0, 10, 20, 30, 40].map(ms));
    assert_eq!((world.now() - begun, pool.in_use(), pool.waiting()), (ms(50), 0, 0));
}

#[test]
fn the_place_is_not_held_while_the_next_attempt_is_waited_for() {
    let world = World::new();
    let (caller, pool) = caller(&world, 1, 10);
    let cut = Verdict::maybe_applied(Kind::Transient);
    let mut flow = caller.begin(Call::read("get"));
    let counterfoil::call::Step::Send(attempt) = flow.step(world.now()) else { panic!() };
    assert_eq!(pool.in_use(), 1);
    flow.answered(&attempt, world.now(), 1 << 63, counterfoil::call::Answered::failed(cut));
    drop(attempt);
    assert!(matches!(flow.step(world.now()), counterfoil::call::Step::Wait(_)));
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn who_waits_in_the_queue_and_is_dropped_leaves_it() {
    let world = World::new();
    let (caller, pool) = caller(&world, 1, 1);
    let mut cx = Context::from_waker(Waker::noop());
    let mut holder = Box::pin(caller.call(Call::read("get"), |_| take(&world, 50, Ok("held"))));
    assert!(holder.as_mut().poll(&mut cx).is_pending());
    let mut waiting = Box::pin(caller.call(Call::read("get"), |_| take(&world, 50, Ok("waited"))));
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    assert_eq!((pool.in_use(), pool.waiting()), (1, 1));
    drop(waiting);
    assert_eq!((pool.in_use(), pool.waiting()), (1, 0));
    drop(holder);
    assert_eq!((pool.in_use(), pool.waiting()), (0, 0));
}

#[test]
fn a_body_that_is_still_read_keeps_the_place_by_keeping_the_attempt() {
    let world = World::new();
    let (caller, pool) = caller(&world, 1, 0);
    let finished = caller.call_blocking(Call::read("get"), |attempt| Ok::<_, AttemptError<()>>(Answer::new(attempt)));
    let body = finished.success().unwrap();
    assert_eq!(pool.in_use(), 1);
    drop(body);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_panic_in_an_attempt_gives_the_place_back() {
    let world = World::new();
    let (caller, pool) = caller(&world, 1, 0);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let panic = |_| -> Result<Answer<()>, AttemptError<()>> { std::panic::resume_unwind(Box::new("oh")) };
        caller.call_blocking(Call::read("get"), panic)
    }));
    assert!(panicked.is_err() && pool.in_use() == 0);
}

#[test]
fn a_full_pool_after_an_uncertain_attempt_leaves_it_uncertain() {
    let world = World::new();
    let (caller, pool) = caller(&world, 1, 0);
    let mut held = None;
    let call = Call::mutation("create", caller.mint());
    let finished = caller.call_blocking(call, |attempt| {
        // Work that goes on elsewhere keeps its place.
        held = Some(attempt);
        Err::<Answer<()>, _>(AttemptError::new(Verdict::maybe_applied(Kind::Timeout), ()))
    });
    assert!(matches!(finished.outcome, Outcome::Uncertain { reason: StopReason::PoolFull, .. }));
    assert_eq!(pool.in_use(), 1);
}

#[test]
fn blocking_calls_on_several_threads_share_a_pool_and_none_is_forgotten() {
    let pool = Bulkhead::new(1, 16).unwrap();
    let budget = Budget::new(BudgetConfig::default()).unwrap();
    let caller = Caller::builder("dependency", budget, Pool::Bounded(pool.clone())).build().unwrap();
    std::thread::scope(|scope| {
        let run = || {
            for _ in 0..200 {
                let finished =
                    caller.call_blocking(Call::read("get"), |_| Ok::<_, AttemptError<()>>(Answer::new(pool.in_use())));
                assert_eq!(finished.success(), Some(1));
            }
        };
        (0..4).for_each(|_| drop(scope.spawn(run)));
    });
    assert_eq!((pool.in_use(), pool.waiting()), (0, 0));
}
