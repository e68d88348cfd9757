//! The tree file: what is there after which kind of stop.

mod shared_file;

use std::ops::Bound;
use std::sync::Arc;

use ::redb::backends::InMemoryBackend;

use self::shared_file::SharedFile;
use super::*;
use crate::state::testing::{CACHE_BYTES, META, at, catalog};
use crate::state::{Bytes, RowKey, TableId};

fn create(file: &SharedFile) -> Engine {
    Engine::create(file.clone(), catalog(), META, CACHE_BYTES).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<(Engine, Arc<Snapshot>), EngineError> {
    Engine::open(SharedFile::with(bytes), catalog(), META.store_id, CACHE_BYTES)
}

fn put(map: &mut MemoryMap, table: TableId, key: &str, value: &str) {
    map.insert(RowKey::new(table, key.as_bytes()), Bytes::from(value.as_bytes()));
}

fn get(snapshot: &Snapshot, table: TableId, key: &str) -> Option<String> {
    snapshot.get(table, key.as_bytes()).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// One checkpoint at sequence 5 with `a` and `b`, then one volatile fold at 6 that removes `a`.
fn two_folds(file: &SharedFile) -> Engine {
    let engine = create(file);
    let table = engine.catalog().intern("orders").unwrap();
    let mut map = MemoryMap::new();
    put(&mut map, table, "a", "1");
    put(&mut map, table, "b", "2");
    engine.fold(&map, at(5), FoldDurability::Checkpoint).unwrap();
    let mut map = MemoryMap::new();
    map.remove_mark(RowKey::new(table, b"a"));
    engine.fold(&map, at(6), FoldDurability::Volatile).unwrap();
    engine
}

#[test]
fn a_fold_is_there_after_reopening_with_its_metadata() {
    let file = SharedFile::default();
    let engine = two_folds(&file);
    let meta = Meta { clock_mark_ms: 99, ..at(7) };
    engine.fold(&MemoryMap::new(), meta, FoldDurability::Checkpoint).unwrap();
    file.refuse();
    drop(engine);
    let (engine, snapshot) = open(file.synced()).unwrap();
    let table = engine.catalog().id("orders").expect("stored names join the catalog");
    assert_eq!(snapshot.meta(), meta);
    assert_eq!(get(&snapshot, table, "a"), None, "deletions persist");
    assert_eq!(get(&snapshot, table, "b").as_deref(), Some("2"));
    assert_eq!(snapshot.len(table).unwrap(), 1);
}

#[test]
fn a_volatile_fold_is_visible_at_once_and_gone_after_a_loss_of_power() {
    let file = SharedFile::default();
    let engine = two_folds(&file);
    let table = engine.catalog().id("orders").unwrap();
    assert_eq!(get(&engine.snapshot().unwrap(), table, "a"), None);
    assert_eq!(engine.snapshot().unwrap().meta(), at(6));
    file.refuse();
    assert!(engine.close().is_err(), "redb wanted to commit on its way out");
    for bytes in [file.synced(), file.cached()] {
        let (_engine, snapshot) = open(bytes).unwrap();
        assert_eq!(snapshot.meta(), at(5), "E1: rows and metadata are of one commit");
        assert_eq!(get(&snapshot, table, "a").as_deref(), Some("1"));
    }
}

#[test]
fn a_volatile_fold_does_not_sync_and_a_checkpoint_syncs_in_two_phases() {
    let file = SharedFile::default();
    let engine = two_folds(&file);
    let before = file.syncs();
    engine.fold(&MemoryMap::new(), at(7), FoldDurability::Volatile).unwrap();
    assert_eq!(file.syncs(), before);
    engine.fold(&MemoryMap::new(), at(8), FoldDurability::Checkpoint).unwrap();
    assert!(file.syncs() >= before + 2, "E2");
}

#[test]
fn a_snapshot_is_isolated_from_later_folds() {
    let engine = two_folds(&SharedFile::default());
    let table = engine.catalog().id("orders").unwrap();
    let snapshot = engine.snapshot().unwrap();
    let later_table = engine.catalog().intern("later").unwrap();
    let mut map = MemoryMap::new();
    put(&mut map, table, "a", "new");
    put(&mut map, later_table, "x", "new");
    engine.fold(&map, at(7), FoldDurability::Checkpoint).unwrap();
    assert_eq!(get(&snapshot, table, "a"), None);
    assert_eq!(get(&snapshot, later_table, "x"), None, "a table that did not exist is empty");
    assert_eq!(snapshot.len(later_table).unwrap(), 0);
    assert!(snapshot.range(later_table, Bound::Unbounded, Bound::Unbounded).unwrap().is_none());
    assert_eq!(snapshot.meta(), at(6));
    assert_eq!(get(&engine.snapshot().unwrap(), later_table, "x").as_deref(), Some("new"));
}

#[test]
fn a_snapshot_that_outlives_its_engine_is_an_error_and_never_stale_pages() {
    let engine = two_folds(&SharedFile::default());
    let table = engine.catalog().id("orders").unwrap();
    let snapshot = engine.snapshot().unwrap();
    drop(engine);
    let reads = [snapshot.get(table, b"b").map(drop), snapshot.len(table).map(drop)];
    for read in reads {
        assert!(matches!(read, Ok(()) | Err(EngineError::Closed)), "{read:?}");
    }
}

#[test]
fn opening_never_creates() {
    assert!(matches!(open(Vec::new()), Err(EngineError::Empty)), "E3");
    assert!(matches!(open(vec![0; 100_000]), Err(EngineError::Io { .. } | EngineError::Redb { .. })));
    let foreign = SharedFile::default();
    drop(::redb::Database::builder().create_with_backend(foreign.clone()).unwrap());
    assert!(matches!(open(foreign.cached()), Err(EngineError::NoMeta)));
}

#[test]
fn creating_never_overwrites() {
    let file = SharedFile::with(vec![0; 10]);
    let refused = Engine::create(file.clone(), catalog(), META, CACHE_BYTES);
    assert!(matches!(refused, Err(EngineError::NotEmpty(10))));
    assert_eq!(file.cached(), vec![0; 10]);
}

#[test]
fn the_tree_of_another_store_is_refused() {
    let file = SharedFile::default();
    drop(create(&file));
    let other = Engine::open(file, catalog(), 8, CACHE_BYTES);
    assert!(matches!(other, Err(EngineError::OtherStore { found: 7, expected: 8 })));
}

#[test]
fn a_fold_never_goes_back_and_changes_nothing_when_it_is_refused() {
    let engine = two_folds(&SharedFile::default());
    let table = engine.catalog().id("orders").unwrap();
    let mut map = MemoryMap::new();
    put(&mut map, table, "b", "older");
    let refused = engine.fold(&map, at(5), FoldDurability::Checkpoint);
    assert!(matches!(refused, Err(EngineError::Backwards { sequence: 6, to_sequence: 5, .. })), "E4");
    assert_eq!(get(&engine.snapshot().unwrap(), table, "b").as_deref(), Some("2"));
    let other = Meta { store_id: 8, ..at(7) };
    let refused = engine.fold(&map, other, FoldDurability::Checkpoint);
    assert!(matches!(refused, Err(EngineError::OtherStore { .. })));
    let restored = Meta { epoch: 2, ..at(1) };
    engine.fold(&map, restored, FoldDurability::Checkpoint).expect("a later epoch may start at any sequence");
}

#[test]
fn a_panic_below_redb_is_a_typed_error() {
    let file = SharedFile::default();
    let engine = two_folds(&file);
    file.panic(true);
    let result = engine.fold(&MemoryMap::new(), at(7), FoldDurability::Checkpoint);
    assert!(matches!(result, Err(EngineError::Panicked { .. })), "E5: {result:?}");
    file.panic(false);
    file.refuse();
    drop(engine);
    assert_eq!(open(file.synced()).unwrap().1.meta(), at(5));
}

#[test]
fn a_failed_sync_is_an_error_and_the_last_checkpoint_stays() {
    let file = SharedFile::default();
    let engine = two_folds(&file);
    file.refuse();
    assert!(engine.fold(&MemoryMap::new(), at(7), FoldDurability::Checkpoint).is_err());
    drop(engine);
    assert_eq!(open(file.synced()).unwrap().1.meta(), at(5));
}

/// Damage anywhere must be an error or go unnoticed at open (values carry checksums of their own); it must never be a
/// panic, neither then nor when rows are read. Folds are left out: see the module's documentation.
#[test]
fn a_damaged_file_never_panics() {
    let read_all = |(engine, snapshot): (Engine, Arc<Snapshot>)| {
        for (table, _) in engine.catalog().all() {
            drop(snapshot.get(table, b"b"));
            drop(snapshot.len(table));
            let Ok(Some(mut rows)) = snapshot.range(table, Bound::Unbounded, Bound::Unbounded) else { continue };
            // Bounded: a damaged tree may lead in circles.
            for _ in 0..10 {
                if !matches!(rows.next(false, |_| ()), Ok(Some(_))) {
                    break;
                }
            }
        }
    };
    let file = SharedFile::default();
    let engine = two_folds(&file);
    engine.fold(&MemoryMap::new(), at(7), FoldDurability::Checkpoint).unwrap();
    file.refuse();
    drop(engine);
    let good = file.synced();
    let in_use = good.iter().rposition(|byte| *byte != 0).unwrap();
    for offset in (0..in_use).step_by(37) {
        let mut bad = good.clone();
        bad[offset] ^= 0xFF;
        drop(open(bad.clone()).map(read_all));
        drop(check_copy(SharedFile::with(bad), CACHE_BYTES));
    }
    for len in [1, 100, 4096, good.len() / 2, good.len() - 1] {
        drop(open(good[..len].to_vec()).map(read_all));
    }
}

#[test]
fn checking_a_copy_finds_damage_that_opening_does_not() {
    let file = SharedFile::default();
    let engine = create(&file);
    let table = engine.catalog().intern("orders").unwrap();
    let mut map = MemoryMap::new();
    for index in 0..500 {
        put(&mut map, table, &format!("key-{index:04}"), "a value that can be found in the file");
    }
    engine.fold(&map, at(1), FoldDurability::Checkpoint).unwrap();
    file.refuse();
    drop(engine);
    let good = file.synced();
    let check = check_copy(SharedFile::with(good.clone()), CACHE_BYTES).unwrap();
    assert_eq!(check, CopyCheck { clean: true, meta: at(1), rows: 500 });

    let mut bad = good;
    let at = bad.windows(8).position(|window| window == b"key-0300").unwrap();
    bad[at] ^= 1;
    open(bad.clone()).expect("an open does not read every page");
    let found = check_copy(SharedFile::with(bad), CACHE_BYTES);
    assert!(!matches!(found, Ok(CopyCheck { clean: true, .. })), "{found:?}");
}

#[test]
fn an_engine_works_on_redbs_own_memory_backend() {
    let engine = Engine::create(InMemoryBackend::new(), catalog(), META, CACHE_BYTES).unwrap();
    assert_eq!(engine.snapshot().unwrap().meta(), META);
}
