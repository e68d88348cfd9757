//! The dispatcher with its threads.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil::LogStart;
use counterfoil::effect::{Answer, Dispatcher, EffectPhase, HandlerLimits, Intent, Verdict};
use counterfoil::testing::{SimDisk, VirtualClock, WALL_AT_START};
use counterfoil::{Error, Store};

use crate::support::{Bank, blind, builder, effects, keyed, pay, pay_with};

fn limits(concurrency: usize) -> HandlerLimits {
    let mut limits = HandlerLimits::default();
    limits.concurrency = concurrency;
    limits
}

/// Follows the log until the operation of a key is finished.
fn wait_until_paid(store: &Store, key: &str) {
    let mut log = store.log(LogStart::Oldest).expect("the log is whole");
    while pay(store, key).expect("known").is_accepted() {
        drop(log.next().expect("there is more to come"));
    }
}

#[test]
fn intents_are_dispatched_as_they_come_and_the_dispatcher_stops() {
    let disk = SimDisk::new();
    let store = builder(keyed()).open_in(&disk).unwrap();
    let bank = Bank::default();
    let dispatcher = Dispatcher::new(&store).handler("bank", bank.clone(), limits(4)).unwrap().start().unwrap();
    for number in 0..50 {
        drop(pay(&store, &number.to_string()).unwrap());
    }
    for number in 0..50 {
        wait_until_paid(&store, &number.to_string());
    }
    dispatcher.stop();
    assert_eq!(bank.payloads().len(), 50);
    drop(pay(&store, "late").unwrap());
    store.assert_sound();
    store.close().unwrap();
    let store = builder(keyed()).open_in(&disk).unwrap();
    let dispatcher = Dispatcher::new(&store).handler("bank", bank.clone(), limits(4)).unwrap().start().unwrap();
    wait_until_paid(&store, "late");
    dispatcher.stop();
    assert_eq!(bank.payloads().len(), 51);
}

#[test]
fn a_handler_that_never_returns_blocks_nobody_else_and_its_effect_gets_a_person() {
    let disk = SimDisk::new();
    let clock = VirtualClock::new(WALL_AT_START);
    let store = builder(blind()).clock(clock.clone()).open_in(&disk).unwrap();
    let (release, held) = channel::<()>();
    let (inside, entered) = channel();
    let held = Mutex::new(held);
    let bank = Bank::default().then(move |_| {
        inside.send(()).expect("the test waits");
        assert!(held.lock().expect("nobody panics in here").recv().is_err(), "nothing is ever sent");
        Verdict::NotApplied
    });
    drop(pay(&store, "stuck").unwrap());
    let dispatcher = Dispatcher::new(&store).handler("bank", bank.clone(), limits(1)).unwrap().start().unwrap();
    entered.recv().unwrap();
    drop(pay_with(&store, "next", |tx| Ok(vec![tx.intend(Intent::new("bank", "next"))?])).unwrap());
    let mut log = store.log(LogStart::Oldest).unwrap();
    clock.advance(Duration::from_secs(31));
    while pay(&store, "next").unwrap().is_accepted() {
        drop(log.next().unwrap());
    }
    assert_eq!(dispatcher.stats().given_up, 1);
    assert_eq!(dispatcher.stats().abandoned, 1);
    clock.advance(Duration::from_secs(120));
    while effects(&store)[0].phase != EffectPhase::Parked {
        drop(log.next().unwrap());
    }
    assert_eq!(bank.payloads(), ["12.00", "next"], "never a second blind call");
    // What it says in the end comes too late to plan it anew.
    drop(release);
    while effects(&store)[0].stale_reports == 0 {
        drop(log.next().unwrap());
    }
    assert_eq!(effects(&store)[0].phase, EffectPhase::Parked);
    dispatcher.stop();
    store.assert_sound();
}

#[test]
fn never_more_calls_at_a_time_than_allowed() {
    let disk = SimDisk::new();
    let store = builder(keyed()).open_in(&disk).unwrap();
    let inside = Arc::new(Mutex::new((0_u32, 0_u32)));
    let mut bank = Bank::default();
    for _ in 0..40 {
        let inside = Arc::clone(&inside);
        bank = bank.then(move |_| {
            {
                let mut inside = inside.lock().unwrap();
                inside.0 += 1;
                inside.1 = inside.1.max(inside.0);
            }
            std::thread::yield_now();
            inside.lock().unwrap().0 -= 1;
            Verdict::Applied(Answer::new())
        });
    }
    for number in 0..40 {
        drop(pay(&store, &number.to_string()).unwrap());
    }
    let dispatcher = Dispatcher::new(&store).handler("bank", bank, limits(3)).unwrap().start().unwrap();
    for number in 0..40 {
        wait_until_paid(&store, &number.to_string());
    }
    dispatcher.stop();
    assert!(inside.lock().unwrap().1 <= 3);
}

#[test]
fn a_store_that_is_closed_ends_its_dispatcher() {
    let disk = SimDisk::new();
    let store = builder(keyed()).open_in(&disk).unwrap();
    let dispatcher = Bank::default().dispatcher(&store).start().unwrap();
    let other = store.clone();
    store.close().unwrap();
    dispatcher.stop();
    assert!(matches!(pay(&other, "k"), Err(Error::Closed)));
}
