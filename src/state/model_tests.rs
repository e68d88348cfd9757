//! Layers against a model: whatever was written where, reading the layers is reading one ordered map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;

use super::testing::{at, empty_base, engine};
use super::{ALL, Bytes, Engine, FoldDurability, KeyBounds, MemoryMap, Overlay, RowKey, Rows, Snapshot, TableId, View};

/// `None` removes. Keys are few, so that layers overlap, and of several lengths, so that they are inline and not.
type Writes = Vec<(Vec<u8>, Option<u8>)>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type OwnedBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(0..4u8, 0..3),
        1 => (0..8u8).prop_map(|last| { let mut key = vec![1; 60]; key.push(last); key }),
    ]
}

fn writes(max: usize) -> impl Strategy<Value = Writes> {
    prop::collection::vec((key(), prop::option::weighted(0.6, any::<u8>())), 0..max)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        1 => Just(Bound::Unbounded),
        2 => key().prop_map(Bound::Included),
        2 => key().prop_map(Bound::Excluded),
    ]
}

fn as_ref(bounds: &OwnedBounds) -> KeyBounds<'_> {
    (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice))
}

fn to_map(table: TableId, writes: &Writes) -> MemoryMap {
    let mut map = MemoryMap::new();
    for (key, value) in writes {
        map.set(RowKey::new(table, key), value.map(|value| Bytes::from(vec![value])));
    }
    map
}

fn apply(model: &mut Model, writes: &Writes) {
    for (key, value) in writes {
        match value {
            Some(value) => drop(model.insert(key.clone(), vec![*value])),
            None => drop(model.remove(key)),
        }
    }
}

/// Two neighbouring tables hold rows with the same keys, so that a range that leaves its table is noticed.
fn base(rows: &Writes) -> (Engine, Arc<Snapshot>, TableId) {
    let engine = engine();
    let ids = ["before", "t", "after"].map(|name| engine.catalog().intern(name).unwrap());
    for (id, sequence) in ids.into_iter().zip(1..) {
        engine.fold(&to_map(id, rows), at(sequence), FoldDurability::Volatile).unwrap();
    }
    let snapshot = engine.snapshot().unwrap();
    (engine, snapshot, ids[1])
}

