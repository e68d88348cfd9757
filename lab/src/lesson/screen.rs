//! What a lesson looks like: text for 80 columns, from what was judged and recorded.

use super::order::in_order;
use super::report::{LessonReport, LessonsReport, Prediction, TEACHING_MODEL, yes};
use super::run::Run;
use super::script::{Lesson, Variant};
use crate::history::{HistoryEvent, Line};
use crate::rules::{
    action::Note,
    ids::{Endpoint, Millis},
    lamps::Lamp,
    plan::Step,
    verdict::Verdict,
};
use crate::screen::{
    diagram::diagram,
    report::{two_columns, verdict},
    strips::strips,
    style::{Ink, Style, wrap},
    table::Table,
};

/// The names of all lessons.
#[must_use]
pub fn list(lessons: &[Lesson], style: &Style) -> Vec<String> {
    const INDENT: usize = 28;
    let mut lines = Vec::new();
    for lesson in lessons {
        let mut question = wrap(lesson.question, style.width.saturating_sub(INDENT)).into_iter();
        let head = format!("{:>2}  {}", lesson.number, lesson.name);
        lines.push(format!("{head:<INDENT$}{}", question.next().unwrap_or_default()));
        lines.extend(question.map(|rest| format!("{:INDENT$}{rest}", "")));
    }
    lines.push(String::new());
    lines.push(format!("Real processes, and {TEACHING_MODEL}."));
    lines
}

/// What is asked before anything runs.
#[must_use]
pub fn set_up(lesson: &Lesson, style: &Style) -> Vec<String> {
    let head = format!("Lesson {}: {}", lesson.number, lesson.name);
    let mut lines = vec![style.paint(Ink::Strong, &head), style.paint(Ink::Faint, TEACHING_MODEL), String::new()];
    lines.extend(wrap(lesson.set_up, style.width));
    lines
}

/// The heading of a run.
#[must_use]
pub fn heading(lesson: &Lesson, variant: &Variant, style: &Style) -> Vec<String> {
    let name = variant.name.to_uppercase();
    let bar = style.shape("━", "=");
    let line = format!("{} {name} {}", bar.repeat(3), bar.repeat(style.width.saturating_sub(name.chars().count() + 5)));
    let mut lines = vec![style.paint(Ink::Strong, &line)];
    let placement = variant.knobs.placement;
    lines
        .extend(wrap(&format!("{} replicas, placement {placement}: {}.", lesson.replicas, variant.shows), style.width));
    lines
}

/// A variant that is not the broken one prints how it differs from it.
#[must_use]
pub fn switches(lesson: &Lesson, variant: &Variant, style: &Style) -> Vec<String> {
    let mut lines = Vec::new();
    let differing = lesson.broken.knobs.differences(&variant.knobs);
    let text = match variant.script == lesson.broken.script {
        true => "The same seed and the same script. These switches differ, and nothing else:",
        false => "The same seed. What the client does next is different, and so are these switches:",
    };
    lines.extend(wrap(text, style.width));
    let here = if *variant == lesson.repaired { "repaired" } else { "here" };
    let mut table = Table::new(["switch", "broken", here]);
    for one in &differing {
        table.row([one.knob, one.from.as_str(), one.to.as_str()]);
    }
    lines.extend(table.lines(style));
    lines.push(String::new());
    lines
}

/// The two columns and the strips.
#[must_use]
pub fn columns(lesson: &Lesson, run: &Run, style: &Style) -> Vec<String> {
    let left = said(lesson, run);
    let right = happened(run);
    let mut lines = two_columns("what the counter said", &left, "what happened", &right, style);
    lines.push(String::new());
    let mut shown = run.report.judged.strips.clone();
    (shown.from, shown.to) = played(run);
    lines.extend(strips(&shown, style));
    lines
}

/// From the first to the last line of the script: starting up and ending is no part of a lesson.
fn played(run: &Run) -> (Millis, Millis) {
    let at =
        |wanted: &dyn Fn(&HistoryEvent) -> bool| run.lines.iter().find(|line| wanted(&line.event)).map(|line| line.at);
    let strips = &run.report.judged.strips;
    let from = at(&|event| matches!(event, HistoryEvent::IntentStarted { .. })).unwrap_or(strips.from);
    let to = at(&|event| matches!(event, HistoryEvent::IntentEnded { .. })).unwrap_or(strips.to);
    (from, to)
}

