//! `down`: ends a lab from another terminal.

use std::process::ExitCode;
use std::time::Duration;

use super::{Global, Outcome, find, say, say_json};
use crate::supervisor::ending::Farewell;

pub(super) async fn run(global: Global) -> Outcome {
    let found = find::find(&global).await?;
    let farewell: Farewell = found.supervisor.down(Duration::from_secs(20)).await?;
    if global.json {
        say_json(&farewell)?;
    } else {
        say(farewell.to_string());
    }
    Ok(if farewell.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
