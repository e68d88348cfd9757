//! `status`: four lamps for each replica, who sees whom, and what it adds up to.

use std::process::ExitCode;
use std::time::Duration;

use super::{Global, Outcome, find, say, say_json};
use crate::rules::lamps::{Lamp, Light, ReplicaStatus, Summary};
use crate::supervisor::lamps::{ClusterStatus, ReplicaLine};

const WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn run(global: Global) -> Outcome {
    let found = find::find(&global).await?;
    let status: ClusterStatus = found.supervisor.status(WITHIN).await?;
    if global.json {
        say_json(&status)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format!("run {}, placement {}; measured by the supervisor, now", status.run, status.knobs.placement));
    say("");
    say("     exists  accepts  answers  writes   records  effects  sees");
    for line in &status.replicas {
        say(row(line));
    }
    say("");
    for line in counts(&status.summary) {
        say(line);
    }
    for empty in &status.summary.replaced {
        say(format!(
            "{} runs on another disk than it began with: it holds {} of {} records",
            empty.replica, empty.holds, empty.of
        ));
    }
    for unseen in &status.summary.unseen {
        say(format!("{} does not see {}", unseen.from, unseen.to));
    }
    if !status.provider_answers {
        say("the provider does not answer");
    }
    for fault in &status.faults {
        let rule = serde_json::to_string(&fault.rule)?;
        say(format!("fault {} has hit {} times: {rule}", fault.id.0, fault.hits));
    }
    say(format!("\n{}", status.remember));
    Ok(ExitCode::SUCCESS)
}

fn row(line: &ReplicaLine) -> String {
    let ReplicaStatus { replica, records, sees, .. } = &line.measured;
    let lamp = |lamp: Lamp| match line.measured.lamps.get(&lamp) {
        Some(measured) if measured.lit => Light::Lit,
        Some(_) => Light::Dark,
        None => Light::NotMeasured,
    };
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let sees = sees
        .as_ref()
        .map_or_else(|| "?".to_owned(), |sees| sees.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let life = if line.life == crate::supervisor::member::Life::Running { "" } else { line.life.word() };
    format!(
        "  {replica}  {:<7} {:<8} {:<8} {:<8} {:<8} {:<8} {sees:<10} {life}",
        lamp(Lamp::Exists),
        lamp(Lamp::Accepts),
        lamp(Lamp::Answers),
        lamp(Lamp::Writes),
        number(*records),
        number(line.effects),
    )
    .trim_end()
    .to_owned()
}

/// The four counts, for a room to read.
pub(super) fn counts(summary: &Summary) -> Vec<String> {
    let mut lines = vec![format!("{} configured; {} are a majority of them", summary.configured, summary.majority)];
    for counted in &summary.counts {
        let says = if counted.majority { "a majority" } else { "NO majority" };
        lines.push(format!("  {} {:<8} {says}", counted.count, plural(counted.lamp)));
    }
    lines
}

const fn plural(lamp: Lamp) -> &'static str {
    match lamp {
        Lamp::Exists => "exist",
        Lamp::Accepts => "accept",
        Lamp::Answers => "answer",
        Lamp::Writes => "write",
    }
}
