//! `check`: executions for each intent, counted from the durable stores.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{Failed, Global, Outcome, find, say, say_json, style};
use crate::history::{HistoryEvent, Line};
use crate::judge::{Evidence, Report, check};
use crate::process::clock;
use crate::rules::ids::Endpoint;
use crate::rules::verdict::{Expected, Totals};
use crate::screen::report as screen;
use crate::supervisor::durable::{Durable, collect_from};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  counterfoil-lab check\n  counterfoil-lab check --expect duplicates\n  \
                        counterfoil-lab check history.jsonl --data DIRECTORY-OF-THE-RUN\n\n\
                        Exit codes: 0 as expected, 1 a violation, 2 not judged.")]
pub(super) struct CheckArguments {
    /// A history; then --data names the directory of its run, in which nothing runs any more
    history: Option<PathBuf>,
    /// What is expected: honest (nobody executed twice, nobody told otherwise than it is), duplicates, or a number of
    /// executions for each intent [default: what the run was planned to show]
    #[arg(long, value_parser = parse_expected)]
    expect: Option<Expected>,
}

fn parse_expected(text: &str) -> Result<Expected, String> {
    match text {
        "honest" => Ok(Expected::Honest),
        "duplicates" => Ok(Expected::Duplicates),
        number => number.parse().map(Expected::Exactly).map_err(|_| "say honest, duplicates or a number".to_owned()),
    }
}

pub(super) async fn run(global: Global, arguments: CheckArguments) -> Outcome {
    // Whatever goes wrong here is no verdict, and must not look like one.
    let not_judged = |failed: Failed| Failed { line: format!("INVALID: {}", failed.line), code: 2 };
    let (history, durable) = match &arguments.history {
        Some(history) => offline(&global, history).map_err(not_judged)?,
        None => live(&global).await.map_err(not_judged)?,
    };
    let history = with_expectation(history, arguments.expect).map_err(not_judged)?;
    let report = check(history.as_slice(), &Evidence::from(durable))
        .map_err(|error| not_judged(Failed::new(format!("the history does not read: {error}"))))?;
    let code = ExitCode::from(report.verdict.exit_code());
    if global.json {
        say_json(&report)?;
    } else {
        show(&report);
    }
    Ok(code)
}

fn show(Report { verdict, totals, .. }: &Report) {
    let Totals { intents, executions, duplicates, lost, denied, unknown } = totals;
    say(format!(
        "{intents} intents, {executions} executions, counted from the durable stores and the provider's ledger"
    ));
    say(format!("  {duplicates} executed more than once"));
    say(format!("  {lost} lost: told done, never executed"));
    say(format!("  {denied} denied: told not executed, and were"));
    say(format!("  {unknown} of which the client does not know"));
    for line in screen::verdict(verdict, &style()) {
        say(line);
    }
}

fn offline(global: &Global, history: &Path) -> Result<(Vec<u8>, Durable), Failed> {
    let data = global.data.as_ref().ok_or_else(|| Failed::new("say with --data where the disks of that run are"))?;
    if !data.is_dir() {
        return Err(Failed::new(format!("{}: there is no such directory", data.display())));
    }
    Ok((read(history)?, collect_from(data)?))
}

/// A run that goes on is judged as if it ended now.
async fn live(global: &Global) -> Result<(Vec<u8>, Durable), Failed> {
    let found = find::find(global).await?;
    // The disks first: whatever is on them was asked for in a line that is in the history by then.
    let durable: Durable = found.supervisor.collect(Duration::from_secs(60)).await?;
    let mut history = read(&Path::new(&found.description.directory).join("history.jsonl"))?;
    let end = Line { at: clock::now(), by: Endpoint::Supervisor, event: HistoryEvent::RunEnded };
    history.extend(serde_json::to_vec(&end)?);
    history.push(b'\n');
    Ok((history, durable))
}

fn read(history: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(history).map_err(|error| Failed::new(format!("{}: {error}", history.display())))
}

/// What somebody expects takes the place of what the run was planned to show. A first line that does not read is the
/// judge's to refuse.
fn with_expectation(history: Vec<u8>, expect: Option<Expected>) -> Result<Vec<u8>, Failed> {
    let Some(expect) = expect else { return Ok(history) };
    let first = history.iter().position(|byte| *byte == b'\n').unwrap_or(history.len());
    let Ok(mut line) = serde_json::from_slice::<Line>(&history[..first]) else { return Ok(history) };
    if let HistoryEvent::RunStarted { plan, .. } = &mut line.event {
        plan.expected = expect;
    }
    let mut changed = serde_json::to_vec(&line)?;
    changed.extend_from_slice(&history[first..]);
    Ok(changed)
}
