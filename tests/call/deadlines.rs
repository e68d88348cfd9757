//! One deadline for the whole operation, and every wait counts.

use std::cell::Cell;
use std::time::Duration;

use counterfoil::call::{
    Answer, AttemptError, AttemptLimits, Budget, BudgetConfig, Call, Connection, DeadlinePolicy, Kind, Outcome, Phase,
    Pool, Verdict,
};

use super::support::{World, all, ms, play, take};

const CUT: Verdict = Verdict::maybe_applied(Kind::Transient);

#[test]
fn of_600_ms_with_a_margin_of_40_a_retry_at_350_gets_at_most_210() {
    let world = World::new();
    let policy = DeadlinePolicy::within(ms(600)).admission(ms(80)).margin(ms(40));
    let caller = world.builder().deadline(policy).backoff(ms(1), ms(1)).build().unwrap();
    let begun = world.now();
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(349, Err(CUT)), (100, Ok("answer"))]);
    assert_eq!(seen[0].remaining, ms(560));
    assert_eq!((seen[1].at - begun, seen[1].remaining), (ms(350), ms(210)));
    assert_eq!(finished.success(), Some("answer"));
}

#[test]
fn a_place_in_the_pool_is_waited_for_80_ms_at_most_and_the_wait_counts() {
    let world = World::new();
    let policy = DeadlinePolicy::within(ms(600)).admission(ms(80)).margin(ms(40));
    let pool = Pool::bounded(1, 10).unwrap();
    let budget = Budget::new(BudgetConfig::default()).unwrap();
    let caller = world.builder_with(budget, pool).deadline(policy).build().unwrap();
    let remaining = Cell::new(Duration::ZERO);
    let begun = world.now();
    let outcomes = world.run(async {
        let holder = caller.call(Call::read("long"), |_| take(&world, 50, Ok("held")));
        let second = caller.call(Call::read("second"), |attempt| {
            remaining.set(attempt.remaining());
            take(&world, 100, Ok("second"))
        });
        let third = caller.call(Call::read("third"), |_| take(&world, 1, Ok("third")));
        all(vec![Box::pin(holder), Box::pin(second), Box::pin(third)]).await
    });
    assert_eq!(remaining.get(), ms(510), "50 ms of 560 were waited");
    assert_eq!(outcomes[1].report.waited_for_pool, ms(50));
    assert!(matches!(outcomes[1].outcome, Outcome::Success { .. }));
    assert!(matches!(outcomes[2].outcome, Outcome::DeadlineExceeded { phase: Phase::Pool, error: None }));
    assert_eq!((outcomes[2].report.attempts, outcomes[2].report.duration), (0, ms(80)));
    assert_eq!(world.now() - begun, ms(150));
}

#[test]
fn a_pause_that_would_outlast_the_deadline_ends_the_call_at_once_with_the_last_error() {
    let world = World::new();
    let policy = DeadlinePolicy::within(ms(1000));
    let caller = world.builder().deadline(policy).backoff(ms(900), ms(900)).attempts(50).build().unwrap();
    let begun = world.now();
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(300, Err(CUT))]);
    assert!(!seen.is_empty() && world.now() == seen.last().unwrap().at + ms(300), "it did not wait for nothing");
    assert!(world.now() - begun < ms(1000));
    let last = u32::try_from(seen.len()).unwrap();
    match finished.outcome {
        Outcome::DeadlineExceeded { phase: Phase::Backoff, error } => assert_eq!(error, Some(last)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_remainder_is_read_again_after_the_pause() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(1000))).build().unwrap();
    let begun = world.now();
    let (_, seen) = play(&world, &caller, Call::read("get"), &[(100, Err(CUT)), (1, Ok("answer"))]);
    assert!(seen[1].at > begun + ms(100));
    assert_eq!(seen[1].remaining, begun + ms(1000) - seen[1].at);
}

#[test]
fn what_travels_is_never_zero_though_the_deadline_passes_between_check_and_header() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(100))).build().unwrap();
    let finished = caller.call_blocking(Call::read("get"), |attempt| {
        assert_eq!(attempt.onward().unwrap().remaining, Some(ms(100)));
        world.advance(ms(100));
        assert!(attempt.onward().is_err());
        Err::<Answer<()>, _>(AttemptError::new(Verdict::not_sent(Kind::Timeout), "expired before it was sent"))
    });
    assert!(matches!(finished.outcome, Outcome::DeadlineExceeded { phase: Phase::Attempt, error: Some(_) }));
}

#[test]
fn an_operation_without_end_has_no_end_and_does_not_panic() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(Duration::MAX)).build().unwrap();
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(1000, Err(CUT)), (1, Ok("answer"))]);
    assert_eq!(seen[1].remaining, Duration::MAX);
    assert_eq!(finished.success(), Some("answer"));
    let finished = caller.call_blocking(Call::read("get"), |attempt| {
        assert_eq!(attempt.onward().unwrap().remaining, None);
        assert_eq!((attempt.io_timeout(), attempt.connect_timeout()), (None, None));
        Ok::<_, AttemptError<()>>(Answer::new(()))
    });
    assert!(finished.success().is_some());
}

