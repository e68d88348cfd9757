//! Holding syncs, so that a test can look at a store while one is under way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;

use super::Shared;
use super::state::{Power, State};

/// After this long without a sync the test is wrong, and a message is better than a hang.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Gate {
    id: u64,
    name_contains: String,
    blocked: usize,
}

/// The gates of one disk.
#[derive(Debug, Default)]
pub(super) struct Gates {
    made: u64,
    closed: Vec<Gate>,
}

impl Gates {
    fn close(&mut self, name_contains: String) -> u64 {
        self.made += 1;
        self.closed.push(Gate { id: self.made, name_contains, blocked: 0 });
        self.made
    }

    fn find(&mut self, id: u64) -> Option<&mut Gate> {
        self.closed.iter_mut().find(|gate| gate.id == id)
    }

    fn before(&mut self, name: &str) -> Option<&mut Gate> {
        self.closed.iter_mut().find(|gate| name.contains(&gate.name_contains))
    }
}

/// Holds every sync of matching files until it is released or dropped.
///
/// A held sync has not begun: it is counted, fails or becomes durable after the release. A crash or a kill meanwhile
/// ends it with an error.
#[must_use = "a dropped gate holds nothing"]
pub struct SyncGate {
    shared: Arc<Shared>,
    id: u64,
}

impl fmt::Debug for SyncGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncGate").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SyncGate {
    pub(super) fn close(shared: &Arc<Shared>, name_contains: &str) -> Self {
        let id = shared.state.lock().gates.close(name_contains.to_owned());
        Self { shared: Arc::clone(shared), id }
    }

    /// Blocks until some thread stands at this gate. Panics when none comes for a minute.
    pub fn wait_until_blocked(&self) {
        let mut state = self.shared.state.lock();
        while state.gates.find(self.id).is_some_and(|gate| gate.blocked == 0) {
            let waited = self.shared.changed.wait_for(&mut state, PATIENCE);
            assert!(!waited.timed_out(), "no thread came to sync a file of the held kind");
        }
    }

    /// How many threads stand at this gate.
    pub fn blocked(&self) -> usize {
        self.shared.state.lock().gates.find(self.id).map_or(0, |gate| gate.blocked)
    }

    /// Lets them through.
    pub fn release(self) {}
}

impl Drop for SyncGate {
    fn drop(&mut self) {
        self.shared.state.lock().gates.closed.retain(|gate| gate.id != self.id);
        self.shared.changed.notify_all();
    }
}

/// Stands before a sync of a file as long as a gate holds it and there is power.
pub(super) fn pass(shared: &Shared, state: &mut MutexGuard<'_, State>, inode: u64, opened_as: &Arc<str>) {
    while state.power == Power::On {
        let name = state.name_of(inode, opened_as);
        let Some(gate) = state.gates.before(&name) else { return };
        let id = gate.id;
        gate.blocked += 1;
        shared.changed.notify_all();
        // Counted and announced once: two threads at one gate that announce themselves again at every bell would ring
        // each other awake for ever.
        while state.power == Power::On && state.gates.find(id).is_some() {
            shared.changed.wait(state);
        }
        if let Some(gate) = state.gates.find(id) {
            gate.blocked -= 1;
        }
    }
}
