//! What is known at the end, and what is not.

use std::sync::Arc;

use counterfoil::call::{
    Answer, Attempt, AttemptError, Call, Cancel, Cause, DeadlinePolicy, Hint, Identity, Kind, Outcome, Ownership,
    StopReason, Verdict,
};

use super::support::{World, ms, play, take};

const CUT: Verdict = Verdict::maybe_applied(Kind::Transient);

#[test]
fn a_write_without_identity_that_times_out_is_sent_once_and_uncertain() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let timed_out = Verdict::maybe_applied(Kind::Timeout);
    let (finished, seen) = play(&world, &caller, Call::unkeyed("transfer"), &[(10, Err(timed_out)), (1, Ok("again"))]);
    assert_eq!(seen.len(), 1);
    match finished.outcome {
        Outcome::Uncertain { identity: None, cause, reason: StopReason::NoIdentity, error: Some(1) } => {
            assert_eq!(cause, Cause { kind: Kind::Timeout, attempt: 1 });
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_without_identity_is_sent_again_when_nothing_was_sent() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let refused = Verdict::not_sent(Kind::Transient);
    let (finished, seen) = play(&world, &caller, Call::unkeyed("transfer"), &[(1, Err(refused)), (1, Ok("done"))]);
    assert_eq!((seen.len(), finished.success()), (2, Some("done")));
}

#[test]
fn the_key_is_minted_once_and_every_attempt_sends_it() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let identity = caller.mint();
    let key = identity.key().to_string();
    let call = Call::mutation("create", identity);
    let (_, seen) = play(&world, &caller, call, &[(1, Err(CUT)), (1, Err(CUT)), (1, Ok("done"))]);
    assert_eq!(seen.iter().map(|seen| seen.key.clone().unwrap()).collect::<Vec<_>>(), [key.clone(), key.clone(), key]);
    assert_ne!(caller.mint(), caller.mint());
}

/// Attempt 1 committed and its answer was lost; attempt 2 hears "exists", with this content.
fn exists_with(content: &'static [u8]) -> Outcome<&'static str, &'static str> {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let identity = caller.mint().fingerprint(*b"digest of the request");
    let attempt = |attempt: Attempt| {
        if attempt.number() == 1 {
            return Err(AttemptError::new(CUT, "the answer was lost"));
        }
        let own: &Identity = attempt.identity().unwrap();
        match own.compare(own.key().as_bytes(), Some(content)) {
            Ownership::Ours => Ok(Answer::new("made before").replayed(true)),
            Ownership::Other => Err(AttemptError::new(Verdict::not_ours(), "somebody else's")),
            Ownership::Unknown => Err(AttemptError::new(Verdict::not_applied(Kind::Conflict), "exists")),
        }
    };
    caller.call_blocking(Call::mutation("create", identity), attempt).outcome
}

#[test]
fn what_exists_already_is_a_replayed_success_if_it_is_ours_and_else_a_conflict() {
    let ours = exists_with(b"digest of the request");
    assert!(matches!(ours, Outcome::Success { value: "made before", replayed: true, .. }), "{ours:?}");
    let other = exists_with(b"of another request");
    assert!(matches!(other, Outcome::Rejected { conflict: true, error: "somebody else's" }), "{other:?}");
}

#[test]
fn uncertainty_is_not_settled_by_a_refusal_of_a_later_attempt() {
    for refusal in [
        Verdict::not_applied(Kind::Overloaded),
        Verdict::not_applied(Kind::Permanent),
        Verdict::not_applied(Kind::Conflict),
        Verdict::not_applied(Kind::Throttled).never(),
    ] {
        let world = World::new();
        let caller = world.builder().build().unwrap();
        let identity = caller.mint();
        let call = Call::mutation("create", identity.clone());
        let (finished, _) = play(&world, &caller, call, &[(1, Err(CUT)), (1, Err(refusal))]);
        match finished.outcome {
            Outcome::Uncertain { identity: Some(asked), cause, .. } => {
                assert_eq!((asked, cause), (identity, Cause { kind: Kind::Transient, attempt: 1 }), "{refusal:?}");
            }
            other => panic!("{refusal:?}: {other:?}"),
        }
        assert_eq!(finished.report.trace_ids().count(), 2, "both attempts can be looked for");
    }
}

#[test]
fn a_stored_no_settles_it() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let call = Call::mutation("create", caller.mint());
    let (finished, _) = play(&world, &caller, call, &[(1, Err(CUT)), (1, Err(Verdict::rejected()))]);
    assert!(matches!(finished.outcome, Outcome::Rejected { conflict: false, error: 2 }));
}

#[test]
fn an_uncertain_call_is_settled_by_calling_again_with_the_same_identity() {
    let world = World::new();
    let caller = world.builder().attempts(1).build().unwrap();
    let (first, _) = play(&world, &caller, Call::mutation("create", caller.mint()), &[(1, Err(CUT))]);
    let Outcome::Uncertain { identity: Some(identity), .. } = first.outcome else { panic!("{first:?}") };
    let (second, _) = play(&world, &caller, Call::mutation("create", identity), &[(1, Ok("the receipt"))]);
    assert_eq!(second.success(), Some("the receipt"));
}

#[test]
fn an_operation_that_was_done_and_whose_answer_is_gone_is_not_done_again_and_not_uncertain() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let gone = Verdict::applied(Kind::Permanent);
    let call = Call::mutation("create", caller.mint());
    let (finished, seen) = play(&world, &caller, call, &[(1, Err(CUT)), (1, Err(gone))]);
    assert_eq!(seen.len(), 2);
    assert!(matches!(finished.outcome, Outcome::Exhausted { reason: StopReason::ResultLost, .. }));
    let lost = Verdict::applied(Kind::Transient);
    let (finished, seen) = play(&world, &caller, Call::unkeyed("create"), &[(1, Err(lost))]);
    assert!(matches!(finished.outcome, Outcome::Exhausted { reason: StopReason::ResultLost, .. }));
    assert_eq!(seen.len(), 1);
}

