//! What the tests of this layer share.

use std::sync::Arc;

use redb::backends::InMemoryBackend;

use super::{Catalog, Engine, Meta, Snapshot, TableId};

pub(super) const META: Meta = Meta {
    store_id: 7,
    epoch: 1,
    applied_epoch: 1,
    applied_sequence: 0,
    clock_mark_ms: 0,
    clock_trusted_ms: 0,
    log_floor: 1,
};

pub(super) const CACHE_BYTES: usize = 1024 * 1024;

pub(super) fn catalog() -> Arc<Catalog> {
    Arc::new(Catalog::new(&["_counterfoil/receipts"]))
}

pub(super) fn engine() -> Engine {
    Engine::create(InMemoryBackend::new(), catalog(), META, CACHE_BYTES).unwrap()
}

/// The tree of a new store, and one table.
pub(super) fn empty_base() -> (Engine, Arc<Snapshot>, TableId) {
    let engine = engine();
    let table = engine.catalog().intern("t").unwrap();
    let snapshot = engine.snapshot().unwrap();
    (engine, snapshot, table)
}

pub(super) fn at(sequence: u64) -> Meta {
    Meta { applied_sequence: sequence, ..META }
}
