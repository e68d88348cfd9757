//! Blocking calls from inside the store's own code are errors, and nothing of the caller's stops the writer.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::support::*;
use counterfoil::testing::SimDisk;
use counterfoil::{Access, Error, LogReadError, LogStart, OpenError, Reply, Store, Tx};

const PATIENCE: Duration = Duration::from_secs(20);

/// Every blocking call, by name, with what it said.
fn blocking_calls(store: &Store) -> Vec<(&'static str, Result<(), Error>)> {
    let log = store.log(LogStart::Now).expect("a follower").next().expect("an answer");
    let log = match log {
        Err(LogReadError::Reentrant) => Err(Error::Reentrant),
        other => panic!("{other:?}"),
    };
    vec![
        ("execute", store.execute(op("inner"), never).map(drop)),
        ("execute within", store.execute(op("inner").deadline(PATIENCE), never).map(drop)),
        ("write", store.write(|_| -> Result<(), _> { panic!("ran") }).map(drop)),
        ("wait", store.submit(op("queued"), add("n")).and_then(|ticket| ticket.wait()).map(drop)),
        (
            "wait for",
            store
                .submit(op("queued"), add("n"))
                .and_then(|ticket| ticket.wait_for(PATIENCE).expect("at once"))
                .map(drop),
        ),
        ("close", store.clone().close()),
        ("verify", store.verify().map(drop)),
        ("step", store.step().map(drop)),
        ("follow", log),
    ]
}

fn assert_reentrant(calls: Vec<(&'static str, Result<(), Error>)>, place: &str) {
    assert!(calls.len() >= 7);
    for (name, answer) in calls {
        assert!(matches!(answer, Err(Error::Reentrant)), "{name} in a {place}: {answer:?}");
    }
}

#[test]
fn what_a_closure_may_not_wait_for_is_not_executed_behind_its_back() {
    let store = threaded(&SimDisk::new());
    let inner = store.clone();
    let (said, heard) = channel();
    let receipt = store.execute(op("outer"), move |_: &Tx<'_>| {
        let ticket = inner.submit(op("inner"), add("n"))?;
        said.send(ticket.wait().map(drop)).expect("somebody listens");
        Ok(Reply::ok())
    });
    assert!(receipt.is_ok());
    assert!(matches!(heard.recv().unwrap(), Err(Error::Reentrant)));
    // Everything that was queued before this one has had its turn.
    drop(store.execute(op("later"), add("m")).unwrap());
    assert_eq!(store.receipt(op("inner").slot()).unwrap(), None);
    assert_eq!(total(&store, "n"), 0);
}

type Calls = Vec<(&'static str, Result<(), Error>)>;

fn sends_calls(
    store: &Store,
    send: Sender<Calls>,
) -> impl FnOnce(&Tx<'_>) -> Result<Reply, counterfoil::Failure> + Send + use<> {
    let store = store.clone();
    move |_| {
        send.send(blocking_calls(&store)).expect("the test waits");
        // What does not block is allowed.
        drop(store.stats());
        drop(store.receipt(op("k").slot())?);
        store.read(|view| view.table(&TOTALS).map(drop))?;
        Ok(Reply::ok())
    }
}

#[test]
fn a_blocking_call_in_a_closure_is_an_error_and_not_a_deadlock() {
    let manual = bed();
    for (mode, store) in [("manual", manual.store().clone()), ("threads", threaded(&SimDisk::new()))] {
        let (send, calls) = channel();
        let closure = sends_calls(&store, send);
        let (done, finished) = channel();
        let outer = std::thread::spawn({
            let store = store.clone();
            move || done.send(store.execute(op("k"), closure)).expect("the test waits")
        });
        drop(finished.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("a deadlock in mode {mode}")).unwrap());
        outer.join().unwrap();
        assert_reentrant(calls.recv().unwrap(), "closure");
        // What could not be waited for was said not to be executed, and is not executed afterwards either.
        drop(store.execute(op("after"), add("n")).unwrap());
        assert_eq!(store.receipt(op("queued").slot()).unwrap(), None, "{mode}");
        assert_eq!(store.receipt(op("inner").slot()).unwrap(), None, "{mode}");
    }
}

