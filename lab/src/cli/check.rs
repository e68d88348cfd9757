//! `check`: executions for each intent, counted from the durable stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{Failed, Global, Outcome, find, say, say_json};
use crate::rules::ids::IntentId;
use crate::rules::outcome::{Outcome as Told, OutcomeKind};
use crate::rules::verdict::{Expected, IntentFacts, Totals, Verdict, judge, totals};
use crate::supervisor::durable::{Durable, collect_from};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  counterfoil-lab check\n  counterfoil-lab check --expect duplicates\n  \
                        counterfoil-lab check history.jsonl --data DIRECTORY-OF-THE-RUN\n\n\
                        Exit codes: 0 as expected, 1 a violation, 2 not judged.")]
pub(super) struct CheckArguments {
    /// A history; then --data names the directory of its run, in which nothing runs any more
    history: Option<PathBuf>,
    /// What is expected: honest (nobody executed twice, nobody told otherwise than it is), duplicates, or a number of
    /// executions for each intent
    #[arg(long, default_value = "honest", value_parser = parse_expected)]
    expect: Expected,
}

#[derive(Debug, Serialize)]
struct CheckReport {
    #[serde(flatten)]
    verdict: Verdict,
    totals: Totals,
}

fn parse_expected(text: &str) -> Result<Expected, String> {
    match text {
        "honest" => Ok(Expected::Honest),
        "duplicates" => Ok(Expected::Duplicates),
        number => number.parse().map(Expected::Exactly).map_err(|_| "say honest, duplicates or a number".to_owned()),
    }
}

pub(super) async fn run(global: Global, arguments: CheckArguments) -> Outcome {
    let not_judged = |failed: Failed| Failed { line: format!("INVALID: {}", failed.line), code: 2 };
    let facts = match &arguments.history {
        Some(history) => offline(&global, history).map_err(not_judged)?,
        None => live(&global).await.map_err(not_judged)?,
    };
    let verdict = judge(arguments.expect, &facts, Vec::new(), Vec::new());
    let totals = totals(facts.values());
    let code = ExitCode::from(verdict.exit_code());
    if global.json {
        say_json(&CheckReport { verdict, totals })?;
        return Ok(code);
    }
    let Totals { intents, executions, duplicates, lost, denied, unknown } = totals;
    say(format!(
        "{intents} intents, {executions} executions, counted from the durable stores and the provider's ledger"
    ));
    say(format!("  {duplicates} executed more than once"));
    say(format!("  {lost} lost: told done, never executed"));
    say(format!("  {denied} denied: told not executed, and were"));
    say(format!("  {unknown} of which the client does not know"));
    say(verdict.to_string());
    Ok(code)
}

fn offline(global: &Global, history: &Path) -> Result<BTreeMap<IntentId, IntentFacts>, Failed> {
    let data = global.data.as_ref().ok_or_else(|| Failed::new("say with --data where the disks of that run are"))?;
    if !data.is_dir() {
        return Err(Failed::new(format!("{}: there is no such directory", data.display())));
    }
    gather(&collect_from(data)?, &read(history)?)
}

async fn live(global: &Global) -> Result<BTreeMap<IntentId, IntentFacts>, Failed> {
    let found = find::find(global).await?;
    let durable: Durable = found.supervisor.collect(Duration::from_secs(60)).await?;
    gather(&durable, &read(&Path::new(&found.description.directory).join("history.jsonl"))?)
}

fn read(history: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(history).map_err(|error| Failed::new(format!("{}: {error}", history.display())))
}

/// What the history needs to say about an intent: that it began, and how it ended.
#[derive(Debug, Deserialize)]
struct Line {
    what: String,
    intent: Option<IntentId>,
    outcome: Option<Told>,
}

/// Executions from the disks alone; what the client was told from the history.
fn gather(durable: &Durable, history: &str) -> Result<BTreeMap<IntentId, IntentFacts>, Failed> {
    let mut facts: BTreeMap<IntentId, IntentFacts> = BTreeMap::new();
    for (number, line) in history.lines().enumerate() {
        let line: Line = serde_json::from_str(line)
            .map_err(|error| Failed::new(format!("the history is malformed in line {}: {error}", number + 1)))?;
        let Some(intent) = line.intent else { continue };
        let facts = facts.entry(intent).or_default();
        if line.what == "intent-ended" {
            // A wish that was sent again: what was known before counts, as for attempts.
            let now = line.outcome.map(|outcome| outcome.kind());
            facts.told = match (facts.told, now) {
                (Some(OutcomeKind::Unknown), Some(OutcomeKind::Refused)) => Some(OutcomeKind::Unknown),
                (_, now) => now,
            };
        }
    }
    let rows = durable.disks.iter().flat_map(|disk| &disk.contents.effects);
    for row in rows.chain(durable.charges.iter().map(|charge| &charge.row)) {
        facts.entry(row.intent.open_as_judge()).or_default().executions += 1;
    }
    Ok(facts)
}
