//! What happens while the callers are at work.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use counterfoil::testing::{CallKind, Fault, FaultError, Survival};
use counterfoil::{Error, OpenError, Store};

use crate::callers::{Owner, crowd, follower, reader, second_crowd};
use crate::explore::{Chance, explore, pause, thread};
use crate::stage::{ACTIVE, Stage, join, prepare};

/// A key that no crowd asks for.
const LAST: u64 = 99;

fn run(name: &str, scenario: fn(Chance)) {
    prepare();
    explore(name, scenario);
}

/// What a loss of power leaves: mostly as little as it may.
fn survival(chance: &mut Chance) -> Survival {
    match chance.below(4) {
        0 => Survival::Everything,
        1 => Survival::Random(chance.below(1000)),
        _ => Survival::Nothing,
    }
}

#[test]
fn whenever_the_power_goes_everything_that_anybody_heard_or_saw_is_there() {
    run("the power goes", |mut chance| {
        let stage = Stage::new(&mut chance);
        let store = stage.open();
        let mut all = crowd(&stage, &store, &mut chance);
        all.push(reader(&stage, &store, &mut chance));
        let following = follower(&stage, &store, LAST, &mut chance);
        let (disk, survival, mut later) = (stage.disk.clone(), survival(&mut chance), chance.split());
        let cut = thread::spawn(move || {
            later.dawdle(120);
            disk.crash(&survival)
        });
        join(all);
        let left = cut.join().expect("no panic");
        drop(store);
        join(vec![following]);
        stage.check(&left);
    });
}

#[test]
fn after_a_failed_write_or_sync_no_closure_runs_and_everybody_is_told_what_may_be_assumed() {
    run("the log fails", |mut chance| {
        let stage = Stage::new(&mut chance);
        let store = stage.open();
        let (on, error) = [
            (CallKind::Sync, FaultError::Eio),
            (CallKind::Sync, FaultError::SyncDropsData),
            (CallKind::Sync, FaultError::SyncErrorsButDurable),
            (CallKind::Write, FaultError::Eio),
            (CallKind::Write, FaultError::EioPartWritten),
        ][usize::try_from(chance.below(5)).expect("small")];
        let nth = 1 + chance.below(3);
        stage.disk.fail(Fault { on, nth, name_contains: Some(ACTIVE.to_owned()), error, permanent: false });
        let mut all = crowd(&stage, &store, &mut chance);
        all.push(reader(&stage, &store, &mut chance));
        let mut following = vec![follower(&stage, &store, LAST, &mut chance)];
        join(all);
        if stage.disk.faults_struck() > 0 {
            // It is told by the store that stops, not by closing it.
            join(std::mem::take(&mut following));
        }
        let closed = store.close();
        let failed = stage.disk.faults_struck() > 0;
        assert_eq!(closed.is_err(), failed, "closing tells of a failure, and of nothing else: {closed:?}");
        join(following);
        stage.check(&stage.disk.crash(&survival(&mut chance)));
    });
}

#[test]
fn a_fold_that_fails_stops_the_store_and_leaves_nobody_waiting() {
    run("a fold fails", |mut chance| {
        let mut stage = Stage::new(&mut chance);
        stage.fold_always();
        let store = stage.open();
        let on = [CallKind::Write, CallKind::Sync, CallKind::SetLen][usize::try_from(chance.below(3)).expect("small")];
        let (nth, name_contains) = (1 + chance.below(3), Some("state.redb".to_owned()));
        stage.disk.fail(Fault { on, nth, name_contains, error: FaultError::Eio, permanent: true });
        let all = crowd(&stage, &store, &mut chance);
        let following = follower(&stage, &store, LAST, &mut chance);
        join(all);
        let closed = store.close();
        assert!(closed.is_ok() || stage.disk.faults_struck() > 0, "{closed:?}");
        join(vec![following]);
        stage.check(&stage.disk.crash(&survival(&mut chance)));
    });
}

#[test]
fn a_store_that_is_closed_under_load_answers_or_refuses_everybody_truly() {
    run("closed under load", |mut chance| {
        let stage = Stage::new(&mut chance);
        let store = stage.open();
        let mut all = crowd(&stage, &store, &mut chance);
        all.push(reader(&stage, &store, &mut chance));
        all.push(follower(&stage, &store, LAST, &mut chance));
        let closing = |store: Store, mut later: Chance| {
            thread::spawn(move || {
                later.dawdle(60);
                store.close()
            })
        };
        let closers = [closing(store.clone(), chance.split()), closing(store, chance.split())];
        let mut outcomes = closers.map(|closer| closer.join().expect("no panic"));
        outcomes.sort_by_key(Result::is_err);
        assert!(matches!(outcomes, [Ok(()), Err(Error::Closed)]), "one closes, for all: {outcomes:?}");
        join(all);
        stage.check(&stage.disk.crash(&Survival::Nothing));
    });
}

