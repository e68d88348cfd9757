//! A space-time diagram: one lane for each process, time running down, messages as arrows between lanes.
//!
//! It is drawn from the history, so it shows what was recorded and nothing that somebody remembers. A lane is a bar while
//! its process runs, dots while it is paused, and empty while it is dead.

use std::collections::BTreeMap;

use crate::history::{HistoryEvent, Line, event::Message};
use crate::rules::{
    action::{Note, StepMark},
    fault::Direction,
    ids::{Endpoint, Millis},
    message::MessageKind,
    plan::Step,
};
use crate::screen::style::{Style, fit};

/// More rows are no picture any more.
const ROWS_MAX: usize = 120;

/// The column of times.
const TIME: usize = 8;

/// Draws the lines of a small history.
pub fn diagram(lines: &[Line], style: &Style) -> Vec<String> {
    let lanes = Lanes::of(lines, style.width);
    let start = lines.first().map_or(Millis(0), |line| line.at);
    let mut states: BTreeMap<Endpoint, State> = lanes.places.keys().map(|lane| (*lane, State::Runs)).collect();
    let mut out = vec![lanes.heading()];
    let mut left_out = 0_usize;
    for (index, line) in lines.iter().enumerate() {
        if let Some(state) = State::after(&line.event) {
            states.insert(line.by, state);
        }
        let Some(drawn) = draw(lines, index) else { continue };
        if out.len() > ROWS_MAX {
            left_out += 1;
            continue;
        }
        let mut row = lanes.bars(&states, style);
        if let (HistoryEvent::ProcessEnded { .. }, Some(place)) = (&line.event, lanes.places.get(&line.by)) {
            put(&mut row, *place, style.shape("✗", "x"));
        }
        match drawn {
            Drawn::Arrow { from, to, label, arrives } => lanes.arrow(&mut row, (from, to), &label, arrives, style),
            Drawn::Mark { lane, text } => lanes.mark(&mut row, lane, &text, style),
        }
        let row: String = row.into_iter().collect();
        let time = format!("{:>width$} ", line.at.since(start), width = TIME - 1);
        out.push(format!("{time}{row}").trim_end().to_owned());
    }
    if left_out > 0 {
        out.push(format!("{left_out} more are in the history"));
    }
    out
}

/// How a lane looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    Paused,
    Dead,
}

impl State {
    fn after(event: &HistoryEvent) -> Option<Self> {
        let runs = matches!(event, HistoryEvent::ProcessStarted { .. } | HistoryEvent::Resumed);
        let paused = matches!(event, HistoryEvent::Paused);
        let dead = matches!(event, HistoryEvent::ProcessEnded { .. });
        match () {
            () if runs => Some(Self::Runs),
            () if paused => Some(Self::Paused),
            () if dead => Some(Self::Dead),
            () => None,
        }
    }
}

/// What a line of the history looks like.
enum Drawn {
    Arrow { from: Endpoint, to: Endpoint, label: String, arrives: bool },
    Mark { lane: Endpoint, text: String },
}

fn draw(lines: &[Line], index: usize) -> Option<Drawn> {
    let line = &lines[index];
    let mark = |text: String| Some(Drawn::Mark { lane: line.by, text });
    match &line.event {
        HistoryEvent::Received(message) => arrow(message, true),
        // One that arrives is drawn when it does.
        HistoryEvent::Sent(message) if arrives(lines, index, message) => None,
        HistoryEvent::Sent(message) => arrow(message, false),
        HistoryEvent::ProcessStarted { .. } => mark("starts".to_owned()),
        HistoryEvent::ProcessEnded { how, .. } => mark(format!("gone: {how}")),
        HistoryEvent::Paused => mark("paused".to_owned()),
        HistoryEvent::Resumed => mark("goes on".to_owned()),
        HistoryEvent::Wiped { .. } => mark("disk wiped".to_owned()),
        HistoryEvent::Held(at) => mark(format!("held {}", at.barrier)),
        HistoryEvent::LetGo(at) => mark(format!("let go {}", at.barrier)),
        HistoryEvent::AttemptEnded { attempt, outcome, .. } => mark(format!("attempt {attempt}: {}", outcome.kind())),
        HistoryEvent::Noted(note) => mark(noted(note)?.to_owned()),
        // The rest is about the run and not about a process, or is shown by the arrows.
        HistoryEvent::RunStarted { .. }
        | HistoryEvent::RunEnded
        | HistoryEvent::Judged { .. }
        | HistoryEvent::Predicted { .. }
        | HistoryEvent::RuleArmed { .. }
        | HistoryEvent::RuleHit { .. }
        | HistoryEvent::RuleDisarmed { .. }
        | HistoryEvent::FaultFell { .. }
        | HistoryEvent::IntentStarted { .. }
        | HistoryEvent::IntentEnded { .. }
        | HistoryEvent::AttemptStarted { .. }
        | HistoryEvent::Sampled { .. }
        | HistoryEvent::Starved { .. } => None,
    }
}

