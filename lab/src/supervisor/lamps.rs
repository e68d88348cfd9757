//! What is measured: four lamps for each replica, who sees whom, and what that adds up to.
//!
//! The four differ, and that is the lesson: a paused process exists and its port accepts, but it answers nothing and
//! writes nothing. Each lamp says who measured it and when; what was not asked is not known.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpStream;

use super::faults::ArmedRule;
use super::lab::{Lab, lock};
use super::member::Life;
use crate::process::clock;
use crate::process::join::join_all;
use crate::rules::ids::{Endpoint, Millis, ReplicaId};
use crate::rules::knobs::Knobs;
use crate::rules::record::DiskIdentity;
use crate::wire::replica::{Control, ReplicaClient};

const ACCEPT_WITHIN: Duration = Duration::from_millis(300);
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
const WRITE_WITHIN: Duration = Duration::from_millis(1_000);

/// The sentence under every count.
pub const ONLY_A_COUNT: &str = "This is a count and nothing more: a majority that is up is no transaction, no consensus and no proof of execution.";

/// One lamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lamp {
    /// Whether it is on.
    pub on: bool,
    /// Who measured it.
    pub by: Endpoint,
    /// When.
    pub at: Millis,
}

/// The four of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lamps {
    /// There is a process.
    pub exists: Lamp,
    /// Its port accepts a connection.
    pub accepts: Lamp,
    /// It answers a ping in time.
    pub answers: Lamp,
    /// It completes a durable write in time.
    pub writes: Lamp,
}

/// One replica, as it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaLine {
    /// Which.
    pub replica: ReplicaId,
    /// What the supervisor did to it last.
    pub life: Life,
    /// Its process, or its last one.
    pub pid: u32,
    /// Its port, or its last one.
    pub port: u16,
    /// The lamps.
    pub lamps: Lamps,
    /// Its disk, as far as the supervisor knows.
    pub disk: DiskIdentity,
    /// Records and effects on it; nothing if it did not answer.
    pub holds: Option<(u64, u64)>,
    /// Whom it sees; nothing if it did not answer.
    pub sees: Option<BTreeMap<ReplicaId, bool>>,
}

/// How many have each lamp on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Configured members.
    pub configured: u8,
    /// So many are a majority of them.
    pub majority: u8,
    /// Processes.
    pub exist: u8,
    /// Ports.
    pub accept: u8,
    /// Pings.
    pub answer: u8,
    /// Durable writes.
    pub write: u8,
}

/// The whole cluster, as it was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The run.
    pub run: String,
    /// Its switches.
    pub knobs: Knobs,
    /// When the measurement began and ended.
    pub measured: (Millis, Millis),
    /// Each replica.
    pub replicas: Vec<ReplicaLine>,
    /// What it adds up to.
    pub counts: Counts,
    /// Whether the provider answers.
    pub provider_answers: bool,
    /// Faults that are armed.
    pub faults: Vec<ArmedRule>,
    /// That it is a count and nothing more.
    pub remember: String,
}

impl Counts {
    /// Each count with its name and whether it is a majority of the configured members.
    #[must_use]
    pub fn each(&self) -> [(&'static str, u8, bool); 4] {
        let row = |name, count| (name, count, count >= self.majority);
        [row("exist", self.exist), row("accept", self.accept), row("answer", self.answer), row("write", self.write)]
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} configured", self.configured)?;
        for (name, count, majority) in self.each() {
            write!(f, ", {count} {name}{}", if majority { "" } else { " (no majority)" })?;
        }
        Ok(())
    }
}

