//! What one attempt is given, and what it gives back.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use super::bulkhead::Permit;
use super::core::Core;
use super::deadline::Deadline;
use super::identity::Identity;
use super::limits::{AttemptLimits, Stage};
use super::observer::{Event, Labels, WaitSource};
use super::propagate::{Expired, Inbound, Onward};
use super::trace::TraceId;
use super::verdict::Verdict;

/// Whether an attempt had to set up its connection. Timeouts are chosen for both apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Connection {
    /// Nothing was said.
    #[default]
    Unknown,
    /// It was made for this attempt.
    Cold,
    /// It was there.
    Warm,
}

/// The context of one attempt. A clone is the same attempt.
///
/// It holds the attempt's place in the pool: an answer whose body is still read keeps a clone, and so the place.
#[derive(Clone)]
pub struct Attempt(Arc<Inner>);

struct Inner {
    core: Arc<Core>,
    operation: &'static str,
    number: u32,
    deadline: Deadline,
    identity: Option<Identity>,
    trace: TraceId,
    /// Whether whoever is called finds an owner of the retries above it.
    owned_above: bool,
    stage: AtomicU8,
    /// Counts what was received, so that an idle limit starts again.
    received: AtomicU32,
    connection: AtomicU8,
    caller_left: AtomicBool,
    _permit: Option<Permit>,
}

/// What a flow knows of an attempt that it sends.
#[derive(Debug)]
pub(crate) struct AttemptParts {
    pub(crate) core: Arc<Core>,
    pub(crate) operation: &'static str,
    pub(crate) number: u32,
    pub(crate) deadline: Deadline,
    pub(crate) identity: Option<Identity>,
    pub(crate) trace: TraceId,
    pub(crate) owned_above: bool,
    pub(crate) permit: Option<Permit>,
}

impl Attempt {
    pub(crate) fn new(parts: AttemptParts) -> Self {
        Self(Arc::new(Inner {
            core: parts.core,
            operation: parts.operation,
            number: parts.number,
            deadline: parts.deadline,
            identity: parts.identity,
            trace: parts.trace,
            owned_above: parts.owned_above,
            stage: AtomicU8::new(Stage::Unmarked as u8),
            received: AtomicU32::new(0),
            connection: AtomicU8::new(0),
            caller_left: AtomicBool::new(false),
            _permit: parts.permit,
        }))
    }

    /// Its number, from 1. Send it with the request: receipts keep the number of the attempt that executed.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// The operation's identity, the same for every attempt.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.0.identity.as_ref()
    }

    /// This attempt's trace id.
    #[must_use]
    pub fn trace_id(&self) -> TraceId {
        self.0.trace
    }

    /// When this attempt is to end.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        self.0.deadline
    }

    /// What is left for this attempt, now. Read it after every wait.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.deadline.remaining(self.0.core.clock.monotonic())
    }

    /// How long connecting may take: the limit for it, and no more than what is left. `None` without an end.
    #[must_use]
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.timeout(self.0.core.limits.connect)
    }

    /// How long one read or write on a socket may take: the first-byte limit until something was received, then the idle
    /// limit, and no more than what is left. `None` without an end.
    #[must_use]
    pub fn io_timeout(&self) -> Option<Duration> {
        match self.stage() {
            Stage::Receiving => self.timeout(self.0.core.limits.idle),
            Stage::Unmarked | Stage::Connecting | Stage::Sending => self.timeout(self.0.core.limits.first_byte),
        }
    }

    fn timeout(&self, limit: Option<Duration>) -> Option<Duration> {
        let least = limit.unwrap_or(Duration::MAX).min(self.remaining());
        (least < Duration::MAX).then_some(least)
    }

    /// What is to be sent along, so that whoever is called knows how much time there is, and that its failures are retried
    /// here.
    ///
    /// # Errors
    ///
    /// [`Expired`] if no time is left: then nothing may be sent. Zero never goes over a wire.
    pub fn onward(&self) -> Result<Onward, Expired> {
        let remaining = self.remaining();
        if remaining.is_zero() {
            return Err(Expired);
        }
        let bounded = remaining < Duration::MAX;
        Ok(Onward {
            remaining: bounded.then_some(remaining),
            previous_attempts: self.0.number.saturating_sub(1),
            owned: self.0.owned_above,
            trace: self.0.trace,
        })
    }

    /// Nothing was sent yet: the attempt waits for readiness, a name or a connection. If it ends here, it is known that
    /// nothing was done.
    pub fn connecting(&self) {
        self.enter(Stage::Connecting);
    }

    /// From now on bytes may leave. Mark this **before** the first one does.
    pub fn sending(&self) {
        self.enter(Stage::Sending);
    }

    /// A part of the answer came; the idle limit starts again.
    pub fn received(&self) {
        self.enter(Stage::Receiving);
        self.0.received.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, stage: Stage) {
        self.0.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Says whether the connection had to be made.
    pub fn connection(&self, connection: Connection) {
        let code = match connection {
            Connection::Unknown => 0,
            Connection::Cold => 1,
            Connection::Warm => 2,
        };
        self.0.connection.store(code, Ordering::Relaxed);
    }

    /// Nobody waits for this attempt any more: the call was cancelled, timed out, or answered by another attempt. Work that
    /// goes on elsewhere should stop, if it can. What was done stays done.
    #[must_use]
    pub fn caller_left(&self) -> bool {
        self.0.caller_left.load(Ordering::Relaxed)
    }

    /// Says that work on this attempt came to its end elsewhere. If nobody waited for it any more, it is counted as
    /// abandoned.
    pub fn finished_elsewhere(&self, cost: u64) {
        if self.caller_left() {
            let (labels, number) = (self.labels(), self.0.number);
            self.0.core.observe(&Event::AbandonedFinished { labels, number, cost });
        }
    }

    /// Says how long it was waited for what is called to be ready. Only the waits inside an attempt need to be said.
    pub fn waited_until_ready(&self, duration: Duration) {
        let (labels, source) = (self.labels(), WaitSource::Readiness);
        self.0.core.observe(&Event::Waited { labels, source, duration });
    }

    fn labels(&self) -> Labels<'_> {
        let identity_hash = self.0.identity.as_ref().map(Identity::hash);
        Labels { dependency: &self.0.core.dependency, operation: self.0.operation, identity_hash }
    }

    pub(crate) fn leave(&self) {
        self.0.caller_left.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stage(&self) -> Stage {
        Stage::from_u8(self.0.stage.load(Ordering::Relaxed))
    }

    /// Changes whenever a limit starts anew.
    pub(crate) fn progress(&self) -> (Stage, u32) {
        (self.stage(), self.0.received.load(Ordering::Relaxed))
    }

    pub(crate) fn limits(&self) -> &AttemptLimits {
        &self.0.core.limits
    }

    pub(crate) fn which_connection(&self) -> Connection {
        match self.0.connection.load(Ordering::Relaxed) {
            1 => Connection::Cold,
            2 => Connection::Warm,
            _ => Connection::Unknown,
        }
    }

    pub(crate) fn as_inbound(&self) -> Inbound {
        Inbound {
            deadline: self.0.deadline,
            previous_attempts: self.0.number.saturating_sub(1),
            owned: self.0.owned_above,
            trace: Some(self.0.trace),
        }
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("operation", &self.0.operation)
            .field("number", &self.0.number)
            .field("identity", &self.0.identity)
            .field("deadline", &self.0.deadline)
            .field("stage", &self.stage())
            .finish_non_exhaustive()
    }
}