fn noted(note: &Note) -> Option<&'static str> {
    match note {
        Note::Step { step, mark: StepMark::Done, .. } => match step {
            Step::Effect => Some("* effect"),
            Step::CallProvider => Some("* effect outside"),
            Step::Execute | Step::ExecuteAtKeeper => Some("* effect+receipt"),
            Step::PutInMap => Some("= record in RAM"),
            Step::RecordOnDisk => Some("= record"),
            Step::RecordToAll => Some("= majority has it"),
            Step::Intend => Some("= intent"),
            Step::LookInMap
            | Step::LookOnDisk
            | Step::AskMajority
            | Step::LookAtReceipts
            | Step::LookAtKeeper
            | Step::LookUp => Some("? nothing found"),
            Step::Forward => None,
        },
        Note::Found { .. } => Some("! record found"),
        Note::Stale { .. } => Some("! told: stale"),
        Note::TookOver(_) => Some("takes over"),
        Note::Copied { caught_up: true, .. } => Some("caught up"),
        Note::Copied { counted, needed, .. } if counted < needed => Some("still behind"),
        Note::Copied { .. } => Some("= copied"),
        Note::Step { .. } | Note::Counted { .. } => None,
    }
}

fn arrives(lines: &[Line], index: usize, message: &Message) -> bool {
    // In the same millisecond, whoever received it may have told of it before whoever sent it.
    let sent = lines[index].at;
    lines
        .iter()
        .any(|line| line.at >= sent && matches!(&line.event, HistoryEvent::Received(received) if received == message))
}

fn arrow(message: &Message, arrives: bool) -> Option<Drawn> {
    if message.kind == MessageKind::Ping {
        return None;
    }
    let attempt = message.attempt.map(|attempt| format!(" {attempt}")).unwrap_or_default();
    let lost = if arrives { "" } else { "lost " };
    let (from, to, what) = match (message.direction, message.kind) {
        (Direction::Request, kind) => (message.from, message.to, kind.word().to_owned()),
        (Direction::Reply, MessageKind::Request) => (message.to, message.from, "answer".to_owned()),
        (Direction::Reply, kind) => (message.to, message.from, format!("re {kind}")),
    };
    Some(Drawn::Arrow { from, to, label: format!("{lost}{what}{attempt}"), arrives })
}

/// Where each lane stands.
struct Lanes {
    places: BTreeMap<Endpoint, usize>,
    width: usize,
}

impl Lanes {
    /// A lane for everybody who does something. The supervisor is behind the scene.
    fn of(lines: &[Line], width: usize) -> Self {
        let mut who: Vec<Endpoint> = Vec::new();
        for line in lines {
            who.push(line.by);
            if let HistoryEvent::RunStarted { members, .. } = &line.event {
                who.extend(members.iter().map(Endpoint::Replica));
            }
            if let HistoryEvent::Sent(message) | HistoryEvent::Received(message) = &line.event {
                who.extend([message.from, message.to]);
            }
        }
        who.retain(|one| *one != Endpoint::Supervisor);
        who.sort_unstable();
        who.dedup();
        let width = width.saturating_sub(TIME);
        let apart = width / who.len().max(1);
        let places = who.into_iter().enumerate().map(|(index, one)| (one, index * apart + 1));
        Self { places: places.collect(), width }
    }

    fn heading(&self) -> String {
        let mut row = vec![' '; self.width];
        for (lane, place) in &self.places {
            put(&mut row, *place, &lane.to_string());
        }
        let row: String = row.into_iter().collect();
        format!("{:>width$} {row}", "ms", width = TIME - 1).trim_end().to_owned()
    }

    fn bars(&self, states: &BTreeMap<Endpoint, State>, style: &Style) -> Vec<char> {
        let mut row = vec![' '; self.width];
        for (lane, place) in &self.places {
            let bar = match states.get(lane) {
                Some(State::Paused) => style.shape("┊", ":"),
                Some(State::Dead) => " ",
                Some(State::Runs) | None => style.shape("│", "|"),
            };
            put(&mut row, *place, bar);
        }
        row
    }

    fn arrow(&self, row: &mut [char], ends: (Endpoint, Endpoint), label: &str, arrives: bool, style: &Style) {
        let (Some(from), Some(to)) = (self.places.get(&ends.0), self.places.get(&ends.1)) else { return };
        let (left, right) = (*from.min(to) + 1, *from.max(to));
        if right <= left {
            return;
        }
        put(row, left, &style.shape("─", "-").repeat(right - left));
        let head = match (arrives, to > from) {
            (false, _) => style.shape("✗", "x"),
            (true, true) => style.shape("▶", ">"),
            (true, false) => style.shape("◀", "<"),
        };
        put(row, if to > from { right - 1 } else { left }, head);
        let label = fit(label, (right - left).saturating_sub(2), style);
        let middle = left + 1 + ((right - left).saturating_sub(2) - label.chars().count()) / 2;
        put(row, middle, &label);
    }

    fn mark(&self, row: &mut [char], lane: Endpoint, text: &str, style: &Style) {
        let Some(place) = self.places.get(&lane) else { return };
        let right = self.width.saturating_sub(place + 1);
        if text.chars().count() < right {
            return put(row, place + 1, &format!(" {text} ").chars().take(right).collect::<String>());
        }
        // No room to the right of the last lane: to its left.
        let text = fit(&format!("{text} "), *place, style);
        put(row, place - text.chars().count(), &text);
    }
}

fn put(row: &mut [char], at: usize, text: &str) {
    for (cell, c) in row.iter_mut().skip(at).zip(text.chars()) {
        *cell = c;
    }
}