#[test]
fn nothing_is_sent_with_a_budget_of_zero_or_a_margin_above_it() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(600)).margin(ms(40))).build().unwrap();
    for within in [0, 1, 40] {
        let (finished, seen) = play(&world, &caller, Call::read("get").within(ms(within)), &[(0, Ok("answer"))]);
        assert!(matches!(finished.outcome, Outcome::DeadlineExceeded { phase: Phase::Start, .. }), "{within}");
        assert!(seen.is_empty() && finished.report.attempts == 0);
    }
    let (finished, _) = play(&world, &caller, Call::read("get").within(ms(41)), &[(0, Ok("answer"))]);
    assert!(finished.success().is_some());
}

#[test]
fn nothing_changes_when_the_wall_clock_steps_an_hour_back() {
    let run = |step: bool| {
        let world = World::new();
        let caller = world.builder().deadline(DeadlinePolicy::within(ms(500))).build().unwrap();
        let begun = world.now();
        let mut times = Vec::new();
        let finished = caller.call_blocking(Call::read("get"), |attempt| {
            if step {
                world.set_wall(1_700_000_000_000 - 3_600_000);
            }
            times.push((world.now() - begun, attempt.remaining()));
            world.advance(ms(50));
            Err::<Answer<()>, _>(AttemptError::new(CUT, ()))
        });
        (times, finished.report.duration)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn an_attempt_that_does_not_answer_is_ended_and_the_total_always_wins() {
    let world = World::new();
    let policy = DeadlinePolicy::within(ms(250)).attempt(ms(100));
    let caller = world.builder().deadline(policy).backoff(ms(1), ms(1)).build().unwrap();
    let begun = world.now();
    let starts = std::cell::RefCell::new(Vec::new());
    let finished = world.run(caller.call(Call::read("get"), |attempt| {
        starts.borrow_mut().push((world.now() - begun, attempt.remaining()));
        take(&world, 1_000_000, Ok("never"))
    }));
    assert_eq!(starts.into_inner(), [(ms(0), ms(100)), (ms(101), ms(100)), (ms(202), ms(48))]);
    assert!(matches!(finished.outcome, Outcome::DeadlineExceeded { phase: Phase::Attempt, error: None }));
    assert_eq!(world.now() - begun, ms(250));
}

#[test]
fn connect_first_byte_and_idle_have_limits_of_their_own() {
    let world = World::new();
    let limits = AttemptLimits::NONE.connect(ms(10)).first_byte(ms(20)).idle(ms(30));
    let caller = world.builder().limits(limits).attempts(1).build().unwrap();
    let ended = |stages: u32| {
        let begun = world.now();
        let call = Call::mutation("create", caller.mint());
        let finished = world.run(caller.call(call, |attempt| {
            let world = world.clone();
            async move {
                attempt.connecting();
                if stages > 0 {
                    world.sleep(ms(5)).await;
                    attempt.sending();
                }
                for _ in 1..stages {
                    world.sleep(ms(15)).await;
                    attempt.received();
                }
                std::future::pending::<Result<Answer<()>, AttemptError<()>>>().await
            }
        }));
        (world.now() - begun, finished.outcome)
    };
    let (after, outcome) = ended(0);
    assert_eq!(after, ms(10));
    assert!(matches!(outcome, Outcome::Exhausted { .. }), "nothing was sent while it connected: {outcome:?}");
    let (after, outcome) = ended(1);
    assert_eq!(after, ms(5 + 20));
    assert!(matches!(outcome, Outcome::Uncertain { .. }), "{outcome:?}");
    assert_eq!(ended(3).0, ms(5 + 15 + 15 + 30), "each part of the answer starts the idle limit again");
}

#[test]
fn a_blocking_attempt_is_told_its_limits_and_the_remainder_bounds_them() {
    let world = World::new();
    let limits = AttemptLimits::NONE.connect(ms(30)).first_byte(ms(200)).idle(ms(50));
    let caller = world.builder().limits(limits).deadline(DeadlinePolicy::within(ms(100))).build().unwrap();
    let finished = caller.call_blocking(Call::read("get"), |attempt| {
        assert_eq!((attempt.connect_timeout(), attempt.io_timeout()), (Some(ms(30)), Some(ms(100))));
        world.advance(ms(20));
        attempt.received();
        assert_eq!(attempt.io_timeout(), Some(ms(50)));
        world.advance(ms(60));
        assert_eq!((attempt.connect_timeout(), attempt.io_timeout()), (Some(ms(20)), Some(ms(20))));
        attempt.connection(Connection::Warm);
        Ok::<_, AttemptError<()>>(Answer::new(()))
    });
    assert!(finished.success().is_some());
}

#[test]
fn an_answer_after_the_deadline_is_a_success_that_says_so() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(100))).build().unwrap();
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(150, Ok("answer"))]);
    assert!(matches!(finished.outcome, Outcome::Success { late: true, .. }));
    let (finished, _) = play(&world, &caller, Call::read("get"), &[(99, Ok("answer"))]);
    assert!(matches!(finished.outcome, Outcome::Success { late: false, .. }));
}
