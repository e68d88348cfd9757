//! Answers as a person reads them: tables that line up, numbers with their units, no colours.

use serde_json::Value;

use crate::args::Command;

/// A line that is printed as soon as it is there: those of a log, which may never end.
pub(crate) fn at_once(command: &Command, line: &Value) -> Option<String> {
    matches!(command, Command::Log { .. }).then(|| log_line(line))
}

/// Whether what was looked for is there and in order.
pub(crate) fn is_good(command: &Command, summary: &Value) -> bool {
    match command {
        Command::Verify => summary["clean"] == true,
        Command::Get { .. } => !summary.is_null(),
        Command::Explain { .. } => summary["slots"] != 0,
        Command::Init
        | Command::Stat
        | Command::Log { .. }
        | Command::Receipts { .. }
        | Command::Tables
        | Command::Scan { .. }
        | Command::Usage
        | Command::Sweep
        | Command::Compact
        | Command::Purge
        | Command::Erase { .. }
        | Command::Erasures
        | Command::Export { .. }
        | Command::Clock { .. }
        | Command::Bench { .. } => true,
    }
}

/// Whether the summary is all there is to say.
pub(crate) fn is_all(command: &Command) -> bool {
    !matches!(
        command,
        Command::Log { .. }
            | Command::Receipts { .. }
            | Command::Explain { .. }
            | Command::Tables
            | Command::Scan { .. }
            | Command::Usage
            | Command::Erasures
            | Command::Export { .. }
    )
}

/// Everything that was answered.
pub(crate) fn all(command: &Command, lines: &[Value], summary: &Value) -> String {
    match command {
        Command::Receipts { limit, .. } => {
            let rows = lines.iter().map(receipt_row).collect();
            let shown =
                table(&["tenant", "actor", "operation", "key", "outcome", "position", "a retry is", "until"], rows);
            let more = if lines.len() as u64 == *limit { "there may be more: say --limit\n" } else { "" };
            format!("{shown}{} receipts\n{more}", lines.len())
        }
        Command::Tables => {
            let rows =
                lines.iter().map(|line| cells(line, &["table", "rows", "key_type", "codec", "version"])).collect();
            table(&["table", "rows", "key type", "codec", "version"], rows)
        }
        Command::Scan { limit, .. } => {
            let rows = lines.iter().map(|line| cells(line, &["key", "version", "value"])).collect();
            let more = if lines.len() as u64 == *limit {
                "there may be more: say --limit, or --from the last key\n"
            } else {
                ""
            };
            format!("{}{} rows\n{more}", table(&["key", "version", "value"], rows), lines.len())
        }
        Command::Usage => {
            let rows = lines.iter().map(|line| cells(line, &["tenant", "receipts", "bytes"])).collect();
            table(&["tenant", "receipts", "bytes"], rows)
        }
        Command::Erasures => {
            let fields = ["sequence", "what", "tenant", "actor", "operation", "key", "decided_by", "reason"];
            let rows = lines.iter().map(|line| cells(line, &fields)).collect();
            table(&["sequence", "what", "tenant", "actor", "operation", "key", "by", "reason"], rows)
        }
        Command::Explain { key, .. } if lines.is_empty() => {
            format!("no receipt has the key {key}: a request under it would execute\n")
        }
        Command::Explain { .. } => lines.iter().map(explanation).collect::<Vec<_>>().join("\n"),
        Command::Get { .. } if summary.is_null() => "there is no such row\n".to_owned(),
        Command::Verify => verification(summary),
        Command::Log { .. } | Command::Export { .. } => String::new(),
        Command::Init
        | Command::Stat
        | Command::Get { .. }
        | Command::Sweep
        | Command::Compact
        | Command::Purge
        | Command::Erase { .. }
        | Command::Clock { .. }
        | Command::Bench { .. } => fields(summary),
    }
}

fn verification(summary: &Value) -> String {
    let problems = summary["problems"].as_array().map_or(&[][..], Vec::as_slice);
    let counts = fields(&without(summary, &["problems", "clean"]));
    if problems.is_empty() {
        return format!("{counts}\nclean: nothing is wrong\n");
    }
    let listed: String = problems.iter().map(|problem| format!("  {}\n", cell(problem))).collect();
    format!("{counts}\n{} problems; restore from a backup what cannot be made again\n{listed}", problems.len())
}

fn without(object: &Value, names: &[&str]) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
    object
}

