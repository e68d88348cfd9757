//! Rules and holds inside the replicas: who knows of which, what they hit, who stands where.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::LabError;
use super::lab::{Lab, lock};
use super::member::Life;
use crate::history::HistoryEvent;
use crate::rules::barrier::At;
use crate::rules::fault::{Fault, FaultRule, RuleId};
use crate::rules::ids::{Endpoint, ReplicaId};
use crate::wire::replica::{Control, Hold, ReplicaClient};

/// The number of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HoldId(pub u64);

/// A request that stands at a barrier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// At which hold.
    pub hold: HoldId,
    /// In which replica.
    pub by: ReplicaId,
    /// Where, with what.
    pub at: At,
}

/// A rule that is armed, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmedRule {
    /// Its number.
    pub id: RuleId,
    /// What it says.
    pub rule: FaultRule,
    /// How often it has hit so far.
    pub hits: u32,
}

/// All that is armed.
#[derive(Debug, Default)]
pub(super) struct Faults {
    next: u64,
    rules: BTreeMap<RuleId, (FaultRule, u32)>,
    holds: BTreeMap<u64, Hold>,
    reached: Vec<Reached>,
}

impl Faults {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(super) fn reached(&mut self, hold: u64, by: ReplicaId, at: At) {
        self.reached.push(Reached { hold: HoldId(hold), by, at });
    }

    /// Counts a hit, and says whether the rule is used up by it.
    pub(super) fn hit(&mut self, rule: RuleId) -> bool {
        let Some((rule, hits)) = self.rules.get_mut(&rule) else { return false };
        *hits = hits.saturating_add(1);
        rule.count.is_some_and(|count| *hits >= count)
    }

    /// Whether a rule still does anything.
    fn is_live(&self, id: RuleId) -> bool {
        self.rules.get(&id).is_some_and(|(rule, hits)| rule.count.is_none_or(|count| *hits < count))
    }

    /// Which rules a replica has to know. A link has one place where its rules are looked up: the replica that asks, or
    /// for clients the replica that is asked. A rule that leaves its link open is known to all until it is used up.
    fn for_replica(&self, id: ReplicaId) -> BTreeMap<RuleId, FaultRule> {
        let concerns = |rule: &FaultRule| match (rule.from, rule.to) {
            (Some(Endpoint::Replica(from)), _) => from == id,
            (Some(Endpoint::Client | Endpoint::Supervisor), Some(Endpoint::Replica(to))) => to == id,
            (Some(Endpoint::Client | Endpoint::Provider | Endpoint::Supervisor) | None, _) => true,
        };
        let mine = self.rules.iter().filter(|(rule_id, (rule, _))| concerns(rule) && self.is_live(**rule_id));
        mine.map(|(rule_id, (rule, hits))| {
            let count = rule.count.map(|count| count - hits);
            (*rule_id, FaultRule { count, ..rule.clone() })
        })
        .collect()
    }
}

/// "drop request of any message, client -> A, attempt 1, 1 times".
#[must_use]
pub fn describe(rule: &FaultRule) -> String {
    let any = |end: Option<Endpoint>| end.map_or_else(|| "anybody".to_owned(), |end| end.to_string());
    let what = match rule.what {
        Fault::Drop => "lose".to_owned(),
        Fault::Delay { milliseconds } => format!("delay by {milliseconds} ms"),
        Fault::Hold => "hold".to_owned(),
    };
    let half = rule.direction.map_or_else(|| "request and reply".to_owned(), |half| half.to_string());
    let kind = rule.kind.map_or_else(|| "any call".to_owned(), |kind| kind.to_string());
    let mut text = format!("{what} the {half} of {kind}, {} -> {}", any(rule.from), any(rule.to));
    if let Some(key) = &rule.key {
        text.push_str(&format!(", key {key}"));
    }
    if let Some(attempt) = rule.attempt {
        text.push_str(&format!(", attempt {attempt}"));
    }
    if let Some(count) = rule.count {
        text.push_str(&format!(", {count} times"));
    }
    text
}

