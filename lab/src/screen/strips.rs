//! Two strips over the same time: what the majority counter said, and what was executed.
//!
//! They stand one above the other because that is the whole point: the upper one stays the same while the lower one goes
//! to two.

use serde::{Deserialize, Serialize};

use crate::history::{HistoryEvent, Line};
use crate::rules::{ids::Millis, lamps::Lamp};
use crate::screen::style::{Ink, Style};

/// Two lines over the same time: what the majority counter said, and what was executed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Strips {
    /// The first line's time.
    pub from: Millis,
    /// The last line's time.
    pub to: Millis,
    /// When the count changed: how many complete a durable write, and whether that is a majority.
    pub counter: Vec<(Millis, u8, bool)>,
    /// When something was executed: how often by then, all intents together.
    pub executions: Vec<(Millis, u64)>,
}

/// Changes closer together than this are one: a strip has some dozen columns.
const STRIP_STEP_MS: u64 = 20;

/// The first few executions are told apart however close they are: a lesson is about two of them.
const TOLD_APART_MAX: u64 = 8;

impl Strips {
    /// Takes a line of the history in. `executes` says whether something was executed by it.
    pub fn follow(&mut self, line: &Line, executes: bool) {
        // A judgement is about the run and no part of it.
        if matches!(line.event, HistoryEvent::Judged { .. }) {
            return;
        }
        if self.from == Millis(0) {
            self.from = line.at;
        }
        self.to = self.to.max(line.at);
        if let HistoryEvent::Sampled { counts } = &line.event {
            let writes = counts.iter().find(|counted| counted.lamp == Lamp::Writes);
            let now = writes.map(|counted| (counted.count, counted.majority));
            let before = self.counter.last().map(|(_, count, majority)| (*count, *majority));
            self.counter.extend(now.filter(|_| now != before).map(|(count, majority)| (line.at, count, majority)));
        }
        if executes {
            let before = self.executions.last().map_or(0, |last| last.1);
            match self.executions.last_mut() {
                // In a load nobody can tell them apart on a strip.
                Some(last) if before >= TOLD_APART_MAX && line.at.since(last.0) < STRIP_STEP_MS => last.1 += 1,
                _ => self.executions.push((line.at, before + 1)),
            }
        }
    }
}

/// The two strips, with a scale.
pub fn strips(strips: &Strips, style: &Style) -> Vec<String> {
    const LABEL: usize = 12;
    let columns = style.width.saturating_sub(LABEL + 1).clamp(20, 66);
    let span = strips.to.since(strips.from);
    let at = |column: usize| -> Millis {
        let part = u64::try_from(column + 1).unwrap_or(1);
        let whole = u64::try_from(columns).unwrap_or(1);
        strips.from.plus(span.saturating_mul(part) / whole)
    };
    let counter: String = (0..columns)
        .map(|column| match strips.counter.iter().rev().find(|(when, ..)| *when <= at(column)) {
            None => style.shape("·", "."),
            Some((.., true)) => style.shape("█", "M"),
            Some((.., false)) => style.shape("_", "_"),
        })
        .collect();
    let executed: String = (0..columns)
        .map(|column| {
            let so_far = strips.executions.iter().rev().find(|(when, _)| *when <= at(column)).map_or(0, |(_, n)| *n);
            match so_far {
                0 => style.shape("·", ".").to_owned(),
                1..=9 => so_far.to_string(),
                _ => "+".to_owned(),
            }
        })
        .collect();
    let end = format!("{span} ms");
    let scale = format!("0{end:>width$}", width = columns - 1);
    let (majority, none) = (style.shape("█", "M"), "_");
    vec![
        format!("{:<LABEL$} {}", "counter", style.paint(Ink::Good, &counter)),
        format!("{:<LABEL$} {}", "executed", style.paint(Ink::Bad, &executed)),
        format!("{:<LABEL$} {}", "", style.paint(Ink::Faint, &scale)),
        format!("{:<LABEL$} {majority} a majority writes, {none} no majority; digits: executions so far", "")
            .trim_end()
            .to_owned(),
    ]
}
