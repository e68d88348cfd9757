//! One logical operation as a machine without I/O: time and chance go in, what to do next comes out.
//!
//! [`Caller::call`](crate::call::Caller::call) and [`Caller::call_blocking`](crate::call::Caller::call_blocking) drive it;
//! a simulation drives it just as well. Whoever does keeps this contract:
//!
//! 1. Begin with [`Caller::begin`](crate::call::Caller::begin). Call [`Flow::step`] with the time of now, and do what it says.
//! 2. [`Step::Wait`]: let time pass until then, not less, and go to 1.
//! 3. [`Step::Queue`]: wait until [`Flow::permit_is_ready`] or until then, whichever is first, and go to 1.
//! 4. [`Step::Send`]: make the attempt **now**. End it at its deadline or one of its limits. Whatever it came to, say so
//!    once with [`Flow::answered`], and go to 1.
//! 5. [`Step::Finish`]: it has ended.
//!
//! A flow that is dropped before its end was cancelled: places, probes and retries that it holds go back.

mod ending;
mod state;

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::attempt::{Answered, Attempt, AttemptParts};
use super::breaker::{Breaker, Token};
use super::breaker_registry::Population;
use super::budget::Reservation;
use super::bulkhead::{Entry, Permit, Pool};
use super::cancel::{Cancel, Listener};
use super::core::Core;
use super::deadline::Deadline;
use super::decide::{Situation, StopReason, decide};
use super::identity::Identity;
use super::knowledge::{Knowledge, Stop};
use super::limits::Limit;
use super::observer::{Event, Labels, WaitSource};
use super::outcome::{Ending, Phase, Report};
use super::purpose::Spec;
use super::trace::TraceId;
use super::verdict::{Health, Verdict};

use state::{Sent, State, Waited, timed_out};

/// What to do next.
#[derive(Debug)]
#[must_use = "a flow stands still until its step is done"]
pub enum Step {
    /// Let time pass until this moment.
    Wait(Duration),
    /// Wait for a place in the pool, until this moment at most. `None`: there is no end.
    Queue(Option<Duration>),
    /// Make this attempt.
    Send(Attempt),
    /// It has ended.
    Finish(Ending, Box<Report>),
}

/// A step of the drivers in here.
#[derive(Debug)]
pub(crate) enum Next {
    Wait(Duration),
    Queue(Option<Duration>),
    Send(Attempt),
    /// It ended at this moment: take the report.
    Finish(Ending, Duration),
}

/// One logical operation.
#[derive(Debug)]
pub struct Flow {
    core: Arc<Core>,
    spec: Spec,
    /// Computed once, and only for those who watch.
    identity_hash: Option<u64>,
    started: Duration,
    deadline: Deadline,
    owner: bool,
    trace: TraceId,
    breaker: Option<Arc<Breaker>>,
    cancel: Option<Listener>,
    state: State,
    knowledge: Knowledge,
    /// Attempts that were sent, hedges aside.
    tries: u32,
    /// Physical attempts.
    attempts: u32,
    waited: Waited,
    cost: u64,
}

impl Flow {
    /// Say [`Flow::announce`] next. Apart from it, so that so large a thing is made where it stays.
    pub(crate) fn begin(core: Arc<Core>, spec: Spec, now: Duration, draws: [u64; 2]) -> Self {
        let own = Deadline::after(now, spec.within.unwrap_or(core.policy.total));
        let inherited = spec.inherited.as_ref();
        let deadline = inherited.map_or(own, |inbound| own.earlier(inbound.deadline));
        let owner = !spec.once && !inherited.is_some_and(|inbound| inbound.owned);
        if owner {
            // One deposit for each logical call: those below somebody who owns the retries make none.
            core.budget.deposit(now);
        }
        let trace = spec.trace.unwrap_or_else(|| TraceId::new(draws));
        let population = Population { operation: spec.operation, tenant: spec.tenant.clone() };
        let breaker = core.breakers.as_ref().and_then(|breakers| breakers.get(&population, now));
        let watched = !core.observers.is_empty();
        Self {
            core,
            identity_hash: if watched { spec.identity.as_ref().map(Identity::hash) } else { None },
            cancel: spec.cancel.as_ref().map(Cancel::listen),
            spec,
            started: now,
            deadline,
            owner,
            trace,
            breaker,
            state: State::Admission { after: Phase::Start, retry: None },
            knowledge: Knowledge::default(),
            tries: 0,
            attempts: 0,
            waited: Waited::default(),
            cost: 0,
        }
    }

