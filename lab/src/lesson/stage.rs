//! Does what a script says, with real processes.
//!
//! Nothing in here waits for a time to pass. It waits for a moment: an attempt stands in a gap, a message was lost, a
//! process is gone, an answer is there.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::script::{Act, Cast, Lesson, Line as ScriptLine, Role, Trouble};
use crate::client::send::{AttemptReport, Client, Intent, Policy, Sink};
use crate::history::{HistoryEvent, Line, event::Message};
use crate::process::clock;
use crate::replica::disk::HeldForKey;
use crate::rules::fault::{Direction, RuleId};
use crate::rules::ids::{Amount, Attempt, Endpoint, IntentId, Key, ReplicaId};
use crate::rules::knobs::{Knobs, Placement};
use crate::rules::lamps::Counted;
use crate::rules::message::MessageKind;
use crate::rules::outcome::{Outcome, OutcomeKind, Refused, Unknown};
use crate::supervisor::error::LabError;
use crate::supervisor::faults::HoldId;
use crate::supervisor::lab::Lab;
use crate::wire::replica::Hold;

/// A moment that has not come by then does not come. It takes a hundredth of it.
const WITHIN: Duration = Duration::from_secs(15);

/// A client of a lesson gives up when the script says so, and not by a clock.
const ATTEMPT_MS: u64 = 30_000;

/// What is paid.
const AMOUNT: Amount = Amount(50);

/// Writes the client's history, with the answers that arrive: a diagram shows what has not arrived as lost.
#[derive(Debug, Clone)]
struct Told(Lab, ReplicaId);

impl Sink for Told {
    fn tell(&self, line: Line) {
        if let HistoryEvent::AttemptEnded { key, attempt, outcome, .. } = &line.event
            && is_an_answer(outcome)
        {
            let message = Message {
                from: Endpoint::Client,
                to: Endpoint::Replica(self.1),
                direction: Direction::Reply,
                kind: MessageKind::Request,
                key: Some(key.clone()),
                attempt: Some(*attempt),
            };
            let received = HistoryEvent::Received(message);
            self.0.recorder().write(&Line { at: line.at, by: line.by, event: received });
        }
        self.0.recorder().write(&line);
    }
}

/// Whether somebody said so, as opposed to what a client concludes from a broken connection or from silence.
const fn is_an_answer(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Unknown(Unknown::NoAnswer | Unknown::ConnectionLost | Unknown::ServerError)
            | Outcome::Refused(Refused::NotConnected | Refused::TurnedAway)
    )
}

/// An attempt that has been sent.
#[derive(Debug)]
struct Sent {
    give_up: Option<oneshot::Sender<()>>,
    task: JoinHandle<AttemptReport>,
}

/// A script that is being played.
#[derive(Debug)]
pub(super) struct Stage {
    lab: Lab,
    cast: Cast,
    knobs: Knobs,
    without_fault: bool,
    intent: Intent,
    /// What the client knows of the operation so far, all attempts together.
    known: Option<Outcome>,
    /// What it was told last.
    last: Option<Outcome>,
    open: BTreeMap<u32, Sent>,
    holds: BTreeMap<u32, HoldId>,
    rules: BTreeMap<&'static str, Vec<RuleId>>,
    pub(super) heard: BTreeMap<u32, AttemptReport>,
    /// The last count before everything was mended.
    pub(super) counts: Vec<Counted>,
    mended: bool,
}

impl Stage {
    pub(super) fn new(
        lab: &Lab,
        lesson: &Lesson,
        knobs: Knobs,
        seed: u64,
        without_fault: bool,
    ) -> Result<Self, LabError> {
        let key: Key = format!("pay-{seed}").parse().map_err(std::io::Error::other)?;
        Ok(Self {
            lab: lab.clone(),
            cast: lesson.cast,
            knobs,
            without_fault,
            intent: Intent::new(IntentId(lesson.name.to_owned()), key, AMOUNT),
            known: None,
            last: None,
            open: BTreeMap::new(),
            holds: BTreeMap::new(),
            rules: BTreeMap::new(),
            heard: BTreeMap::new(),
            counts: Vec::new(),
            mended: false,
        })
    }

