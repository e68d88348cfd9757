//! A judged run, in two columns: what the counter said, and what happened.

use crate::judge::Report;
use crate::rules::ids::Millis;
use crate::screen::{
    report::{two_columns, verdict},
    strips::strips,
    style::Style,
    table::Table,
};

/// A judged run.
pub fn report(report: &Report, style: &Style) -> Vec<String> {
    let mut lines = two_columns("what the counter said", &said(report), "what happened", &happened(report), style);
    lines.push(String::new());
    lines.extend(strips(&report.strips, style));
    if !report.holdings.is_empty() {
        lines.push(String::new());
        lines.extend(holdings(report, style));
    }
    lines.push(String::new());
    lines.extend(verdict(&report.verdict, style));
    lines
}

fn said(report: &Report) -> Vec<String> {
    let samples = &report.strips.counter;
    let word = |majority: bool| if majority { "majority" } else { "no majority" };
    let line = |(at, count, majority): &(Millis, u8, bool)| {
        let since = at.since(report.strips.from);
        format!("from {since} ms: {count} complete a durable write, {}", word(*majority))
    };
    let mut lines: Vec<String> = samples.iter().map(line).collect();
    lines.push(match samples.as_slice() {
        [] => "nobody counted".to_owned(),
        all if all.iter().all(|(.., majority)| *majority) => "a majority at every sample".to_owned(),
        all => format!("no majority in {} of {} counts", all.iter().filter(|(.., yes)| !yes).count(), all.len()),
    });
    lines
}

fn happened(report: &Report) -> Vec<String> {
    let totals = &report.totals;
    let mut lines = vec![format!(
        "{} wanted, executed {} in all",
        plural(totals.intents, "operation"),
        plural(totals.executions, "time")
    )];
    let mut add = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{count} {what}"));
        }
    };
    add(totals.duplicates, "executed more than once");
    add(totals.lost, "answered \"done\", never executed");
    add(totals.denied, "answered \"not done\", executed");
    add(totals.unknown, "where the client does not know");
    lines
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn holdings(report: &Report, style: &Style) -> Vec<String> {
    let mut table = Table::new(["where", "disk", "effects", "records"]);
    for holding in &report.holdings {
        let note = if holding.wiped { " (wiped: only the judge sees it)" } else { "" };
        table.row([
            holding.replica.to_string(),
            format!("{}{note}", holding.incarnation),
            holding.effects.to_string(),
            holding.records.to_string(),
        ]);
    }
    table.row(["provider".to_owned(), "its ledger".to_owned(), report.charges.to_string(), String::new()]);
    table.lines(style)
}
