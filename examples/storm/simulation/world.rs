//! The events of one run, in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use counterfoil::call::{
    Answered, Attempt, Call, Caller, Ending, Flow, Kind, Limit, Randomness, SeededRandom, Step, Verdict,
};

use super::Scale;
use super::naive::Naive;
use super::policy::{CLIENTS, PATIENCE, Policy, VirtualClock, callers};
use super::scenario::{ENDS, Scenario};
use super::server::{Job, SERVICE, Server};
use super::trace::Trace;

/// How much of what the dependency can serve is asked of it when all is well, in percent.
const LOAD: u32 = 70;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An operation begins.
    Arrival,
    /// A worker is done.
    Served { job: usize },
    /// Nobody was there, or the queue was full.
    Refused { operation: usize, attempt: u32 },
    /// An attempt was waited for long enough.
    TimedOut { operation: usize, attempt: u32 },
    /// An operation wanted to be looked at now.
    Due { operation: usize },
}

/// How an operation is carried out.
#[derive(Debug)]
enum Driver {
    Naive(Naive),
    Flow(Box<Flow>, Option<Attempt>),
    Over,
}

#[derive(Debug)]
struct Operation {
    begun: Duration,
    client: usize,
    driver: Driver,
    answered: bool,
}

/// Operations whose place in a pool has come.
#[derive(Debug, Default)]
struct Woken(Mutex<Vec<usize>>);

struct WakeOperation {
    operation: usize,
    woken: Arc<Woken>,
}

impl Wake for WakeOperation {
    fn wake(self: Arc<Self>) {
        self.woken.0.lock().expect("nobody panics in there").push(self.operation);
    }
}

pub(crate) struct World {
    scenario: Scenario,
    policy: Policy,
    scale: Scale,
    random: SeededRandom,
    clock: Arc<VirtualClock>,
    callers: Vec<(Caller, Arc<dyn Randomness>)>,
    woken: Arc<Woken>,
    events: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    sequence: u64,
    operations: Vec<Operation>,
    jobs: Vec<(Job, Duration)>,
    /// Connections of each client that are set up and idle.
    warm: [u32; CLIENTS],
    server: Server,
    trace: Trace,
}

impl World {
    pub(crate) fn new(scenario: Scenario, policy: Policy, seed: u64, scale: Scale) -> Self {
        let clock = Arc::new(VirtualClock::default());
        Self {
            scenario,
            policy,
            scale,
            random: SeededRandom::new(seed),
            callers: callers(scale.capacity, seed, &clock),
            clock,
            woken: Arc::default(),
            events: BinaryHeap::new(),
            sequence: 0,
            operations: Vec::new(),
            jobs: Vec::new(),
            warm: [scale.capacity; CLIENTS],
            server: Server::new(scale.capacity),
            trace: Trace::new(),
        }
    }