fn said(lesson: &Lesson, run: &Run) -> Vec<String> {
    let configured = lesson.replicas;
    let word = |majority: bool| if majority { "majority" } else { "no majority" };
    let strips = &run.report.judged.strips;
    let (from, _) = played(run);
    let mut lines = Vec::new();
    for (at, count, majority) in &strips.counter {
        let at = at.since(from);
        lines.push(format!("at {at} ms: {count}/{configured} write, {}", word(*majority)));
    }
    if !strips.counter.is_empty() && strips.counter.iter().all(|(.., majority)| *majority) {
        lines.push("a majority at every count".to_owned());
    }
    if lesson.lamps.is_some() {
        let named = Lamp::ALL.iter().zip(&run.report.lamps);
        let numbers: Vec<String> = named.map(|(lamp, count)| format!("{} {count}", lamp.word())).collect();
        lines.push(format!("\"up\": {}", numbers.join(", ")));
    }
    for line in &run.lines {
        if let HistoryEvent::Noted(Note::Counted { step, counted, needed, .. }) = &line.event {
            let (by, yes) = (line.by, word(counted >= needed));
            lines.push(match *step == Step::AskMajority {
                true => format!("{by} asked: {counted}/{configured} know nothing, {yes}"),
                false => format!("{by} wrote: on {counted}/{configured} disks, {yes}"),
            });
        }
    }
    lines
}

fn happened(run: &Run) -> Vec<String> {
    let report = &run.report;
    let plural = if report.seen.executed == 1 { "time" } else { "times" };
    let mut lines = vec![format!("executed: {} {plural}", report.seen.executed)];
    for holding in report.judged.holdings.iter().filter(|holding| holding.effects > 0) {
        let wiped = if holding.wiped { " (wiped: the judge still sees it)" } else { "" };
        let plural = if holding.effects == 1 { "effect" } else { "effects" };
        lines.push(format!("  {} {plural} on the disk of {}{wiped}", holding.effects, holding.replica));
    }
    if report.judged.charges > 0 {
        lines.push(format!("  {} charges at the provider", report.judged.charges));
    }
    for attempt in &report.attempts {
        lines.push(format!("attempt {} at {}: told {}", attempt.attempt, attempt.to, attempt.outcome.kind()));
    }
    lines.push(format!("an earlier record was found: {}", yes(report.seen.found)));
    if report.judged.totals.lost > 0 {
        lines.push("LOST: told done, never executed".to_owned());
    }
    if report.judged.totals.denied > 0 {
        lines.push("DENIED: told not done, executed".to_owned());
    }
    if run.lines.iter().any(|line| matches!(line.event, HistoryEvent::Noted(Note::Stale { .. }))) {
        lines.push("the sleeper was told: stale".to_owned());
    }
    lines
}

/// The space-time diagram of what the script did: without starting up and ending.
#[must_use]
pub fn picture(run: &Run, style: &Style) -> Vec<String> {
    let begins = |line: &Line| matches!(line.event, HistoryEvent::IntentStarted { .. });
    let ends = |line: &Line| matches!(line.event, HistoryEvent::IntentEnded { .. });
    let Some(from) = run.lines.iter().position(begins) else { return Vec::new() };
    let to = run.lines.iter().position(ends).unwrap_or(run.lines.len());
    let at = run.lines[from].at;
    let played = run.lines[from..to].iter().filter(|line| line.by != Endpoint::Provider).cloned();
    let shown = in_order(played);
    let start = run.lines.iter().find(|line| matches!(line.event, HistoryEvent::RunStarted { .. }));
    let start = start.map(|line| Line { at: at.min(shown.first().map_or(Millis(0), |line| line.at)), ..line.clone() });
    let all: Vec<Line> = start.into_iter().chain(shown).collect();
    diagram(&all, style)
}

