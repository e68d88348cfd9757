//! What a closure does, once against the store and once against the model.

use std::collections::BTreeMap;

use counterfoil::{Decision, Failure, Outcome, Reply, TableError, Tx};

use crate::tables::{
    CELLS, Cell, Direction, NOTES, Span, Tables, cell, cell_prefix, name, name_prefix, number, rows_of,
};

/// Limits of the sessions' stores.
pub(crate) const ROW_KEY_MAX: usize = 64;
pub(crate) const ROW_MAX: usize = 300;
pub(crate) const ROWS_MAX: usize = 16;
pub(crate) const REPLY_MAX: usize = 6_000;

/// One call of a table handle.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Put(u8, u16),
    InsertNew(u8, u16),
    Remove(u8),
    Get(u8),
    Update(u8),
    Add(u8, u16),
    RemoveCell(u8),
    ScanNotes(Span, Direction),
    ScanCells(Span, Direction),
    Count,
    Ends,
    LongKey,
    LargeValue(u8),
    ManyRows,
}

/// How the closure ends, if no table error ends it before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    Reply,
    Header,
    UndeclaredHeader,
    Huge,
    Reject,
    Fail,
    Panic,
}

/// A whole closure.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) acts: Vec<Act>,
    /// Goes on after an error of a table, as a careless program does.
    pub(crate) careless: bool,
    pub(crate) ending: Ending,
}

/// The text of a note; some are long, so that folds and segments fill.
fn note(key: u8, stamp: u16) -> String {
    let len = if stamp.is_multiple_of(5) { 220 } else { usize::from(stamp % 7) };
    format!("{key}:{stamp}:{}", "x".repeat(len))
}

/// A value in what a closure saw: long ones by their beginning and length.
fn brief(value: &str) -> String {
    if value.len() < 20 { value.to_owned() } else { format!("{}..{}", &value[..10], value.len()) }
}

fn show_notes(rows: Vec<(String, String)>) -> String {
    rows.iter().map(|(key, value)| format!("{key}={} ", brief(value))).collect()
}

fn show_cells(rows: Vec<Cell>) -> String {
    rows.iter().map(|((row, column), value)| format!("{row}.{column}={value} ")).collect()
}

impl Script {
    /// Against the store.
    pub(crate) fn run(&self, tx: &Tx<'_>) -> Result<(Vec<String>, Decision), Failure> {
        let mut seen = vec![format!("{:?} {}", tx.remaining(), tx.now().0)];
        for act in &self.acts {
            match act.on_store(tx) {
                Ok(text) => seen.push(text),
                Err(error) if !self.careless => return Err(error.into()),
                Err(_) => {}
            }
        }
        match self.ending {
            Ending::Fail => Err(Failure::message("not today")),
            Ending::Panic => std::panic::resume_unwind(Box::new("a closure's own panic")),
            Ending::Reply | Ending::Header | Ending::UndeclaredHeader | Ending::Huge | Ending::Reject => {
                let decision = self.decide(&seen)?;
                Ok((seen, decision))
            }
        }
    }

    fn decide(&self, seen: &[String]) -> Result<Decision, counterfoil::Invalid> {
        let reply = Reply::created().resource_id(format!("saw/{}", seen.len())).json(seen)?;
        Ok(match self.ending {
            Ending::Header => Decision::Reply(reply.header("etag", "one")?),
            Ending::UndeclaredHeader => Decision::Reply(reply.header("x-undeclared", "one")?),
            Ending::Huge => Decision::Reply(reply.bytes("text/plain", vec![b'h'; REPLY_MAX])),
            Ending::Reject => Decision::Reject(Reply::refused().json(seen)?),
            Ending::Reply | Ending::Fail | Ending::Panic => Decision::Reply(reply),
        })
    }

    /// Against the model.
    pub(crate) fn expect(&self, before: &Tables, remaining: Option<std::time::Duration>, now: u64) -> Ran {
        let mut draft = Draft { tables: before.clone(), ..Draft::default() };
        let mut seen = vec![format!("{remaining:?} {now}")];
        let mut refused = false;
        for act in &self.acts {
            match act.on_model(&mut draft) {
                Some(text) => seen.push(text),
                None if self.careless => refused = true,
                None => return Ran::Failed,
            }
        }
        match self.ending {
            Ending::Fail => Ran::Failed,
            Ending::Panic => Ran::Panicked,
            Ending::Reply | Ending::Header | Ending::UndeclaredHeader | Ending::Huge | Ending::Reject if refused => {
                Ran::Table
            }
            Ending::Reply | Ending::Header | Ending::UndeclaredHeader | Ending::Huge | Ending::Reject => {
                let decision = self.decide(&seen).expect("the model's reply");
                let (outcome, reply) = match decision {
                    Decision::Reply(reply) => (Outcome::Completed, reply),
                    Decision::Reject(reply) => (Outcome::Rejected, reply),
                    Decision::Accept(reply) => (Outcome::Accepted, reply),
                };
                Ran::Kept { outcome, reply, seen, draft }
            }
        }
    }