#[test]
fn the_last_handle_may_go_on_the_writers_own_thread() {
    run("the last handle", |mut chance| {
        let stage = Stage::new(&mut chance);
        let store = stage.open();
        // Keys that no other submission of this round has.
        let (key, way) = (chance.below(2), chance.below(3));
        let all = if chance.is(2) { crowd(&stage, &store, &mut chance) } else { Vec::new() };
        let owned = store.clone();
        let (own, inner) = (50 + key, stage.closure(50 + key));
        let submitted = match way {
            // In a closure that runs, or is dropped because its submission was cancelled.
            0 | 1 => store.submit(Stage::operation(own), move |tx| {
                let reply = inner(tx);
                pause();
                drop(owned);
                reply
            }),
            // In a waker.
            _ => store.submit(Stage::operation(own), inner).inspect(|_| drop(owned)),
        };
        let mut answer = None;
        match submitted {
            Err(error) => stage.note_quietly(own, Err(error)),
            Ok(ticket) if way == 1 => match ticket.cancel() {
                Ok(()) => stage.note_quietly(own, Err(Error::Cancelled)),
                Err(ticket) => answer = Some(ticket),
            },
            Ok(mut ticket) if way == 2 => {
                let waker = Waker::from(Arc::new(Owner(Mutex::new(Some(store.clone())))));
                if Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending() {
                    stage.note_unheard(own);
                    answer = Some(ticket);
                } else {
                    stage.note_unheard(own);
                }
            }
            Ok(ticket) => answer = Some(ticket),
        }
        drop(store);
        if let Some(ticket) = answer {
            stage.note_quietly(own, ticket.wait());
        }
        join(all);
        // Whoever was last does not wait for the writer; the directory is free when that has ended.
        let reopened = loop {
            match stage.try_open() {
                Ok(store) => break store,
                Err(OpenError::Held { .. }) => thread::yield_now(),
                Err(error) => panic!("it does not open: {error}"),
            }
        };
        reopened.close().expect("it closes");
        stage.check(&stage.disk.crash(&Survival::Nothing));
    });
}

#[test]
fn a_queue_with_one_place_serves_all_who_wait_for_it() {
    run("one place", |mut chance| {
        let mut stage = Stage::new(&mut chance);
        stage.narrow_queue();
        let store = stage.open();
        let mut all = crowd(&stage, &store, &mut chance);
        all.extend(second_crowd(&stage, &store, &mut chance));
        join(all);
        store.close().expect("it closes");
        stage.check(&stage.disk.crash(&Survival::Nothing));
    });
}

#[test]
fn followers_are_shown_every_entry_without_being_asked_again() {
    run("followers", |mut chance| {
        let stage = Stage::new(&mut chance);
        let store = stage.open();
        let mut all = crowd(&stage, &store, &mut chance);
        all.push(follower(&stage, &store, LAST, &mut chance));
        all.push(follower(&stage, &store, LAST, &mut chance));
        loop {
            let last = store.execute(Stage::operation(LAST), stage.closure(LAST));
            // The queue may have one place.
            if !matches!(last, Err(Error::Overloaded)) {
                stage.note(&store, LAST, last);
                break;
            }
            thread::yield_now();
        }
        join(all);
        store.close().expect("it closes");
        stage.check(&stage.disk.crash(&Survival::Nothing));
    });
}

#[test]
fn a_check_of_the_whole_store_meets_work_and_closing_and_ends() {
    run("verify", |mut chance| {
        let stage = Stage::new(&mut chance);
        let store = stage.open();
        let all = crowd(&stage, &store, &mut chance);
        let (checked, mut later) = (store.clone(), chance.split());
        let checking = thread::spawn(move || {
            later.dawdle(60);
            match checked.verify() {
                Ok(report) => assert!(report.is_clean(), "{:?}", report.problems),
                Err(Error::Closed) => {}
                Err(error) => panic!("{error:?}"),
            }
        });
        if chance.is(2) {
            chance.dawdle(80);
            store.close().expect("it closes");
        }
        join(all);
        join(vec![checking]);
        stage.check(&stage.disk.kill());
    });
}
