//! Answering one request on an open store.

use std::io;
use std::ops::Bound;

use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::name::{Key, Slot};
use crate::base::position::Position;
use crate::store::{
    Erase, ExportError, Exported, LogReadError, LogStart, ReadView, ReceiptFilter, Store, TableInfo, parse_bytes,
};

use super::request::{Answer, Request};

/// Takes answers; its error ends the work, since whoever asked has left.
pub(super) type Emit<'a> = dyn FnMut(Answer) -> io::Result<()> + 'a;

/// Answers a request: lines and progress, then what it came to or why it failed.
///
/// # Errors
///
/// Only that of `emit`. Whatever the store says is an [`Answer`].
pub fn run(store: &Store, request: &Request, emit: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
    match answer(store, request, emit) {
        Ok(summary) => emit(Answer::Done { summary }),
        Err(Stop::Left(error)) => Err(error),
        Err(Stop::Failed(message)) => emit(Answer::Failed { message }),
    }
}

/// Why the work ended early.
enum Stop {
    /// Whoever asked has left.
    Left(io::Error),
    Failed(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<LogReadError> for Stop {
    fn from(error: LogReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Left(error)
    }
}

impl From<ExportError> for Stop {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Write(error) => Self::Left(error),
            ExportError::Store(_) | ExportError::Log(_) => Self::Failed(error.to_string()),
        }
    }
}

fn answer(store: &Store, request: &Request, emit: &mut Emit<'_>) -> Result<Value, Stop> {
    match request {
        Request::Stat => Ok(store.stats().to_json()),
        Request::Verify => Ok(store.verify()?.to_json()),
        Request::Log { from, follow, limit } => log(store, from.as_deref(), *follow, *limit, emit),
        Request::Receipts { tenant, actor, operation, limit } => {
            let filter = ReceiptFilter { tenant: tenant.clone(), actor: actor.clone(), operation: operation.clone() };
            let view = store.view();
            let mut count = 0;
            for listed in view.receipts(filter)?.take(at_most(*limit)) {
                line(emit, listed?.to_json())?;
                count += 1;
            }
            Ok(json!({ "receipts": count }))
        }
        Request::Explain { key, tenant, actor, operation } => {
            let fits = |slot: &Slot| {
                let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
                is(tenant, slot.tenant.as_str())
                    && is(actor, slot.actor.as_str())
                    && is(operation, slot.operation.as_str())
            };
            explain(store, key, fits, emit)
        }
        Request::Tables => {
            let tables = store.view().tables()?;
            for table in &tables {
                line(emit, table_json(table))?;
            }
            Ok(json!({ "tables": tables.len() }))
        }
        Request::Get { table, key } => {
            let view = store.view();
            let table = find_table(&view, table)?;
            let row = view.raw_get(&table.declaration.name, &table.parse_key(key)?)?;
            Ok(row.map_or(Value::Null, |row| row.to_json(&table)))
        }
        Request::Scan { table, from, limit } => scan(store, table, from.as_deref(), *limit, emit),
        Request::Usage => {
            let usage = store.view().usage()?;
            for tenant in &usage {
                line(emit, json!({ "tenant": tenant.tenant, "receipts": tenant.receipts, "bytes": tenant.bytes }))?;
            }
            Ok(json!({ "tenants": usage.len() }))
        }
        Request::Sweep => {
            let swept = telling(emit, |tell| store.sweep(|rows| tell(rows, None)))?;
            let paused = swept.paused.map(|state| format!("{state:?}"));
            Ok(json!({ "rows": swept.rows, "paused_because_the_clock_is": paused }))
        }
        Request::Compact => {
            let done = telling(emit, |tell| store.compact(|done, total| tell(done, Some(total))))?;
            Ok(json!({ "bytes_before": done.bytes_before, "bytes_after": done.bytes_after }))
        }
        Request::Purge => {
            let done = telling(emit, |tell| store.purge(|done, total| tell(done, Some(total))))?;
            Ok(json!({ "bytes_before": done.bytes_before, "bytes_after": done.bytes_after }))
        }
        Request::Erase { tenant, actor, operation, key, by, reason } => {
            let what = erase_target(tenant, actor.as_deref(), operation.as_deref(), key.as_deref())?;
            let erased = telling(emit, |tell| store.erase(&what, by.as_deref(), reason, |done| tell(done, None)))?;
            let position = erased.position.to_string();
            Ok(json!({ "position": position, "receipts": erased.receipts, "log_entries": erased.entries }))
        }
        Request::Erasures => {
            let erasures = store.erasures()?;
            for erasure in &erasures {
                line(emit, erasure.to_json())?;
            }
            Ok(json!({ "erasures": erasures.len() }))
        }
        Request::Export { what } => export(store, what, emit),
        Request::AcceptClock { by, reason } => {
            let accepted = store.accept_clock(by.as_deref(), reason)?;
            Ok(json!({
                "clock_was": format!("{:?}", accepted.before),
                "store_time_ms": accepted.store_time.0,
                "store_time": accepted.store_time.to_string(),
                "position": accepted.position.to_string(),
            }))
        }
    }
}

