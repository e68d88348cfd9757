//! Tickets: one answer handed from the writer to one waiter, who may block, await or leave.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::base::error::Error;
use crate::base::receipt::Receipt;
use crate::base::sync::{Condvar, Mutex};

use super::reentry;
use super::run::Run;

/// Where a submission is.
enum Phase<T> {
    Queued,
    Cancelled,
    /// The writer has taken it: it can no longer be cancelled.
    Started,
    Answered(Result<T, Error>),
    Taken,
}

struct State<T> {
    phase: Phase<T>,
    waker: Option<Waker>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    answered: Condvar,
}

/// A submission that is on its way. Wait for it, await it, cancel it while it is queued, or drop it: dropping splits
/// nothing, the operation runs or does not run whole.
#[must_use = "the answer arrives through the ticket"]
pub struct Ticket<T = Receipt> {
    shared: Arc<Shared<T>>,
    store: usize,
    /// In `manual` mode, whose steps a blocking wait makes.
    manual: Weak<Run>,
}

impl<T> Ticket<T> {
    /// Blocks until the answer is there.
    ///
    /// # Errors
    ///
    /// As [`Store::execute`](crate::Store::execute). On a thread that is running one of this store's closures nothing can
    /// be waited for: a submission that is still queued is cancelled and answered [`Error::Reentrant`] (*not executed*),
    /// one that was started is [`Error::Unknown`].
    ///
    /// # Panics
    ///
    /// If the ticket was polled to its end before.
    pub fn wait(self) -> Result<T, Error> {
        if reentry::inside(self.store) {
            return self.leave();
        }
        self.step_until_answered();
        let mut state = self.shared.state.lock();
        loop {
            if let Some(answer) = take(&mut state.phase) {
                return answer;
            }
            assert!(!matches!(state.phase, Phase::Taken), "a ticket was waited for after it was ready");
            self.shared.answered.wait(&mut state);
        }
    }

    /// The answer of one who may not wait.
    fn leave(self) -> Result<T, Error> {
        let mut state = self.shared.state.lock();
        if matches!(state.phase, Phase::Queued) {
            state.phase = Phase::Cancelled;
            return Err(Error::Reentrant);
        }
        assert!(!matches!(state.phase, Phase::Taken), "a ticket was waited for after it was ready");
        take(&mut state.phase)
            .unwrap_or_else(|| Err(Error::Unknown("it was started, and cannot be waited for from in here".to_owned())))
    }

    /// Blocks until the answer is there or the time is up; then gives the ticket back.
    ///
    /// # Errors
    ///
    /// The ticket itself when the time is up: the outcome is unknown for now, wait again or ask again with the same
    /// key.
    pub fn wait_for(self, time: Duration) -> Result<Result<T, Error>, Self> {
        if reentry::inside(self.store) {
            return Ok(self.leave());
        }
        self.step_until_answered();
        let mut state = self.shared.state.lock();
        self.shared.answered.wait_while_for(&mut state, |state| !matches!(state.phase, Phase::Answered(_)), time);
        let answer = take(&mut state.phase);
        drop(state);
        answer.ok_or(self)
    }

    /// Cancels a submission that is still queued; it is then not executed.
    ///
    /// # Errors
    ///
    /// The ticket itself when the submission was started or answered already: starting is not undone.
    pub fn cancel(self) -> Result<(), Self> {
        let cancelled = {
            let mut state = self.shared.state.lock();
            let queued = matches!(state.phase, Phase::Queued);
            if queued {
                state.phase = Phase::Cancelled;
            }
            queued
        };
        if cancelled { Ok(()) } else { Err(self) }
    }

    /// The answer is there: [`Ticket::wait`] will not block.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        matches!(self.shared.state.lock().phase, Phase::Answered(_))
    }

    /// In `manual` mode nobody else may be there to do the work.
    fn step_until_answered(&self) {
        if let Some(run) = self.manual.upgrade() {
            while !self.is_answered() && run.step().unwrap_or(false) {}
        }
    }

    /// The same ticket, whose blocking waits step the store.
    pub(super) fn stepping(self, run: &Arc<Run>) -> Self {
        Self { manual: Arc::downgrade(run), ..self }
    }

    /// A ticket whose answer is known from the start.
    pub(super) fn answered(store: usize, answer: Result<T, Error>) -> Self {
        let (ticket, responder) = pair(store);
        responder.answer(answer);
        ticket
    }
}

fn take<T>(phase: &mut Phase<T>) -> Option<Result<T, Error>> {
    match std::mem::replace(phase, Phase::Taken) {
        Phase::Answered(answer) => Some(answer),
        Phase::Cancelled => Some(Err(Error::Cancelled)),
        other @ (Phase::Queued | Phase::Started | Phase::Taken) => {
            *phase = other;
            None
        }
    }
}

impl<T> Future for Ticket<T> {
    type Output = Result<T, Error>;

    /// # Panics
    ///
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // Wakers are cloned and dropped outside the lock: whatever they own may come back here.
        let waker = context.waker().clone();
        let old = {
            let mut state = self.shared.state.lock();
            if let Some(answer) = take(&mut state.phase) {
                return Poll::Ready(answer);
            }
            assert!(!matches!(state.phase, Phase::Taken), "a ticket was polled after it was ready");
            state.waker.replace(waker)
        };
        drop(old);
        Poll::Pending
    }
}

