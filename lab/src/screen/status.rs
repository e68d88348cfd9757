//! The status, for a room to read.

use std::collections::BTreeSet;

use crate::rules::{
    ids::{Endpoint, Millis},
    lamps::{A_COUNT_AND_NOTHING_MORE, Lamp, Light, ReplicaStatus, Summary},
    record::Standing,
};
use crate::screen::{
    style::{Ink, Style, wrap},
    table::Table,
};

/// Four lamps for each replica, four counts, and the sentence that this is a count.
pub fn status(summary: &Summary, replicas: &[ReplicaStatus], now: Millis, fresh_ms: u64, style: &Style) -> Vec<String> {
    let heading = ["replica"].into_iter().chain(Lamp::ALL.iter().map(|lamp| lamp.word()));
    let mut table = Table::new(heading.chain(["disk", "records", "measured"]));
    for one in replicas {
        let lights = Lamp::ALL.iter().map(|lamp| light(one.lamp(*lamp, now, fresh_ms), style));
        let name = if one.paused { format!("{} paused", one.replica) } else { one.replica.to_string() };
        let records = one.records.map_or_else(|| "?".to_owned(), |records| records.to_string());
        table.row([name].into_iter().chain(lights).chain([disk(one), records, age(one, now)]));
    }
    let mut lines = table.lines(style);
    lines.push(style.paint(Ink::Faint, &measured_by(replicas)));
    lines.push(String::new());
    lines.extend(counts(summary, style));
    for empty in &summary.replaced {
        let line = format!(
            "{}: the same name with another disk. It holds {} of {} records{}.",
            empty.replica,
            empty.holds,
            empty.of,
            if empty.standing == Standing::CaughtUp { ", and has caught up" } else { "" }
        );
        lines.push(style.paint(Ink::Bad, &line));
    }
    for unseen in &summary.unseen {
        lines.push(style.paint(Ink::Bad, &format!("{} does not see {}.", unseen.from, unseen.to)));
    }
    lines.push(String::new());
    lines.extend(wrap(A_COUNT_AND_NOTHING_MORE, style.width.min(78)));
    lines
}

fn counts(summary: &Summary, style: &Style) -> Vec<String> {
    let (configured, needed) = (summary.configured, summary.majority);
    let mut lines = vec![format!("{configured} configured; a majority is {needed} of them, dead or alive.")];
    lines.extend(summary.counts.iter().map(|counted| {
        let (word, ink) = if counted.majority { ("majority", Ink::Good) } else { ("no majority", Ink::Bad) };
        let said = style.paint(ink, word);
        format!("  {:<8} {} of {configured}: {said}", counted.lamp.word(), counted.count)
    }));
    lines
}

/// A lamp as a word and a shape.
pub fn light(light: Light, style: &Style) -> String {
    match light {
        Light::Lit => style.paint(Ink::Good, style.shape("● yes", "[x] yes")),
        Light::Dark => style.paint(Ink::Bad, style.shape("○ no", "[ ] no")),
        Light::NotMeasured => style.paint(Ink::Faint, style.shape("· ?", "... ?")),
    }
}

fn disk(one: &ReplicaStatus) -> String {
    match &one.disk {
        None => "?".to_owned(),
        Some(disk) => match disk.standing {
            Standing::Founding => disk.incarnation.to_string(),
            Standing::Behind => format!("{} behind", disk.incarnation),
            Standing::CaughtUp => format!("{} caught up", disk.incarnation),
        },
    }
}

/// How long ago. The oldest of the four, since a status is as old as its oldest part.
fn age(one: &ReplicaStatus, now: Millis) -> String {
    let oldest = one.lamps.values().map(|measured| measured.at).min();
    oldest.map_or_else(|| "never".to_owned(), |oldest| format!("{} ms ago", now.since(oldest)))
}

/// By whom. It matters: a replica's own word about itself is another measurement than the supervisor's.
fn measured_by(replicas: &[ReplicaStatus]) -> String {
    let who = replicas.iter().flat_map(|one| one.lamps.values()).map(|measured| measured.by);
    let who: BTreeSet<Endpoint> = who.collect();
    match who.is_empty() {
        true => "Nobody has measured anything.".to_owned(),
        false => format!("Measured by: {}.", who.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(", ")),
    }
}
