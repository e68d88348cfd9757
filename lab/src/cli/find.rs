//! Finding a lab that runs in another terminal.

use std::process::ExitCode;
use std::time::Duration;

use super::{Failed, Global, Outcome, say, say_json};
use crate::process::join::join_all;
use crate::process::run_dir::Runs;
use crate::wire::supervisor::{Description, SupervisorClient};

const ASK_WITHIN: Duration = Duration::from_secs(2);

/// A lab that was found and has said that it is the one.
pub(super) struct Found {
    pub(super) supervisor: SupervisorClient,
    pub(super) description: Description,
}

/// The one lab that is meant.
pub(super) async fn find(global: &Global) -> Result<Found, Failed> {
    let runs = runs(global)?;
    let wanted = |found: &Found| global.run.as_ref().is_none_or(|run| *run == found.description.run);
    let mut found: Vec<Found> = all(&runs).await?.into_iter().filter(wanted).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(one), false) => {
            let names = found.iter().chain([&one]).map(|one| one.description.run.as_str()).collect::<Vec<_>>();
            Err(Failed::new(format!("several labs are running: {}; say which with --run ID", names.join(", "))))
        }
        (None, _) => Err(Failed::new(match &global.run {
            Some(run) => {
                format!("no lab {run} is running below {}: `counterfoil-lab ps` lists them", runs.path().display())
            }
            None => format!("no lab is running below {}: start one with `counterfoil-lab up`", runs.path().display()),
        })),
    }
}

fn runs(global: &Global) -> Result<Runs, Failed> {
    match &global.data {
        Some(data) if !data.is_dir() => Err(Failed::new(format!("{}: there is no such directory", data.display()))),
        data => Ok(Runs::new(data.clone())),
    }
}

/// All labs that answer, and say that they are the run that the file names.
async fn all(runs: &Runs) -> Result<Vec<Found>, Failed> {
    let asked = runs.alive()?.into_iter().map(|described| async move {
        let supervisor = SupervisorClient::new(described.port, &described.run);
        let description = supervisor.describe(ASK_WITHIN).await.ok()?;
        let same = description.run == described.run && description.pid == described.supervisor.pid;
        same.then_some(Found { supervisor, description })
    });
    Ok(join_all(asked).await.into_iter().flatten().collect())
}

/// Lists the labs.
pub(super) async fn ps(global: Global) -> Outcome {
    let runs = runs(&global)?;
    let found = all(&runs).await?;
    let descriptions: Vec<&Description> = found.iter().map(|one| &one.description).collect();
    if global.json {
        say_json(&descriptions)?;
        return Ok(ExitCode::SUCCESS);
    }
    if descriptions.is_empty() {
        say(format!("no lab is running below {}", runs.path().display()));
    }
    for Description { run, pid, directory, configured, knobs, .. } in descriptions {
        say(format!("{run}  {configured} replicas, placement {}  supervisor pid {pid}  {directory}", knobs.placement));
    }
    Ok(ExitCode::SUCCESS)
}
