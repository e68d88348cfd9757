//! One intent, in as many attempts as it takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::history::{HistoryEvent, Line};
use crate::process::clock;
use crate::rules::classify::{self, Code, Sign};
use crate::rules::ids::{Amount, Attempt, Endpoint, IntentId, Key, Millis, ReplicaId, SealedIntent};
use crate::rules::knobs::Identity;
use crate::rules::majority::Members;
use crate::rules::outcome::{Outcome, OutcomeKind};
use crate::rules::record::Request;
use crate::supervisor::lab::Lab;
use crate::wire::CallError;
use crate::wire::replica::ReplicaClient;
use crate::wire::supervisor::SupervisorClient;

/// How replicas are found. They move when they are restarted.
pub trait Cluster: Clone + Send + Sync + 'static {
    /// A way to one replica as it is now.
    fn replica(&self, id: ReplicaId) -> impl Future<Output = Result<ReplicaClient, CallError>> + Send;
}

impl Cluster for Lab {
    async fn replica(&self, id: ReplicaId) -> Result<ReplicaClient, CallError> {
        Self::replica(self, id).map_err(|error| CallError::nobody(error.to_string()))
    }
}

/// A lab in another terminal.
#[derive(Debug, Clone)]
pub struct RemoteLab {
    supervisor: SupervisorClient,
    run: String,
    known: Arc<Mutex<Known>>,
}

/// Ports as they were a moment ago, and the connections to them.
#[derive(Debug, Default)]
struct Known {
    asked: Option<Instant>,
    ports: BTreeMap<Endpoint, u16>,
    ways: BTreeMap<u16, ReplicaClient>,
}

/// How long ports are believed. Who was restarted since is not connected to, which is harmless.
const BELIEVED: Duration = Duration::from_millis(100);

impl RemoteLab {
    /// Found through its supervisor.
    #[must_use]
    pub fn new(supervisor: SupervisorClient, run: String) -> Self {
        Self { supervisor, run, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cluster for RemoteLab {
    async fn replica(&self, id: ReplicaId) -> Result<ReplicaClient, CallError> {
        let believed = self.known().asked.is_some_and(|asked| asked.elapsed() < BELIEVED);
        if !believed {
            let described = self.supervisor.describe(Duration::from_secs(2)).await?;
            let mut known = self.known();
            known.ports = described.ports;
            known.asked = Some(Instant::now());
        }
        let mut known = self.known();
        match known.ports.get(&Endpoint::Replica(id)).copied() {
            Some(port) => Ok(known.ways.entry(port).or_insert_with(|| ReplicaClient::new(port, &self.run)).clone()),
            None => Err(CallError::nobody(format!("there is no process for {id}"))),
        }
    }
}

/// How a client behaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// How many attempts at most.
    pub attempts: u32,
    /// How long an attempt may take, in milliseconds.
    pub attempt_ms: u64,
    /// How long it waits before the second attempt, in milliseconds; twice as long before each later one, with jitter.
    pub pause_ms: u64,
    /// Whom it asks, in turn.
    pub targets: Vec<ReplicaId>,
    /// What it takes as the identity.
    pub identity: Identity,
}

impl Policy {
    /// Five attempts of a second and a half, at all members in turn, from the first.
    #[must_use]
    pub fn new(members: Members, identity: Identity) -> Self {
        Self { attempts: 5, attempt_ms: 1_500, pause_ms: 50, targets: members.iter().collect(), identity }
    }
}

/// What a user wants once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// For the judge.
    pub id: IntentId,
    /// The key: of all attempts, or the root of theirs.
    pub key: Key,
    /// When the key was made.
    pub minted_at: Millis,
    /// How much.
    pub amount: Amount,
}

impl Intent {
    /// With a key that nobody had before.
    #[must_use]
    pub fn new(id: IntentId, key: Key, amount: Amount) -> Self {
        Self { id, key, minted_at: clock::now(), amount }
    }

