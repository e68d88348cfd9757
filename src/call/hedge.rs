//! Hedged reads: a second attempt beside a slow first one, and whichever answers first.
//!
//! It shortens the tail and costs double work, so it has a pool and a budget of its own: under overload hedges stop by
//! themselves. Reads only, by type.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::attempt::Attempt;
use super::budget::Budget;
use super::bulkhead::Bulkhead;
use super::config_error::{ConfigError, not_zero};
use super::core::{Core, HedgeParts};
use super::driver::{Alarm, Brought, Returned, Run, Watch, settle};
use super::flow::{Flow, Step};
use super::outcome::Finished;
use super::span::Spans;

/// When a second attempt is sent, and what it takes from.
#[derive(Clone, Debug)]
pub struct HedgePolicy {
    after: Duration,
    pool: Bulkhead,
    budget: Budget,
}

impl HedgePolicy {
    /// A second attempt when the first has not answered after `after`, from a pool and a budget that no other calls use.
    /// Choose `after` from measurements: what 95 of 100 attempts need.
    #[must_use]
    pub const fn new(after: Duration, pool: Bulkhead, budget: Budget) -> Self {
        Self { after, pool, budget }
    }

    pub(crate) fn parts(self) -> Result<HedgeParts, ConfigError> {
        not_zero("the delay of a hedge", self.after)?;
        Ok(HedgeParts { after: self.after, pool: self.pool, budget: self.budget })
    }
}

/// One of the two attempts.
struct Lane<Fut> {
    attempt: Attempt,
    future: Pin<Box<Fut>>,
    watch: Watch,
}

fn lane<T, E, F, Fut>(
    spans: &Spans,
    attempt: Attempt,
    make: &mut F,
) -> Lane<impl Future<Output = Returned<T, E>> + use<T, E, F, Fut>>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Returned<T, E>>,
{
    let span = spans.attempt(&attempt);
    let future = span.in_scope(|| make(attempt.clone()));
    let watch = Watch::new();
    Lane { future: Box::pin(span.instrument(future)), attempt, watch }
}

/// Pending as long as there is no such lane.
fn poll_lane<T, E, Fut>(lane: &mut Option<Lane<Fut>>, flow: &Flow, cx: &mut Context<'_>) -> Poll<Run<T, E>>
where
    Fut: Future<Output = Returned<T, E>>,
{
    let Some(lane) = lane else { return Poll::Pending };
    match lane.future.as_mut().poll(cx) {
        Poll::Ready(returned) => Poll::Ready(Run::Returned(returned)),
        Poll::Pending => lane.watch.poll(flow.core(), flow.listener(), &lane.attempt, cx),
    }
}

/// What happened to the two.
enum Happened<T, E> {
    First(Run<T, E>),
    Second(Run<T, E>),
    HedgeDue,
}

pub(crate) async fn drive<T, E, F, Fut>(mut flow: Flow, mut make: F) -> Finished<T, E>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Returned<T, E>>,
{
    let mut brought = Brought::NOTHING;
    let spans = Spans::new(&flow);
    if let Some(hedge) = &flow.core().hedge {
        // Hedges are a fraction of hedged reads.
        hedge.budget.deposit(flow.core().clock.monotonic());
    }
    loop {
        match flow.step(flow.core().clock.monotonic()) {
            Step::Wait(until) => super::driver::wait(&flow, until).await,
            Step::Queue(until) => super::driver::wait_in_queue(&flow, until).await,
            Step::Send(attempt) => both(&mut flow, &mut brought, &spans, attempt, &mut make).await,
            Step::Finish(ending, report) => {
                spans.finish(&ending, &report);
                return Finished::new(ending, *report, brought.value, brought.error);
            }
        }
    }
}

/// One attempt and its hedge, until one has answered or both have failed.
async fn both<T, E, F, Fut>(flow: &mut Flow, brought: &mut Brought<T, E>, spans: &Spans, attempt: Attempt, make: &mut F)
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Returned<T, E>>,
{
    let mut first = Some(lane(spans, attempt, make));
    let mut second = None;
    let mut alarm = Alarm::new();
    let mut due = hedge_time(flow.core());
    while first.is_some() || second.is_some() {
        let happened = poll_fn(|cx| {
            if let Poll::Ready(run) = poll_lane(&mut first, flow, cx) {
                return Poll::Ready(Happened::First(run));
            }
            if let Poll::Ready(run) = poll_lane(&mut second, flow, cx) {
                return Poll::Ready(Happened::Second(run));
            }
            due.map_or(Poll::Pending, |due| alarm.poll(flow.core(), due, cx).map(|()| Happened::HedgeDue))
        })
        .await;
        let (ended, run) = match happened {
            Happened::HedgeDue => {
                due = None;
                let now = flow.core().clock.monotonic();
                second = flow.hedge(now).map(|attempt| lane(spans, attempt, make));
                continue;
            }
            Happened::First(run) => (first.take(), run),
            Happened::Second(run) => (second.take(), run),
        };
        if matches!(run, Run::Returned(Ok(_)) | Run::Cancelled) {
            // Losers are dropped before the winner returns.
            (first, second) = (None, None);
        }
        if let Some(Lane { attempt, future, .. }) = ended {
            drop(future);
            settle(flow, brought, attempt.number(), run);
        }
        // A first attempt that failed before its hedge was due is retried as usual.
        due = due.filter(|_| first.is_some());
    }
}

fn hedge_time(core: &Core) -> Option<Duration> {
    core.hedge.as_ref().and_then(|hedge| core.clock.monotonic().checked_add(hedge.after))
}
