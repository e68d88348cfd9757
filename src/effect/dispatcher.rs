//! The dispatcher: takes what is due, has it called, and brings the answers home.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::sync::{Mutex, thread};
use crate::protocol::backoff::Backoff;
use crate::store::{CallEnd, Lease, Store, Want};

use super::calls::Calls;
use super::handler::{Attempt, EffectHandler, HandlerLimits};

/// The pump looks at least this often, whatever it was told.
const LOOK_AT_LEAST: Duration = Duration::from_millis(250);

/// After the store refused something, for instance since the disk is full.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// Why a dispatcher cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The provider was not declared when the store was opened.
    #[error("provider {0:?} was not declared when the store was opened")]
    UnknownProvider(String),
    /// The provider has a handler already.
    #[error("provider {0:?} has two handlers")]
    Twice(String),
    /// A limit is zero, or the first pause is above the longest.
    #[error("provider {provider:?}: {reason}")]
    Limits {
        /// Whose handler.
        provider: String,
        /// Which limit.
        reason: &'static str,
    },
    /// A thread could not be started.
    #[error("a thread of the dispatcher could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

struct Desk {
    provider: String,
    handler: Arc<dyn EffectHandler>,
    limits: HandlerLimits,
    backoff: Backoff,
}

/// Performs the effects of a store with handlers of yours.
///
/// A dispatcher holds a handle of its store: stop it before you close the store.
pub struct Dispatcher {
    store: Store,
    desks: Vec<Arc<Desk>>,
    calls: Arc<Calls>,
    counts: Arc<Counts>,
    draws: Mutex<u64>,
    /// Continuations that failed: how often, and when they are tried again.
    failed: Mutex<HashMap<u64, (u32, Duration)>>,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    asked: AtomicU64,
    panicked: AtomicU64,
    given_up: AtomicU64,
}