impl Lab {
    /// Arms a fault in every replica that has to know of it. Who is dead or paused learns it when it comes back.
    ///
    /// A rule with a count and an open link is known to several; the first that uses it up has it taken from the others.
    ///
    /// # Errors
    ///
    /// [`LabError::Silent`]: then it may be armed in some.
    pub async fn arm(&self, rule: FaultRule) -> Result<RuleId, LabError> {
        let id = {
            let mut state = lock(&self.inner.state);
            let id = RuleId(state.faults.number());
            state.faults.rules.insert(id, (rule.clone(), 0));
            id
        };
        self.inner.recorder.note(HistoryEvent::RuleArmed { rule: id, what: describe(&rule) });
        self.tell_all().await?;
        Ok(id)
    }

    /// Takes a fault away and says how often it had hit. What it held goes on.
    ///
    /// # Errors
    ///
    /// [`LabError::UnknownNumber`], [`LabError::Silent`].
    pub async fn disarm(&self, id: RuleId) -> Result<u32, LabError> {
        let removed = lock(&self.inner.state).faults.rules.remove(&id);
        let (_, hits) = removed.ok_or(LabError::UnknownNumber { what: "fault", number: id.0 })?;
        self.tell_all().await?;
        self.inner.recorder.note(HistoryEvent::RuleDisarmed { rule: id, hits });
        Ok(hits)
    }

    /// How often a fault has hit so far.
    #[must_use]
    pub fn hits(&self, id: RuleId) -> Option<u32> {
        lock(&self.inner.state).faults.rules.get(&id).map(|(_, hits)| *hits)
    }

    /// Waits until a fault has hit so often.
    ///
    /// # Errors
    ///
    /// [`LabError::NotReached`].
    pub async fn wait_hit(&self, id: RuleId, times: u32, within: Duration) -> Result<(), LabError> {
        self.wait_until(within, |faults| faults.rules.get(&id).is_some_and(|(_, hits)| *hits >= times).then_some(()))
            .await
    }

    /// Cuts the link between two ends, both ways. Cutting it again changes nothing.
    ///
    /// # Errors
    ///
    /// [`LabError::Silent`].
    pub async fn cut(&self, one: Endpoint, other: Endpoint) -> Result<(), LabError> {
        for rule in FaultRule::cut(one, other) {
            let known = lock(&self.inner.state).faults.rules.values().any(|(armed, _)| *armed == rule);
            if !known {
                self.arm(rule).await?;
            }
        }
        Ok(())
    }

    /// Takes every fault away, and tells the replicas that cuts are gone. Healing again changes nothing.
    ///
    /// # Errors
    ///
    /// [`LabError::Silent`].
    pub async fn heal(&self) -> Result<usize, LabError> {
        let rules = std::mem::take(&mut lock(&self.inner.state).faults.rules);
        self.tell_all().await?;
        for (id, client) in self.running() {
            self.confirm(id, &client, Control::Healed).await?;
        }
        for (rule, (_, hits)) in &rules {
            self.inner.recorder.note(HistoryEvent::RuleDisarmed { rule: *rule, hits: *hits });
        }
        Ok(rules.len())
    }

    /// Has requests stop at a named point, in whichever replica comes there, until [`Lab::release`].
    ///
    /// # Errors
    ///
    /// [`LabError::Silent`].
    pub async fn hold(&self, hold: Hold) -> Result<HoldId, LabError> {
        let id = {
            let mut state = lock(&self.inner.state);
            let id = state.faults.number();
            state.faults.holds.insert(id, hold.clone());
            id
        };
        self.tell_all().await?;
        Ok(HoldId(id))
    }

    /// Waits until somebody stands at a hold. Each who does is given out once, in the order of arrival.
    ///
    /// # Errors
    ///
    /// [`LabError::NotReached`].
    pub async fn wait_reached(&self, hold: HoldId, within: Duration) -> Result<Reached, LabError> {
        self.wait_until(within, |faults| {
            let at = faults.reached.iter().position(|reached| reached.hold == hold)?;
            Some(faults.reached.remove(at))
        })
        .await
    }