/// The answer of an attempt.
///
/// ```
/// use counterfoil::call::Answer;
///
/// let answer = Answer::new("order 7").replayed(true).cost(3);
/// # let _ = answer;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "an answer counts when it is returned from the attempt"]
pub struct Answer<T> {
    pub(crate) value: T,
    pub(crate) replayed: bool,
    pub(crate) cost: u64,
}

impl<T> Answer<T> {
    /// An answer of this attempt.
    pub const fn new(value: T) -> Self {
        Self { value, replayed: false, cost: 0 }
    }

    /// Whether the answer is that of an earlier attempt.
    pub fn replayed(self, replayed: bool) -> Self {
        Self { replayed, ..self }
    }

    /// What it cost, in a unit of your own.
    pub fn cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }
}

/// An attempt that brought no answer: the error, and the verdict on it.
#[derive(Clone, Copy, Debug)]
#[must_use = "a failed attempt counts when it is returned from the attempt"]
pub struct AttemptError<E> {
    pub(crate) error: E,
    pub(crate) verdict: Verdict,
    pub(crate) cost: u64,
}

impl<E> AttemptError<E> {
    /// A failed attempt.
    pub const fn new(verdict: Verdict, error: E) -> Self {
        Self { error, verdict, cost: 0 }
    }

    /// What it cost, in a unit of your own.
    pub fn cost(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    /// The same verdict with another error.
    pub fn map<F>(self, change: impl FnOnce(E) -> F) -> AttemptError<F> {
        AttemptError { error: change(self.error), verdict: self.verdict, cost: self.cost }
    }

    /// The verdict.
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// What an attempt came to, without what it brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answered {
    /// An answer.
    Success {
        /// It is that of an earlier attempt.
        replayed: bool,
        /// What it cost.
        cost: u64,
    },
    /// No answer.
    Failed {
        /// The verdict on it.
        verdict: Verdict,
        /// What it cost.
        cost: u64,
    },
    /// The driver ended it.
    TimedOut(super::limits::Limit),
}

impl Answered {
    /// An answer of this attempt.
    #[must_use]
    pub const fn success() -> Self {
        Self::Success { replayed: false, cost: 0 }
    }

    /// No answer.
    #[must_use]
    pub const fn failed(verdict: Verdict) -> Self {
        Self::Failed { verdict, cost: 0 }
    }

    /// Splits what an attempt returned into what a flow decides on, and what it brought.
    pub(crate) fn split<T, E>(result: Result<Answer<T>, AttemptError<E>>) -> (Self, Result<T, E>) {
        match result {
            Ok(answer) => (Self::Success { replayed: answer.replayed, cost: answer.cost }, Ok(answer.value)),
            Err(failed) => (Self::Failed { verdict: failed.verdict, cost: failed.cost }, Err(failed.error)),
        }
    }
}
