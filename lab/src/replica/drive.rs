//! The event loop: it hands one event at a time to the decision function and carries out what that wants.
//!
//! It decides nothing about operations. Disk work runs on threads of its own, calls run as tasks; each comes back as an
//! event. What comes back when the process is gone comes back to nobody, as in life.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::disk::Disk;
use super::link::Link;
use crate::history::HistoryEvent;
use crate::process::clock;
use crate::process::report::ReportLine;
use crate::process::tether::Gate;
use crate::rules::action::{Action, DiskCommand};
use crate::rules::barrier::At;
use crate::rules::event::Event;
use crate::rules::ids::{CallId, OpId, ReplicaId};
use crate::rules::message::{Message, Reply};
use crate::rules::outcome::Outcome;
use crate::rules::record::Request;
use crate::rules::replica::{Patience, Replica};
use crate::wire::replica::Hold;

/// Something for the event loop.
#[expect(clippy::large_enum_variant, reason = "nearly all are events, so a box for each would save nothing")]
#[derive(Debug)]
pub(super) enum Input {
    /// An event for the decision function.
    Event(Event),
    /// Nothing but a reason to look at the gate.
    Wake,
}

/// What the servers hold of the event loop.
#[derive(Debug, Clone)]
pub(super) struct Inbox {
    sender: mpsc::UnboundedSender<Input>,
    waiting: Arc<Mutex<BTreeMap<CallId, Waiter>>>,
    holds: Arc<Mutex<Holds>>,
    next: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Waiter {
    Client(oneshot::Sender<Outcome>),
    Other(oneshot::Sender<Reply>),
}

/// Who is to stop where, and who stands there.
#[derive(Debug, Default)]
struct Holds {
    armed: BTreeMap<u64, Hold>,
    standing: Vec<(u64, OpId, At)>,
}

/// The event loop.
#[derive(Debug)]
pub(super) struct Drive {
    pub(super) replica: Replica,
    pub(super) disk: Disk,
    pub(super) link: Arc<Link>,
    pub(super) patience: Patience,
    pub(super) inbox: Inbox,
    pub(super) inputs: mpsc::UnboundedReceiver<Input>,
    pub(super) gate: &'static Gate,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inbox {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Input>) {
        let (sender, inputs) = mpsc::unbounded_channel();
        let inbox = Self { sender, waiting: Arc::default(), holds: Arc::default(), next: Arc::new(AtomicU64::new(1)) };
        (inbox, inputs)
    }

    pub(super) fn send(&self, input: Input) {
        // The loop ends with the process only.
        drop(self.sender.send(input));
    }

    fn event(&self, event: Event) {
        self.send(Input::Event(event));
    }

    pub(super) fn open_requests(&self) -> u64 {
        u64::try_from(lock(&self.waiting).len()).unwrap_or(u64::MAX)
    }

    /// A client's request, and its outcome.
    pub(super) async fn execute(&self, request: Request) -> Result<Outcome, String> {
        let (call, answer) = self.wait_with(Waiter::Client);
        self.event(Event::Request { call, request });
        answer.await.map_err(|_| "the replica ends".to_owned())
    }

    /// What another replica asks, and the reply.
    pub(super) async fn peer(&self, from: ReplicaId, message: Message) -> Result<Reply, String> {
        let (call, answer) = self.wait_with(Waiter::Other);
        self.event(Event::Peer { call, from, message });
        answer.await.map_err(|_| "the replica ends".to_owned())
    }

    /// The right to execute.
    pub(super) async fn take_over(&self) -> Result<Reply, String> {
        let (call, answer) = self.wait_with(Waiter::Other);
        self.event(Event::TakeOver { call });
        answer.await.map_err(|_| "the replica ends".to_owned())
    }

    /// A cut is gone.
    pub(super) fn healed(&self) {
        self.event(Event::Healed);
    }