    /// Lets go of all who stand at a hold, and stops nobody else.
    ///
    /// # Errors
    ///
    /// [`LabError::UnknownNumber`], [`LabError::Silent`].
    pub async fn release(&self, hold: HoldId) -> Result<(), LabError> {
        let removed = lock(&self.inner.state).faults.holds.remove(&hold.0);
        removed.ok_or(LabError::UnknownNumber { what: "hold", number: hold.0 })?;
        self.tell_all().await
    }

    /// What is armed.
    #[must_use]
    pub fn armed(&self) -> Vec<ArmedRule> {
        let state = lock(&self.inner.state);
        let rules = state.faults.rules.iter();
        rules.map(|(id, (rule, hits))| ArmedRule { id: *id, rule: rule.clone(), hits: *hits }).collect()
    }

    /// Looks whenever something has changed, until there is something to give.
    async fn wait_until<T>(
        &self,
        within: Duration,
        mut look: impl FnMut(&mut Faults) -> Option<T>,
    ) -> Result<T, LabError> {
        let mut changed = self.inner.changed.subscribe();
        let waiting = async {
            loop {
                if let Some(found) = look(&mut lock(&self.inner.state).faults) {
                    return Ok(found);
                }
                if changed.changed().await.is_err() {
                    return Err(LabError::Ending);
                }
            }
        };
        tokio::time::timeout(within, waiting).await.unwrap_or(Err(LabError::NotReached(within)))
    }

    pub(super) async fn tell_all(&self) -> Result<(), LabError> {
        let running = self.running();
        let told = running.iter().map(|(id, client)| self.bring_faults_up_to_date(*id, client.clone()));
        crate::process::join::join_all(told).await.into_iter().collect()
    }

    /// Arms what a replica does not know and takes away what is gone.
    ///
    /// One that died meanwhile learns it at its next start: that is no failure.
    pub(super) async fn bring_faults_up_to_date(&self, id: ReplicaId, client: ReplicaClient) -> Result<(), LabError> {
        for control in self.missing(id) {
            let told = self.confirm(id, &client, control.clone()).await;
            let mut state = lock(&self.inner.state);
            let Some(member) = state.members.get_mut(&id) else { return Ok(()) };
            if member.life != Life::Running {
                return Ok(());
            }
            told?;
            match control {
                Control::ArmFault(rule, _) => drop(member.rules.insert(rule)),
                Control::DisarmFault(rule) => drop(member.rules.remove(&rule)),
                Control::ArmHold(hold, _) => drop(member.holds.insert(hold)),
                Control::ReleaseHold(hold) => drop(member.holds.remove(&hold)),
                Control::Addresses(_) | Control::TakeOver | Control::Healed => {}
            }
        }
        Ok(())
    }

    fn missing(&self, id: ReplicaId) -> Vec<Control> {
        let state = lock(&self.inner.state);
        let Some(member) = state.members.get(&id) else { return Vec::new() };
        let rules = state.faults.for_replica(id);
        // A rule that one replica has used up must not hit in another.
        let gone = member.rules.iter().filter(|rule| !state.faults.is_live(**rule));
        let gone = gone.map(|rule| Control::DisarmFault(*rule));
        let new = rules.into_iter().filter(|(rule, _)| !member.rules.contains(rule));
        let new = new.map(|(rule, what)| Control::ArmFault(rule, what));
        let released = member.holds.iter().filter(|hold| !state.faults.holds.contains_key(hold));
        let released = released.map(|hold| Control::ReleaseHold(*hold));
        let held = state.faults.holds.iter().filter(|(hold, _)| !member.holds.contains(hold));
        let held = held.map(|(hold, what)| Control::ArmHold(*hold, what.clone()));
        gone.chain(released).chain(new).chain(held).collect()
    }
}