    /// It was begun.
    pub(crate) fn announce(&self) {
        self.observe(|labels| Event::OperationStarted { labels });
        if self.core.breakers.is_some() && self.breaker.is_none() {
            self.observe(|labels| Event::BreakerUntracked { labels });
        }
    }

    /// What to do next.
    pub fn step(&mut self, now: Duration) -> Step {
        match self.advance(now) {
            Next::Wait(until) => Step::Wait(until),
            Next::Queue(until) => Step::Queue(until),
            Next::Send(attempt) => Step::Send(attempt),
            Next::Finish(ending, at) => Step::Finish(ending, Box::new(self.report(at))),
        }
    }

    /// The same without the report, which is large.
    pub(crate) fn advance(&mut self, now: Duration) -> Next {
        loop {
            if self.is_cancelled() {
                self.cancel(now);
            }
            match std::mem::replace(&mut self.state, State::Moving) {
                State::Admission { after, retry } => self.look(now, after, retry),
                State::Breaker { since, until, retry } if until <= now => {
                    self.waited.breaker += self.count_wait(WaitSource::Breaker, since, now);
                    self.state = State::Admission { after: Phase::Breaker, retry };
                }
                State::Backoff { since, until, retry } if until <= now => {
                    self.waited.between += self.count_wait(WaitSource::Backoff, since, now);
                    self.state = State::Admission { after: Phase::Backoff, retry: Some(retry) };
                }
                state @ (State::Breaker { until, .. } | State::Backoff { until, .. }) => {
                    self.state = state;
                    return Next::Wait(until);
                }
                State::Queued { since, until, place, retry } => {
                    if let Some(permit) = place.take() {
                        self.waited.pool += self.count_wait(WaitSource::Pool, since, now);
                        self.send(now, Some(permit), retry);
                    } else if until.is_some_and(|until| until <= now) {
                        self.waited.pool += self.count_wait(WaitSource::Pool, since, now);
                        self.stop(Stop::new(StopReason::Deadline, Phase::Pool), now);
                    } else {
                        self.state = State::Queued { since, until, place, retry };
                        return Next::Queue(until);
                    }
                }
                State::InFlight { first, hedge } => {
                    let attempt = first.as_ref().or(hedge.as_deref()).map(|sent| sent.attempt.clone());
                    self.state = State::InFlight { first, hedge };
                    return Next::Send(attempt.expect("an attempt is under way"));
                }
                State::Ended(ending, at) => {
                    self.state = State::Ended(ending, at);
                    return Next::Finish(ending, at);
                }
                State::Moving => unreachable!("a step ends in a state"),
            }
        }
    }

    /// Looks at the breaker and asks the pool: the first half of an admission. The remainder is read before, since `after`
    /// may have taken longer than was meant.
    fn look(&mut self, now: Duration, after: Phase, retry: Option<Reservation>) {
        if self.is_useless(now) {
            return self.stop(Stop::new(StopReason::Deadline, after), now);
        }
        if let Some(Err(blocked)) = self.breaker.as_ref().map(|breaker| breaker.look(now)) {
            let allowance = self.admission_left(now);
            return match blocked.retry_after {
                // Once: who finds the door closed again was not among the probes.
                Some(wait) if after != Phase::Breaker && wait <= allowance => {
                    self.state = State::Breaker { since: now, until: now.saturating_add(wait), retry };
                }
                retry_after => self.shut_out(StopReason::BreakerOpen, retry_after, now),
            };
        }
        let entry = match &self.core.pool {
            Pool::Unlimited => None,
            Pool::Bounded(pool) => Some(pool.enter()),
        };
        match entry {
            None => self.send(now, None, retry),
            Some(Entry::Granted(permit)) => self.send(now, Some(permit), retry),
            Some(Entry::Full) => self.shut_out(StopReason::PoolFull, None, now),
            Some(Entry::Queued(place)) => {
                let until = now.checked_add(self.admission_left(now));
                self.state = State::Queued { since: now, until, place, retry };
            }
        }
    }

    /// The second half: reads the remainder again, after every wait, takes the breaker's token, and sends.
    fn send(&mut self, now: Duration, permit: Option<Permit>, retry: Option<Reservation>) {
        if self.is_useless(now) {
            return self.stop(Stop::new(StopReason::Deadline, Phase::Pool), now);
        }
        let token = match self.breaker.as_ref().map(|breaker| breaker.take(now)) {
            Some(Err(blocked)) => {
                return self.shut_out(StopReason::BreakerOpen, blocked.retry_after, now);
            }
            token => token.and_then(Result::ok),
        };
        if let Some(retry) = retry {
            retry.sent();
        }
        self.tries += 1;
        let first = self.attempt(now, token, permit, false);
        self.state = State::InFlight { first: Some(first), hedge: None };
    }

