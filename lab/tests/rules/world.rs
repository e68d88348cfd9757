//! A lab in memory: replicas, their disks, a provider and the messages between them. Nothing in it happens by itself: a
//! test delivers what is in flight in the order that it chooses, and kills, pauses, cuts and wipes as it likes.

use std::collections::BTreeMap;

use counterfoil_lab::rules::{
    action::{Action, DiskCommand, Note},
    barrier::{At, Barrier},
    event::{CallFailure, Event},
    fault::{Direction, Fault, FaultRule, FaultTable, Passage, RuleId},
    ids::{Amount, Attempt, CallId, Endpoint, IntentId, Key, Millis, OpId, ReplicaId, SealedIntent},
    knobs::Knobs,
    majority::Members,
    message::{Message, MessageKind, ProviderCall, ProviderReply, Reply},
    outcome::{Outcome, Refused, Unknown},
    record::{Charge, DiskIdentity, Receipt, Request, Standing},
    replica::{Patience, Replica},
};

use crate::disk::Disk;

/// Something on its way.
#[derive(Debug, Clone)]
pub(crate) enum Flight {
    Disk {
        at: ReplicaId,
        life: u64,
        op: OpId,
        command: DiskCommand,
    },
    Call {
        from: ReplicaId,
        life: u64,
        op: OpId,
        to: ReplicaId,
        message: Message,
    },
    Provider {
        from: ReplicaId,
        life: u64,
        op: OpId,
        call: ProviderCall,
    },
    Client {
        call: CallId,
        to: ReplicaId,
        request: Request,
    },
    /// An event that has only to be handed over.
    Event {
        to: ReplicaId,
        life: u64,
        event: Event,
    },
    Answer {
        call: CallId,
        outcome: Outcome,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) replica: Option<Replica>,
    pub(crate) paused: bool,
    /// Counts processes: what was meant for the one before never reaches the next.
    life: u64,
    pub(crate) disk: Disk,
    /// Disks that were wiped away. Only the judge looks here.
    pub(crate) evidence: Vec<Disk>,
    /// Where a script keeps this replica.
    held: Vec<(OpId, At)>,
}

/// Who waits for a call.
#[derive(Debug, Clone)]
enum Waits {
    Client { of: ReplicaId, request: Request },
    Peer { from: ReplicaId, life: u64, op: OpId, of: ReplicaId, kind: MessageKind },
    Script,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) knobs: Knobs,
    pub(crate) members: Members,
    pub(crate) now: Millis,
    /// When the client's next key is made.
    pub(crate) mints_at: Millis,
    pub(crate) nodes: BTreeMap<ReplicaId, Node>,
    pub(crate) charges: Vec<Charge>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) faults: FaultTable,
    held_back: Vec<(RuleId, Flight)>,
    pub(crate) holds: Vec<(ReplicaId, Barrier, Attempt)>,
    waits: BTreeMap<CallId, Waits>,
    pub(crate) outcomes: BTreeMap<CallId, Outcome>,
    pub(crate) script_replies: Vec<Reply>,
    pub(crate) notes: Vec<(ReplicaId, Note)>,
    next_call: u64,
    next_rule: u64,
}

pub(crate) fn replica(letter: &str) -> ReplicaId {
    letter.parse().expect("it is there")
}

pub(crate) const A: ReplicaId = ReplicaId::FIRST;

pub(crate) fn b() -> ReplicaId {
    replica("b")
}

pub(crate) fn c() -> ReplicaId {
    replica("c")
}

impl World {
    pub(crate) fn new(count: u8, knobs: Knobs) -> Self {
        let members = Members::new(count).expect("it is there");
        let mut world = Self {
            knobs,
            members,
            now: Millis(1_000),
            mints_at: Millis(500),
            nodes: BTreeMap::new(),
            charges: Vec::new(),
            flights: Vec::new(),
            faults: FaultTable::default(),
            held_back: Vec::new(),
            holds: Vec::new(),
            waits: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            script_replies: Vec::new(),
            notes: Vec::new(),
            next_call: 0,
            next_rule: 0,
        };
        for id in members.iter() {
            let disk = Disk::new(format!("{id}-1"), Millis(0), Standing::Founding);
            let node = Node { replica: None, paused: false, life: 0, disk, evidence: Vec::new(), held: Vec::new() };
            world.nodes.insert(id, node);
            world.restart(id);
        }
        world
    }

    fn node(&mut self, id: ReplicaId) -> &mut Node {
        self.nodes.get_mut(&id).expect("it is there")
    }

    // What a script does.

