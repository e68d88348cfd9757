//! Applies a log to an empty state and compares: applying is one piece of code, and the log alone is enough for it.

use std::sync::{Arc, LazyLock};

use crate::base::position::Position;
use crate::log::LogReader;
use crate::log::record::Record;
use crate::state::{ALL, Catalog, Engine, Meta, Overlay, Rows, Snapshot, View};

use super::Store;
use super::apply::{FrameFacts, apply};
use super::rows::SYSTEM_TABLES;

/// A state without rows. Made once: it never changes, and tests apply thousands of logs to it.
static EMPTY: LazyLock<(Engine, Arc<Snapshot>)> = LazyLock::new(|| {
    let meta = Meta {
        store_id: 0,
        epoch: 1,
        applied_epoch: 0,
        applied_sequence: 0,
        clock_mark_ms: 0,
        clock_trusted_ms: 0,
        log_floor: 1,
    };
    let catalog = Arc::new(Catalog::new(&SYSTEM_TABLES));
    let engine = Engine::create_in_memory(catalog, meta).expect("an empty state is made");
    let snapshot = engine.snapshot().expect("an empty state is read");
    (engine, snapshot)
});

/// An empty state, of which nothing that is applied to it can be seen elsewhere.
fn empty_state() -> (Arc<Catalog>, Overlay) {
    (Arc::new(Catalog::new(&SYSTEM_TABLES)), Overlay::new(&View::new(Arc::clone(&EMPTY.1))))
}

/// Applies one record to an empty state, twice, as the receipt of a key that expired is replaced. Refused or not, it
/// panics nowhere, and what is refused changes nothing.
#[cfg(feature = "testing")]
pub(crate) fn apply_to_nothing(record: &Record) {
    let (catalog, mut state) = empty_state();
    for sequence in [1, 2] {
        let before = state.view().active.bytes();
        let facts = FrameFacts { position: Position { epoch: 1, sequence }, time_ms: sequence };
        let applied = apply(&mut state, &catalog, facts, record);
        assert!(applied.is_ok() || state.view().active.bytes() == before, "a record was applied in part");
    }
}

impl Store {
    /// Panics unless the log gives the state. One that is not retained from its first entry cannot, and proves nothing.
    pub(crate) fn assert_log_gives_state(&self) {
        let shared = self.shared();
        if shared.history.floor() > 1 {
            return;
        }
        let published = shared.publisher.load();
        let (catalog, mut replayed) = empty_state();
        let mut reader =
            LogReader::open(Arc::clone(&shared.disk), shared.store_id, 1).expect("the log begins with entry 1");
        while let Some(frame) = reader.next(published.position.sequence).expect("the log can be read") {
            let position = Position { epoch: frame.header.epoch, sequence: frame.header.sequence };
            let record = Record::from_bytes(&frame.payload).expect("the record can be read");
            let facts = FrameFacts { position, time_ms: frame.header.time_ms };
            apply(&mut replayed, &catalog, facts, &record).expect("the record can be applied");
        }
        for (id, name) in shared.catalog.all() {
            let stored = published.view.range(id, ALL).expect("the state is read");
            let stored: Vec<_> = stored
                .map(|row| row.map(|(key, value)| (key.key().to_vec(), value.to_vec())).expect("a row"))
                .collect();
            let other = catalog.id(&name).map_or_else(Vec::new, |id| {
                let rows = replayed.view().range(id, ALL).expect("the replayed state is read");
                rows.map(|row| row.map(|(key, value)| (key.key().to_vec(), value.to_vec())).expect("a row")).collect()
            });
            assert!(stored == other, "table {name} of the state differs from what the log gives");
        }
    }
}