    pub(crate) fn run(mut self) -> Trace {
        self.schedule(Duration::ZERO, Event::Arrival);
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            if now >= ENDS {
                break;
            }
            self.clock.set(now);
            self.happen(now, event);
            self.wake(now);
            self.work(now);
        }
        self.trace
    }

    fn schedule(&mut self, at: Duration, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    /// Above 0 and at most 1.
    fn chance(&self) -> f64 {
        let bits = u32::try_from(self.random.draw() >> 32).expect("32 bits");
        (f64::from(bits) + 1.0) / (f64::from(u32::MAX) + 1.0)
    }

    /// Around `mean`, as waiting times are.
    fn exponential(&self, mean: Duration) -> Duration {
        mean.mul_f64(-self.chance().ln())
    }

    fn happen(&mut self, now: Duration, event: Event) {
        match event {
            Event::Arrival => self.arrive(now),
            Event::Served { job } => self.served(now, job),
            Event::Refused { operation, attempt } => {
                self.attempt_ended(now, operation, attempt, Answered::failed(Verdict::not_sent(Kind::Transient)));
            }
            Event::TimedOut { operation, attempt } => {
                self.attempt_ended(now, operation, attempt, Answered::TimedOut(Limit::Total));
            }
            Event::Due { operation } => self.advance(now, operation),
        }
    }

    fn arrive(&mut self, now: Duration) {
        let rate = self.scale.capacity * LOAD / 100 * self.scenario.load(now);
        let next = now + self.exponential(Duration::from_secs(1) / rate);
        self.schedule(next, Event::Arrival);

        let operation = self.operations.len();
        let client = operation % CLIENTS;
        let caller = &self.callers[client].0;
        let driver = Naive::new(self.policy).map_or_else(
            || Driver::Flow(Box::new(caller.begin(Call::mutation("create", caller.mint()))), None),
            Driver::Naive,
        );
        self.trace.begun(now);
        self.operations.push(Operation { begun: now, client, driver, answered: false });
        self.advance(now, operation);
    }

    /// Does what an operation wants to be done now.
    fn advance(&mut self, now: Duration, operation: usize) {
        let step = match &mut self.operations[operation].driver {
            Driver::Over => return,
            Driver::Naive(naive) => {
                let (attempt, until) = (naive.begin(), now + naive.attempt_timeout);
                return self.send(now, operation, attempt, until, None);
            }
            Driver::Flow(_, Some(_)) => return,
            Driver::Flow(flow, None) => flow.step(now),
        };
        match step {
            Step::Wait(until) => self.schedule(until, Event::Due { operation }),
            Step::Queue(until) => self.wait_in_queue(operation, until),
            Step::Send(attempt) => {
                let number = attempt.number();
                let until = attempt.deadline().moment().expect("an attempt has an end");
                // What travels is what is left, and the other side makes a moment of its own clock of it.
                let deadline = attempt.onward().ok().and_then(|onward| onward.remaining).map(|left| now + left);
                if let Driver::Flow(_, under_way) = &mut self.operations[operation].driver {
                    *under_way = Some(attempt);
                }
                self.send(now, operation, number, until, deadline);
            }
            Step::Finish(ending, _) => {
                let succeeded = matches!(ending, Ending::Success { late: false, .. });
                self.finish(now, operation, succeeded);
            }
        }
    }

    fn wait_in_queue(&mut self, operation: usize, until: Option<Duration>) {
        let waker = Waker::from(Arc::new(WakeOperation { operation, woken: Arc::clone(&self.woken) }));
        let ready = match &self.operations[operation].driver {
            Driver::Flow(flow, None) => flow.permit_is_ready(&waker),
            Driver::Flow(..) | Driver::Naive(_) | Driver::Over => false,
        };
        if ready {
            self.woken.0.lock().expect("nobody panics in there").push(operation);
        } else if let Some(until) = until {
            self.schedule(until, Event::Due { operation });
        }
    }

    fn wake(&mut self, now: Duration) {
        loop {
            let woken = std::mem::take(&mut *self.woken.0.lock().expect("nobody panics in there"));
            if woken.is_empty() {
                return;
            }
            woken.into_iter().for_each(|operation| self.advance(now, operation));
        }
    }

    fn send(&mut self, now: Duration, operation: usize, attempt: u32, until: Duration, deadline: Option<Duration>) {
        self.trace.attempts += 1;
        let client = self.operations[operation].client;
        let cold = self.warm[client] == 0;
        self.warm[client] = self.warm[client].saturating_sub(1);
        let sent = !self.scenario.refuses(now) && self.server.take(Job { operation, attempt, deadline, cold });
        if sent {
            self.schedule(until, Event::TimedOut { operation, attempt });
        } else {
            // After a way there and back.
            self.schedule(now + Duration::from_millis(1), Event::Refused { operation, attempt });
        }
    }

    /// Gives free workers something to do.
    fn work(&mut self, now: Duration) {
        while let Some(job) = self.server.next(now) {
            let setup = if job.cold { self.scenario.handshake() } else { Duration::ZERO };
            // Between half of it and one and a half.
            let service = SERVICE.mul_f64(0.5 + self.chance()) * self.scenario.slowness(now);
            let takes = setup + service;
            self.jobs.push((job, takes));
            self.schedule(now + takes, Event::Served { job: self.jobs.len() - 1 });
        }
        if self.scenario.refuses(now) {
            self.server.drain().for_each(drop);
        }
    }

    fn served(&mut self, now: Duration, job: usize) {
        let (Job { operation, attempt, .. }, took) = self.jobs[job];
        self.server.done();
        self.trace.worked += took;
        let of = &self.operations[operation];
        if !of.awaits(attempt) || now >= of.begun + PATIENCE {
            self.trace.abandoned += took;
        }
        if of.awaits(attempt) && !self.scenario.closes_connections(now) {
            // Whoever gave up closed the connection.
            let client = of.client;
            self.warm[client] += 1;
        }
        self.attempt_ended(now, operation, attempt, Answered::success());
    }

    /// An answer, or none. One that nobody waits for is not heard.
    fn attempt_ended(&mut self, now: Duration, operation: usize, attempt: u32, answered: Answered) {
        if !self.operations[operation].awaits(attempt) {
            return;
        }
        let succeeded = matches!(answered, Answered::Success { .. });
        let draw = self.random.draw();
        match &mut self.operations[operation].driver {
            Driver::Over => {}
            Driver::Naive(_) if succeeded => self.finish(now, operation, true),
            Driver::Naive(naive) => match naive.next(draw) {
                Some(delay) => self.schedule(now + delay, Event::Due { operation }),
                None => self.finish(now, operation, false),
            },
            Driver::Flow(flow, under_way) => {
                if let Some(attempt) = under_way.take() {
                    flow.answered(&attempt, now, draw, answered);
                    drop(attempt);
                    self.advance(now, operation);
                }
            }
        }
    }

    fn finish(&mut self, now: Duration, operation: usize, succeeded: bool) {
        let of = &mut self.operations[operation];
        of.driver = Driver::Over;
        if succeeded && !of.answered && now < of.begun + PATIENCE {
            of.answered = true;
            self.trace.useful(of.begun);
        }
    }
}

impl Operation {
    /// Whether somebody waits for the answer to this attempt.
    fn awaits(&self, attempt: u32) -> bool {
        match &self.driver {
            Driver::Over => false,
            Driver::Naive(naive) => naive.awaits(attempt),
            Driver::Flow(_, under_way) => under_way.as_ref().is_some_and(|now| now.number() == attempt),
        }
    }
}
