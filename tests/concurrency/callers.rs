//! Those who ask: they wait, await, leave, cancel, give up, ask for the same.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use counterfoil::{EntryKind, LogStart, Store};

use crate::explore::{Chance, pause, thread};
use crate::stage::{Crowd, Stage};

/// Few in a model, where each step is decided; many in stress.
const CALLERS: u64 = if cfg!(counterfoil_shuttle) { 2 } else { 6 };
const CALLS_EACH: u64 = if cfg!(counterfoil_shuttle) { 2 } else { 5 };

/// Time enough, and too little of it.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_micros(200);

/// Callers at work, each with keys of its own and some that others ask for as well.
pub(crate) fn crowd(stage: &Stage, store: &Store, chance: &mut Chance) -> Crowd {
    crowd_from(1, stage, store, chance)
}

/// Another crowd beside the first.
pub(crate) fn second_crowd(stage: &Stage, store: &Store, chance: &mut Chance) -> Crowd {
    crowd_from(1 + CALLERS, stage, store, chance)
}

fn crowd_from(first: u64, stage: &Stage, store: &Store, chance: &mut Chance) -> Crowd {
    let callers = (first..first + CALLERS).map(|number| {
        let (stage, store, mut chance) = (stage.clone(), store.clone(), chance.split());
        thread::spawn(move || {
            for call_number in 0..CALLS_EACH {
                let own = number * 100 + call_number;
                let key = if chance.is(3) { chance.below(3) } else { own };
                call(&stage, &store, key, own, &mut chance);
            }
        })
    });
    callers.collect()
}

/// One call. `own` is a number that no other call has.
fn call(stage: &Stage, store: &Store, key: u64, own: u64, chance: &mut Chance) {
    let way = chance.below(11);
    match way {
        0 | 1 => return stage.note(store, key, store.execute(Stage::operation(key), stage.closure(key))),
        2 | 3 => {
            let time = if way == 2 { LONG } else { SHORT };
            return stage.note(store, key, store.execute(Stage::operation(key).deadline(time), stage.closure(key)));
        }
        4 => {
            let written = store.write(stage.write(own));
            return stage.note_write(own, written.map(|written| written.position.expect("it changed something")));
        }
        _ => {}
    }
    let ticket = match store.submit(Stage::operation(key), stage.closure(key)) {
        Ok(ticket) => ticket,
        Err(error) => return stage.note(store, key, Err(error)),
    };
    chance.dawdle(4);
    match way {
        5 => stage.note(store, key, ticket.wait()),
        6 => match ticket.cancel() {
            Ok(()) => stage.note(store, key, Err(counterfoil::Error::Cancelled)),
            Err(ticket) => stage.note(store, key, ticket.wait()),
        },
        7 => match ticket.wait_for(SHORT) {
            Ok(answer) => stage.note(store, key, answer),
            Err(ticket) => stage.note(store, key, ticket.wait()),
        },
        8 => {
            let (answer, woken) = block_on(ticket);
            assert!(woken <= 1, "one answer wakes once, not {woken} times");
            stage.note(store, key, answer);
        }
        9 => {
            // An async caller that was dropped between two polls.
            let mut ticket = ticket;
            match Pin::new(&mut ticket).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => stage.note(store, key, answer),
                Poll::Pending => stage.note_unheard(key),
            }
        }
        _ => {
            drop(ticket);
            stage.note_unheard(key);
        }
    }
}

/// Looks at the store now and then.
pub(crate) fn reader(stage: &Stage, store: &Store, chance: &mut Chance) -> thread::JoinHandle<()> {
    let (stage, store, mut chance) = (stage.clone(), store.clone(), chance.split());
    thread::spawn(move || {
        for _ in 0..2 {
            chance.dawdle(30);
            stage.look(&store);
        }
    })
}

/// Follows the log until it is shown this key, or is told that there will be no more. It holds no handle of the store.
pub(crate) fn follower(stage: &Stage, store: &Store, until: u64, chance: &mut Chance) -> thread::JoinHandle<()> {
    let last = Stage::operation(until).slot().clone();
    let mut log = store.log(LogStart::Now).expect("a follower");
    let (stage, blocking) = (stage.clone(), chance.is(2));
    thread::spawn(move || {
        loop {
            let entry = if blocking { log.next().transpose() } else { block_on(log.next_entry()).0 };
            match entry {
                Ok(Some(entry)) => {
                    stage.note_followed(entry.position);
                    if matches!(entry.kind, EntryKind::Operation { slot, .. } if slot == last) {
                        return;
                    }
                }
                // Without power the log cannot be read.
                Err(_) if stage.disk.is_off() => return,
                Ok(None) => return,
                Err(error) => panic!("a follower was told: {error}"),
            }
        }
    })
}

struct Unpark {
    thread: thread::Thread,
    woken: AtomicUsize,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Awaits without any runtime, and says how often it was woken.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark { thread: thread::current(), woken: AtomicUsize::new(0) });
    let waker = Waker::from(Arc::clone(&unpark));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, unpark.woken.load(Ordering::SeqCst));
        }
        thread::park();
    }
}

/// Somebody who owns a handle of the store and is woken by its writer.
pub(crate) struct Owner(pub(crate) std::sync::Mutex<Option<Store>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        let store = self.0.lock().expect("no panic").take();
        pause();
        drop(store);
    }
}
