//! `status`: four lamps for each replica, who sees whom, and what it adds up to.

use std::process::ExitCode;
use std::time::Duration;

use super::{Global, Outcome, find, say, say_json, style};
use crate::rules::lamps::ReplicaStatus;
use crate::screen::status::status as lines;
use crate::supervisor::faults::describe;
use crate::supervisor::lamps::{ClusterStatus, FRESH_MS};

const WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn run(global: Global) -> Outcome {
    let found = find::find(&global).await?;
    let status: ClusterStatus = found.supervisor.status(WITHIN).await?;
    if global.json {
        say_json(&status)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format!("run {}, placement {}\n", status.run, status.knobs.placement));
    show(&status);
    Ok(ExitCode::SUCCESS)
}

/// For a room to read.
pub(super) fn show(status: &ClusterStatus) {
    // What stands out of the ordinary comes before the counts.
    for line in status.replicas.iter().filter(|line| !line.life.is_alive()) {
        say(format!("{} is dead: {}", line.measured.replica, line.life.word()));
    }
    if !status.provider_answers {
        say("the provider does not answer");
    }
    for fault in &status.faults {
        say(format!("fault {}: {}; it has hit {} times", fault.id.0, describe(&fault.rule), fault.hits));
    }
    let measured: Vec<ReplicaStatus> = status.replicas.iter().map(|line| line.measured.clone()).collect();
    for line in lines(&status.summary, &measured, status.measured.1, FRESH_MS, &style()) {
        say(line);
    }
}
