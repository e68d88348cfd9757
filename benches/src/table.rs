//! The summary for a person, and lines for scripts.

use std::fmt::Write as _;

use crate::peer::PeerKind;
use crate::summary::{Cell, Checkpoints, Expectation, Stall, Summary};
use crate::workload::Keys;

/// Everything that goes to standard output.
pub(crate) fn render(summary: &Summary) -> String {
    let mut out = String::new();
    write_all(&mut out, summary).expect("a string can always be written to");
    out
}

fn write_all(out: &mut String, summary: &Summary) -> std::fmt::Result {
    writeln!(
        out,
        "\nDurable operations of four rows (receipt, reply, expiry, order), {} bytes of log each, on {}.\n\
         {} rounds of at most {} s a turn, seed {}. Latencies over all rounds, operations/s the median of the rounds.",
        summary.frame_bytes,
        summary.file_system.as_deref().unwrap_or("an unknown file system"),
        summary.rounds,
        summary.seconds_per_cell_max,
        summary.seed,
    )?;
    for cells in summary.cells.chunk_by(|a, b| (a.clients, a.keys) == (b.clients, b.keys)) {
        write_cells(out, cells)?;
    }
    if summary.cells.iter().any(|cell| cell.peer == PeerKind::Counterfoil) {
        write_checkpoints(out, summary)?;
    }
    write_expectations(out, &summary.expectations)?;
    write_ratios(out, &summary.cells)
}

fn write_cells(out: &mut String, cells: &[Cell]) -> std::fmt::Result {
    let Some(first) = cells.first() else { return Ok(()) };
    let clients = if first.clients == 1 { "1 client".to_owned() } else { format!("{} clients", first.clients) };
    writeln!(out, "\n{clients}, {} keys", keys_in_words(first.keys))?;
    writeln!(
        out,
        "  {:<16}{:>14}{:>11}{:>11}{:>11}   counterfoil is (rounds)",
        "", "operations/s", "p50", "p99", "worst"
    )?;
    for cell in cells {
        let compared = match (cell.ratio, cell.ratio_range) {
            (Some(ratio), Some((least, most))) => format!("{ratio:>6.2} x  ({least:.2} to {most:.2})"),
            (Some(_) | None, _) => format!("{:>6}", if cell.peer == PeerKind::Counterfoil { "-" } else { "" }),
        };
        writeln!(
            out,
            "  {:<16}{:>14}{:>11}{:>11}{:>11}   {compared}",
            cell.peer.name(),
            thousands(cell.operations_per_second),
            time(cell.p50_us),
            time(cell.p99_us),
            time(cell.worst_us),
        )?;
    }
    Ok(())
}

fn write_checkpoints(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let Checkpoints { count, longest_stall, longest_stall_without, settled_ms_max } = &summary.checkpoints;
    let mib = summary.checkpoint_log_bytes / (1024 * 1024);
    writeln!(out, "\nCheckpoints of counterfoil in this run: {count}, one every {mib} MiB of log (its default is 32)")?;
    let mut line = |what: &str, stall: &Option<Stall>| match stall {
        Some(Stall { ms, clients, keys }) => {
            writeln!(out, "  longest stall {what:<27}{:>9}   {clients} clients, {} keys", time(ms * 1e3), keys.name())
        }
        None => writeln!(out, "  longest stall {what:<27}{:>9}", "none"),
    };
    line("in turns with a checkpoint", longest_stall)?;
    line("in all other turns", longest_stall_without)?;
    writeln!(
        out,
        "  {:<41}{:>9}   not in the figures above",
        "longest folding after a turn",
        time(settled_ms_max * 1e3)
    )
}

fn write_expectations(out: &mut String, expectations: &[Expectation]) -> std::fmt::Result {
    if expectations.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nExpected from the prototypes")?;
    for Expectation { what, keys, at_least, ratio, holds } in expectations {
        let verdict = if *holds { "holds" } else { "DOES NOT HOLD" };
        let keys = keys.name();
        writeln!(out, "  {what:<48}{keys:<9}at least {at_least:.2} x, is {ratio:>5.2} x   {verdict}")?;
    }
    Ok(())
}

fn write_ratios(out: &mut String, cells: &[Cell]) -> std::fmt::Result {
    writeln!(out)?;
    for cell in cells {
        if let Some(ratio) = cell.ratio {
            let (peer, clients, keys) = (cell.peer.name(), cell.clients, cell.keys.name());
            writeln!(out, "ratio peer={peer} clients={clients} keys={keys} {ratio:.2}")?;
        }
    }
    Ok(())
}

const fn keys_in_words(keys: Keys) -> &'static str {
    match keys {
        Keys::Ordered => "time-ordered",
        Keys::Random => "random",
    }
}

/// Three digits that matter, with a unit.
fn time(us: f64) -> String {
    let (value, unit) = if us < 1e3 {
        (us, "us")
    } else if us < 1e6 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit:<2}")
}

fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!([7.0, 999.4, 1000.0, 1_234_567.0].map(thousands), ["7", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [9.514, 81.26, 145.4, 1500.0, 2.5e6].map(time),
            ["9.51 us", "81.3 us", "145 us", "1.50 ms", "2.50 s "]
        );
    }
}