    /// Plays a script to its end.
    pub(super) async fn play(&mut self, script: &[ScriptLine]) -> Result<(), LabError> {
        let (intent, amount) = (self.intent.id.clone(), self.intent.amount);
        self.tell(HistoryEvent::IntentStarted { intent, amount });
        for line in script {
            if !(line.fault && self.without_fault) {
                self.perform(line.act).await?;
            } else if let Act::Stands(attempt) = line.act {
                // Nobody stops it, so it goes through.
                self.hear(attempt).await?;
            }
        }
        let left: Vec<u32> = self.open.keys().copied().collect();
        for attempt in left {
            self.hear(attempt).await?;
        }
        if let Some(outcome) = self.known.clone() {
            let intent = self.intent.id.clone();
            self.tell(HistoryEvent::IntentEnded { intent, outcome });
        }
        Ok(())
    }

    async fn perform(&mut self, act: Act) -> Result<(), LabError> {
        match act {
            Act::Count => self.count().await,
            Act::Send(attempt, to) => self.send_unless_done(attempt, to),
            Act::Hear(attempt) => self.hear(attempt).await?,
            Act::GiveUp(attempt) => self.give_up(attempt),
            Act::Ask(attempt, to) => {
                self.send_unless_done(attempt, to);
                self.hear(attempt).await?;
            }
            Act::Insist(attempt, to) => {
                self.send(attempt, to);
                self.hear(attempt).await?;
            }
            Act::OtherAmount(amount) => self.intent.amount = Amount(amount),
            Act::Arm(name, trouble) => self.arm(name, trouble).await?,
            Act::Hit(name) => self.hit(name).await?,
            Act::Stop(attempt, at, gap) => {
                let barrier = gap.barrier(&self.knobs, self.plays(at));
                let hold = Hold { barrier, key: None, attempt: Some(Attempt(attempt)) };
                self.holds.insert(attempt, self.lab.hold(hold).await?);
            }
            Act::Stands(attempt) => {
                if let Some(hold) = self.holds.get(&attempt) {
                    self.lab.wait_reached(*hold, WITHIN).await?;
                }
            }
            Act::Go(attempt) => {
                if let Some(hold) = self.holds.remove(&attempt) {
                    self.lab.release(hold).await?;
                }
            }
            Act::Kill(role) => self.lab.kill(self.plays(role)).await?,
            Act::Wipe(role) => self.lab.wipe(self.plays(role)).await?,
            Act::Pause(role) => self.lab.pause(self.plays(role)).await?,
            Act::Restart(role) => self.mend(self.lab.restart(self.plays(role)).await)?,
            Act::Resume(role) => self.mend(self.lab.resume(self.plays(role)).await)?,
            Act::Heal => self.mend(self.lab.heal().await)?,
            Act::CutOff(role) => {
                let one = self.plays(role);
                for other in self.lab.members().others(one) {
                    self.lab.cut(Endpoint::Replica(one), Endpoint::Replica(other)).await?;
                }
            }
            Act::HasRecord(role) => self.has_record(self.plays(role)).await?,
            Act::TakeOver(role) => {
                if self.knobs.placement == Placement::AtomicFenced {
                    self.lab.take_over(self.plays(role)).await?;
                }
            }
            Act::Fell(name, role) => self.lab.fell(name, Endpoint::Replica(self.plays(role))),
        }
        Ok(())
    }

    const fn plays(&self, role: Role) -> ReplicaId {
        self.cast.plays(role, &self.knobs)
    }

    fn tell(&self, event: HistoryEvent) {
        self.lab.recorder().tell(clock::now(), Endpoint::Client, event);
    }

    fn mend<T>(&mut self, done: Result<T, LabError>) -> Result<(), LabError> {
        self.mended = true;
        done.map(drop)
    }