impl Lab {
    /// Measures everything now, all replicas at the same time. It takes two seconds at most.
    pub async fn measure(&self) -> ClusterStatus {
        let began = clock::now();
        self.replace_a_dead_watcher();
        let members = self.inner.options.members;
        let replicas = join_all(members.iter().map(|id| self.measure_one(id))).await;
        let replicas: Vec<ReplicaLine> = replicas.into_iter().flatten().collect();
        let count = |lamp: fn(&Lamps) -> Lamp| {
            u8::try_from(replicas.iter().filter(|line| lamp(&line.lamps).on).count()).unwrap_or(u8::MAX)
        };
        let counts = Counts {
            configured: members.configured(),
            majority: members.majority(),
            exist: count(|lamps| lamps.exists),
            accept: count(|lamps| lamps.accepts),
            answer: count(|lamps| lamps.answers),
            write: count(|lamps| lamps.writes),
        };
        let provider = lock(&self.inner.state).provider.as_ref().map(|(.., client)| client.clone());
        let provider_answers = match provider {
            Some(provider) => provider.alive(ANSWER_WITHIN).await.is_ok(),
            None => false,
        };
        self.inner.recorder.note_at(began, "measured", json!({ "counts": counts }));
        ClusterStatus {
            run: self.inner.run.clone(),
            knobs: self.inner.options.knobs,
            measured: (began, clock::now()),
            replicas,
            counts,
            provider_answers,
            faults: self.armed(),
            remember: ONLY_A_COUNT.to_owned(),
        }
    }

    async fn measure_one(&self, id: ReplicaId) -> Option<ReplicaLine> {
        let (client, port, life, disk, child) = {
            let state = lock(&self.inner.state);
            let member = state.members.get(&id)?;
            (member.client.clone(), member.port, member.life, member.disk.clone(), member.child.clone())
        };
        let exists = lamp(!child.has_ended() && child.identity().is_running());
        // The port of a dead process may be another's by now: only what belongs to this run counts.
        let accepts = lamp(exists.on && accepts(port).await);
        let ping = if accepts.on { client.ping(Endpoint::Supervisor, id, ANSWER_WITHIN).await.ok() } else { None };
        let answers = lamp(ping.is_some());
        let writes = lamp(answers.on && client.probe(WRITE_WITHIN).await.is_ok());
        let status = if answers.on { client.status(ANSWER_WITHIN).await.ok() } else { None };
        if let Some(known) = ping {
            self.catch_up(id, client, known).await;
        }
        Some(ReplicaLine {
            replica: id,
            life,
            pid: child.identity().pid,
            port,
            lamps: Lamps { exists, accepts, answers, writes },
            disk: status.as_ref().map_or(disk, |status| status.disk.clone()),
            holds: status.as_ref().map(|status| (status.records, status.effects)),
            sees: status.map(|status| status.sees.into_iter().map(|(who, (answers, _))| (who, answers)).collect()),
        })
    }

    /// Who did not confirm an address in time is told again.
    async fn catch_up(&self, id: ReplicaId, client: ReplicaClient, known: u64) {
        let addresses = self.addresses();
        if known < addresses.version && self.life(id).is_ok_and(|life| life == Life::Running) {
            // If it does not confirm this either, the next measurement tells it again.
            drop(client.control(Control::Addresses(addresses), ANSWER_WITHIN).await);
        }
    }

    /// The watcher is what ends paused children when this process is killed: the lab is not without one for long.
    fn replace_a_dead_watcher(&self) {
        let mut state = lock(&self.inner.state);
        if !state.watcher.child().has_ended() || self.inner.ending.load(std::sync::atomic::Ordering::SeqCst) {
            return;
        }
        let Ok(log) = self.inner.path(|dir| dir.log("watcher")) else { return };
        match crate::process::watcher::Watcher::start(self.inner.options.program.clone(), log) {
            Ok(watcher) => {
                for child in state.started.iter().filter(|child| !child.has_ended()) {
                    drop(watcher.watch(child.identity()));
                }
                state.started.push(watcher.child().clone());
                state.watcher = watcher;
                self.inner.recorder.note("watcher-replaced", json!({}));
            }
            Err(error) => eprintln!("counterfoil-lab: the watcher is gone and could not be replaced: {error}"),
        }
    }
}

fn lamp(on: bool) -> Lamp {
    Lamp { on, by: Endpoint::Supervisor, at: clock::now() }
}

async fn accepts(port: u16) -> bool {
    let connecting = TcpStream::connect(("127.0.0.1", port));
    matches!(tokio::time::timeout(ACCEPT_WITHIN, connecting).await, Ok(Ok(_)))
}
