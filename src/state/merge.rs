//! Ranges over layers: several ordered sources read as one.
//!
//! Each layer holds what it says about rows, deletions included. The merged range yields each key once, as the topmost
//! layer that knows it has it, and leaves out what is deleted there. Both ends can be read; nothing is read before it
//! is asked for, apart from a few rows of the maps at a time.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::Bound;

use super::engine::{EngineError, Snapshot, StoredRows};
use super::map::MemoryMap;
use super::row_key::{RowKey, TableId};
use super::view::KeyBounds;
use crate::base::bytes::Bytes;

/// The most rows that are taken out of a map at once. The first time it is one, then it doubles, so `first` costs one
/// look-up and a long scan few.
const CHUNK_ROWS_MAX: usize = 32;

type Row = (RowKey, Option<Bytes>);

/// Rows of one table, in order, from both ends.
///
/// It owns what it reads (maps are cloned for a counter each), so the store can be written while one is open and the
/// range goes on showing the state at which it was made. After an error it ends.
#[derive(Debug)]
pub(crate) struct RowRange {
    /// Topmost first.
    layers: Vec<Layer>,
}

impl RowRange {
    pub(crate) fn new<'a>(
        maps: impl Iterator<Item = &'a MemoryMap>,
        base: Option<&Snapshot>,
        table: TableId,
        bounds: KeyBounds<'_>,
    ) -> Result<Self, EngineError> {
        // Maps and trees do not agree on what inverted bounds are (some panic), so they never see any.
        if is_empty(bounds.0, bounds.1) {
            return Ok(Self { layers: Vec::new() });
        }
        let (lower, upper) = row_bounds(table, bounds);
        let map_layer = |map: &MemoryMap| {
            Layer::new(Source::Map { map: map.clone(), lower: lower.clone(), upper: upper.clone(), chunk_rows: 1 })
        };
        let mut layers: Vec<Layer> = maps.filter(|map| !map.is_empty()).map(map_layer).collect();
        if let Some(base) = base {
            let rows = base.range(table, bounds.0, bounds.1)?;
            layers.extend(rows.map(|rows| Layer::new(Source::Stored { table, rows })));
        }
        Ok(Self { layers })
    }

    /// The next row from one end as the topmost layer has it, deletions included.
    fn next_mark(&mut self, end: End) -> Result<Option<Row>, EngineError> {
        for layer in &mut self.layers {
            layer.prepare(end)?;
        }
        // On equal keys the earlier, higher layer stays.
        let mut chosen: Option<usize> = None;
        for (index, layer) in self.layers.iter().enumerate() {
            let Some(key) = layer.key(end) else { continue };
            let best = chosen.and_then(|chosen| self.layers[chosen].key(end));
            if best.is_none_or(|best| end.comes_before(key, best)) {
                chosen = Some(index);
            }
        }
        let Some(chosen) = chosen else { return Ok(None) };
        let Some(row) = self.layers[chosen].take(end) else { return Ok(None) };
        for layer in &mut self.layers[chosen + 1..] {
            if layer.key(end) == Some(&row.0) {
                drop(layer.take(end));
            }
        }
        Ok(Some(row))
    }

    fn next_row(&mut self, end: End) -> Option<Result<(RowKey, Bytes), EngineError>> {
        loop {
            match self.next_mark(end) {
                Ok(Some((key, Some(value)))) => return Some(Ok((key, value))),
                Ok(Some((_, None))) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.layers.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl Iterator for RowRange {
    type Item = Result<(RowKey, Bytes), EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row(End::Front)
    }
}

impl DoubleEndedIterator for RowRange {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_row(End::Back)
    }
}

impl FusedIterator for RowRange {}

/// What some maps together say about the rows of a table, deletions included.
pub(crate) fn marks<'a>(
    maps: impl Iterator<Item = &'a MemoryMap>,
    table: TableId,
) -> impl Iterator<Item = (RowKey, Option<Bytes>)> {
    // Without a stored layer nothing can fail.
    let mut range = RowRange::new(maps, None, table, super::view::ALL).ok();
    std::iter::from_fn(move || range.as_mut()?.next_mark(End::Front).ok().flatten())
}