    fn attempt(&mut self, now: Duration, token: Option<Token>, permit: Option<Permit>, hedge: bool) -> Sent {
        self.attempts = self.attempts.saturating_add(1);
        let number = self.attempts;
        let available = self.deadline.less(self.core.policy.margin);
        let meant = Deadline::after(now, self.core.policy.attempt.unwrap_or(Duration::MAX));
        let end = meant.earlier(available);
        let attempt = Attempt::new(AttemptParts {
            core: Arc::clone(&self.core),
            operation: self.spec.operation,
            number,
            deadline: end,
            identity: self.spec.identity.clone(),
            trace: self.trace.attempt(number),
            // With `once` the retries are somebody else's: below, unless there is an owner above.
            owned_above: self.owner || self.spec.inherited.as_ref().is_some_and(|inbound| inbound.owned),
            permit,
        });
        self.observe(|labels| Event::AttemptStarted { labels, number, hedge });
        let full_time = self.core.policy.attempt.is_some() && end == meant;
        Sent { attempt, token, full_time, at: now }
    }

    /// Whether the place in the pool that [`Step::Queue`] waits for is there; if not, `waker` is woken when it is.
    #[must_use]
    pub fn permit_is_ready(&self, waker: &Waker) -> bool {
        if let State::Queued { place, .. } = &self.state { place.is_granted(waker) } else { true }
    }

    /// Sends a second attempt beside the first, if hedges have a place and a budget for it, and the breaker lets it.
    pub(crate) fn hedge(&mut self, now: Duration) -> Option<Attempt> {
        let parts = self.core.hedge.as_ref()?;
        if !matches!(&self.state, State::InFlight { first: Some(_), hedge: None }) || self.is_useless(now) {
            return None;
        }
        let permit = parts.pool.try_enter()?;
        let reservation = parts.budget.reserve(now)?;
        let token = match self.breaker.as_ref().map(|breaker| breaker.take(now)) {
            Some(Err(_)) => return None,
            token => token.and_then(Result::ok),
        };
        reservation.sent();
        let sent = self.attempt(now, token, Some(permit), true);
        let attempt = sent.attempt.clone();
        if let State::InFlight { hedge, .. } = &mut self.state {
            *hedge = Some(Box::new(sent));
        }
        Some(attempt)
    }

    /// Takes what an attempt came to.
    pub fn answered(&mut self, attempt: &Attempt, now: Duration, draw: u64, answered: Answered) {
        self.hear(attempt.number(), now, draw, answered);
    }

    pub(crate) fn hear(&mut self, number: u32, now: Duration, draw: u64, answered: Answered) {
        let Some(sent) = self.take_sent(number) else { return };
        let (failure, cost) = match answered {
            Answered::Success { cost, .. } => (None, cost),
            Answered::Failed { verdict, cost } => (Some(verdict), cost),
            Answered::TimedOut(limit) => (Some(timed_out(limit, &sent.attempt)), 0),
        };
        self.cost = self.cost.saturating_add(cost);
        let full_time = sent.full_time || matches!(answered, Answered::TimedOut(limit) if limit != Limit::Total);
        self.close(sent, now, draw, failure, full_time, cost);
        match (answered, failure) {
            (Answered::Success { replayed, .. }, _) => {
                let late = self.deadline.remaining(now).is_zero();
                self.finish(Ending::Success { replayed, late }, now);
            }
            (_, Some(verdict)) => {
                self.knowledge.learn(self.spec.class, &verdict, number);
                // Another one is still under way, and may bring the answer.
                if !matches!(self.state, State::InFlight { .. }) {
                    self.after_failure(&verdict, now, draw);
                }
            }
            (Answered::Failed { .. } | Answered::TimedOut(_), None) => {}
        }
    }

    fn take_sent(&mut self, number: u32) -> Option<Sent> {
        let State::InFlight { first, hedge } = &mut self.state else { return None };
        let is_it = |sent: &Sent| sent.attempt.number() == number;
        let taken = first.take_if(|sent| is_it(sent)).or_else(|| hedge.take_if(|sent| is_it(sent)).map(|sent| *sent));
        if let State::InFlight { first: None, hedge: None } = self.state {
            self.state = State::Moving;
        }
        taken
    }