    pub(crate) fn is_huge(&self) -> bool {
        matches!(self.ending, Ending::Huge)
    }

    pub(crate) fn has_undeclared_header(&self) -> bool {
        matches!(self.ending, Ending::UndeclaredHeader)
    }
}

/// What the model says of a closure.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time")]
pub(crate) enum Ran {
    Kept { outcome: Outcome, reply: Reply, seen: Vec<String>, draft: Draft },
    Failed,
    Panicked,
    Table,
}

/// The tables as a closure leaves them, and what it wrote: one final value for each row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) tables: Tables,
    notes: BTreeMap<String, Option<String>>,
    cells: BTreeMap<(u32, u32), Option<u64>>,
}

/// A row in an entry of the log: table, encoded key, encoded value.
pub(crate) type Change = (&'static str, Vec<u8>, Option<Vec<u8>>);

impl Draft {
    pub(crate) fn changes(&self) -> Vec<Change> {
        let notes = self.notes.iter().map(|(key, value)| {
            let value = value.as_ref().map(|value| serde_json::to_vec(value).expect("a string"));
            (NOTES.name(), key.as_bytes().to_vec(), value)
        });
        let cells = self.cells.iter().map(|((row, column), value)| {
            let key = [row.to_be_bytes(), column.to_be_bytes()].concat();
            (CELLS.name(), key, value.map(|value| value.to_be_bytes().to_vec()))
        });
        notes.chain(cells).collect()
    }

    fn has_room(&self, is_there: bool) -> bool {
        is_there || self.notes.len() + self.cells.len() < ROWS_MAX
    }

    fn set_note(&mut self, key: &str, value: Option<String>) -> Option<()> {
        if !self.has_room(self.notes.contains_key(key)) {
            return None;
        }
        self.notes.insert(key.to_owned(), value.clone());
        match value {
            Some(value) => drop(self.tables.notes.insert(key.to_owned(), value)),
            None => drop(self.tables.notes.remove(key)),
        }
        Some(())
    }

    fn set_cell(&mut self, key: (u32, u32), value: Option<u64>) -> Option<()> {
        if !self.has_room(self.cells.contains_key(&key)) {
            return None;
        }
        self.cells.insert(key, value);
        match value {
            Some(value) => drop(self.tables.cells.insert(key, value)),
            None => drop(self.tables.cells.remove(&key)),
        }
        Some(())
    }
}

impl Act {
    fn on_store(self, tx: &Tx<'_>) -> Result<String, TableError> {
        let (notes, cells) = (tx.table(&NOTES)?, tx.table(&CELLS)?);
        Ok(match self {
            Self::Put(key, stamp) => notes.put(name(key), &note(key, stamp)).map(|()| String::new())?,
            Self::InsertNew(key, stamp) => notes.insert_new(name(key), &note(key, stamp)).map(|()| String::new())?,
            Self::Remove(key) => notes.remove(name(key))?.to_string(),
            Self::Get(key) => {
                format!("{:?} {}", notes.get(name(key))?.as_deref().map(brief), cells.contains(cell(key))?)
            }
            Self::Update(key) => {
                let longer = |value: &mut String| {
                    value.push('+');
                    value.len()
                };
                format!("{:?}", notes.update(name(key), longer)?)
            }
            Self::Add(key, by) => {
                let sum = cells.get(cell(key))?.as_deref().map_or(0, number) + u64::from(by);
                cells.put(cell(key), &sum.to_be_bytes().to_vec())?;
                sum.to_string()
            }
            Self::RemoveCell(key) => cells.remove(cell(key))?.to_string(),
            Self::ScanNotes(span, direction) => {
                let rows = direction.gather(rows_of!(notes, span, name, name_prefix));
                show_notes(rows.into_iter().collect::<Result<_, _>>()?)
            }
            Self::ScanCells(span, direction) => {
                let rows = direction.gather(rows_of!(cells, span, cell, cell_prefix)).into_iter();
                let rows = rows.map(|row| row.map(|(key, value)| (key, number(&value))));
                show_cells(rows.collect::<Result<_, _>>()?)
            }
            Self::Count => format!("{} {} {}", notes.len()?, cells.len()?, notes.is_empty()?),
            Self::Ends => {
                let last = cells.last()?.map(|(key, value)| (key, number(&value)));
                show_notes(notes.first()?.into_iter().collect()) + &show_cells(last.into_iter().collect())
            }
            Self::LongKey => notes.put("k".repeat(ROW_KEY_MAX + 1), &String::new()).map(|()| String::new())?,
            Self::LargeValue(key) => notes.put(name(key), &"v".repeat(ROW_MAX)).map(|()| String::new())?,
            Self::ManyRows => {
                for column in (0..).take(ROWS_MAX + 1) {
                    cells.put((9, column), &vec![0; 8])?;
                }
                String::new()
            }
        })
    }

    /// None if the table refuses it.
    fn on_model(self, draft: &mut Draft) -> Option<String> {
        let tables = &draft.tables;
        Some(match self {
            Self::Put(key, stamp) => {
                draft.set_note(name(key), Some(note(key, stamp)))?;
                String::new()
            }
            Self::InsertNew(key, _) if tables.notes.contains_key(name(key)) => return None,
            Self::InsertNew(key, stamp) => {
                draft.set_note(name(key), Some(note(key, stamp)))?;
                String::new()
            }
            Self::Remove(key) => {
                let was_there = tables.notes.contains_key(name(key));
                if was_there {
                    draft.set_note(name(key), None)?;
                }
                was_there.to_string()
            }
            Self::Get(key) => {
                let value = tables.notes.get(name(key)).map(|value| brief(value));
                format!("{value:?} {}", tables.cells.contains_key(&cell(key)))
            }
            Self::Update(key) => match tables.notes.get(name(key)) {
                Some(value) => {
                    let longer = format!("{value}+");
                    let len = longer.len();
                    if len + 2 > ROW_MAX {
                        return None;
                    }
                    draft.set_note(name(key), Some(longer))?;
                    format!("{:?}", Some(len))
                }
                None => "None".to_owned(),
            },
            Self::Add(key, by) => {
                let sum = tables.cells.get(&cell(key)).copied().unwrap_or(0) + u64::from(by);
                draft.set_cell(cell(key), Some(sum))?;
                sum.to_string()
            }
            Self::RemoveCell(key) => {
                let was_there = tables.cells.contains_key(&cell(key));
                if was_there {
                    draft.set_cell(cell(key), None)?;
                }
                was_there.to_string()
            }
            Self::ScanNotes(span, direction) => show_notes(span.notes(tables, direction)),
            Self::ScanCells(span, direction) => show_cells(span.cells(tables, direction)),
            Self::Count => format!("{} {} {}", tables.notes.len(), tables.cells.len(), tables.notes.is_empty()),
            Self::Ends => {
                let first = tables.notes.first_key_value().map(|(key, value)| (key.clone(), value.clone()));
                let last = tables.cells.last_key_value().map(|(key, value)| (*key, *value));
                show_notes(first.into_iter().collect()) + &show_cells(last.into_iter().collect())
            }
            Self::LongKey | Self::LargeValue(_) => return None,
            Self::ManyRows => {
                for column in (0..).take(ROWS_MAX + 1) {
                    draft.set_cell((9, column), Some(0))?;
                }
                String::new()
            }
        })
    }

    /// What it is counted as, given whether the model let it through.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Put(..) | Self::Add(..) => "put",
            Self::InsertNew(..) => "insert new",
            Self::Remove(_) | Self::RemoveCell(_) => "remove",
            Self::Get(_) => "get",
            Self::Update(_) => "update",
            Self::ScanNotes(_, direction) | Self::ScanCells(_, direction) => direction.kind(),
            Self::Count => "count",
            Self::Ends => "first and last",
            Self::LongKey => "key above the limit",
            Self::LargeValue(_) => "value above the limit",
            Self::ManyRows => "rows above the limit",
        }
    }
}

/// What the acts of a script come to in the model, for the count.
pub(crate) fn kinds(script: &Script, before: &Tables) -> Vec<&'static str> {
    let mut draft = Draft { tables: before.clone(), ..Draft::default() };
    let mut kinds = Vec::new();
    for act in &script.acts {
        let seen = act.on_model(&mut draft);
        kinds.push(match (act, &seen) {
            (Act::InsertNew(..), None) => "insert new, refused",
            (Act::Remove(_) | Act::RemoveCell(_), Some(text)) if text == "false" => "remove nothing",
            _ => act.kind(),
        });
        if seen.is_none() && !script.careless {
            break;
        }
    }
    kinds
}
