//! Every way out of the process, and the faults on it.
//!
//! A link has exactly one place where its faults are looked up, so "lose exactly the next reply" is exact: of a link
//! between two replicas and of one to the provider it is the replica that asks; of a link from a client it is the
//! replica that is asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::history::{HistoryEvent, event as history};
use crate::process::clock;
use crate::process::join::join_all;
use crate::process::report::ReportLine;
use crate::rules::classify;
use crate::rules::event::CallFailure;
use crate::rules::fault::{Direction, Fault, FaultRule, FaultTable, Passage, RuleId};
use crate::rules::ids::{Attempt, Endpoint, Key, Millis, ReplicaId};
use crate::rules::message::{Message, MessageKind, ProviderCall, ProviderReply, Reply};
use crate::wire::CallError;
use crate::wire::provider::ProviderClient;
use crate::wire::replica::{Addresses, ReplicaClient};

/// How often a replica asks the others for a sign of life, and how long it waits for one.
const PING_EVERY: Duration = Duration::from_millis(250);
const PING_WITHIN: Duration = Duration::from_millis(400);

/// The ways out.
#[derive(Debug)]
pub(super) struct Link {
    me: ReplicaId,
    run: String,
    traces: bool,
    faults: Mutex<FaultTable>,
    /// Moves whenever a rule is taken away: messages that are held look again.
    disarmed: watch::Sender<u64>,
    known: Mutex<Known>,
    learned: Notify,
    sees: Mutex<BTreeMap<ReplicaId, (bool, Millis)>>,
}

#[derive(Debug, Default)]
struct Known {
    addresses: Addresses,
    replicas: BTreeMap<ReplicaId, (u16, ReplicaClient)>,
    provider: Option<(u16, ProviderClient)>,
}

/// The message was lost on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

