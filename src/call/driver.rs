//! Drives a flow asynchronously.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::attempt::{Answer, Answered, Attempt, AttemptError};
use super::caller::Caller;
use super::cancel::Listener;
use super::core::Core;
use super::flow::{Flow, Next};
use super::limits::{Limit, Stage};
use super::outcome::Finished;
use super::purpose::Spec;
use super::span::Spans;
use super::timer::Sleep;

/// What an attempt returns.
pub(crate) type Returned<T, E> = Result<Answer<T>, AttemptError<E>>;

/// What became of an attempt.
pub(crate) enum Run<T, E> {
    Returned(Returned<T, E>),
    TimedOut(Limit),
    Cancelled,
}

/// What the attempts brought: the value of the one that succeeded, the error of the last one that failed.
pub(crate) struct Brought<T, E> {
    pub(crate) value: Option<T>,
    pub(crate) error: Option<E>,
}

impl<T, E> Brought<T, E> {
    pub(crate) const NOTHING: Self = Self { value: None, error: None };

    pub(crate) fn take(&mut self, returned: Returned<T, E>) -> Answered {
        let (answered, result) = Answered::split(returned);
        match result {
            Ok(value) => self.value = Some(value),
            Err(error) => self.error = Some(error),
        }
        answered
    }
}

/// The flow is begun in here: it is too large to be handed from one future to the next.
pub(crate) async fn drive<T, E, F, Fut>(caller: &Caller, spec: Spec, mut make: F) -> Finished<T, E>
where
    F: FnMut(Attempt) -> Fut,
    Fut: Future<Output = Returned<T, E>>,
{
    let mut flow = caller.begin_spec(spec);
    flow.announce();
    let mut brought = Brought::NOTHING;
    let spans = Spans::new(&flow);
    // Read again after whatever takes time, and only then.
    let mut now = flow.started();
    loop {
        match flow.advance(now) {
            Next::Wait(until) => wait(&flow, until).await,
            Next::Queue(until) => wait_in_queue(&flow, until).await,
            Next::Send(attempt) => {
                let number = attempt.number();
                let span = spans.attempt(&attempt);
                let future = span.in_scope(|| make(attempt));
                let run = {
                    let mut future = pin!(span.instrument(future));
                    let mut watch = Watch::new();
                    poll_fn(|cx| match (future.as_mut().poll(cx), flow.under_way()) {
                        (Poll::Ready(returned), _) => Poll::Ready(Run::Returned(returned)),
                        (Poll::Pending, Some(attempt)) => watch.poll(flow.core(), flow.listener(), attempt, cx),
                        (Poll::Pending, None) => unreachable!("the attempt that was sent is under way"),
                    })
                    .await
                };
                now = settle(&mut flow, &mut brought, number, run);
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

/// Tells the flow what became of attempt `number`, and when.
pub(crate) fn settle<T, E>(flow: &mut Flow, brought: &mut Brought<T, E>, number: u32, run: Run<T, E>) -> Duration {
    let now = flow.core().clock.monotonic();
    let answered = match run {
        Run::Returned(returned) => brought.take(returned),
        Run::TimedOut(limit) => Answered::TimedOut(limit),
        Run::Cancelled => {
            flow.cancel(now);
            return now;
        }
    };
    // Delays and open breakers are left to chance; a success has neither.
    let draw = if matches!(answered, Answered::Success { .. }) { 0 } else { flow.core().random.draw() };
    flow.hear(number, now, draw, answered);
    now
}

pub(crate) async fn wait(flow: &Flow, until: Duration) {
    let mut alarm = Alarm::new();
    poll_fn(|cx| if is_cancelled(flow.listener(), cx) { Poll::Ready(()) } else { alarm.poll(flow.core(), until, cx) })
        .await;
}

pub(crate) async fn wait_in_queue(flow: &Flow, until: Option<Duration>) {
    let mut alarm = Alarm::new();
    poll_fn(|cx| {
        if flow.permit_is_ready(cx.waker()) || is_cancelled(flow.listener(), cx) {
            return Poll::Ready(());
        }
        until.map_or(Poll::Pending, |until| alarm.poll(flow.core(), until, cx))
    })
    .await;
}

fn is_cancelled(cancel: Option<&Listener>, cx: &Context<'_>) -> bool {
    cancel.is_some_and(|cancel| cancel.poll(cx.waker()))
}

/// Rings at a moment of the caller's clock, and can be set anew.
pub(crate) struct Alarm {
    until: Duration,
    sleep: Option<Sleep>,
}

impl Alarm {
    pub(crate) const fn new() -> Self {
        Self { until: Duration::ZERO, sleep: None }
    }

    pub(crate) fn poll(&mut self, core: &Core, until: Duration, cx: &mut Context<'_>) -> Poll<()> {
        if self.until != until {
            *self = Self { until, sleep: None };
        }
        loop {
            let now = core.clock.monotonic();
            if now >= until {
                return Poll::Ready(());
            }
            let sleep = self.sleep.get_or_insert_with(|| core.timer.sleep(until.saturating_sub(now)));
            match sleep.as_mut().poll(cx) {
                // A timer that is early is set again.
                Poll::Ready(()) => self.sleep = None,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// Watches the limits of one attempt.
pub(crate) struct Watch {
    alarm: Alarm,
    progress: (Stage, u32),
    since: Option<Duration>,
}

impl Watch {
    pub(crate) const fn new() -> Self {
        Self { alarm: Alarm::new(), progress: (Stage::Unmarked, 0), since: None }
    }

    /// Ready when the attempt is to be ended.
    pub(crate) fn poll<T, E>(
        &mut self,
        core: &Core,
        cancel: Option<&Listener>,
        attempt: &Attempt,
        cx: &mut Context<'_>,
    ) -> Poll<Run<T, E>> {
        if is_cancelled(cancel, cx) {
            return Poll::Ready(Run::Cancelled);
        }
        let progress = attempt.progress();
        if progress != self.progress || self.since.is_none() {
            *self = Self { progress, since: Some(core.clock.monotonic()), alarm: Alarm::new() };
        }
        let since = self.since.unwrap_or_default();
        let Some((until, limit)) = attempt.limits().end(progress.0, since, attempt.deadline().moment()) else {
            return Poll::Pending;
        };
        self.alarm.poll(core, until, cx).map(|()| Run::TimedOut(limit))
    }
}