impl<T> fmt::Debug for Ticket<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.shared.state.lock().phase {
            Phase::Queued => "queued",
            Phase::Cancelled => "cancelled",
            Phase::Started => "started",
            Phase::Answered(_) => "answered",
            Phase::Taken => "taken",
        };
        f.debug_struct("Ticket").field("phase", &phase).finish_non_exhaustive()
    }
}

/// The writer's end of a ticket. Dropped without an answer, it answers for itself, so that no waiter waits for ever.
pub(super) struct Responder<T> {
    shared: Option<Arc<Shared<T>>>,
    handed_to_disk: bool,
}

/// A ticket and the end that answers it.
pub(super) fn pair<T>(store: usize) -> (Ticket<T>, Responder<T>) {
    let shared =
        Arc::new(Shared { state: Mutex::new(State { phase: Phase::Queued, waker: None }), answered: Condvar::new() });
    (
        Ticket { shared: Arc::clone(&shared), store, manual: Weak::new() },
        Responder { shared: Some(shared), handed_to_disk: false },
    )
}

impl<T> Responder<T> {
    /// Takes the submission off the queue. `false` if it was cancelled: it must not be started.
    pub(super) fn start(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| {
            let mut state = shared.state.lock();
            let queued = matches!(state.phase, Phase::Queued);
            if queued {
                state.phase = Phase::Started;
            }
            queued
        })
    }

    /// From here on, the disk may have the frame: without an answer the outcome is unknown.
    pub(super) const fn hand_to_disk(&mut self) {
        self.handed_to_disk = true;
    }

    pub(super) fn answer(mut self, answer: Result<T, Error>) {
        self.deliver(answer);
    }

    fn deliver(&mut self, answer: Result<T, Error>) {
        let Some(shared) = self.shared.take() else { return };
        let waker = {
            let mut state = shared.state.lock();
            if !matches!(state.phase, Phase::Cancelled) {
                state.phase = Phase::Answered(answer);
            }
            state.waker.take()
        };
        // A ticket has one owner, so at most one thread waits.
        shared.answered.notify_one();
        if let Some(waker) = waker
            && catch_unwind(AssertUnwindSafe(|| waker.wake())).is_err()
        {
            tracing::error!("a waker panicked; its ticket is answered all the same");
        }
    }
}

impl<T> Drop for Responder<T> {
    fn drop(&mut self) {
        let answer = if self.handed_to_disk {
            Error::Unknown("the writer stopped after the operation was handed to the disk".to_owned())
        } else {
            Error::Closed
        };
        self.deliver(Err(answer));
    }
}

impl<T> fmt::Debug for Responder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("handed_to_disk", &self.handed_to_disk).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct PanickingWaker;

    impl Wake for PanickingWaker {
        fn wake(self: Arc<Self>) {
            panic!("no thank you");
        }
    }

    #[test]
    fn a_queued_submission_can_be_cancelled_and_a_started_one_cannot() {
        let (ticket, responder) = pair::<u32>(0);
        assert!(ticket.cancel().is_ok());
        assert!(!responder.start(), "a cancelled one is not started");

        let (ticket, responder) = pair::<u32>(0);
        assert!(responder.start());
        let ticket = ticket.cancel().unwrap_err();
        responder.answer(Ok(7));
        assert_eq!(ticket.wait().unwrap(), 7);
    }

    #[test]
    fn a_dropped_responder_says_closed_before_the_disk_and_unknown_after_it() {
        let (ticket, responder) = pair::<u32>(0);
        drop(responder);
        assert!(matches!(ticket.wait(), Err(Error::Closed)));

        let (ticket, mut responder) = pair::<u32>(0);
        responder.hand_to_disk();
        drop(responder);
        assert!(matches!(ticket.wait(), Err(Error::Unknown(_))));
    }

    #[test]
    fn a_waiter_that_gives_up_keeps_its_ticket() {
        let (ticket, responder) = pair::<u32>(0);
        let ticket = ticket.wait_for(Duration::ZERO).unwrap_err();
        responder.answer(Ok(1));
        assert_eq!(ticket.wait_for(Duration::ZERO).unwrap().unwrap(), 1);
    }

    #[test]
    fn an_awaited_ticket_is_woken_without_any_runtime() {
        let counting = Arc::new(CountingWaker::default());
        let waker = Waker::from(Arc::clone(&counting));
        let (mut ticket, responder) = pair::<u32>(0);
        assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
        responder.answer(Ok(3));
        assert_eq!(counting.0.load(Ordering::SeqCst), 1);
        assert!(matches!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(3))));
    }

    #[test]
    fn a_waker_that_panics_does_not_stop_the_writer() {
        let waker = Waker::from(Arc::new(PanickingWaker));
        let (mut ticket, responder) = pair::<u32>(0);
        assert!(Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)).is_pending());
        responder.answer(Ok(3));
        assert_eq!(ticket.wait().unwrap(), 3);
    }
}