/// The whole life of one slot.
fn explanation(line: &Value) -> String {
    let mut text = format!(
        "tenant {}, actor {}, operation {}, key {}\n",
        cell(&line["tenant"]),
        cell(&line["actor"]),
        cell(&line["operation"]),
        cell(&line["key"])
    );
    let now = &line["now"];
    let until = now
        .get("until_ms")
        .or_else(|| now.get("at_ms"))
        .map_or_else(String::new, |until| format!(", until {}", time(until)));
    text.push_str(&format!("  now ({}): {}{until}\n", time(&line["store_time_ms"]), meaning(&cell(&now["answer"]))));
    if line["erased"] == true {
        text.push_str("  its reply was erased\n");
    }
    if let Some(receipt) = line.get("receipt").filter(|receipt| !receipt.is_null()) {
        text.push_str(&format!(
            "  receipt: {} at {}, position {}, attempt {}{}{}\n  replayed until {}, refused until {}\n",
            cell(&receipt["outcome"]),
            time(&receipt["completed_ms"]),
            cell(&receipt["position"]),
            cell(&receipt["attempt"]),
            named(", trace ", &receipt["trace_id"]),
            named(", resource ", &receipt["resource_id"]),
            time(&receipt["replay_until_ms"]),
            time(&receipt["refuse_until_ms"]),
        ));
    }
    match line.get("activity").filter(|activity| !activity.is_null()) {
        Some(activity) => text.push_str(&format!(
            "  asked for again: at least {} replays and {} conflicts since {}, the last one at {}\n",
            cell(&activity["replays_at_least"]),
            cell(&activity["conflicts_at_least"]),
            time(&activity["since_ms"]),
            time(&activity["last_ms"]),
        )),
        None => text.push_str("  asked for again: not that anybody knows\n"),
    }
    text.push_str(&format!("  in the log, from entry {} on:\n", cell(&line["log_from"])));
    let events = line["events"].as_array().map_or(&[][..], Vec::as_slice);
    if events.is_empty() {
        text.push_str("    nothing\n");
    }
    for event in events {
        text.push_str(&format!(
            "    {}  {:<10}  {}{}{}{}\n",
            time(&event["time_ms"]),
            cell(&event["position"]),
            cell(&event["event"]),
            named(", ", &event["outcome"]),
            named(", status ", &event["status"]),
            event.get("attempt").map_or_else(String::new, |attempt| {
                format!(", attempt {}{}", cell(attempt), named(", trace ", &event["trace_id"]))
            }),
        ));
    }
    text
}

fn named(before: &str, value: &Value) -> String {
    if value.is_null() { String::new() } else { format!("{before}{}", cell(value)) }
}

fn meaning(answer: &str) -> String {
    match answer {
        "execute" => "a request under this key would execute".to_owned(),
        "replay" => "a retry of the same request gets the stored reply".to_owned(),
        "gone" => "a retry is told that it was done, and never executes".to_owned(),
        "in progress" => "a claim is held: a retry is told to wait".to_owned(),
        "lease ended" => "a claim has ended without an answer: somebody must find out".to_owned(),
        other => other.to_owned(),
    }
}

fn receipt_row(line: &Value) -> Vec<String> {
    let receipt = &line["receipt"];
    let now = &line["now"];
    let until = now.get("until_ms").or_else(|| now.get("at_ms"));
    let answer = if line["erased"] == true { "gone (erased)".to_owned() } else { cell(&now["answer"]) };
    vec![
        cell(&line["tenant"]),
        cell(&line["actor"]),
        cell(&line["operation"]),
        cell(&line["key"]),
        cell(&receipt["outcome"]),
        cell(&receipt["position"]),
        answer,
        until.map_or_else(String::new, time),
    ]
}

fn log_line(line: &Value) -> String {
    let what = match cell(&line["kind"]).as_str() {
        "operation" => format!(
            "{} {} {} key {} -> {} {}",
            cell(&line["tenant"]),
            cell(&line["actor"]),
            cell(&line["operation"]),
            cell(&line["key"]),
            cell(&line["outcome"]),
            cell(&line["reply"]["status"]),
        ),
        "swept" => format!("{} rows", cell(&line["rows"])),
        "table declared" => format!("{} version {}", cell(&line["table"]), cell(&line["version"])),
        _ => named("", &line["reason"]),
    };
    let rows = line["changes"].as_array().map_or(0, Vec::len);
    let changed = if rows == 0 { String::new() } else { format!(", {rows} rows changed") };
    format!("{}  {:<10}  {:<14}  {what}{changed}", time(&line["time_ms"]), cell(&line["position"]), cell(&line["kind"]))
}

/// An object, one field to a line.
fn fields(object: &Value) -> String {
    let Some(object) = object.as_object() else { return format!("{object}\n") };
    let width = object.keys().map(String::len).max().unwrap_or(0);
    object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let shown = if name.ends_with("_ms") && name.contains("time") { time(value) } else { cell(value) };
            format!("{:<width$}  {shown}\n", name.replace('_', " "))
        })
        .collect()
}

fn cells(line: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| cell(&line[*name])).collect()
}

/// A value without the quotes of JSON; control characters are escaped, so that no key can write to the terminal.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text
            .chars()
            .flat_map(|c| {
                let escaped = if c.is_control() { c.escape_default().collect() } else { vec![c] };
                escaped.into_iter()
            })
            .collect(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn time(value: &Value) -> String {
    match value.as_u64() {
        Some(u64::MAX) => "never".to_owned(),
        Some(ms) => counterfoil::TimestampMs(ms).to_string(),
        None => String::new(),
    }
}

/// Columns that line up; numbers to the right.
fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    if rows.is_empty() {
        return "nothing\n".to_owned();
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let is_number = |column: usize| rows.iter().all(|row| row[column].parse::<f64>().is_ok());
    let line = |cells: &[String]| {
        let padded = cells.iter().enumerate().map(|(column, cell)| {
            let pad = " ".repeat(width(column).saturating_sub(cell.chars().count()));
            if is_number(column) { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        let text = padded.collect::<Vec<_>>().join("  ");
        format!("{}\n", text.trim_end())
    };
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    let rule: Vec<String> = (0..header.len()).map(|column| "-".repeat(width(column))).collect();
    let mut text = line(&header);
    text.push_str(&line(&rule));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let rows = vec![vec!["größe".to_owned(), "7".to_owned()], vec!["x".to_owned(), "1000".to_owned()]];
        assert_eq!(table(&["name", "rows"], rows), "name   rows\n-----  ----\ngröße     7\nx      1000\n");
    }

    #[test]
    fn a_key_cannot_write_to_the_terminal() {
        assert_eq!(cell(&json!("a\u{1b}[2Jb")), "a\\u{1b}[2Jb");
    }
}
