//! Two columns, verdicts and differences.

use crate::rules::{knobs::Difference, verdict::Verdict};
use crate::screen::{
    style::{Ink, Style, wrap},
    table::Table,
};

/// Two texts side by side, each in lines of its own half.
pub fn two_columns(left: &str, said: &[String], right: &str, happened: &[String], style: &Style) -> Vec<String> {
    let half = (style.width.saturating_sub(3)) / 2;
    let broken = |lines: &[String]| lines.iter().flat_map(|line| wrap(line, half)).collect::<Vec<_>>();
    let (said, happened) = (broken(said), broken(happened));
    let bar = style.shape("│", "|");
    let line = |left: &str, right: &str| format!("{left:<half$} {bar} {right}").trim_end().to_owned();
    let mut lines = vec![style.paint(Ink::Strong, &line(left, right))];
    for index in 0..said.len().max(happened.len()) {
        let cell = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
        lines.push(line(&cell(&said), &cell(&happened)));
    }
    lines
}

/// The verdict with its reasons.
pub fn verdict(verdict: &Verdict, style: &Style) -> Vec<String> {
    let (shape, ink) = match verdict {
        Verdict::AsExpected => (style.shape("■", "[=]"), Ink::Good),
        Verdict::Violation(_) => (style.shape("▲", "[!]"), Ink::Bad),
        Verdict::NotExercised(_) => (style.shape("□", "[ ]"), Ink::Bad),
        Verdict::Invalid(_) => (style.shape("◇", "[?]"), Ink::Bad),
    };
    let head = style.paint(ink, &format!("{shape} {}", verdict.word()));
    let why = verdict.why().iter().flat_map(|why| wrap(why, style.width.saturating_sub(2)));
    std::iter::once(head).chain(why.map(|line| format!("  {line}"))).collect()
}

/// The switches in which two variants differ.
pub fn differences(differences: &[Difference], style: &Style) -> Vec<String> {
    if differences.is_empty() {
        return vec!["The two variants do not differ.".to_owned()];
    }
    let mut table = Table::new(["switch", "broken", "repaired"]);
    for one in differences {
        table.row([one.knob, one.from.as_str(), one.to.as_str()]);
    }
    table.lines(style)
}
