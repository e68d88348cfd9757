//! Everything that is stored, as JSON lines.

use std::io::{self, Write};
use std::ops::Bound;

use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::position::Position;
use crate::base::receipt::{Outcome, ReceiptMeta};
use crate::base::reply::Reply;
use crate::state::hex;

use super::Store;
use super::explain::NextAnswer;
use super::follow::{Entry, EntryKind, LogReadError, LogStart};
use super::listing::{ListedReceipt, RawRow, ReceiptFilter, TableInfo};

/// What [`Store::export`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exported {
    /// Every receipt and claim, with its reply as long as it is kept.
    Receipts,
    /// Every entry of the retained log.
    Log,
    /// Every row of every business table.
    Tables,
}

/// Why an export ended early. What was written so far is right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Something stored cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogReadError),
    /// The lines cannot be written.
    #[error("the export cannot be written: {0}")]
    Write(#[from] io::Error),
}

impl Store {
    /// Writes what is stored as JSON, one object to a line, and returns the number of lines. `progress` is told how many
    /// there are so far.
    ///
    /// Receipts and rows are those of one snapshot. Keys are shown by their table's key type, values of codec JSON as
    /// they are; bytes, and whatever only the program can read, as `{"hex": ".."}`. Nothing is left out: what was erased
    /// is listed as erased.
    ///
    /// ```
    /// # let bed = counterfoil::testing::TestBed::new(counterfoil::Store::builder)?;
    /// # let store = bed.store();
    /// use counterfoil::Exported;
    ///
    /// let mut lines = Vec::new();
    /// let count = store.export(Exported::Tables, &mut lines, |_| ())?;
    /// assert_eq!(count, lines.split(|byte| *byte == b'\n').count() as u64 - 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ExportError`], with the line that could not be made or written.
    pub fn export(
        &self,
        what: Exported,
        to: &mut dyn Write,
        mut progress: impl FnMut(u64),
    ) -> Result<u64, ExportError> {
        let mut count = 0;
        let lines = self.export_lines(what, |line| {
            serde_json::to_writer(&mut *to, &line)?;
            to.write_all(b"\n")?;
            count += 1;
            progress(count);
            Ok(())
        })?;
        to.flush()?;
        Ok(lines)
    }

    /// The same, line by line.
    pub(crate) fn export_lines(
        &self,
        what: Exported,
        mut write: impl FnMut(Value) -> io::Result<()>,
    ) -> Result<u64, ExportError> {
        let mut lines = 0;
        let mut put = |line: Value| -> Result<(), ExportError> {
            write(line)?;
            lines += 1;
            Ok(())
        };
        match what {
            Exported::Receipts => {
                let view = self.view();
                for listed in view.receipts(ReceiptFilter::default())? {
                    let listed = listed?;
                    let reply = self.reply_of(&listed)?;
                    put(receipt_json(&listed, reply.as_ref()))?;
                }
            }
            Exported::Log => {
                let mut log = self.log(LogStart::Oldest)?;
                while let Some(entry) = log.try_next()? {
                    put(entry_json(&entry))?;
                }
            }
            Exported::Tables => {
                let view = self.view();
                for table in view.tables()? {
                    for row in view.raw_scan(&table.declaration.name, (Bound::Unbounded, Bound::Unbounded))? {
                        put(row_json(&table, &row?))?;
                    }
                }
            }
        }
        Ok(lines)
    }

    /// The stored reply of a receipt that is listed, as long as it is kept.
    fn reply_of(&self, listed: &ListedReceipt) -> Result<Option<Reply>, Error> {
        if listed.reply_bytes == 0 {
            return Ok(None);
        }
        Ok(self.receipt(&listed.slot)?.map(crate::base::receipt::Receipt::into_reply))
    }
}

impl ListedReceipt {
    /// The line that [`Store::export`] writes, without the reply.
    #[must_use]
    pub fn to_json(&self) -> Value {
        receipt_json(self, None)
    }
}

impl NextAnswer {
    /// As it stands in exports.
    #[must_use]
    pub fn to_json(&self) -> Value {
        next_answer_json(*self)
    }
}

impl ReceiptMeta {
    /// As it stands in exports.
    #[must_use]
    pub fn to_json(&self) -> Value {
        meta_json(self)
    }
}

impl Entry {
    /// The line that [`Store::export`] writes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        entry_json(self)
    }
}

impl RawRow {
    /// The line that [`Store::export`] writes.
    #[must_use]
    pub fn to_json(&self, table: &TableInfo) -> Value {
        row_json(table, self)
    }
}

fn receipt_json(listed: &ListedReceipt, reply: Option<&Reply>) -> Value {
    let mut line = json!({
        "tenant": listed.slot.tenant.as_str(),
        "actor": listed.slot.actor.as_str(),
        "operation": listed.slot.operation.as_str(),
        "key": bytes_json(listed.slot.key.as_bytes()),
        "now": next_answer_json(listed.now),
        "erased": listed.erased,
    });
    if let Some(meta) = &listed.receipt {
        line["receipt"] = meta_json(meta);
    }
    if let Some(reply) = reply {
        line["reply"] = reply_json(reply);
    }
    line
}

