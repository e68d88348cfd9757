//! A load while the weather is bad: replicas are killed, paused, restarted and resumed the whole time.
//!
//! The seed decides who is hit and how. When, is the machine's affair; so what counts is judged afterwards, from the
//! stores, and a storm whose gusts hit nothing is *not exercised*.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{self, LoadPlan, LoadReport};
use super::send::{Client, Intent, Policy, Sink};
use crate::history::{HistoryEvent, Line, Plan};
use crate::rules::ids::{Endpoint, ReplicaId};
use crate::rules::outcome::OutcomeKind;
use crate::rules::verdict::Expected;
use crate::supervisor::error::LabError;
use crate::supervisor::lab::{Lab, LabOptions};

/// A storm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormPlan {
    /// How many clients.
    pub clients: u32,
    /// How many operations in all.
    pub operations: u32,
    /// Over how long they are spread, in milliseconds.
    pub load_ms: u64,
    /// How long from one gust to the next, in milliseconds. One stops a replica, the next one lets it go on.
    pub gust_ms: u64,
    /// Who is hit, and how.
    pub seed: u64,
}

/// What came of it, before anybody judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormReport {
    /// As the clients saw it, during the storm.
    pub load: LoadReport,
    /// How often a replica was stopped.
    pub gusts: u32,
    /// How often it was the owner.
    pub on_owner: u32,
    /// Operations of which the client did not know, and asked again with the same key after the storm.
    pub settled: u64,
    /// Operations of which it does not know even so.
    pub left_unknown: u64,
}

/// Counts attempts that are under way, on their way into the history.
#[derive(Debug, Clone)]
struct Counting {
    lab: Lab,
    open: Arc<AtomicU64>,
}

impl Sink for Counting {
    fn tell(&self, line: Line) {
        if matches!(line.event, HistoryEvent::AttemptStarted { .. }) {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(line.event, HistoryEvent::AttemptEnded { .. }) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        self.lab.tell(line);
    }
}

/// The name of a gust in the history.
const GUST: &str = "gust on the owner";

/// Attempts of one operation. Owners are away for as long as a gust, so a few must fail in each.
const ATTEMPTS: u32 = 12;

impl StormPlan {
    /// Options with a plan that the judge can hold the run to: so many gusts must hit the owner while requests are open,
    /// and clients must be at work for most of the time.
    #[must_use]
    pub fn prepare(&self, options: LabOptions, expected: Expected, gusts_min: u32) -> LabOptions {
        let plan = Plan {
            name: "storm".to_owned(),
            expected,
            faults: Vec::new(),
            faults_min: gusts_min,
            load_ms_min: self.load_ms / 10 * 9,
        };
        // Messages of a load are for no diagram.
        LabOptions { plan, seed: self.seed, traces: false, ..options }
    }

    /// Runs it on a lab, to its end: afterwards everybody is up again and what was unknown has been asked again.
    ///
    /// # Errors
    ///
    /// [`LabError`] if a replica cannot be stopped or started: then the run is not worth judging.
    pub async fn run(&self, lab: &Lab) -> Result<StormReport, LabError> {
        let mut policy = Policy::new(lab.members(), lab.describe().knobs.identity);
        policy.attempts = ATTEMPTS;
        // Shorter than a gust: who waits for a paused replica gives up and asks another one.
        policy.attempt_ms = (self.gust_ms / 2).clamp(300, 1_500);
        let sink = Counting { lab: lab.clone(), open: Arc::default() };
        let open = Arc::clone(&sink.open);
        let client = Client { cluster: lab.clone(), policy, sink };
        let pace_ms = self.load_ms.saturating_mul(u64::from(self.clients)) / u64::from(self.operations.max(1));
        let plan = LoadPlan {
            name: "storm".to_owned(),
            clients: self.clients,
            operations: self.operations,
            seed: self.seed,
            pace_ms,
        };
        let loading = tokio::spawn({
            let client = client.clone();
            async move {
                let mut unknown: Vec<Intent> = Vec::new();
                let load = load::run(&client, plan, |sent| {
                    if sent.outcome.kind() == OutcomeKind::Unknown {
                        unknown.push(sent.intent.clone());
                    }
                })
                .await;
                (load, unknown)
            }
        });
        let (gusts, on_owner) = self.blow(lab, &open, || loading.is_finished()).await?;
        let (load, unknown) = loading.await.map_err(std::io::Error::other)?;
        let settled = u64::try_from(unknown.len()).unwrap_or(u64::MAX);
        let mut left_unknown = 0;
        for intent in unknown {
            let again = client.send(intent, |_| {}).await;
            left_unknown += u64::from(again.outcome.kind() == OutcomeKind::Unknown);
        }
        Ok(StormReport { load, gusts, on_owner, settled, left_unknown })
    }

    /// One gust stops a replica, the next one lets it go on, until the load is over; then all are up.
    async fn blow(&self, lab: &Lab, open: &AtomicU64, over: impl Fn() -> bool) -> Result<(u32, u32), LabError> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let owner = lab.describe().knobs.owner;
        let members: Vec<ReplicaId> = lab.members().iter().collect();
        let mut every = tokio::time::interval(Duration::from_millis(self.gust_ms));
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        every.tick().await;
        let (mut gusts, mut on_owner) = (0, 0);
        let mut stopped: Option<(ReplicaId, bool)> = None;
        while !over() {
            every.tick().await;
            match stopped.take() {
                Some(hit) => go_on(lab, hit).await?,
                None => {
                    // Half of all gusts are aimed at the owner.
                    let aimed = random.bool();
                    let whom = if aimed { owner } else { members[random.usize(..members.len())] };
                    let kill = random.bool();
                    // A gust that hits nothing shows nothing.
                    while open.load(Ordering::Relaxed) == 0 && !over() {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    gusts += 1;
                    if whom == owner {
                        on_owner += 1;
                        // Before the signal: behind it, who waited has heard that the connection broke.
                        lab.fell(GUST, Endpoint::Replica(whom));
                    }
                    if kill {
                        lab.kill(whom).await?;
                    } else {
                        lab.pause(whom).await?;
                    }
                    stopped = Some((whom, kill));
                }
            }
        }
        if let Some(hit) = stopped {
            go_on(lab, hit).await?;
        }
        Ok((gusts, on_owner))
    }
}

async fn go_on(lab: &Lab, (whom, killed): (ReplicaId, bool)) -> Result<(), LabError> {
    if killed { lab.restart(whom).await } else { lab.resume(whom).await }
}
