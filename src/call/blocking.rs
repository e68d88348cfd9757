//! Drives a flow on the caller's own thread.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use super::attempt::Attempt;
use super::driver::{Brought, Returned, Run, settle};
use super::flow::{Flow, Next};
use super::outcome::Finished;
use super::span::Spans;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub(crate) fn drive<T, E>(mut flow: Flow, mut make: impl FnMut(Attempt) -> Returned<T, E>) -> Finished<T, E> {
    let mut brought = Brought::NOTHING;
    let spans = Spans::new(&flow);
    let mut now = flow.started();
    loop {
        match flow.advance(now) {
            Next::Wait(until) => park(&flow, Some(until), |_| false),
            Next::Queue(until) => park(&flow, until, |waker| flow.permit_is_ready(waker)),
            Next::Send(attempt) => {
                let number = attempt.number();
                let returned = spans.attempt(&attempt).in_scope(|| make(attempt));
                now = settle(&mut flow, &mut brought, number, Run::Returned(returned));
                continue;
            }
            Next::Finish(ending, at) => {
                let report = flow.take_report(at);
                spans.finish(&ending, &report);
                return Finished::new(ending, report, brought.value, brought.error);
            }
        }
        now = flow.core().clock.monotonic();
    }
}

/// Parks until something is ready, the call is cancelled, or time is up.
fn park(flow: &Flow, until: Option<Duration>, ready: impl Fn(&Waker) -> bool) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let core = flow.core();
    loop {
        if ready(&waker) || flow.listener().is_some_and(|cancel| cancel.poll(&waker)) {
            break;
        }
        let left = until.map_or(Duration::MAX, |until| until.saturating_sub(core.clock.monotonic()));
        if left.is_zero() {
            break;
        }
        core.park.park(left);
    }
}