    fn request(&self, attempt: Attempt, identity: Identity) -> Request {
        let key = match identity {
            Identity::PerIntent => self.key.clone(),
            // Too long a key stays as it is: it cannot be told apart then, which harms nobody.
            Identity::PerAttempt => format!("{}.{attempt}", self.key).parse().unwrap_or_else(|_| self.key.clone()),
        };
        Request { key, minted_at: self.minted_at, amount: self.amount, attempt, intent: SealedIntent::seal(&self.id) }
    }
}

/// One attempt, as the client saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptReport {
    /// Which.
    pub attempt: Attempt,
    /// Whom it asked.
    pub to: ReplicaId,
    /// With which key.
    pub key: Key,
    /// When it was sent.
    pub at: Millis,
    /// How long it took.
    pub took_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// What the error looked like, if it was one.
    pub error: Option<(Code, Sign, String)>,
}

/// An intent, as the client left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendReport {
    /// What was wanted.
    pub intent: Intent,
    /// Each attempt.
    pub attempts: Vec<AttemptReport>,
    /// What the client knows in the end.
    pub outcome: Outcome,
    /// What it may do next.
    pub what_next: String,
}

/// Where the history of a client goes.
pub trait Sink: Clone + Send + Sync + 'static {
    /// One line.
    fn tell(&self, line: Line);
}

impl Sink for Lab {
    fn tell(&self, line: Line) {
        self.recorder().write(&line);
    }
}

/// A client.
#[derive(Debug, Clone)]
pub struct Client<C, S> {
    /// How it finds replicas.
    pub cluster: C,
    /// How it behaves.
    pub policy: Policy,
    /// Where its history goes.
    pub sink: S,
}

impl<C: Cluster, S: Sink> Client<C, S> {
    fn tell(&self, event: HistoryEvent) {
        self.sink.tell(Line { at: clock::now(), by: Endpoint::Client, event });
    }

    /// One attempt at one replica.
    pub async fn attempt(&self, intent: &Intent, attempt: Attempt, to: ReplicaId) -> AttemptReport {
        let request = intent.request(attempt, self.policy.identity);
        let at = clock::now();
        self.tell(HistoryEvent::AttemptStarted {
            intent: intent.id.clone(),
            key: request.key.clone(),
            attempt,
            to,
            amount: intent.amount,
        });
        let within = Duration::from_millis(self.policy.attempt_ms);
        let answer = match self.cluster.replica(to).await {
            Ok(replica) => replica.execute(to, &request, within).await,
            Err(error) => Err(error),
        };
        let (outcome, error) = match answer {
            Ok(outcome) => (outcome, None),
            Err(error) => (classify::outcome(error.code, error.sign), Some((error.code, error.sign, error.message))),
        };
        let took_ms = clock::now().since(at);
        self.tell(HistoryEvent::AttemptEnded {
            intent: intent.id.clone(),
            key: request.key.clone(),
            attempt,
            outcome: outcome.clone(),
        });
        AttemptReport { attempt, to, key: request.key, at, took_ms, outcome, error }
    }

    /// As many attempts as it takes, and no more than the policy says. `show` is called after each.
    pub async fn send(&self, intent: Intent, mut show: impl FnMut(&AttemptReport)) -> SendReport {
        self.tell(HistoryEvent::IntentStarted { intent: intent.id.clone(), amount: intent.amount });
        let mut attempts: Vec<AttemptReport> = Vec::new();
        let mut known: Option<Outcome> = None;
        let mut attempt = Attempt::FIRST;
        let mut targets = self.policy.targets.iter().copied().cycle();
        let mut pause = Duration::from_millis(self.policy.pause_ms);
        let outcome = loop {
            let to = targets.next().unwrap_or(ReplicaId::FIRST);
            let report = self.attempt(&intent, attempt, to).await;
            show(&report);
            let now = report.outcome.clone().after(known.as_ref());
            attempts.push(report);
            let settled = matches!(now.kind(), OutcomeKind::Done | OutcomeKind::Mismatch);
            if settled || attempt.0 >= self.policy.attempts {
                break now;
            }
            known = Some(now);
            attempt = attempt.next();
            // Half of it for certain, half by chance: clients that failed together do not come back together.
            let jitter = pause.mul_f64(0.5 + fastrand::f64() * 0.5);
            tokio::time::sleep(jitter).await;
            pause = pause.saturating_mul(2).min(Duration::from_secs(1));
        };
        self.tell(HistoryEvent::IntentEnded { intent: intent.id.clone(), outcome: outcome.clone() });
        SendReport { intent, attempts, what_next: outcome.what_next().to_owned(), outcome }
    }
}
