//! What all three runs came to: one object for `--json`, and the tables that a person reads.

use std::fmt::Write;

use serde::Serialize;

use crate::args::RunArgs;
use crate::plan::{CLIENTS, DROPPED_PERCENT};
use crate::run::RunReport;
use crate::verdict::{Audit, Evidence, KillReport, Verdict, judge};

/// Everything, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) verdict: Verdict,
    /// Why it is not "ok".
    pub(crate) reasons: Vec<String>,
    orders: u64,
    kills: u64,
    seed: u64,
    clients: usize,
    dropped_percent: u64,
    /// Counterfoil first.
    pub(crate) runs: Vec<RunReport>,
}

impl Report {
    pub(crate) fn new(args: &RunArgs, runs: Vec<RunReport>) -> Self {
        let evidence: Vec<Evidence<'_>> =
            runs.iter().map(|run| Evidence { name: run.habit.name(), audit: &run.audit, kills: &run.kills }).collect();
        let (verdict, reasons) = judge(args.kills, &evidence);
        let RunArgs { orders, kills, seed, .. } = *args;
        Self { verdict, reasons, orders, kills, seed, clients: CLIENTS, dropped_percent: DROPPED_PERCENT, runs }
    }
}

/// The report as text.
pub(crate) fn text(report: &Report) -> String {
    let mut out = String::new();
    write_text(&mut out, report).expect("writing into a string does not fail");
    out
}

fn write_text(out: &mut String, report: &Report) -> std::fmt::Result {
    let Report { kills, seed, clients, dropped_percent, .. } = report;
    let orders = grouped(report.orders);
    writeln!(
        out,
        "{orders} orders from {clients} clients, {kills} kills, {dropped_percent}% of replies dropped, seed {seed}\n"
    )?;
    write_runs(out, &report.runs)?;
    if let Some(counterfoil) = report.runs.first() {
        write_kills(out, counterfoil)?;
    }
    write_meaning(out, report)
}

type Figure = fn(&RunReport) -> u64;

fn write_runs(out: &mut String, runs: &[RunReport]) -> std::fmt::Result {
    writeln!(out, "{:<28}{:>14}{:>18}{:>16}", "", "counterfoil", "receipt in a 2nd", "receipt in")?;
    writeln!(out, "{:<28}{:>14}{:>18}{:>16}\n", "", "", "transaction", "memory")?;
    let figures: [(&str, Figure); 7] = [
        ("logical orders", |run| run.logical_orders),
        ("attempts", |run| run.attempts),
        ("executed (rows found)", |run| run.audit.orders_found),
        ("replayed", |run| run.replayed),
        ("rejected (no stock)", |run| run.rejected),
        ("conflicts (key reused)", |run| run.conflicts),
        ("unknown, then settled", |run| run.unknown_then_settled),
    ];
    let faults: [(&str, Figure); 6] = [
        ("duplicates", |run| run.audit.duplicates),
        ("lost", |run| run.audit.lost),
        ("executed, but told no", |run| run.audit.executed_though_refused),
        ("reused keys executed", |run| run.audit.reused_keys_executed),
        ("items with stock off", |run| run.audit.stock_off),
        ("never settled", |run| run.audit.unsettled),
    ];
    for (title, figure) in figures {
        write_row(out, title, runs.iter().map(|run| grouped(figure(run))))?;
    }
    writeln!(out)?;
    for (title, figure) in faults {
        write_row(out, title, runs.iter().map(|run| grouped(figure(run))))?;
    }
    writeln!(out)?;
    write_row(out, "seconds", runs.iter().map(|run| format!("{:.1}", run.seconds)))
}

fn write_row(out: &mut String, title: &str, cells: impl Iterator<Item = String>) -> std::fmt::Result {
    write!(out, "{title:<28}")?;
    for (cell, width) in cells.zip([14, 18, 16]) {
        write!(out, "{cell:>width$}")?;
    }
    writeln!(out)
}

fn write_kills(out: &mut String, run: &RunReport) -> std::fmt::Result {
    writeln!(out, "\nKills of the counterfoil run")?;
    writeln!(out, "  kill   after answers   in flight   executed, unanswered   recovery   store open")?;
    for (number, kill) in (1..).zip(&run.kills) {
        let KillReport { in_flight, executed_unanswered, recovery_ms, store_open_ms, .. } = kill;
        let after = grouped(kill.after_answers);
        writeln!(
            out,
            "  {number:>4}   {after:>13}   {in_flight:>9}   {executed_unanswered:>20}   {recovery_ms:>5.0} ms   {store_open_ms:>7.1} ms"
        )?;
    }
    Ok(())
}

fn write_meaning(out: &mut String, report: &Report) -> std::fmt::Result {
    let [counterfoil, separate, in_memory] = &report.runs[..] else { return Ok(()) };
    let unanswered: usize = counterfoil.kills.iter().map(|kill| kill.executed_unanswered).sum();
    writeln!(out)?;
    match report.verdict {
        Verdict::Ok => {
            writeln!(
                out,
                "{unanswered} orders were made by a process that died before their clients heard of it. Asked again"
            )?;
            writeln!(out, "with the same key, the store answered from the receipt written with the order.\n")?;
            writeln!(out, "counterfoil                   duplicates 0, lost 0")?;
            for (title, run) in [("receipt in a 2nd transaction", separate), ("receipt in memory", in_memory)] {
                let Audit { duplicates, lost, .. } = &run.audit;
                writeln!(out, "{title:<28}  duplicates {duplicates}, lost {lost}")?;
            }
            Ok(())
        }
        Verdict::Failed => {
            let audit = &counterfoil.audit;
            writeln!(out, "FAILED: duplicates {}, lost {} in the counterfoil run.", audit.duplicates, audit.lost)?;
            for remark in &audit.remarks {
                writeln!(out, "  {remark}")?;
            }
            writeln!(
                out,
                "This is a bug in Counterfoil. Please report it with this output and the store, which is kept."
            )
        }
        Verdict::NotExercised => {
            writeln!(out, "NOT EXERCISED: duplicates 0, lost 0, but this run does not prove much:")?;
            for reason in &report.reasons {
                writeln!(out, "  {reason}")?;
            }
            writeln!(out, "Try more orders, more kills or another seed.")
        }
    }
}

/// With a comma between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