fn model_range(model: &Model, bounds: &OwnedBounds) -> Vec<(Vec<u8>, Vec<u8>)> {
    let inside = |key: &Vec<u8>| {
        (match &bounds.0 {
            Bound::Unbounded => true,
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
        }) && (match &bounds.1 {
            Bound::Unbounded => true,
            Bound::Included(up) => key <= up,
            Bound::Excluded(up) => key < up,
        })
    };
    model.iter().filter(|(key, _)| inside(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn row(row: Result<(RowKey, Bytes), super::EngineError>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = row.unwrap();
    (key.key().to_vec(), value.to_vec())
}

/// Reads a range from both ends in the given order of turns, then what is left from the front.
fn read_in_turns(rows: &impl Rows, table: TableId, bounds: &OwnedBounds, turns: &[bool]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut range = rows.range(table, as_ref(bounds)).unwrap();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    for from_back in turns {
        if *from_back {
            back.extend(range.next_back().map(row));
        } else {
            front.extend(range.next().map(row));
        }
    }
    front.extend(range.map(row));
    front.extend(back.into_iter().rev());
    front
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn three_layers_read_as_one_ordered_map(
        stored in writes(24),
        frozen in prop::option::of(writes(24)),
        active in writes(24),
        bounds in (bound(), bound()),
        turns in prop::collection::vec(any::<bool>(), 0..40),
        asked in key(),
    ) {
        let (_engine, base, table) = base(&stored);
        let mut model = Model::new();
        apply(&mut model, &stored);
        if let Some(frozen) = &frozen {
            apply(&mut model, frozen);
        }
        apply(&mut model, &active);
        let frozen = frozen.map(|writes| to_map(table, &writes));
        let view = View { active: to_map(table, &active), frozen, base };

        let expected = model_range(&model, &bounds);
        let forward: Vec<_> = view.range(table, as_ref(&bounds)).unwrap().map(row).collect();
        prop_assert_eq!(&forward, &expected);
        let mut backward: Vec<_> = view.range(table, as_ref(&bounds)).unwrap().rev().map(row).collect();
        backward.reverse();
        prop_assert_eq!(&backward, &expected);
        prop_assert_eq!(read_in_turns(&view, table, &bounds, &turns), expected);

        prop_assert_eq!(view.get(table, &asked).unwrap().map(|value| value.to_vec()), model.get(&asked).cloned());
        prop_assert_eq!(view.len(table).unwrap(), model.len() as u64);
    }

    #[test]
    fn an_overlay_reads_its_own_writes_and_leaves_the_view_alone(
        stored in writes(24),
        active in writes(24),
        written in writes(24),
    ) {
        let (_engine, base, table) = base(&stored);
        let view = View { active: to_map(table, &active), frozen: None, base };
        let before: Vec<_> = view.range(table, ALL).unwrap().map(row).collect();
        let mut model = Model::new();
        for writes in [&stored, &active, &written] {
            apply(&mut model, writes);
        }
        let mut overlay = Overlay::new(&view);
        for (key, value) in &written {
            match value {
                Some(value) => overlay.set(RowKey::new(table, key), Some(Bytes::from(vec![*value]))),
                None => overlay.set(RowKey::new(table, key), None),
            }
        }
        let expected: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(overlay.range(table, ALL).unwrap().map(row).collect::<Vec<_>>(), expected);
        prop_assert_eq!(overlay.len(table).unwrap(), model.len() as u64);
        for key in model.keys() {
            prop_assert_eq!(overlay.get(table, key).unwrap().map(|value| value.to_vec()), model.get(key).cloned());
        }
        let mut applied = Overlay::new(&view);
        applied.apply(&to_map(table, &written));
        prop_assert_eq!(applied.into_map().iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(),
            overlay.into_map().iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        prop_assert_eq!(view.range(table, ALL).unwrap().map(row).collect::<Vec<_>>(), before);
    }

    #[test]
    fn folding_changes_where_rows_are_and_not_what_is_read(
        stored in writes(24),
        frozen in writes(24),
        active in writes(24),
    ) {
        let engine = engine();
        let table = engine.catalog().intern("t").unwrap();
        engine.fold(&to_map(table, &stored), at(1), FoldDurability::Volatile).unwrap();
        let before = View {
            active: to_map(table, &active),
            frozen: Some(to_map(table, &frozen)),
            base: engine.snapshot().unwrap(),
        };
        let read = |view: &View| view.range(table, ALL).unwrap().map(row).collect::<Vec<_>>();
        let expected = read(&before);
        engine.fold(&to_map(table, &frozen), at(2), FoldDurability::Volatile).unwrap();
        prop_assert_eq!(&read(&before), &expected, "the old view still reads its own snapshot");
        let after = View { frozen: None, base: engine.snapshot().unwrap(), ..before };
        prop_assert_eq!(read(&after), expected);
    }
}

#[test]
fn a_row_that_was_looked_up_before_it_was_written_is_read_as_written() {
    let (_engine, base, table) = base(&vec![(vec![1], Some(1)), (vec![2], Some(2))]);
    let mut overlay = Overlay::new(&View::new(base));
    let get = |overlay: &Overlay, key: u8| overlay.get(table, &[key]).unwrap().map(|value| value.to_vec());
    for _ in 0..2 {
        assert_eq!([1, 2, 3].map(|key| get(&overlay, key)), [Some(vec![1]), Some(vec![2]), None]);
    }
    assert_eq!(get(&overlay, 3), None);
    overlay.set(RowKey::new(table, &[3]), Some(vec![30].into()));
    assert_eq!(get(&overlay, 3), Some(vec![30]));
    assert_eq!(get(&overlay, 2), Some(vec![2]));
    overlay.set(RowKey::new(table, &[2]), None);
    assert_eq!([1, 2, 3].map(|key| get(&overlay, key)), [Some(vec![1]), None, Some(vec![30])]);
}

#[test]
fn a_range_shows_the_moment_it_was_made() {
    let (_engine, base, table) = empty_base();
    let mut overlay = Overlay::new(&View::new(base));
    for key in 0..100u8 {
        overlay.set(RowKey::new(table, &[key]), Some(vec![key].into()));
    }
    let mut range = overlay.range(table, ALL).unwrap();
    assert_eq!(row(range.next().unwrap()).0, [0]);
    for key in 0..100u8 {
        overlay.set(RowKey::new(table, &[key]), None);
    }
    overlay.set(RowKey::new(table, &[200]), Some(vec![1].into()));
    assert_eq!(range.map(row).count(), 99);
    assert_eq!(overlay.range(table, ALL).unwrap().map(row).count(), 1);
}

#[test]
fn a_long_range_is_whole_from_both_ends() {
    let (_engine, base, table) = empty_base();
    let mut overlay = Overlay::new(&View::new(base));
    for key in 0..10_000u16 {
        overlay.set(RowKey::new(table, &key.to_be_bytes()), Some(vec![0].into()));
    }
    let mut range = overlay.range(table, ALL).unwrap();
    let mut seen = Vec::new();
    while let Some(front) = range.next() {
        seen.push(row(front).0);
        seen.extend(range.next_back().map(|back| row(back).0));
    }
    assert!(range.next().is_none() && range.next_back().is_none());
    seen.sort();
    let expected: Vec<_> = (0..10_000u16).map(|key| key.to_be_bytes().to_vec()).collect();
    assert_eq!(seen, expected);
}

#[test]
fn inverted_bounds_are_an_empty_range() {
    let (_engine, base, table) = base(&vec![(vec![1], Some(1)), (vec![2], Some(2)), (vec![3], Some(3))]);
    let mut view = View::new(base);
    view.active.insert(RowKey::new(table, &[2]), vec![0].into());
    let (low, high): (&[u8], &[u8]) = (&[1], &[3]);
    for bounds in [
        (Bound::Included(high), Bound::Included(low)),
        (Bound::Excluded(high), Bound::Excluded(low)),
        (Bound::Excluded(low), Bound::Excluded(low)),
        (Bound::Included(low), Bound::Excluded(low)),
        (Bound::Excluded(low), Bound::Included(low)),
    ] {
        assert_eq!(view.range(table, bounds).unwrap().count(), 0, "{bounds:?}");
    }
    assert_eq!(view.range(table, (Bound::Included(low), Bound::Included(low))).unwrap().count(), 1);
}