/// What a retry is answered, as JSON.
fn next_answer_json(answer: NextAnswer) -> Value {
    match answer {
        NextAnswer::Execute => json!({ "answer": "execute" }),
        NextAnswer::Replay { until } => json!({ "answer": "replay", "until_ms": until.0 }),
        NextAnswer::Gone { until } => json!({ "answer": "gone", "until_ms": until.0 }),
        NextAnswer::InProgress { until } => json!({ "answer": "in progress", "until_ms": until.0 }),
        NextAnswer::LeaseEnded { at } => json!({ "answer": "lease ended", "at_ms": at.0 }),
    }
}

/// What a receipt says beside its reply, as JSON.
fn meta_json(meta: &ReceiptMeta) -> Value {
    json!({
        "outcome": outcome_name(meta.outcome),
        "operation_version": meta.operation_version,
        "position": position_json(meta.position),
        "completed_ms": meta.completed_at.0,
        "completed_wall_ms": meta.completed_at_wall.0,
        "replay_until_ms": meta.replay_until.0,
        "refuse_until_ms": meta.refuse_until.0,
        "attempt": meta.attempt,
        "trace_id": meta.trace_id,
        "resource_id": meta.resource_id,
        "body_dropped": meta.body_dropped,
        "redacted": meta.redacted,
    })
}

/// An outcome in one word.
pub(super) const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "completed",
        Outcome::Rejected => "rejected",
        Outcome::Accepted => "accepted",
    }
}

/// A position as text, as a position is written and read.
pub(super) fn position_json(position: Position) -> Value {
    json!(position.to_string())
}

/// Bytes from text: what follows `0x` as hexadecimal digits, else the text itself.
#[cfg(feature = "admin")]
pub(crate) fn parse_bytes(text: &str) -> Vec<u8> {
    text.strip_prefix("0x").and_then(crate::state::unhex).unwrap_or_else(|| text.as_bytes().to_vec())
}

/// Text where the bytes are text, else their digits.
pub(super) fn bytes_json(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| json!({ "hex": hex(bytes) }), |text| json!(text))
}

/// A reply as JSON. A body of JSON is shown as what it is.
fn reply_json(reply: &Reply) -> Value {
    let is_json = reply.content_type().is_some_and(|kind| kind.starts_with("application/json"));
    let parsed = if is_json { serde_json::from_slice(reply.body()).ok() } else { None };
    json!({
        "status": reply.status(),
        "headers": reply.headers().map(|(name, value)| json!([name, value])).collect::<Vec<_>>(),
        "content_type": reply.content_type(),
        "resource_id": reply.resource(),
        "body": parsed.unwrap_or_else(|| bytes_json(reply.body())),
    })
}

/// A row of a table as JSON.
fn row_json(table: &TableInfo, row: &RawRow) -> Value {
    json!({
        "table": table.declaration.name,
        "key": table.key_json(&row.key),
        "codec": row.codec.to_string(),
        "version": row.version,
        "value": row.value_json(),
    })
}

/// An entry of the log as JSON.
fn entry_json(entry: &Entry) -> Value {
    let mut line = json!({
        "position": position_json(entry.position),
        "time_ms": entry.time.0,
        "wall_ms": entry.wall.0,
    });
    match &entry.kind {
        EntryKind::Operation { slot, version, outcome, reply, attempt, trace_id } => {
            line["kind"] = json!("operation");
            line["tenant"] = json!(slot.tenant.as_str());
            line["actor"] = json!(slot.actor.as_str());
            line["operation"] = json!(slot.operation.as_str());
            line["key"] = bytes_json(slot.key.as_bytes());
            line["operation_version"] = json!(version);
            line["outcome"] = json!(outcome_name(*outcome));
            line["attempt"] = json!(attempt);
            line["trace_id"] = json!(trace_id);
            line["reply"] = reply_json(reply);
        }
        EntryKind::Write => line["kind"] = json!("write"),
        EntryKind::TableDeclared { table, version } => {
            line["kind"] = json!("table declared");
            line["table"] = json!(table);
            line["version"] = json!(version);
        }
        EntryKind::Swept { rows } => {
            line["kind"] = json!("swept");
            line["rows"] = json!(rows);
        }
        EntryKind::ClockAccepted { decided_by, reason } => {
            line["kind"] = json!("clock accepted");
            line["decided_by"] = json!(decided_by);
            line["reason"] = json!(reason);
        }
        EntryKind::Erased => line["kind"] = json!("erased"),
        EntryKind::Maintenance { name } => line["kind"] = json!(name),
    }
    if !entry.changes.is_empty() {
        let changes = entry.changes.iter().map(|change| {
            json!({
                "table": change.table,
                "key": { "hex": hex(&change.key) },
                "value": change.value.as_deref().map(|value| {
                    serde_json::from_slice(value).unwrap_or_else(|_| bytes_json(value))
                }),
            })
        });
        line["changes"] = changes.collect();
    }
    line
}