#[test]
fn an_operation_in_progress_is_asked_for_after_its_hint_with_the_same_identity() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let call = Call::mutation("create", caller.mint());
    let running = Verdict::in_progress().after(ms(300));
    let (finished, seen) = play(&world, &caller, call, &[(1, Err(running)), (1, Ok("done"))]);
    assert!(seen[1].at - seen[0].at >= ms(301) && seen[1].key == seen[0].key);
    assert_eq!(finished.success(), Some("done"));
}

#[test]
fn a_fallback_is_degraded_and_no_success_and_does_not_hide_a_refusal() {
    let world = World::new();
    let caller = world.builder().attempts(1).build().unwrap();
    let with = |verdict: Verdict| {
        let attempt = |_: Attempt| Err::<Answer<&str>, _>(AttemptError::new(verdict, "error"));
        caller.call_with_fallback_blocking(Call::read("recommend"), attempt, || "nothing to recommend")
    };
    for verdict in [CUT, Verdict::not_applied(Kind::Overloaded)] {
        let finished = with(verdict);
        assert!(matches!(
            finished.outcome,
            Outcome::Degraded { value: "nothing to recommend", error: Some("error"), .. }
        ));
        assert_eq!(finished.success(), None);
    }
    assert!(matches!(with(Verdict::not_applied(Kind::Permanent)).outcome, Outcome::Rejected { error: "error", .. }));
    let attempt = |_| take(&world, 1, Ok("answer"));
    let finished = world.run(caller.call_with_fallback(Call::read("recommend"), attempt, || "unused"));
    assert_eq!(finished.success(), Some("answer"));
}

#[test]
fn a_call_that_is_cancelled_while_it_waits_ends_at_once_and_nothing_was_done() {
    let world = World::new();
    let caller = world.builder().backoff(ms(1000), ms(1000)).build().unwrap();
    let cancel = Cancel::new();
    let call = Call::mutation("create", caller.mint()).cancelled_by(&cancel);
    let refused = Verdict::not_sent(Kind::Transient);
    let mut attempts = 0;
    let finished = caller.call_blocking(call, |_| {
        attempts += 1;
        cancel.cancel();
        Err::<Answer<()>, _>(AttemptError::new(refused, ()))
    });
    assert!(matches!(finished.outcome, Outcome::Cancelled { .. }));
    assert_eq!(attempts, 1);
}

#[test]
fn a_call_that_is_cancelled_in_its_attempt_is_uncertain() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let cancel = Cancel::new();
    let call = Call::mutation("create", caller.mint()).cancelled_by(&cancel);
    let held = std::cell::RefCell::new(None);
    let begun = world.now();
    let finished = world.run(async {
        let calling = caller.call(call, |attempt| {
            *held.borrow_mut() = Some(attempt);
            take(&world, 1000, Ok("too late"))
        });
        let cancelling = async {
            world.sleep(ms(20)).await;
            cancel.cancel();
        };
        let both: Vec<std::pin::Pin<Box<dyn Future<Output = Option<_>>>>> = vec![
            Box::pin(async { Some(calling.await) }),
            Box::pin(async {
                cancelling.await;
                None
            }),
        ];
        super::support::all(both).await.remove(0).unwrap()
    });
    assert_eq!(world.now() - begun, ms(20));
    assert!(matches!(finished.outcome, Outcome::Uncertain { cause: Cause { kind: Kind::Cancelled, attempt: 1 }, .. }));
    assert!(held.borrow().as_ref().unwrap().caller_left());
}

#[test]
fn the_report_carries_what_attempts_cost_and_how_long_was_waited() {
    let world = World::new();
    let caller = world.builder().deadline(DeadlinePolicy::within(ms(5000))).build().unwrap();
    let begun = world.now();
    let finished = caller.call_blocking(Call::read("get"), |attempt| {
        world.advance(ms(10));
        match attempt.number() {
            1 => Err(AttemptError::new(Verdict::not_applied(Kind::Throttled).after(ms(200)), ()).cost(3)),
            _ => Ok(Answer::new(()).cost(4)),
        }
    });
    assert_eq!((finished.report.cost, finished.report.attempts), (7, 2));
    assert_eq!(finished.report.duration, world.now() - begun);
    assert_eq!(finished.report.waited_between, finished.report.duration - ms(20));
}

#[test]
fn a_hint_never_is_obeyed() {
    let world = World::new();
    let caller = world.builder().build().unwrap();
    let never = Verdict::not_applied(Kind::Transient).hint(Hint::Never);
    let (finished, seen) = play(&world, &caller, Call::read("get"), &[(1, Err(never))]);
    assert_eq!(seen.len(), 1);
    assert!(matches!(finished.outcome, Outcome::Exhausted { reason: StopReason::HintNever, .. }));
}

#[test]
fn callers_flows_and_outcomes_can_be_sent_to_other_threads() {
    fn sendable<T: Send>(_: &T) {}
    let world = World::new();
    let caller = Arc::new(world.builder().build().unwrap());
    sendable(&caller);
    sendable(&caller.begin(Call::read("get")));
    sendable(&caller.call(Call::read("get"), |_| async { Ok::<_, AttemptError<()>>(Answer::new(())) }));
    sendable(&caller.hedged_read(Call::read("get"), |_| async { Ok::<_, AttemptError<()>>(Answer::new(())) }));
}
