//! The network between the clients and the service, and what goes wrong with it: replies get lost, and now and then
//! the service is killed with everything that was under way.

use std::collections::{HashMap, VecDeque};
use std::io::BufReader;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::plan::{Intent, KillMoment, Plan};
use crate::process::{Process, Service, write_message};
use crate::protocol::{Answer, FromService, OrderRequest, ToService};

/// The network. Clients, readers and the supervisor of the run share it.
#[derive(Debug)]
pub(crate) struct Link {
    plan: Arc<Plan>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// None while the service is down.
    up: Option<(ChildStdin, Process)>,
    waiting: HashMap<u64, Waiting>,
    sent: u64,
    delivered: u64,
    settled: u64,
    clients: usize,
    kills_to_come: VecDeque<KillMoment>,
    /// A kill that the supervisor has not seen yet.
    killed: Option<Killed>,
    failure: Option<String>,
}

/// A client that waits for the reply to an attempt.
#[derive(Debug)]
struct Waiting {
    intent: u64,
    drop_reply: bool,
    reply: Sender<Answer>,
}

/// What the network knows of a kill.
#[derive(Clone, Debug)]
pub(crate) struct Killed {
    /// Answers that clients had heard by then.
    pub(crate) answers: u64,
    /// Intents that were sent and whose client had heard no answer.
    pub(crate) in_flight: Vec<u64>,
}

/// How an attempt ended for its client.
#[derive(Debug)]
pub(crate) enum Attempt {
    Answered(Answer),
    /// No answer in time, or the connection broke. It may have been executed.
    Unanswered,
    /// The run is over because something failed.
    Stopped,
}

/// What the supervisor has to deal with.
#[derive(Debug)]
pub(crate) enum Event {
    Nothing,
    Killed(Killed),
    Failed(String),
    /// Every client is done.
    Finished,
}

