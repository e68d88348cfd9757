//! What is done to replicas and links from another terminal.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{Command, Failed, Global, Outcome, find, say, say_json};
use crate::rules::barrier::Barrier;
use crate::rules::ids::{Attempt, Endpoint, Key, ReplicaId};
use crate::supervisor::up::{Act, ActReport};
use crate::wire::replica::Hold;

/// A restart may take that long on a loaded machine.
const WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(super) struct Replicas {
    /// Which, by letter: a, b, c ..
    #[arg(required = true, value_name = "REPLICA")]
    replicas: Vec<ReplicaId>,
}

#[derive(Debug, Args)]
pub(super) struct OneReplica {
    /// Which, by letter: a, b, c ..
    replica: ReplicaId,
}

#[derive(Debug, Args)]
pub(super) struct Link {
    /// One end
    one: Endpoint,
    /// The other
    other: Endpoint,
}

#[derive(Debug, Args)]
pub(super) struct SlowLink {
    /// Who asks
    from: Endpoint,
    /// Who is asked
    to: Endpoint,
    /// How much longer each message takes, in milliseconds
    milliseconds: u64,
}

#[derive(Debug, Args)]
pub(super) struct DropReplyArguments {
    /// Of which replica; without one, of whoever answers
    replica: Option<ReplicaId>,
    /// How many replies
    #[arg(long, default_value_t = 1)]
    count: u32,
}

#[derive(Debug, Args)]
pub(super) struct HoldArguments {
    /// At which point
    barrier: Barrier,
    /// Only requests with this key
    #[arg(long)]
    key: Option<Key>,
    /// Only this attempt
    #[arg(long)]
    attempt: Option<u32>,
}

#[derive(Debug, Args)]
pub(super) struct Number {
    /// The number that `hold` printed
    number: u64,
}

/// The named points, for the help text.
pub(super) fn barriers_help() -> String {
    let lines = Barrier::ALL.iter().map(|barrier| format!("  {:<14} {}", barrier.word(), barrier.meaning()));
    format!(
        "The points:\n{}\nExample: counterfoil-lab hold after-effect --attempt 1",
        lines.collect::<Vec<_>>().join("\n")
    )
}

fn acts(command: Command) -> Result<Vec<Act>, Failed> {
    let each = |replicas: Replicas, act: fn(ReplicaId) -> Act| replicas.replicas.into_iter().map(act).collect();
    Ok(match command {
        Command::Kill(replicas) => each(replicas, Act::Kill),
        Command::Pause(replicas) => each(replicas, Act::Pause),
        Command::Resume(replicas) => each(replicas, Act::Resume),
        Command::Restart(replicas) => each(replicas, Act::Restart),
        Command::Wipe(replicas) => each(replicas, Act::Wipe),
        Command::Cut(Link { one, other }) if one == other => {
            return Err(Failed::new(format!("{one} has no link to itself")));
        }
        Command::Cut(Link { one, other }) => vec![Act::Cut(one, other)],
        Command::Heal => vec![Act::Heal],
        Command::Slow(SlowLink { from, to, milliseconds }) => vec![Act::Slow { from, to, milliseconds }],
        Command::DropReply(DropReplyArguments { replica, count }) => vec![Act::DropReply { of: replica, count }],
        Command::TakeOver(one) => vec![Act::TakeOver(one.replica)],
        Command::Hold(HoldArguments { barrier, key, attempt }) => {
            vec![Act::Hold(Hold { barrier, key, attempt: attempt.map(Attempt) })]
        }
        Command::Release(number) => vec![Act::Release(number.number)],
        Command::Up(_)
        | Command::Status
        | Command::Send(_)
        | Command::Where(_)
        | Command::Check(_)
        | Command::Storm(_)
        | Command::Lesson(_)
        | Command::Ps
        | Command::Down
        | Command::Replica { .. }
        | Command::Provider { .. }
        | Command::Watcher => return Err(Failed::new("not an act")),
    })
}

/// Does each in turn. One that fails does not keep the others from being done, and what was done is said of each.
pub(super) async fn run(global: Global, command: Command) -> Outcome {
    let acts = acts(command)?;
    let found = find::find(&global).await?;
    let mut code = ExitCode::SUCCESS;
    for act in acts {
        match found.supervisor.act::<ActReport>(&act, WITHIN).await {
            Ok(report) if global.json => say_json(&report)?,
            Ok(report) => say(report.says),
            Err(error) => {
                eprintln!("counterfoil-lab: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}
