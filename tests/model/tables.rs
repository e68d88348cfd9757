//! The two tables, in the store and in the model, and ways to walk through them.

use std::collections::BTreeMap;
use std::ops::Bound;

use counterfoil::{ReadView, Table, TableError};

pub(crate) const NOTES: Table<String, String> = Table::new("notes");
pub(crate) const CELLS: Table<(u32, u32), Vec<u8>> = Table::raw("cells");

/// Names in an order that is not that of their lengths, one of them above the range of ASCII.
const NAMES: [&str; 12] = ["a", "aa", "ab", "abc", "b", "ba", "bb", "c", "ca", "cab", "d", "\u{e9}"];
pub(crate) const KEYS: u8 = 12;

pub(crate) fn name(key: u8) -> &'static str {
    NAMES[usize::from(key % KEYS)]
}

pub(crate) fn cell(key: u8) -> (u32, u32) {
    (u32::from(key % KEYS) / 4, u32::from(key % 4))
}

/// A cell and its number.
pub(crate) type Cell = ((u32, u32), u64);

/// What one state of the store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) notes: BTreeMap<String, String>,
    pub(crate) cells: BTreeMap<(u32, u32), u64>,
}

impl Tables {
    pub(crate) fn read(view: &ReadView) -> Result<Self, TableError> {
        let notes = view.table(&NOTES)?.range(..)?.collect::<Result<_, _>>()?;
        let cells = view.table(&CELLS)?.range(..)?.map(|row| row.map(|(key, value)| (key, number(&value))));
        Ok(Self { notes, cells: cells.collect::<Result<_, _>>()? })
    }
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("a cell has eight bytes"))
}

/// Which rows of a table. Bounds may be the wrong way round: then there are none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Span {
    All,
    Half(u8, u8),
    Through(u8, u8),
    Between(u8, u8),
    From(u8),
    Below(u8),
    Prefix(u8),
}

/// From which end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Forward,
    Backward,
    Both,
}

impl Direction {
    pub(crate) fn gather<T>(self, mut rows: impl DoubleEndedIterator<Item = T>) -> Vec<T> {
        match self {
            Self::Forward => rows.collect(),
            Self::Backward => rows.rev().collect(),
            Self::Both => {
                let mut all = Vec::new();
                while let Some(row) = if all.len() % 2 == 0 { rows.next() } else { rows.next_back() } {
                    all.push(row);
                }
                all
            }
        }
    }

    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Forward => "scan forward",
            Self::Backward => "scan backward",
            Self::Both => "scan from both ends",
        }
    }
}

/// The rows of a span of a table's view or handle.
macro_rules! rows_of {
    ($table:expr, $span:expr, $key:expr, $prefix:expr) => {{
        use std::ops::Bound::{Excluded, Included};
        let (table, key) = ($table, $key);
        match $span {
            Span::All => table.range(..)?,
            Span::Half(from, to) => table.range(key(from)..key(to))?,
            Span::Through(from, to) => table.range(key(from)..=key(to))?,
            Span::Between(from, to) => table.range((Excluded(key(from)), Included(key(to))))?,
            Span::From(from) => table.range(key(from)..)?,
            Span::Below(to) => table.range(..key(to))?,
            Span::Prefix(of) => table.prefix($prefix(of))?,
        }
    }};
}
pub(crate) use rows_of;

/// The part of a tuple, or of a name, that a prefix is.
pub(crate) fn cell_prefix(of: u8) -> (u32,) {
    (cell(of).0,)
}

pub(crate) fn name_prefix(of: u8) -> &'static str {
    let name = name(of);
    &name[..name.chars().next().map_or(0, char::len_utf8)]
}

impl Span {
    fn holds<K: Ord>(self, row: &K, key: impl Fn(u8) -> K, has_prefix: impl Fn(&K, u8) -> bool) -> bool {
        let (lower, upper) = match self {
            Self::All => (Bound::Unbounded, Bound::Unbounded),
            Self::Half(from, to) => (Bound::Included(from), Bound::Excluded(to)),
            Self::Through(from, to) => (Bound::Included(from), Bound::Included(to)),
            Self::Between(from, to) => (Bound::Excluded(from), Bound::Included(to)),
            Self::From(from) => (Bound::Included(from), Bound::Unbounded),
            Self::Below(to) => (Bound::Unbounded, Bound::Excluded(to)),
            Self::Prefix(of) => return has_prefix(row, of),
        };
        let above = match lower {
            Bound::Included(from) => *row >= key(from),
            Bound::Excluded(from) => *row > key(from),
            Bound::Unbounded => true,
        };
        let below = match upper {
            Bound::Included(to) => *row <= key(to),
            Bound::Excluded(to) => *row < key(to),
            Bound::Unbounded => true,
        };
        above && below
    }

    /// What the store must find, from the model.
    pub(crate) fn notes(self, tables: &Tables, direction: Direction) -> Vec<(String, String)> {
        let prefixed = |row: &String, of| row.starts_with(name_prefix(of));
        let rows = tables.notes.iter().filter(|(row, _)| self.holds(*row, |key| name(key).to_owned(), prefixed));
        direction.gather(rows.map(|(row, value)| (row.clone(), value.clone())))
    }

    pub(crate) fn cells(self, tables: &Tables, direction: Direction) -> Vec<Cell> {
        let prefixed = |row: &(u32, u32), of| row.0 == cell_prefix(of).0;
        let rows = tables.cells.iter().filter(|(row, _)| self.holds(*row, cell, prefixed));
        direction.gather(rows.map(|(row, value)| (*row, *value)))
    }

    /// What the store finds.
    pub(crate) fn read_notes(self, view: &ReadView, direction: Direction) -> Result<Vec<(String, String)>, TableError> {
        let rows = rows_of!(view.table(&NOTES)?, self, name, name_prefix);
        direction.gather(rows).into_iter().collect()
    }

    pub(crate) fn read_cells(self, view: &ReadView, direction: Direction) -> Result<Vec<Cell>, TableError> {
        let rows = rows_of!(view.table(&CELLS)?, self, cell, cell_prefix);
        direction.gather(rows).into_iter().map(|row| row.map(|(key, value)| (key, number(&value)))).collect()
    }
}