impl Link {
    pub(crate) fn new(plan: Arc<Plan>, clients: usize) -> Arc<Self> {
        let kills_to_come = plan.kills.iter().copied().collect();
        let state = State {
            up: None,
            waiting: HashMap::new(),
            sent: 0,
            delivered: 0,
            settled: 0,
            clients,
            kills_to_come,
            killed: None,
            failure: None,
        };
        Arc::new(Self { plan, state: Mutex::new(state), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the clients talk to a service, until it is killed.
    pub(crate) fn connect(self: &Arc<Self>, service: Service) {
        self.lock().up = Some((service.input, service.process));
        self.changed.notify_all();
        let link = Arc::clone(self);
        thread::spawn(move || link.read_answers(service.output));
    }

    /// Ends the connection in peace and gives the process back.
    pub(crate) fn disconnect(&self) -> Option<Process> {
        self.lock().up.take().map(|(_, process)| process)
    }

    // What clients do.

    /// Sends one attempt, once the service is up, and waits for its reply as long as the client is patient.
    pub(crate) fn attempt(&self, intent: &Intent, number: u32, patience: Duration) -> Attempt {
        let (reply, replies) = mpsc::channel();
        let id = {
            let mut state = self.lock();
            while state.up.is_none() && state.failure.is_none() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.failure.is_some() {
                return Attempt::Stopped;
            }
            self.send(&mut state, intent, number, reply)
        };
        match replies.recv_timeout(patience) {
            Ok(answer) => Attempt::Answered(answer),
            Err(_) => {
                self.lock().waiting.remove(&id);
                // It may have come between giving up and saying so.
                replies.try_recv().map_or(Attempt::Unanswered, Attempt::Answered)
            }
        }
    }

    fn send(&self, state: &mut State, intent: &Intent, attempt: u32, reply: Sender<Answer>) -> u64 {
        state.sent += 1;
        let id = state.sent;
        let drop_reply = self.plan.drops_reply(intent.order.intent, attempt);
        let request = OrderRequest {
            id,
            customer: intent.customer.clone(),
            key: intent.key.clone(),
            attempt,
            body: serde_json::to_string(&intent.order).expect("an order is plain JSON"),
        };
        state.waiting.insert(id, Waiting { intent: intent.order.intent, drop_reply, reply });
        // A service that cannot be written to has ended, which whoever reads from it will notice.
        if let Some((input, _)) = &mut state.up {
            drop(write_message(input, &ToService::CreateOrder(request)));
        }
        id
    }

    pub(crate) fn order_settled(&self) {
        self.lock().settled += 1;
    }

    pub(crate) fn client_done(&self) {
        self.lock().clients -= 1;
        self.changed.notify_all();
    }

    // What the supervisor does.

    /// Waits a little for something to happen, and says how many orders are settled.
    pub(crate) fn next_event(&self, patience: Duration) -> (Event, u64) {
        let idle = |state: &mut State| state.killed.is_none() && state.failure.is_none() && state.clients > 0;
        let waited = self.changed.wait_timeout_while(self.lock(), patience, idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let event = if let Some(failure) = &state.failure {
            Event::Failed(failure.clone())
        } else if let Some(killed) = state.killed.take() {
            Event::Killed(killed)
        } else if state.clients == 0 {
            Event::Finished
        } else {
            Event::Nothing
        };
        (event, state.settled)
    }

    pub(crate) fn fail(&self, message: String) {
        let mut state = self.lock();
        state.failure.get_or_insert(message);
        state.waiting.clear();
        self.changed.notify_all();
    }

    // What happens to what the service says.

    fn read_answers(&self, output: BufReader<ChildStdout>) {
        let error = match self.deliver_answers(output) {
            Ok(()) => "the service ended by itself".to_owned(),
            Err(error) => error.to_string(),
        };
        // After a kill, or at the end of the run, this is as it should be.
        if self.lock().up.is_some() {
            self.fail(error);
        }
    }

    fn deliver_answers(&self, output: BufReader<ChildStdout>) -> Result<(), Box<dyn std::error::Error>> {
        for line in std::io::BufRead::lines(output) {
            let answer = match serde_json::from_str(&line?)? {
                FromService::Answer(answer) => answer,
                FromService::Failed { message } => return Err(message.into()),
                other @ (FromService::Ready { .. } | FromService::FoundOrders { .. }) => {
                    return Err(format!("the service said {other:?} to nobody").into());
                }
            };
            if let Some(pause) = self.kill_is_due(&answer) {
                // This answer, and all that follow, are under way and will not arrive.
                thread::sleep(pause);
                return Ok(self.kill()?);
            }
            self.deliver(answer);
        }
        Ok(())
    }

    fn kill_is_due(&self, answer: &Answer) -> Option<Duration> {
        let mut state = self.lock();
        let due = state.kills_to_come.front().is_some_and(|kill| kill.answers <= state.delivered);
        let awaited = state.waiting.contains_key(&answer.id);
        if due && awaited && answer.is_fresh_order() {
            return state.kills_to_come.pop_front().map(|kill| kill.pause);
        }
        None
    }

    fn deliver(&self, answer: Answer) {
        let mut state = self.lock();
        // A dropped reply leaves its client waiting; one that comes too late finds nobody.
        if state.waiting.get(&answer.id).is_none_or(|waiting| waiting.drop_reply) {
            return;
        }
        if let Some(waiting) = state.waiting.remove(&answer.id) {
            state.delivered += 1;
            // The client may just have given up: then it asks again, as after any lost reply.
            drop(waiting.reply.send(answer));
        }
    }

    /// Kills the service and breaks the connections of all who wait.
    fn kill(&self) -> std::io::Result<()> {
        let mut state = self.lock();
        if let Some((input, mut process)) = state.up.take() {
            process.kill()?;
            drop(input);
        }
        let in_flight = state.waiting.drain().map(|(_, waiting)| waiting.intent).collect();
        state.killed = Some(Killed { answers: state.delivered, in_flight });
        self.changed.notify_all();
        Ok(())
    }
}
