//! A second attempt beside a slow first one.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use counterfoil::call::{
    Attempt, Budget, BudgetConfig, Bulkhead, Call, Caller, DeadlinePolicy, HedgePolicy, Kind, Measures, Outcome,
    Verdict,
};

use super::support::{World, all, boxed, ms, take};

struct Hedged {
    world: Arc<World>,
    caller: Caller,
    pool: Bulkhead,
    measures: Arc<Measures>,
}

fn hedged() -> Hedged {
    let world = World::new();
    let pool = Bulkhead::new(1, 0).unwrap();
    let budget = Budget::new(BudgetConfig::default().ratio(0.1).reserve_per_second(1)).unwrap();
    let measures = Arc::new(Measures::default());
    let caller = world
        .builder()
        .deadline(DeadlinePolicy::within(ms(1000)).attempt(ms(400)))
        .hedge(HedgePolicy::new(ms(20), pool.clone(), budget))
        .observer(measures.clone())
        .build()
        .unwrap();
    Hedged { world, caller, pool, measures }
}

/// Counts those that were dropped before they had answered.
struct Loser<'a> {
    dropped: &'a Cell<u32>,
    answered: bool,
}

impl Loser<'_> {
    fn wins(&mut self) {
        self.answered = true;
    }
}

impl Drop for Loser<'_> {
    fn drop(&mut self) {
        self.dropped.set(self.dropped.get() + u32::from(!self.answered));
    }
}

#[test]
fn whichever_answers_first_wins_and_the_loser_is_dropped_before_the_winner_returns() {
    let Hedged { world, caller, pool, measures } = hedged();
    let (dropped, attempts) = (Cell::new(0), RefCell::new(Vec::new()));
    let begun = world.now();
    let finished = world.run(caller.hedged_read(Call::read("get"), |attempt: Attempt| {
        attempts.borrow_mut().push(attempt.clone());
        let (world, slow) = (world.clone(), attempt.number() == 1);
        let mut loser = Loser { dropped: &dropped, answered: false };
        async move {
            let answer = take(&world, if slow { 300 } else { 30 }, Ok(if slow { "slow" } else { "fast" })).await;
            loser.wins();
            answer
        }
    }));
    assert_eq!(world.now() - begun, ms(50));
    assert_eq!((finished.report.attempts, finished.success()), (2, Some("fast")));
    assert_eq!(dropped.get(), 1);
    assert!(attempts.borrow()[0].caller_left());
    drop(attempts);
    assert_eq!(pool.in_use(), 0);
    let seen = measures.of("get");
    assert_eq!((seen.attempts, seen.hedges, seen.started), (2, 1, 1));
}

#[test]
fn a_first_attempt_that_answers_in_time_has_no_hedge() {
    let Hedged { world, caller, .. } = hedged();
    let finished = world.run(caller.hedged_read(Call::read("get"), |_| take(&world, 19, Ok("answer"))));
    assert_eq!((finished.report.attempts, finished.success()), (1, Some("answer")));
}

#[test]
fn a_failed_hedge_does_not_end_a_first_attempt_that_still_runs() {
    let Hedged { world, caller, .. } = hedged();
    let cut = Verdict::maybe_applied(Kind::Transient);
    let finished = world.run(caller.hedged_read(Call::read("get"), |attempt| match attempt.number() {
        1 => take(&world, 100, Ok("first")),
        _ => take(&world, 10, Err(cut)),
    }));
    assert_eq!((finished.report.attempts, finished.success()), (2, Some("first")));
}

#[test]
fn when_both_fail_the_operation_is_retried_as_usual() {
    let Hedged { world, caller, .. } = hedged();
    let cut = Verdict::maybe_applied(Kind::Transient);
    let finished = world.run(caller.hedged_read(Call::read("get"), |attempt| match attempt.number() {
        1 | 2 => take(&world, 50, Err(cut)),
        _ => take(&world, 1, Ok("third")),
    }));
    assert_eq!((finished.report.attempts, finished.success()), (3, Some("third")));
}

#[test]
fn hedges_have_a_pool_and_a_budget_of_their_own() {
    let Hedged { world, caller, .. } = hedged();
    let retries = caller.budget_balance();
    let read = || caller.hedged_read(Call::read("get"), |_| take(&world, 100, Ok("answer")));
    let finished = world.run(all((0..5).map(|_| boxed(read())).collect()));
    let attempts: u32 = finished.iter().map(|finished| finished.report.attempts).sum();
    assert_eq!(attempts, 6, "the hedges' pool has one place");
    let hedges = (0..30).map(|_| world.run(read()).report.attempts - 1).sum::<u32>();
    assert_eq!(hedges, 9 + 3, "the reserve of the hedges' budget less the one before, and a tenth of the reads");
    assert_eq!(caller.budget_balance(), retries + 3, "and that of retries was only paid into");
}

#[test]
fn without_a_policy_a_read_is_not_hedged() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let finished = world.run(caller.hedged_read(Call::read("get"), |_| take(&world, 500, Ok("answer"))));
    assert_eq!(finished.report.attempts, 1);
    assert!(matches!(finished.outcome, Outcome::Success { .. }));
}