/// What a dispatcher has done since it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherStats {
    /// Sendings that began.
    pub sent: u64,
    /// Look-ups that began.
    pub asked: u64,
    /// Calls of handlers that panicked.
    pub panicked: u64,
    /// Calls that took too long and were left alone.
    pub given_up: u64,
    /// Calls under way.
    pub running: usize,
    /// Calls that were left alone and have not returned.
    pub abandoned: usize,
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let providers: Vec<&str> = self.desks.iter().map(|desk| desk.provider.as_str()).collect();
        f.debug_struct("Dispatcher").field("providers", &providers).finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher without handlers. Effects of providers that have none here wait.
    #[must_use]
    pub fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            desks: Vec::new(),
            calls: Arc::default(),
            counts: Arc::default(),
            draws: Mutex::new(0),
            failed: Mutex::default(),
        }
    }

    /// Draws pauses from a seed instead of by chance, for tests.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        *self.draws.lock() = seed | 1;
        self
    }

    /// Gives a provider its handler.
    ///
    /// # Errors
    ///
    /// [`DispatchError`] for an unknown provider, a second handler, or a limit of zero.
    pub fn handler(
        mut self,
        provider: impl Into<String>,
        handler: impl EffectHandler,
        limits: HandlerLimits,
    ) -> Result<Self, DispatchError> {
        let provider = provider.into();
        if !self.store.knows_provider(&provider) {
            return Err(DispatchError::UnknownProvider(provider));
        }
        if self.desks.iter().any(|desk| desk.provider == provider) {
            return Err(DispatchError::Twice(provider));
        }
        let zero = [
            (limits.concurrency == 0, "concurrency is 0"),
            (limits.time < Duration::from_millis(1), "the time of a call is below 1 ms"),
            (limits.abandoned_max == 0, "abandoned_max is 0"),
        ];
        if let Some((_, reason)) = zero.into_iter().find(|(zero, _)| *zero) {
            return Err(DispatchError::Limits { provider, reason });
        }
        let Some(backoff) = Backoff::new(limits.backoff_first, limits.backoff_cap) else {
            let reason = "the first pause must be at least 1 ms and at most the longest";
            return Err(DispatchError::Limits { provider, reason });
        };
        self.desks.push(Arc::new(Desk { provider, handler: Arc::new(handler), limits, backoff }));
        Ok(self)
    }

    /// Starts the dispatcher's thread. Each call runs on a thread of its own.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Thread`].
    pub fn start(self) -> Result<RunningDispatcher, DispatchError> {
        let (calls, counts) = (Arc::clone(&self.calls), Arc::clone(&self.counts));
        let pump = thread::Builder::new().name("counterfoil-effects".to_owned()).spawn(move || self.pump())?;
        Ok(RunningDispatcher { calls, counts, pump: Some(pump) })
    }

    /// Does what is due on this thread, calls of handlers included, and returns how many things that were. For stores in
    /// `manual` mode and their virtual clocks.
    ///
    /// # Errors
    ///
    /// What the store answers: see [`Store::write`].
    pub fn step(&self) -> Result<usize, Error> {
        let mut done = self.run_continuations()?;
        for desk in &self.desks {
            let want = Want {
                provider: desk.provider.clone(),
                free: desk.limits.concurrency,
                call: desk.limits.time,
                asking: std::collections::HashSet::new(),
            };
            let due = self.store.lease_effects(want)?;
            done += due.moved;
            for lease in due.leases {
                done += 1;
                let end = self.call(desk, &lease);
                let again = self.pause(desk, &lease);
                self.store.end_call(lease, end, again)?;
            }
        }
        done += self.run_continuations()?;
        Ok(done)
    }

    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> DispatcherStats {
        stats(&self.calls, &self.counts)
    }

    fn pump(self) {
        let this = Arc::new(self);
        let follower = this.store.enter_effects();
        let waker = Waker::from(Arc::clone(&this.calls));
        while !this.calls.is_stopping() {
            let seen = this.store.effects_seen();
            let wait = match this.turn() {
                Ok(wait) => wait,
                Err(error) => {
                    tracing::debug!(%error, "the dispatcher waits for its store");
                    PAUSE_AFTER_ERROR
                }
            };
            match this.store.poll_effects(follower, seen, &waker) {
                None => this.calls.wait(wait),
                Some(true) => {}
                // The store is closed or has stopped.
                Some(false) => break,
            }
        }
        this.store.leave_effects(follower);
        this.wait_for_calls();
    }

    /// One look at everything; returns how long nothing is due.
    fn turn(self: &Arc<Self>) -> Result<Duration, Error> {
        for lease in self.calls.give_up(self.store.effect_time()) {
            self.counts.given_up.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(id = %lease.id, provider = %lease.provider, "a handler took too long and is left alone");
            let again = self.desk(&lease).map_or(PAUSE_AFTER_ERROR, |desk| self.pause(desk, &lease));
            self.store.end_call(lease, CallEnd::Unknown, again)?;
        }
        self.run_continuations()?;
        let mut wait = LOOK_AT_LEAST;
        for desk in &self.desks {
            let (running, busy, abandoned) = self.calls.of(&desk.provider);
            let free = desk.limits.concurrency.saturating_sub(running);
            if free == 0 || abandoned >= desk.limits.abandoned_max {
                continue;
            }
            let asking = busy.into_iter().collect();
            let want = Want { provider: desk.provider.clone(), free, call: desk.limits.time, asking };
            let due = self.store.lease_effects(want)?;
            if due.moved > 0 {
                wait = Duration::ZERO;
            }
            if let Some(next_ms) = due.next_ms {
                wait = wait.min(crate::base::position::TimestampMs(next_ms).since(self.store.now()));
            }
            for lease in due.leases {
                self.begin(desk, lease)?;
            }
        }
        let until = self.calls.first_until().map(|until| until.saturating_sub(self.store.effect_time()));
        Ok(wait.min(until.unwrap_or(wait)))
    }

    fn begin(self: &Arc<Self>, desk: &Arc<Desk>, lease: Lease) -> Result<(), Error> {
        let number = self.calls.begin(&lease, self.store.effect_time().saturating_add(desk.limits.time));
        let (this, desk_of_call, lease_of_call) = (Arc::clone(self), Arc::clone(desk), lease.clone());
        let call = move || {
            let end = this.call(&desk_of_call, &lease_of_call);
            let again = this.pause(&desk_of_call, &lease_of_call);
            // Counted as running until its answer is durable, so that a look-up is not made twice at a time.
            if let Err(error) = this.store.end_call(lease_of_call.clone(), end, again) {
                tracing::warn!(%error, id = %lease_of_call.id, "the answer to an effect could not be recorded");
            }
            this.calls.end(number, &lease_of_call.provider);
        };
        let started = thread::Builder::new().name("counterfoil-effect".to_owned()).spawn(call);
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for an effect");
            self.calls.end(number, &lease.provider);
            // Nothing left.
            self.store.end_call(lease, CallEnd::NotApplied, PAUSE_AFTER_ERROR)?;
        }
        Ok(())
    }

    /// Calls the handler. One that panics has said nothing.
    fn call(&self, desk: &Desk, lease: &Lease) -> CallEnd {
        let attempt = Attempt { lease: lease.clone(), time: desk.limits.time };
        let counter = if lease.ask { &self.counts.asked } else { &self.counts.sent };
        counter.fetch_add(1, Ordering::Relaxed);
        let answer = catch_unwind(AssertUnwindSafe(|| {
            if lease.ask {
                CallEnd::from(desk.handler.look_up(&attempt))
            } else {
                CallEnd::from(desk.handler.send(&attempt))
            }
        }));
        answer.unwrap_or_else(|_| {
            self.counts.panicked.fetch_add(1, Ordering::Relaxed);
            tracing::error!(id = %lease.id, provider = %lease.provider, "a handler panicked");
            CallEnd::Unknown
        })
    }

    fn desk(&self, lease: &Lease) -> Option<&Arc<Desk>> {
        self.desks.iter().find(|desk| desk.provider == lease.provider)
    }

    fn pause(&self, desk: &Desk, lease: &Lease) -> Duration {
        desk.backoff.delay(lease.attempt.max(1), self.draw())
    }

    /// A number by chance, or the next one of a seed (SplitMix64).
    fn draw(&self) -> u64 {
        let mut state = self.draws.lock();
        if *state == 0 {
            let mut bytes = [0; 8];
            // Without chance the pauses are still spread by the effects' own times.
            if getrandom::fill(&mut bytes).is_err() {
                tracing::debug!("the system gives no random numbers");
            }
            *state = u64::from_le_bytes(bytes) | 1;
        }
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Accepted operations whose effects are final and whose continuation has not run.
    fn run_continuations(&self) -> Result<usize, Error> {
        let mut done = 0;
        for sequence in self.store.due_continuations()? {
            let now = self.store.effect_time();
            let (failures, not_before) = self.failed.lock().get(&sequence).copied().unwrap_or_default();
            if now < not_before {
                continue;
            }
            match self.store.continue_operation(sequence) {
                Ok(true) => {
                    self.failed.lock().remove(&sequence);
                    done += 1;
                }
                Err(error @ (Error::Closed | Error::Poisoned(_) | Error::Unknown(_))) => return Err(error),
                Ok(false) | Err(_) => {
                    let failures = failures.saturating_add(1);
                    let backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(60));
                    let pause = backoff.map_or(PAUSE_AFTER_ERROR, |backoff| backoff.delay(failures, self.draw()));
                    self.failed.lock().insert(sequence, (failures, now.saturating_add(pause)));
                }
            }
        }
        Ok(done)
    }

    /// Calls that are under way have their time; what has not returned by then is uncertain to the next run.
    fn wait_for_calls(&self) {
        while self.calls.running() > 0 {
            let now = self.store.effect_time();
            let Some(until) = self.calls.first_until() else { return };
            if until <= now {
                self.calls.give_up(now);
            } else {
                self.calls.wait_for_return(until.saturating_sub(now));
            }
        }
    }
}

fn stats(calls: &Calls, counts: &Counts) -> DispatcherStats {
    DispatcherStats {
        sent: counts.sent.load(Ordering::Relaxed),
        asked: counts.asked.load(Ordering::Relaxed),
        panicked: counts.panicked.load(Ordering::Relaxed),
        given_up: counts.given_up.load(Ordering::Relaxed),
        running: calls.running(),
        abandoned: calls.abandoned(),
    }
}

/// A dispatcher at work. Dropping it stops it.
#[must_use = "dropping it stops the dispatcher"]
#[derive(Debug)]
pub struct RunningDispatcher {
    calls: Arc<Calls>,
    counts: Arc<Counts>,
    pump: Option<thread::JoinHandle<()>>,
}

impl RunningDispatcher {
    /// What was done so far.
    #[must_use]
    pub fn stats(&self) -> DispatcherStats {
        stats(&self.calls, &self.counts)
    }

    /// Takes nothing more, and waits for the calls that are under way, each at most for its time.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for RunningDispatcher {
    fn drop(&mut self) {
        self.calls.stop();
        if let Some(pump) = self.pump.take()
            && pump.join().is_err()
        {
            tracing::error!("the dispatcher panicked");
        }
    }
}