    pub(crate) fn kill(&mut self, id: ReplicaId) {
        let node = self.node(id);
        assert!(node.replica.take().is_some(), "{id} is dead already");
        (node.paused, node.held) = (false, Vec::new());
        // Connections break: whoever waits for this process is told so.
        let broken: Vec<CallId> =
            self.waits.iter().filter(|(_, waits)| waits.for_answer_of(id)).map(|(call, _)| *call).collect();
        for call in broken {
            match self.waits.remove(&call).expect("it is there") {
                Waits::Client { .. } => drop(self.outcomes.insert(call, Outcome::Unknown(Unknown::ConnectionLost))),
                Waits::Peer { from, life, op, of, .. } => {
                    let event = Event::PeerFailed { op, peer: of, failure: CallFailure::Later };
                    self.flights.push(Flight::Event { to: from, life, event });
                }
                Waits::Script => {}
            }
        }
    }

    pub(crate) fn restart(&mut self, id: ReplicaId) {
        let (members, knobs) = (self.members, self.knobs);
        let node = self.node(id);
        assert!(node.replica.is_none(), "{id} lives");
        node.life += 1;
        node.replica = Some(Replica::new(id, members, knobs, Patience::default()));
        let identity = node.disk.identity.clone();
        self.hand_over(id, Event::Started(identity));
    }

    /// A new disk under the old name. The old one goes to the judge.
    pub(crate) fn wipe(&mut self, id: ReplicaId) {
        let now = self.now;
        let node = self.node(id);
        assert!(node.replica.is_none(), "{id} lives");
        let incarnation = format!("{id}-{}", node.evidence.len() + 2);
        let old = std::mem::replace(&mut node.disk, Disk::new(incarnation, now, Standing::Behind));
        node.evidence.push(old);
    }

    pub(crate) fn pause(&mut self, id: ReplicaId) {
        self.node(id).paused = true;
    }

    pub(crate) fn resume(&mut self, id: ReplicaId) {
        self.node(id).paused = false;
    }

    pub(crate) fn arm(&mut self, rule: FaultRule) -> RuleId {
        self.next_rule += 1;
        self.faults.arm(RuleId(self.next_rule), rule);
        RuleId(self.next_rule)
    }

    /// Takes a rule away; what it held back goes on. Says how often it hit.
    pub(crate) fn disarm(&mut self, id: RuleId) -> u32 {
        let (held, rest) = std::mem::take(&mut self.held_back).into_iter().partition(|(by, _)| *by == id);
        self.held_back = rest;
        let held: Vec<(RuleId, Flight)> = held;
        self.flights.extend(held.into_iter().map(|(_, flight)| flight));
        self.faults.disarm(id).unwrap_or(0)
    }

    pub(crate) fn healed(&mut self, id: ReplicaId) {
        self.hand_over(id, Event::Healed);
    }

    pub(crate) fn take_over(&mut self, id: ReplicaId) {
        let call = self.call(Waits::Script);
        self.hand_over(id, Event::TakeOver { call });
        self.run();
        let last = self.script_replies.pop();
        assert!(matches!(last, Some(Reply::Issued(_))), "{id} holds no epoch: {last:?}");
    }

    pub(crate) fn hold(&mut self, id: ReplicaId, barrier: Barrier, attempt: u32) {
        self.holds.push((id, barrier, Attempt(attempt)));
    }

    pub(crate) fn is_held(&self, id: ReplicaId) -> bool {
        !self.nodes[&id].held.is_empty()
    }

    /// Lets go of everything that a script keeps at this replica.
    pub(crate) fn release(&mut self, id: ReplicaId) {
        self.holds.retain(|(at, ..)| *at != id);
        let node = self.node(id);
        let life = node.life;
        for (op, at) in std::mem::take(&mut node.held) {
            self.flights.push(Flight::Event { to: id, life, event: Event::Released { op, barrier: at.barrier } });
        }
    }

    /// A client sends, without waiting.
    pub(crate) fn send(&mut self, to: ReplicaId, key: &str, amount: u64, attempt: u32, intent: &str) -> CallId {
        let request = Request {
            key: key.parse::<Key>().expect("it is there"),
            minted_at: self.mints_at,
            amount: Amount(amount),
            attempt: Attempt(attempt),
            intent: SealedIntent::seal(&IntentId(intent.to_owned())),
        };
        let call = self.call(Waits::Client { of: to, request: request.clone() });
        if self.nodes[&to].replica.is_none() {
            self.waits.remove(&call);
            self.outcomes.insert(call, Outcome::Refused(Refused::NotConnected));
            return call;
        }
        let (key, attempt) = (request.key.clone(), request.attempt);
        let flight = Flight::Client { call, to, request };
        self.fly(
            Endpoint::Client,
            Endpoint::Replica(to),
            Direction::Request,
            MessageKind::Request,
            Some(&key),
            Some(attempt),
            flight,
        );
        call
    }