/// What the run is worth, and whether somebody had foreseen it.
#[must_use]
pub fn judged(run: &Run, predicted: Option<&Prediction>, style: &Style) -> Vec<String> {
    let seen = &run.report.seen;
    let author = &run.report.predicted_by_its_author;
    let mut table = Table::new(["", "executed", "record found", "told"]);
    if let Some(predicted) = predicted {
        let right = if predicted.was_right(seen) { "as it was" } else { "not as it was" };
        table.row([
            "you predicted".to_owned(),
            predicted.executed.to_string(),
            yes(predicted.found).to_owned(),
            right.to_owned(),
        ]);
    }
    table.row([
        "its author".to_owned(),
        author.executed.to_string(),
        yes(author.found).to_owned(),
        author.told_in_words(),
    ]);
    table.row(["seen".to_owned(), seen.executed.to_string(), yes(seen.found).to_owned(), seen.told_in_words()]);
    let mut lines = table.lines(style);
    lines.extend(verdict(&run.report.verdict, style));
    lines.push(style.paint(Ink::Faint, &run.report.farewell.to_string()));
    lines
}

/// The question to the room.
#[must_use]
pub fn question(lesson: &Lesson, style: &Style) -> Vec<String> {
    let question = format!("The question: {}", lesson.question);
    wrap(&question, style.width).iter().map(|line| style.paint(Ink::Strong, line)).collect()
}

/// What to listen for, when the room has answered.
#[must_use]
pub fn answer(lesson: &Lesson, style: &Style) -> Vec<String> {
    wrap(&format!("An answer: {}", lesson.answer), style.width)
}

/// All lessons in a table, for a check.
#[must_use]
pub fn table(lessons: &[Lesson], report: &LessonsReport, style: &Style) -> Vec<String> {
    let mut table = Table::new(["#", "lesson", "predicted", "broken", "repaired", "verdict"]);
    for one in &report.lessons {
        let Some(lesson) = lessons.iter().find(|lesson| lesson.number == one.number) else { continue };
        for row in rows(lesson, one, style) {
            table.row(row);
        }
    }
    let mut lines = table.lines(style);
    lines.push(String::new());
    let explained = "predicted: executions in the broken and in the repaired variant, by the lesson's author. All other \
                     numbers were counted in the stores.";
    lines.extend(wrap(explained, style.width));
    for one in &report.lessons {
        let worst = one.verdict();
        let why = worst.why().iter().flat_map(|why| wrap(why, style.width.saturating_sub(4)));
        let mut why = why.peekable();
        if why.peek().is_some() {
            lines.push(style.paint(Ink::Bad, &format!("{}: {}", one.name, worst.word())));
            lines.extend(why.map(|line| format!("    {line}")));
        }
    }
    lines.push(format!("This is {TEACHING_MODEL}."));
    lines
}

/// The last line of a check.
#[must_use]
pub fn last_line(report: &LessonsReport) -> String {
    format!("lessons: {} as expected, {} not", report.as_expected, report.not)
}

fn rows(lesson: &Lesson, report: &LessonReport, style: &Style) -> Vec<[String; 6]> {
    let run = |variant: &Variant| report.runs.iter().find(|run| run.variant == variant.name);
    let seen = |variant: &Variant| run(variant).map_or_else(|| "-".to_owned(), |run| run.seen.executed.to_string());
    let verdict_of = |verdicts: &[&Verdict]| {
        let worst = verdicts
            .iter()
            .copied()
            .max_by_key(|verdict| verdict.exit_code() != 0)
            .map_or("not run", |verdict| verdict.word());
        let ink = if worst == Verdict::AsExpected.word() { Ink::Good } else { Ink::Bad };
        style.paint(ink, &worst.to_lowercase())
    };
    let both: Vec<&Verdict> =
        [&lesson.broken, &lesson.repaired].into_iter().filter_map(run).map(|run| &run.verdict).collect();
    let mut rows = vec![[
        lesson.number.to_string(),
        lesson.name.to_owned(),
        format!("{}, {}", lesson.broken.executed, lesson.repaired.executed),
        seen(&lesson.broken),
        seen(&lesson.repaired),
        verdict_of(&both),
    ]];
    for variant in &lesson.more {
        let verdicts: Vec<&Verdict> = run(variant).map(|run| &run.verdict).into_iter().collect();
        rows.push([
            String::new(),
            format!("  {}", variant.name),
            variant.executed.to_string(),
            seen(variant),
            String::new(),
            verdict_of(&verdicts),
        ]);
    }
    rows
}