    async fn count(&mut self) {
        let counts = self.lab.measure().await.summary.counts;
        if !self.mended {
            self.counts = counts;
        }
    }

    fn send_unless_done(&mut self, attempt: u32, to: Role) {
        let settled = |outcome: &Outcome| matches!(outcome.kind(), OutcomeKind::Done | OutcomeKind::Mismatch);
        if !self.last.as_ref().is_some_and(settled) {
            self.send(attempt, to);
        }
    }

    fn send(&mut self, attempt: u32, to: Role) {
        let to = self.plays(to);
        // Told that nothing was done, a client may take a new key. One that does not know may not.
        if matches!(self.last, Some(Outcome::Refused(Refused::SaidFailed { .. })))
            && let Ok(key) = format!("{}-again", self.intent.key).parse()
        {
            self.intent.key = key;
        }
        let mut policy = Policy::new(self.lab.members(), self.knobs.identity);
        policy.attempt_ms = ATTEMPT_MS;
        let client = Client { cluster: self.lab.clone(), policy, sink: Told(self.lab.clone(), to) };
        let (give_up, given_up) = oneshot::channel();
        let intent = self.intent.clone();
        let task = tokio::spawn(async move {
            let number = Attempt(attempt);
            let at = clock::now();
            tokio::select! {
                report = client.attempt(&intent, number, to) => report,
                Ok(()) = given_up => {
                    let outcome = Outcome::Unknown(Unknown::NoAnswer);
                    let (id, key) = (intent.id.clone(), intent.key.clone());
                    let ended =
                        HistoryEvent::AttemptEnded { intent: id, key: key.clone(), attempt: number, outcome: outcome.clone() };
                    client.sink.tell(Line { at: clock::now(), by: Endpoint::Client, event: ended });
                    AttemptReport { attempt: number, to, key, at, took_ms: clock::now().since(at), outcome, error: None }
                }
            }
        });
        self.open.insert(attempt, Sent { give_up: Some(give_up), task });
    }

    fn give_up(&mut self, attempt: u32) {
        if let Some(give_up) = self.open.get_mut(&attempt).and_then(|sent| sent.give_up.take()) {
            // It may have its answer already: then nobody listens.
            let _gave_up = give_up.send(()).is_ok();
        }
    }

    /// What was heard already is heard.
    async fn hear(&mut self, attempt: u32) -> Result<(), LabError> {
        let Some(Sent { give_up, task }) = self.open.remove(&attempt) else { return Ok(()) };
        let report = task.await.map_err(std::io::Error::other)?;
        drop(give_up);
        self.last = Some(report.outcome.clone());
        self.known = Some(report.outcome.clone().after(self.known.as_ref()));
        self.heard.insert(attempt, report);
        Ok(())
    }

    async fn arm(&mut self, name: &'static str, trouble: Trouble) -> Result<(), LabError> {
        if trouble.applies(&self.knobs) {
            for rule in trouble.rules(&self.cast, &self.knobs) {
                let armed = self.lab.arm(rule).await?;
                self.rules.entry(name).or_default().push(armed);
            }
        }
        Ok(())
    }

    /// Waits until it has hit. If it does not, the script goes on, and the judge says that it was not exercised.
    async fn hit(&self, name: &'static str) -> Result<(), LabError> {
        for rule in self.rules.get(name).into_iter().flatten() {
            match self.lab.wait_hit(*rule, 1, WITHIN).await {
                Ok(()) => self.lab.fell(name, Endpoint::Client),
                Err(LabError::NotReached(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks it until it says so: copying has no gap that a script could stop in.
    async fn has_record(&self, replica: ReplicaId) -> Result<(), LabError> {
        let silent = |error| LabError::Silent { replica, error };
        let asking = async {
            let client = self.lab.replica(replica)?;
            loop {
                let held: HeldForKey = client.where_is(&self.intent.key, WITHIN).await.map_err(silent)?;
                if !held.records.is_empty() {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(WITHIN, asking).await.unwrap_or(Err(LabError::NotReached(WITHIN)))
    }
}
