//! Many clients at once.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::send::{Client, Cluster, Intent, SendReport, Sink};
use crate::rules::ids::{Amount, IntentId};
use crate::rules::outcome::OutcomeKind;

/// A load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// A name that makes its keys its own.
    pub name: String,
    /// How many clients, each with one operation at a time.
    pub clients: u32,
    /// How many operations in all.
    pub operations: u32,
    /// Amounts and targets come from it.
    pub seed: u64,
    /// How long at least from the beginning of one operation of a client to that of its next, in milliseconds.
    pub pace_ms: u64,
}

/// What came of it, as the clients saw it. What really happened, the judge says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The plan.
    pub plan: LoadPlan,
    /// Operations that were begun.
    pub operations: u64,
    /// Attempts that they took.
    pub attempts: u64,
    /// Done, by an execution that the client saw or by an earlier one's receipt.
    pub done: u64,
    /// Definitely not executed.
    pub refused: u64,
    /// Executed or not.
    pub unknown: u64,
    /// The key stood for something else.
    pub mismatch: u64,
    /// How long it took.
    pub took_ms: u64,
}

/// Runs a load. `each` is called with every operation that ended.
pub async fn run<C: Cluster, S: Sink>(
    client: &Client<C, S>,
    plan: LoadPlan,
    mut each: impl FnMut(&SendReport),
) -> LoadReport {
    let began = tokio::time::Instant::now();
    let (sender, mut reports) = tokio::sync::mpsc::channel(1024);
    for number in 0..plan.clients.min(plan.operations) {
        let (client, plan, sender) = (client.clone(), plan.clone(), sender.clone());
        tokio::spawn(async move { run_one(client, plan, number, sender).await });
    }
    drop(sender);
    let mut report =
        LoadReport { plan, operations: 0, attempts: 0, done: 0, refused: 0, unknown: 0, mismatch: 0, took_ms: 0 };
    while let Some(sent) = reports.recv().await {
        report.operations += 1;
        report.attempts += u64::try_from(sent.attempts.len()).unwrap_or(u64::MAX);
        match sent.outcome.kind() {
            OutcomeKind::Done => report.done += 1,
            OutcomeKind::Refused => report.refused += 1,
            OutcomeKind::Unknown => report.unknown += 1,
            OutcomeKind::Mismatch => report.mismatch += 1,
        }
        each(&sent);
    }
    report.took_ms = u64::try_from(began.elapsed().max(Duration::from_millis(1)).as_millis()).unwrap_or(u64::MAX);
    report
}

/// One client: every so-manieth operation is its.
async fn run_one<C: Cluster, S: Sink>(
    mut client: Client<C, S>,
    plan: LoadPlan,
    number: u32,
    sender: tokio::sync::mpsc::Sender<SendReport>,
) {
    let mut random = fastrand::Rng::with_seed(plan.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(number)));
    let step = usize::try_from(plan.clients).unwrap_or(usize::MAX);
    // Clients that all began at once would all be idle at once.
    let offset = plan.pace_ms.saturating_mul(u64::from(number)) / u64::from(plan.clients.max(1));
    let began = tokio::time::Instant::now() + Duration::from_millis(offset);
    let mut pace = tokio::time::interval_at(began, Duration::from_millis(plan.pace_ms.max(1)));
    for operation in (number..plan.operations).step_by(step) {
        if plan.pace_ms > 0 {
            pace.tick().await;
        }
        let name = format!("{}-{operation}", plan.name);
        // A name that is no key cannot be sent; the command line lets none through.
        let Ok(key) = name.parse() else { return };
        random.shuffle(&mut client.policy.targets);
        let intent = Intent::new(IntentId(name), key, Amount(random.u64(1..=500)));
        let sent = client.send(intent, |_| {}).await;
        if sender.send(sent).await.is_err() {
            return;
        }
    }
}
