//! `where KEY`: the question that is to become a habit.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{Global, Outcome, find, say, say_json};
use crate::replica::disk::HeldForKey;
use crate::rules::ids::Key;
use crate::supervisor::durable::{Place, WhereReport};

#[derive(Debug, Args)]
pub(super) struct WhereArguments {
    /// The key, as `send` printed it
    key: Key,
}

pub(super) async fn run(global: Global, arguments: WhereArguments) -> Outcome {
    let found = find::find(&global).await?;
    let report: WhereReport = found.supervisor.where_is(&arguments.key, Duration::from_secs(20)).await?;
    if global.json {
        say_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    say(format!("where is the durable record of {} right now?", report.key));
    for place in &report.places {
        say(line(place));
    }
    say(format!("the effect is on record {} times, in all places that could be looked at", report.effects()));
    Ok(ExitCode::SUCCESS)
}

fn line(Place { name, state, held }: &Place) -> String {
    let says = match held {
        None => "?".to_owned(),
        Some(HeldForKey { effects, records, receipts, intents }) => {
            let counts = [
                (*effects, "effect"),
                (u64::try_from(records.len()).unwrap_or(u64::MAX), "record"),
                (u64::try_from(receipts.len()).unwrap_or(u64::MAX), "receipt"),
                (*intents, "intent to call"),
            ];
            let some = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| match count {
                1 => format!("1 {what}"),
                count => format!("{count} {what}s"),
            });
            let some: Vec<String> = some.collect();
            if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
        }
    };
    format!("  {name:<22} {says:<24} {state}")
}