    /// A client sends and waits as long as it makes sense.
    pub(crate) fn ask(&mut self, to: ReplicaId, key: &str, amount: u64, attempt: u32) -> Outcome {
        let call = self.send(to, key, amount, attempt, "intent");
        self.run_and_wait();
        self.conclude(call)
    }

    /// What the client of a call knows by now: without an answer, it knows nothing.
    pub(crate) fn conclude(&self, call: CallId) -> Outcome {
        self.outcomes.get(&call).cloned().unwrap_or(Outcome::Unknown(Unknown::NoAnswer))
    }

    /// Executions of an intent, counted where the judge counts them: every disk there ever was, and the provider.
    pub(crate) fn executions(&self, intent: &str) -> usize {
        let disks = self.nodes.values().flat_map(|node| std::iter::once(&node.disk).chain(&node.evidence));
        let inside = disks.flat_map(|disk| &disk.effects);
        let outside = self.charges.iter().map(|charge| &charge.row);
        inside.chain(outside).filter(|row| row.intent.open_as_judge().0 == intent).count()
    }

    // How things move.

    fn call(&mut self, waits: Waits) -> CallId {
        self.next_call += 1;
        self.waits.insert(CallId(self.next_call), waits);
        CallId(self.next_call)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a passage, spelled out once")]
    fn fly(
        &mut self,
        from: Endpoint,
        to: Endpoint,
        direction: Direction,
        kind: MessageKind,
        key: Option<&Key>,
        attempt: Option<Attempt>,
        flight: Flight,
    ) {
        match self.faults.pass(&Passage { from, to, direction, kind, key, attempt }) {
            None | Some((_, Fault::Delay { .. })) => self.flights.push(flight),
            Some((_, Fault::Drop)) => {}
            Some((rule, Fault::Hold)) => self.held_back.push((rule, flight)),
        }
    }

    /// Whether something in flight can arrive now: not at a process that is paused.
    pub(crate) fn is_deliverable(&self, flight: &Flight) -> bool {
        let paused = |id: &ReplicaId| self.nodes[id].paused;
        match flight {
            Flight::Disk { at: id, .. }
            | Flight::Call { to: id, .. }
            | Flight::Client { to: id, .. }
            | Flight::Event { to: id, .. } => !paused(id),
            Flight::Provider { .. } | Flight::Answer { .. } => true,
        }
    }

    /// Delivers everything, first come first served.
    pub(crate) fn run(&mut self) {
        for _ in 0..100_000 {
            let Some(index) = self.flights.iter().position(|flight| self.is_deliverable(flight)) else { return };
            self.deliver(index);
        }
        panic!("it never ends");
    }

    /// Delivers everything, and lets replicas run out of patience until nobody waits for anything but catching up.
    pub(crate) fn run_and_wait(&mut self) {
        self.run();
        for _ in 0..4 {
            if !self.let_time_pass() {
                return;
            }
            self.run();
        }
    }

    /// Moves the time to the next deadline and lets every replica know. Says whether there was one.
    pub(crate) fn let_time_pass(&mut self) -> bool {
        let awake = self.nodes.values().filter(|node| !node.paused).filter_map(|node| node.replica.as_ref());
        let Some(next) = awake.filter_map(Replica::next_deadline).min() else { return false };
        self.now = self.now.max(next);
        for id in self.members.iter() {
            if self.nodes[&id].replica.is_some() && !self.nodes[&id].paused {
                self.hand_over(id, Event::Tick);
            }
        }
        true
    }

    pub(crate) fn deliver(&mut self, index: usize) {
        match self.flights.remove(index) {
            Flight::Answer { call, outcome } => drop(self.outcomes.insert(call, outcome)),
            Flight::Event { to, life, event } => {
                if self.nodes[&to].life == life && self.nodes[&to].replica.is_some() {
                    self.hand_over(to, event);
                }
            }
            Flight::Disk { at, life, op, command } => {
                let node = self.node(at);
                if node.life == life && node.replica.is_some() {
                    let done = node.disk.carry_out(command);
                    self.hand_over(at, Event::DiskDone { op, done });
                }
            }
            Flight::Client { call, to, request } => match self.nodes[&to].replica.is_some() {
                true => self.hand_over(to, Event::Request { call, request }),
                false => drop(self.outcomes.insert(call, Outcome::Unknown(Unknown::ConnectionLost))),
            },
            Flight::Call { from, life, op, to, message } => self.deliver_call(from, life, op, to, message),
            Flight::Provider { from, life, op, call } => {
                let reply = self.provide(call);
                self.flights.push(Flight::Event { to: from, life, event: Event::ProviderAnswered { op, reply } });
            }
        }
    }

    fn deliver_call(&mut self, from: ReplicaId, life: u64, op: OpId, to: ReplicaId, message: Message) {
        if self.nodes[&to].replica.is_none() {
            let event = Event::PeerFailed { op, peer: to, failure: CallFailure::BeforeConnection };
            return self.flights.push(Flight::Event { to: from, life, event });
        }
        let call = self.call(Waits::Peer { from, life, op, of: to, kind: message.kind() });
        self.hand_over(to, Event::Peer { call, from, message });
    }

    fn provide(&mut self, call: ProviderCall) -> ProviderReply {
        let (reply, charge) = counterfoil_lab::rules::provider::decide(call, |identity| {
            self.charges.iter().find(|charge| charge.identity.as_ref() == Some(identity)).cloned()
        });
        self.charges.extend(charge);
        reply
    }

    fn hand_over(&mut self, id: ReplicaId, event: Event) {
        let now = self.now;
        let actions = self.node(id).replica.as_mut().expect("it is there").step(now, event);
        let life = self.node(id).life;
        for action in actions {
            self.carry_out(id, life, action);
        }
    }

    fn carry_out(&mut self, id: ReplicaId, life: u64, action: Action) {
        let me = Endpoint::Replica(id);
        match action {
            Action::Note(note) => self.notes.push((id, note)),
            Action::Disk { op, command } => self.flights.push(Flight::Disk { at: id, life, op, command }),
            Action::Send { op, to, message } => {
                let kind = message.kind();
                let flight = Flight::Call { from: id, life, op, to, message };
                self.fly(me, Endpoint::Replica(to), Direction::Request, kind, None, None, flight);
            }
            Action::CallProvider { op, call } => {
                let kind = call.kind();
                let flight = Flight::Provider { from: id, life, op, call };
                self.fly(me, Endpoint::Provider, Direction::Request, kind, None, None, flight);
            }
            Action::Reach { op, at } => {
                if self.holds.contains(&(id, at.barrier, at.attempt)) {
                    self.node(id).held.push((op, at));
                } else {
                    let event = Event::Released { op, barrier: at.barrier };
                    self.flights.push(Flight::Event { to: id, life, event });
                }
            }
            Action::Answer { call, outcome } => {
                if let Some(Waits::Client { request, .. }) = self.waits.remove(&call) {
                    let flight = Flight::Answer { call, outcome };
                    let (key, attempt) = (request.key, request.attempt);
                    self.fly(
                        Endpoint::Client,
                        me,
                        Direction::Reply,
                        MessageKind::Request,
                        Some(&key),
                        Some(attempt),
                        flight,
                    );
                }
            }
            Action::Reply { call, reply } => match self.waits.remove(&call) {
                Some(Waits::Peer { from, life, op, of, kind }) => {
                    let event = Event::PeerAnswered { op, peer: of, reply };
                    let flight = Flight::Event { to: from, life, event };
                    self.fly(Endpoint::Replica(from), me, Direction::Reply, kind, None, None, flight);
                }
                Some(Waits::Script) => self.script_replies.push(reply),
                Some(Waits::Client { .. }) | None => {}
            },
        }
    }

    /// All that decides what can still happen, as one number.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = std::collections::hash_map::DefaultHasher::new();
        let text = format!("{:?}", (&self.nodes, &self.charges, &self.flights, &self.waits, &self.outcomes));
        std::hash::Hash::hash(&text, &mut hasher);
        std::hash::Hasher::finish(&hasher)
    }

    pub(crate) fn identity(&self, id: ReplicaId) -> &DiskIdentity {
        &self.nodes[&id].disk.identity
    }
}

impl Waits {
    fn for_answer_of(&self, id: ReplicaId) -> bool {
        match self {
            Self::Client { of, .. } | Self::Peer { of, .. } => *of == id,
            Self::Script => false,
        }
    }
}

pub(crate) fn receipt_of(outcome: &Outcome) -> &Receipt {
    let Outcome::Done { receipt, .. } = outcome else { panic!("not done: {outcome:?}") };
    receipt
}