#[derive(Clone, Copy, Debug)]
enum End {
    Front,
    Back,
}

impl End {
    fn comes_before(self, a: &RowKey, b: &RowKey) -> bool {
        match self {
            Self::Front => a < b,
            Self::Back => a > b,
        }
    }
}

#[derive(Debug)]
enum Source {
    Map { map: MemoryMap, lower: Bound<RowKey>, upper: Bound<RowKey>, chunk_rows: usize },
    Stored { table: TableId, rows: StoredRows },
}

impl Source {
    /// Takes the next rows from one end, in the order of that end.
    fn fill(&mut self, end: End, into: &mut VecDeque<Row>) -> Result<(), EngineError> {
        match self {
            Self::Stored { table, rows } => {
                let row = rows.next(matches!(end, End::Back), |key| RowKey::new(*table, key))?;
                into.extend(row.map(|(key, value)| (key, Some(value))));
            }
            Self::Map { map, lower, upper, chunk_rows } => {
                // Both ends share the bounds: once they have met nothing is left.
                if is_empty(lower.as_ref(), upper.as_ref()) {
                    return Ok(());
                }
                let rows = map.range(lower.as_ref(), upper.as_ref()).map(|(key, value)| (key.clone(), value.clone()));
                match end {
                    End::Front => into.extend(rows.take(*chunk_rows)),
                    End::Back => into.extend(rows.rev().take(*chunk_rows)),
                }
                if let Some((last, _)) = into.back() {
                    let bound = if matches!(end, End::Front) { lower } else { upper };
                    *bound = Bound::Excluded(last.clone());
                }
                *chunk_rows = (*chunk_rows * 2).min(CHUNK_ROWS_MAX);
            }
        }
        Ok(())
    }
}

/// One source with what was read from it but not yielded yet.
#[derive(Debug)]
struct Layer {
    source: Source,
    /// Ascending.
    front: VecDeque<Row>,
    /// Descending.
    back: VecDeque<Row>,
}

impl Layer {
    fn new(source: Source) -> Self {
        Self { source, front: VecDeque::new(), back: VecDeque::new() }
    }

    /// Sees to it that [`Self::key`] knows the next row at this end, if there is one.
    fn prepare(&mut self, end: End) -> Result<(), EngineError> {
        let (this, other) = match end {
            End::Front => (&mut self.front, &mut self.back),
            End::Back => (&mut self.back, &mut self.front),
        };
        if this.is_empty() {
            self.source.fill(end, this)?;
        }
        if this.is_empty() {
            // The source is used up; what the other end read ahead and did not yield is next.
            this.extend(other.pop_back());
        }
        Ok(())
    }

    fn key(&self, end: End) -> Option<&RowKey> {
        self.rows(end).front().map(|(key, _)| key)
    }

    fn take(&mut self, end: End) -> Option<Row> {
        match end {
            End::Front => self.front.pop_front(),
            End::Back => self.back.pop_front(),
        }
    }

    fn rows(&self, end: End) -> &VecDeque<Row> {
        match end {
            End::Front => &self.front,
            End::Back => &self.back,
        }
    }
}

/// Whether nothing can be between two bounds.
fn is_empty<T: Ord + ?Sized>(lower: Bound<&T>, upper: Bound<&T>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(up)) => low > up,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(up) | Bound::Excluded(up)) => low >= up,
    }
}

/// The same bounds among the rows of all tables.
fn row_bounds(table: TableId, (lower, upper): KeyBounds<'_>) -> (Bound<RowKey>, Bound<RowKey>) {
    let lower = match lower.map(|key| RowKey::new(table, key)) {
        Bound::Unbounded => Bound::Included(RowKey::table_start(table)),
        bound @ (Bound::Included(_) | Bound::Excluded(_)) => bound,
    };
    let upper = match upper.map(|key| RowKey::new(table, key)) {
        Bound::Unbounded => Bound::Excluded(RowKey::table_start(table.next())),
        bound @ (Bound::Included(_) | Bound::Excluded(_)) => bound,
    };
    (lower, upper)
}
