//! `send`: one request with visible attempts, or a load.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::{Failed, Global, Outcome, find, say, say_json};
use crate::client::load::{self, LoadPlan, LoadReport};
use crate::client::remote::RemoteSink;
use crate::client::send::{AttemptReport, Client, Intent, Policy, RemoteLab, SendReport};
use crate::rules::ids::{Amount, IntentId, Key, ReplicaId};
use crate::rules::knobs::Identity;
use crate::rules::majority::Members;
use crate::rules::outcome::{Outcome as Result4, OutcomeKind};

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  counterfoil-lab send --amount 50\n  counterfoil-lab send --key k-1 --to b --to c --attempts 2\n  \
                        counterfoil-lab send --clients 50 --operations 2000 --seed 7"
)]
pub(super) struct SendArguments {
    /// The key; without one, a new one
    #[arg(long)]
    key: Option<Key>,
    /// How much to pay
    #[arg(long, default_value_t = 50)]
    amount: u64,
    /// For the judge: whose wish this is, if it is one that was sent before
    #[arg(long, value_name = "NAME")]
    intent: Option<String>,
    /// Whom to ask, in turn; without one, all from the first [may be repeated]
    #[arg(long, value_name = "REPLICA")]
    to: Vec<ReplicaId>,
    /// How many attempts at most
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: u32,
    /// How long an attempt may take, in milliseconds
    #[arg(long, default_value_t = 1_500)]
    attempt_ms: u64,
    /// How long to wait before the second attempt, in milliseconds; twice as long before each later one
    #[arg(long, default_value_t = 50)]
    pause_ms: u64,
    /// A key for each intent, or one for each attempt: per-intent, per-attempt [default: as the lab was started]
    #[arg(long)]
    identity: Option<Identity>,
    /// A load: how many clients at once
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// A load: how many operations in all
    #[arg(long)]
    operations: Option<u32>,
    /// A load: what is left to chance [default: the lab's]
    #[arg(long)]
    seed: Option<u64>,
}

pub(super) async fn run(global: Global, arguments: SendArguments) -> Outcome {
    let found = find::find(&global).await?;
    let members = Members::new(found.description.configured)?;
    if let Some(stranger) = arguments.to.iter().find(|to| !members.contains(**to)) {
        return Err(Failed::new(format!("there is no replica {stranger}: this lab has {}", members.configured())));
    }
    let identity = arguments.identity.unwrap_or(found.description.knobs.identity);
    let mut policy = Policy::new(members, identity);
    if !arguments.to.is_empty() {
        policy.targets.clone_from(&arguments.to);
    }
    policy.attempts = arguments.attempts;
    policy.attempt_ms = arguments.attempt_ms;
    policy.pause_ms = arguments.pause_ms;
    let (sink, carrier) = RemoteSink::new(found.supervisor.clone());
    let cluster = RemoteLab::new(found.supervisor.clone(), found.description.run.clone());
    let client = Client { cluster, policy, sink };
    let code = match arguments.operations {
        None => one(&global, &arguments, client).await?,
        Some(operations) => {
            let seed = arguments.seed.unwrap_or(found.description.seed);
            let name = format!("load-{:06x}", fastrand::u32(..0x0100_0000));
            many(&global, LoadPlan { name, clients: arguments.clients, operations, seed, pace_ms: 0 }, client).await?
        }
    };
    let arrived = carrier.arrive().await;
    arrived.map_err(|error| Failed::new(format!("the history is short, so this run cannot be judged: {error}")))?;
    Ok(code)
}

type Remote = Client<RemoteLab, RemoteSink>;

async fn one(global: &Global, arguments: &SendArguments, client: Remote) -> Outcome {
    let key = match &arguments.key {
        Some(key) => key.clone(),
        None => format!("k-{:06x}", fastrand::u32(..0x0100_0000)).parse()?,
    };
    let wish = arguments.intent.clone().unwrap_or_else(|| format!("intent-{key}"));
    let intent = Intent::new(IntentId(wish), key.clone(), Amount(arguments.amount));
    if !global.json {
        say(format!("key {key}, amount {}", arguments.amount));
    }
    let report = client
        .send(intent, |attempt| {
            if !global.json {
                say(show(attempt));
            }
        })
        .await;
    if global.json {
        say_json(&report)?;
    } else {
        say(format!("{}: {}", report.outcome.kind(), report.what_next));
    }
    Ok(code(&report))
}

fn code(report: &SendReport) -> ExitCode {
    if report.outcome.kind() == OutcomeKind::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn show(report: &AttemptReport) -> String {
    let AttemptReport { attempt, to, key, took_ms, outcome, error, .. } = report;
    let says = match outcome {
        Result4::Done { receipt, replayed } => {
            let again = if *replayed { ", the receipt of an earlier execution" } else { "" };
            format!("executed by {} in attempt {}{again}", receipt.by, receipt.attempt)
        }
        Result4::Refused(why) => json!(why).to_string(),
        Result4::Unknown(why) => json!(why).to_string(),
        Result4::Mismatch { held } => format!("the key stands for the amount {held}"),
    };
    let error =
        error.as_ref().map_or_else(String::new, |(code, sign, message)| format!(" ({code}, {sign}: {message})"));
    format!("  attempt {attempt} -> {to}  key {key}  {took_ms} ms  {}: {says}{error}", outcome.kind())
}

async fn many(global: &Global, plan: LoadPlan, client: Remote) -> Outcome {
    let report = load::run(&client, plan, |_| {}).await;
    if global.json {
        say_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    let LoadReport { operations, attempts, done, refused, unknown, mismatch, took_ms, .. } = &report;
    say(format!(
        "{operations} operations in {attempts} attempts, {took_ms} ms: {} a second",
        operations * 1000 / took_ms.max(&1)
    ));
    say(format!("  {done} done, {refused} refused, {unknown} unknown, {mismatch} mismatch"));
    say("what really happened: `counterfoil-lab check`");
    Ok(ExitCode::SUCCESS)
}