#[test]
fn a_blocking_call_in_a_guard_is_an_error_and_not_a_deadlock() {
    for manual in [true, false] {
        let handle: Arc<OnceLock<Store>> = Arc::default();
        let (send, calls) = channel();
        let (inner, once) = (Arc::clone(&handle), Mutex::new(Some(send)));
        let guarded = builder().replay_guard(move |_, _| {
            if let Some(store) = inner.get()
                && let Some(send) = once.lock().expect("no panic").take()
            {
                send.send(vec![
                    ("execute", store.execute(op("inner"), never).map(drop)),
                    ("write", store.write(|_| Ok(())).map(drop)),
                    ("verify", store.verify().map(drop)),
                    ("close", store.clone().close()),
                    ("step", store.step().map(drop)),
                    // These do not block, and would ask the guard again without end.
                    ("receipt", store.receipt(op("inner").slot()).map(drop)),
                    ("submit", store.submit(op("inner"), never).map(drop)),
                ])
                .expect("the test waits");
            }
            Access::Allowed
        });
        let guarded = if manual { guarded.manual() } else { guarded };
        let store = guarded.open_in(&SimDisk::new()).unwrap();
        handle.set(store.clone()).expect("once");
        drop(store.execute(op("k"), add("n")).unwrap());
        for (name, answer) in calls.recv().unwrap() {
            assert!(matches!(answer, Err(Error::Reentrant)), "{name} in a guard: {answer:?}");
        }
        store.close().unwrap();
    }
}

/// Makes blocking calls when it is woken, or panics.
struct Caller {
    store: Mutex<Option<Store>>,
    send: Mutex<Sender<Calls>>,
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        let store = self.store.lock().expect("no panic").take().expect("woken once");
        self.send.lock().expect("no panic").send(blocking_calls(&store)).expect("the test waits");
        panic!("a waker that panics");
    }
}

#[test]
fn a_waker_may_call_and_panic_and_the_store_goes_on() {
    for manual in [true, false] {
        let store = if manual { builder().manual() } else { builder() }.open_in(&SimDisk::new()).unwrap();
        let (send, calls) = channel();
        let caller = Caller { store: Mutex::new(Some(store.clone())), send: Mutex::new(send) };
        let waker = Waker::from(Arc::new(caller));
        let mut ticket = store.submit(op("k"), add("n")).unwrap();
        let pending = Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending();
        let (done, finished) = channel();
        let stepper = std::thread::spawn({
            let store = store.clone();
            move || {
                let stepped = if manual { store.step().map(drop) } else { Ok(()) };
                done.send(stepped).expect("the test waits");
            }
        });
        finished.recv_timeout(PATIENCE).expect("a deadlock").unwrap();
        stepper.join().unwrap();
        assert!(!ticket.wait().unwrap().is_replayed());
        if pending {
            assert_reentrant(calls.recv_timeout(PATIENCE).unwrap(), "waker");
        }
        drop(store.execute(op("after"), add("n")).unwrap());
        store.assert_sound();
        store.close().unwrap();
    }
}

#[test]
fn a_followers_waker_may_panic_as_well() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }
    let bed = bed();
    let mut follower = bed.store().log(LogStart::Now).unwrap();
    let waker = Waker::from(Arc::new(Panics));
    assert!(follower.poll_next(&mut Context::from_waker(&waker)).is_pending());
    let receipt = bed.store().execute(op("k"), add("n")).unwrap();
    assert_eq!(follower.try_next().unwrap().unwrap().position, receipt.position());
    assert!(bed.store().stats().stopped.is_none());
}

#[test]
fn another_store_may_be_called_from_a_closure() {
    let (outer, inner) = (threaded(&SimDisk::new()), threaded(&SimDisk::new()));
    let both = inner.clone();
    drop(
        outer
            .execute(op("k"), move |_| {
                drop(both.execute(op("k"), add("n")).expect("the other store"));
                Ok(Reply::ok())
            })
            .unwrap(),
    );
    assert_eq!(total(&inner, "n"), 1);
}

#[test]
fn the_last_handle_may_be_dropped_on_the_writer_thread_and_the_store_is_held_until_it_has_ended() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let (send, go) = channel::<()>();
    let owned = store.clone();
    let ticket = store.submit(op("k"), move |tx: &Tx<'_>| {
        go.recv().expect("the test sends");
        let reply = add("n")(tx);
        drop(owned);
        reply
    });
    let ticket = ticket.unwrap();
    drop(store);
    // Of this opening's segment only, so that a second one, if it is let in, can be seen to be.
    let gate = disk.hold_syncs_of("1-00000000.seg");
    send.send(()).unwrap();
    gate.wait_until_blocked();
    // The last handle is gone and the writer is at work: nobody else may have the store yet.
    let second = builder().open_in(&disk);
    assert!(matches!(second, Err(OpenError::Held { .. })), "two writers on one store: {second:?}");
    gate.release();
    let receipt = ticket.wait().unwrap();
    let reopened = loop {
        match builder().open_in(&disk) {
            Ok(store) => break store,
            Err(OpenError::Held { .. }) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(reopened.execute(op("k"), never).unwrap().meta(), receipt.meta());
    reopened.assert_sound();
    reopened.close().unwrap();
}