    fn wait_with<T>(&self, waiter: impl FnOnce(oneshot::Sender<T>) -> Waiter) -> (CallId, oneshot::Receiver<T>) {
        let call = CallId(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(call, waiter(sender));
        (call, receiver)
    }

    pub(super) fn hold(&self, id: u64, hold: Hold) {
        lock(&self.holds).armed.insert(id, hold);
    }

    /// Lets go of all who stand at a hold.
    pub(super) fn release(&self, id: u64) -> u32 {
        let mut holds = lock(&self.holds);
        holds.armed.remove(&id);
        let mut count = 0;
        holds.standing.retain(|(hold, op, at)| {
            if *hold == id {
                count += 1;
                ReportLine::tell_event(HistoryEvent::LetGo(at.clone()));
                self.event(Event::Released { op: *op, barrier: at.barrier });
            }
            *hold != id
        });
        count
    }

    /// Who comes to a barrier goes on at once, unless somebody wants it to stop.
    fn reach(&self, op: OpId, at: At) {
        let mut holds = lock(&self.holds);
        let wanted = |hold: &Hold| {
            hold.barrier == at.barrier
                && hold.key.as_ref().is_none_or(|key| *key == at.key)
                && hold.attempt.is_none_or(|attempt| attempt == at.attempt)
        };
        match holds.armed.iter().find(|(_, hold)| wanted(hold)).map(|(id, _)| *id) {
            None => self.event(Event::Released { op, barrier: at.barrier }),
            Some(hold) => {
                holds.standing.push((hold, op, at.clone()));
                ReportLine::Reached { hold, op, at, time: clock::now() }.tell();
            }
        }
    }

    fn answer(&self, call: CallId, outcome: Outcome) {
        if let Some(Waiter::Client(waiter)) = lock(&self.waiting).remove(&call) {
            // The client may have gone away.
            drop(waiter.send(outcome));
        }
    }

    fn reply(&self, call: CallId, reply: Reply) {
        if let Some(Waiter::Other(waiter)) = lock(&self.waiting).remove(&call) {
            drop(waiter.send(reply));
        }
    }
}

impl Drive {
    /// Runs for as long as the process.
    pub(super) async fn run(mut self) {
        self.handle(Event::Started(self.disk.identity()));
        loop {
            let input = match self.replica.next_deadline() {
                None => self.inputs.recv().await,
                Some(deadline) => {
                    let remaining = clock::until(deadline).max(Duration::from_millis(1));
                    match tokio::time::timeout(remaining, self.inputs.recv()).await {
                        Ok(input) => input,
                        Err(_) => Some(Input::Event(Event::Tick)),
                    }
                }
            };
            self.gate.pass();
            match input {
                Some(Input::Event(event)) => self.handle(event),
                Some(Input::Wake) => {}
                None => return,
            }
        }
    }

    fn handle(&mut self, event: Event) {
        for action in self.replica.step(clock::now(), event) {
            self.carry_out(action);
        }
    }

    fn carry_out(&self, action: Action) {
        match action {
            Action::Disk { op, command } => self.on_disk(op, command),
            Action::Send { op, to, message } => {
                let (link, inbox, within) = (Arc::clone(&self.link), self.inbox.clone(), self.call_within());
                tokio::spawn(async move {
                    inbox.event(match link.ask(to, &message, within).await {
                        Ok(reply) => Event::PeerAnswered { op, peer: to, reply },
                        Err(failure) => Event::PeerFailed { op, peer: to, failure },
                    });
                });
            }
            Action::CallProvider { op, call } => {
                let (link, inbox, within) = (Arc::clone(&self.link), self.inbox.clone(), self.call_within());
                tokio::spawn(async move {
                    inbox.event(match link.pay(&call, within).await {
                        Ok(reply) => Event::ProviderAnswered { op, reply },
                        Err(failure) => Event::ProviderFailed { op, failure },
                    });
                });
            }
            Action::Answer { call, outcome } => self.inbox.answer(call, outcome),
            Action::Reply { call, reply } => self.inbox.reply(call, reply),
            Action::Reach { op, at } => self.inbox.reach(op, at),
            Action::Note(note) => ReportLine::tell_event(HistoryEvent::Noted(note)),
        }
    }

    /// A little longer than the decision function waits: it is the one that gives up.
    const fn call_within(&self) -> Duration {
        Duration::from_millis(self.patience.answer_ms.saturating_add(500))
    }

    fn on_disk(&self, op: OpId, command: DiskCommand) {
        let (disk, inbox) = (self.disk.clone(), self.inbox.clone());
        tokio::task::spawn_blocking(move || {
            inbox.event(match disk.perform(command) {
                Ok(done) => Event::DiskDone { op, done },
                Err(error) => {
                    eprintln!("disk: {error}");
                    Event::DiskFailed { op, certain: error.certain }
                }
            });
        });
    }
}
