//! What is measured: four lamps for each replica, who sees whom, and what that adds up to.
//!
//! The four differ, and that is the lesson: a paused process exists and its port accepts, but it answers nothing and
//! writes nothing. Each lamp says who measured it and when; what was not asked is not known.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;

use super::faults::ArmedRule;
use super::lab::{Lab, lock};
use super::member::Life;
use crate::history::HistoryEvent;
use crate::process::clock;
use crate::process::join::join_all;
use crate::process::sys::ProcessIdentity;
use crate::rules::ids::{Endpoint, Millis, ReplicaId};
use crate::rules::knobs::Knobs;
use crate::rules::lamps::{A_COUNT_AND_NOTHING_MORE, Lamp, Measured, ReplicaStatus, Summary, summarize};
use crate::wire::replica::{Control, ReplicaClient};

const ACCEPT_WITHIN: Duration = Duration::from_millis(300);
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
const WRITE_WITHIN: Duration = Duration::from_millis(1_000);

/// Older measurements count for nothing.
pub const FRESH_MS: u64 = 5_000;

/// One replica: what was measured, and what the supervisor did to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaLine {
    /// What was measured.
    pub measured: ReplicaStatus,
    /// What the supervisor did to it last.
    pub life: Life,
    /// Its process, or its last one.
    pub pid: u32,
    /// Its port, or its last one.
    pub port: u16,
    /// Effects on its disk, if it could be asked.
    pub effects: Option<u64>,
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
    pub summary: Summary,
    /// Whether the provider answers.
    pub provider_answers: bool,
    /// Every process of the run that is there, the supervisor aside.
    pub processes: Vec<ProcessIdentity>,
    /// Faults that are armed.
    pub faults: Vec<ArmedRule>,
    /// That it is a count and nothing more.
    pub remember: String,
}

impl Lab {
    /// Measures everything now, all replicas at the same time. It takes two seconds at most.
    pub async fn measure(&self) -> ClusterStatus {
        let began = clock::now();
        self.replace_a_dead_watcher();
        let members = self.inner.options.members;
        let replicas = join_all(members.iter().map(|id| self.measure_one(id))).await;
        let replicas: Vec<ReplicaLine> = replicas.into_iter().flatten().collect();
        let measured: Vec<ReplicaStatus> = replicas.iter().map(|line| line.measured.clone()).collect();
        let summary = summarize(members, clock::now(), FRESH_MS, &measured);
        let provider = lock(&self.inner.state).provider.as_ref().map(|(.., client)| client.clone());
        let provider_answers = match provider {
            Some(provider) => provider.alive(ANSWER_WITHIN).await.is_ok(),
            None => false,
        };
        self.inner.recorder.note(HistoryEvent::Sampled { counts: summary.counts.clone() });
        ClusterStatus {
            run: self.inner.run.clone(),
            knobs: self.inner.options.knobs,
            measured: (began, clock::now()),
            replicas,
            summary,
            provider_answers,
            processes: self.processes().into_iter().filter(|process| process.is_running()).collect(),
            faults: self.armed(),
            remember: A_COUNT_AND_NOTHING_MORE.to_owned(),
        }
    }

    async fn measure_one(&self, id: ReplicaId) -> Option<ReplicaLine> {
        let (client, port, life, disk, child) = {
            let state = lock(&self.inner.state);
            let member = state.members.get(&id)?;
            (member.client.clone(), member.port, member.life, member.disk.clone(), member.child.clone())
        };
        let mut lamps = BTreeMap::new();
        let exists = measured(&mut lamps, Lamp::Exists, async {
            (!child.has_ended() && child.identity().is_running()).then_some(())
        })
        .await;
        // What the lamp before it rules out is dark too. The port of a dead process may be another's by now.
        let accepts = measured(&mut lamps, Lamp::Accepts, async {
            exists?;
            accepts(port).await
        })
        .await;
        let known = measured(&mut lamps, Lamp::Answers, async {
            accepts?;
            client.ping(Endpoint::Supervisor, id, ANSWER_WITHIN).await.ok()
        })
        .await;
        measured(&mut lamps, Lamp::Writes, async {
            known?;
            client.probe(WRITE_WITHIN).await.ok()
        })
        .await;
        let told = if known.is_some() { client.status(ANSWER_WITHIN).await.ok() } else { None };
        if let Some(version) = known {
            self.catch_up(id, client, version).await;
        }
        let seen = |sees: &BTreeMap<ReplicaId, (bool, Millis)>| {
            sees.iter().filter(|(_, (answers, _))| *answers).map(|(who, _)| *who).collect()
        };
        Some(ReplicaLine {
            measured: ReplicaStatus {
                replica: id,
                lamps,
                paused: life == Life::Paused,
                disk: Some(told.as_ref().map_or(disk, |told| told.disk.clone())),
                records: told.as_ref().map(|told| told.records),
                sees: told.as_ref().map(|told| seen(&told.sees)),
            },
            life,
            pid: child.identity().pid,
            port,
            effects: told.map(|told| told.effects),
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
            }
            Err(error) => eprintln!("counterfoil-lab: the watcher is gone and could not be replaced: {error}"),
        }
    }
}

/// Lights a lamp, or not, and says who asked, when, and how long it took.
async fn measured<T>(
    lamps: &mut BTreeMap<Lamp, Measured>,
    lamp: Lamp,
    asking: impl Future<Output = Option<T>>,
) -> Option<T> {
    let began = clock::now();
    let answer = asking.await;
    let at = clock::now();
    lamps.insert(lamp, Measured { lit: answer.is_some(), by: Endpoint::Supervisor, at, took_ms: at.since(began) });
    answer
}

async fn accepts(port: u16) -> Option<()> {
    let connecting = TcpStream::connect(("127.0.0.1", port));
    matches!(tokio::time::timeout(ACCEPT_WITHIN, connecting).await, Ok(Ok(_))).then_some(())
}