fn line(emit: &mut Emit<'_>, line: Value) -> io::Result<()> {
    emit(Answer::Line { line })
}

fn at_most(limit: Option<u64>) -> usize {
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Long work that tells how far it is. It goes on if nobody listens any more: it changes the store, and half of it is
/// worth less than all of it.
fn telling<T>(
    emit: &mut Emit<'_>,
    work: impl FnOnce(&mut dyn FnMut(u64, Option<u64>)) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut heard = true;
    work(&mut |done, total| {
        heard = heard && emit(Answer::Progress { done, total }).is_ok();
    })
}

fn log(
    store: &Store,
    from: Option<&str>,
    follow: bool,
    limit: Option<u64>,
    emit: &mut Emit<'_>,
) -> Result<Value, Stop> {
    let start = match from {
        None => LogStart::Oldest,
        Some(text) => LogStart::After(text.parse::<Position>().map_err(|error| Stop::Failed(error.to_string()))?),
    };
    let mut log = store.log(start)?;
    let mut entries = 0;
    while limit.is_none_or(|limit| entries < limit) {
        let next = match log.try_next()? {
            None if follow => log.next().transpose()?,
            next => next,
        };
        let Some(entry) = next else { break };
        line(emit, entry.to_json())?;
        entries += 1;
    }
    Ok(json!({ "entries": entries }))
}

fn explain(store: &Store, key: &str, fits: impl Fn(&Slot) -> bool, emit: &mut Emit<'_>) -> Result<Value, Stop> {
    let key = Key::new(parse_bytes(key)).map_err(|fault| Stop::Failed(fault.to_string()))?;
    let mut slots = 0;
    for slot in store.slots_of_key(&key)?.into_iter().filter(fits) {
        let told = telling(emit, |tell| {
            // Told seldom: the log has many entries, and each is read quickly.
            store.explain(&slot, |done, total| {
                if done.is_multiple_of(4096) {
                    tell(done, Some(total));
                }
            })
        })?;
        line(emit, told.to_json())?;
        slots += 1;
    }
    Ok(json!({ "slots": slots }))
}

fn find_table(view: &ReadView, name: &str) -> Result<TableInfo, Stop> {
    let tables = view.tables()?;
    let names = || tables.iter().map(|table| table.declaration.name.as_str()).collect::<Vec<_>>().join(", ");
    let unknown = || Stop::Failed(format!("there is no table {name:?}; there are: {}", names()));
    tables.iter().find(|table| table.declaration.name == name).cloned().ok_or_else(unknown)
}

fn table_json(table: &TableInfo) -> Value {
    let declared = &table.declaration;
    json!({
        "table": declared.name,
        "rows": table.rows,
        "key_type": declared.key_type,
        "codec": declared.codec.to_string(),
        "version": declared.version,
        "rows_of_versions": declared.rows_of,
    })
}

fn scan(
    store: &Store,
    table: &str,
    from: Option<&str>,
    limit: Option<u64>,
    emit: &mut Emit<'_>,
) -> Result<Value, Stop> {
    let view = store.view();
    let table = find_table(&view, table)?;
    let from = from.map(|key| table.parse_key(key)).transpose()?;
    let lower = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
    let mut rows = 0;
    for row in view.raw_scan(&table.declaration.name, (lower, Bound::Unbounded))?.take(at_most(limit)) {
        line(emit, row?.to_json(&table))?;
        rows += 1;
    }
    Ok(json!({ "rows": rows }))
}

fn erase_target(tenant: &str, actor: Option<&str>, operation: Option<&str>, key: Option<&str>) -> Result<Erase, Stop> {
    match (actor, operation, key) {
        (None, None, None) => Ok(Erase::tenant(tenant)),
        (Some(actor), None, None) => Ok(Erase::actor(tenant, actor)),
        (Some(actor), Some(operation), Some(key)) => {
            let slot = Slot::new(tenant, actor, operation, parse_bytes(key));
            Ok(Erase::operation(slot.map_err(|fault| Stop::Failed(fault.to_string()))?))
        }
        _ => Err(Stop::Failed("say tenant alone, tenant and actor, or tenant, actor, operation and key".to_owned())),
    }
}

fn export(store: &Store, what: &str, emit: &mut Emit<'_>) -> Result<Value, Stop> {
    let exported = match what {
        "receipts" => Exported::Receipts,
        "log" => Exported::Log,
        "tables" => Exported::Tables,
        other => return Err(Stop::Failed(format!("{other:?} cannot be exported: say receipts, log or tables"))),
    };
    let lines = store.export_lines(exported, |exported| line(emit, exported))?;
    Ok(json!({ "lines": lines }))
}