    /// Gives back what an attempt held, and says what came of it.
    fn close(&self, sent: Sent, now: Duration, draw: u64, failure: Option<Verdict>, full_time: bool, cost: u64) {
        sent.attempt.leave();
        let (number, connection) = (sent.attempt.number(), sent.attempt.which_connection());
        let duration = now.saturating_sub(sent.at);
        let kind = failure.map(|verdict| verdict.kind);
        self.observe(|labels| Event::AttemptFinished { labels, number, duration, failure: kind, connection, cost });
        let health = failure.map_or(Health::Good, |verdict| verdict.health(full_time));
        if let Some((from, to)) = sent.token.map(|token| token.record(now, health, draw))
            && from != to
        {
            self.observe(|labels| Event::BreakerChanged { labels, from, to });
        }
    }

    fn after_failure(&mut self, verdict: &Verdict, now: Duration, draw: u64) {
        let policy = &self.core.policy;
        let situation = Situation {
            class: self.spec.class,
            verdict: *verdict,
            owner: self.owner,
            attempts: self.tries,
            attempts_max: self.core.attempts_max,
            remaining: self.deadline.remaining(now),
            margin: policy.margin,
            useful_min: policy.useful_min,
            hint_ceiling: self.core.hint_ceiling,
            backoff: self.core.backoff.delay(self.tries, draw),
        };
        let mut retry = None;
        let decision = decide(&situation, || {
            retry = self.core.budget.reserve(now);
            retry.is_some()
        });
        match (decision, retry) {
            (Ok(delay), Some(retry)) => {
                let balance = self.core.budget.balance(now);
                self.observe(|labels| Event::RetryScheduled { labels, delay, balance });
                self.state = State::Backoff { since: now, until: now.saturating_add(delay), retry };
            }
            (Ok(_), None) => unreachable!("a retry that is allowed was reserved"),
            (Err(reason), _) => {
                self.observe(|labels| Event::RetrySuppressed { labels, reason });
                let time_is_up = self.is_useless(now);
                let phase = if time_is_up { Phase::Attempt } else { Phase::Backoff };
                self.stop(Stop { time_is_up, ..Stop::new(reason, phase) }.hinted(verdict), now);
            }
        }
    }

    /// Too little time is left to send anything.
    fn is_useless(&self, now: Duration) -> bool {
        let policy = &self.core.policy;
        self.deadline.less(policy.margin).remaining(now) < policy.useful_min
    }

    /// How long may still be waited to be let in.
    fn admission_left(&self, now: Duration) -> Duration {
        let policy = &self.core.policy;
        let used = self.waited.breaker.saturating_add(self.waited.pool);
        let sendable = self.deadline.less(policy.margin).less(policy.useful_min).remaining(now);
        policy.admission.saturating_sub(used).min(sendable)
    }

    /// A wait is over.
    fn count_wait(&self, source: WaitSource, since: Duration, now: Duration) -> Duration {
        let duration = now.saturating_sub(since);
        self.observe(|labels| Event::Waited { labels, source, duration });
        duration
    }

    fn is_cancelled(&self) -> bool {
        let waits = !matches!(self.state, State::Ended(..));
        waits && self.cancel.as_ref().is_some_and(Listener::is_cancelled)
    }

    /// The attempt that is under way, hedges aside.
    pub(crate) const fn under_way(&self) -> Option<&Attempt> {
        if let State::InFlight { first: Some(sent), .. } = &self.state { Some(&sent.attempt) } else { None }
    }

    fn observe<'a>(&'a self, event: impl FnOnce(Labels<'a>) -> Event<'a>) {
        if self.core.observers.is_empty() {
            return;
        }
        let (dependency, operation, identity_hash) = (&*self.core.dependency, self.spec.operation, self.identity_hash);
        let labels = Labels { dependency, operation, identity_hash };
        self.core.observe(&event(labels));
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) const fn started(&self) -> Duration {
        self.started
    }

    /// Which operation it is.
    #[must_use]
    pub const fn operation(&self) -> &'static str {
        self.spec.operation
    }

    /// Its identity.
    #[must_use]
    pub const fn identity(&self) -> Option<&Identity> {
        self.spec.identity.as_ref()
    }

    pub(crate) const fn listener(&self) -> Option<&Listener> {
        self.cancel.as_ref()
    }
}