/// Which operation a message is about, for fault rules.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    /// With which key.
    pub(super) key: Option<Key>,
    /// In which attempt.
    pub(super) attempt: Option<Attempt>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(super) fn new(me: ReplicaId, run: String, traces: bool) -> Self {
        let (disarmed, _) = watch::channel(0);
        Self {
            me,
            run,
            traces,
            faults: Mutex::default(),
            disarmed,
            known: Mutex::default(),
            learned: Notify::new(),
            sees: Mutex::default(),
        }
    }

    pub(super) const fn me(&self) -> ReplicaId {
        self.me
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    pub(super) fn learn(&self, addresses: Addresses) {
        let mut known = lock(&self.known);
        if addresses.version >= known.addresses.version {
            known.addresses = addresses;
            self.learned.notify_one();
        }
    }

    pub(super) fn addresses_version(&self) -> u64 {
        lock(&self.known).addresses.version
    }

    pub(super) fn sees(&self) -> BTreeMap<ReplicaId, (bool, Millis)> {
        lock(&self.sees).clone()
    }

    pub(super) fn arm(&self, id: RuleId, rule: FaultRule) {
        lock(&self.faults).arm(id, rule);
    }

    pub(super) fn disarm(&self, id: RuleId) -> u32 {
        let hits = lock(&self.faults).disarm(id).unwrap_or(0);
        self.disarmed.send_modify(|version| *version = version.wrapping_add(1));
        hits
    }

    /// Sends a message past the rules, and comes back when it may go on.
    pub(super) async fn pass(&self, passage: Passage<'_>) -> Result<(), Lost> {
        let Some((rule, what)) = lock(&self.faults).pass(&passage) else { return Ok(()) };
        if passage.kind != MessageKind::Ping {
            ReportLine::Hit { rule, time: clock::now() }.tell();
        }
        match what {
            Fault::Drop => Err(Lost),
            Fault::Delay { milliseconds } => {
                tokio::time::sleep(Duration::from_millis(milliseconds)).await;
                Ok(())
            }
            Fault::Hold => {
                let mut disarmed = self.disarmed.subscribe();
                while lock(&self.faults).is_armed(rule) && disarmed.changed().await.is_ok() {}
                Ok(())
            }
        }
    }

    /// A message leaves, whatever becomes of it.
    pub(super) fn sent(&self, passage: &Passage<'_>) {
        self.trace(passage, HistoryEvent::Sent);
    }

    /// A message is here.
    pub(super) fn received(&self, passage: &Passage<'_>) {
        self.trace(passage, HistoryEvent::Received);
    }

    /// Signs of life are not traced: they would bury everything else.
    fn trace(&self, passage: &Passage<'_>, event: fn(history::Message) -> HistoryEvent) {
        if self.traces && passage.kind != MessageKind::Ping {
            ReportLine::tell_event(event(history::Message {
                from: passage.from,
                to: passage.to,
                direction: passage.direction,
                kind: passage.kind,
                key: passage.key.cloned(),
                attempt: passage.attempt,
            }));
        }
    }

    fn peer(&self, to: ReplicaId) -> Option<ReplicaClient> {
        let mut known = lock(&self.known);
        let port = known.addresses.ports.get(&Endpoint::Replica(to)).copied()?;
        match known.replicas.get(&to) {
            Some((same, client)) if *same == port => Some(client.clone()),
            Some(_) | None => {
                let client = ReplicaClient::new(port, &self.run);
                known.replicas.insert(to, (port, client.clone()));
                Some(client)
            }
        }
    }

    fn payments(&self) -> Option<ProviderClient> {
        let mut known = lock(&self.known);
        let port = known.addresses.ports.get(&Endpoint::Provider).copied()?;
        match &known.provider {
            Some((same, client)) if *same == port => Some(client.clone()),
            Some(_) | None => {
                let client = ProviderClient::new(port, &self.run);
                known.provider = Some((port, client.clone()));
                Some(client)
            }
        }
    }

    /// Asks another replica.
    pub(super) async fn ask(&self, to: ReplicaId, message: &Message, within: Duration) -> Result<Reply, CallFailure> {
        let about = about(message);
        let passage = |direction| Passage {
            from: Endpoint::Replica(self.me),
            to: Endpoint::Replica(to),
            direction,
            kind: message.kind(),
            key: about.key.as_ref(),
            attempt: about.attempt,
        };
        let Some(peer) = self.peer(to) else { return Err(CallFailure::BeforeConnection) };
        self.exchange(passage, within, || peer.ask(self.me, to, message, within)).await
    }

    /// Calls the provider.
    pub(super) async fn pay(&self, call: &ProviderCall, within: Duration) -> Result<ProviderReply, CallFailure> {
        let (key, attempt) = match call {
            ProviderCall::Pay { row, .. } => (Some(&row.key), Some(row.attempt)),
            ProviderCall::LookUp { .. } => (None, None),
        };
        let (from, to, kind) = (Endpoint::Replica(self.me), Endpoint::Provider, call.kind());
        let passage = |direction| Passage { from, to, direction, kind, key, attempt };
        let Some(provider) = self.payments() else { return Err(CallFailure::BeforeConnection) };
        self.exchange(passage, within, || provider.call(call, within)).await
    }

    /// There and back. What is lost looks as it does to everybody who waits: no answer in time.
    async fn exchange<'a, T, F: Future<Output = Result<T, CallError>>>(
        &self,
        passage: impl Fn(Direction) -> Passage<'a>,
        within: Duration,
        call: impl FnOnce() -> F,
    ) -> Result<T, CallFailure> {
        let began = tokio::time::Instant::now();
        let exchange = async {
            self.sent(&passage(Direction::Request));
            if self.pass(passage(Direction::Request)).await == Err(Lost) {
                return std::future::pending().await;
            }
            let answer = call().await.map_err(|error| failure(&error))?;
            if self.pass(passage(Direction::Reply)).await == Err(Lost) {
                return std::future::pending().await;
            }
            self.received(&passage(Direction::Reply));
            Ok(answer)
        };
        tokio::time::timeout_at(began + within, exchange).await.unwrap_or(Err(CallFailure::Later))
    }

    /// Asks all others for a sign of life, for as long as the process lives.
    pub(super) async fn ping_for_ever(&self, others: Vec<ReplicaId>) {
        let mut every = tokio::time::interval(PING_EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            // Whoever is new is asked at once.
            tokio::select! {
                _ = every.tick() => {}
                () = self.learned.notified() => {}
            }
            // Before anybody said where the others are, that none answers means nothing.
            if self.addresses_version() == 0 {
                continue;
            }
            let asked = others.iter().map(|other| self.ping(*other));
            for (other, answers) in join_all(asked).await {
                lock(&self.sees).insert(other, (answers, clock::now()));
            }
        }
    }

    async fn ping(&self, to: ReplicaId) -> (ReplicaId, bool) {
        let me = Endpoint::Replica(self.me);
        let passage = |direction| Passage {
            from: me,
            to: Endpoint::Replica(to),
            direction,
            kind: MessageKind::Ping,
            key: None,
            attempt: None,
        };
        let Some(peer) = self.peer(to) else { return (to, false) };
        let answered = self.exchange(passage, PING_WITHIN, || peer.ping(me, to, PING_WITHIN)).await;
        (to, answered.is_ok())
    }
}

const fn failure(error: &CallError) -> CallFailure {
    classify::call_failure(error.code, error.sign)
}

pub(super) fn about(message: &Message) -> About {
    let of = |key: &Key, attempt| About { key: Some(key.clone()), attempt: Some(attempt) };
    match message {
        Message::Look(slot) | Message::LookAtKeeper(slot) => {
            // A slot is the key, or the key and the amount.
            let key = slot.0.split('=').next().and_then(|key| key.parse().ok());
            About { key, attempt: None }
        }
        Message::Store(record) => of(&record.receipt.key, record.receipt.attempt),
        Message::Forward(request) => of(&request.key, request.attempt),
        Message::ExecuteAtKeeper(execution) => of(&execution.request.key, execution.request.attempt),
        Message::IssueEpoch | Message::Records => About::default(),
    }
}
