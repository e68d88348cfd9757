//! The calls that are under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use crate::base::sync::{Condvar, Mutex};
use crate::store::{EffectId, Lease};

/// Calls by number, shared between the pump and the threads that make them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    state: Mutex<CallsState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CallsState {
    next: u64,
    running: HashMap<u64, Call>,
    /// Calls that took too long and have not returned, by provider.
    abandoned: HashMap<String, usize>,
    /// Something happened since the pump looked.
    poked: bool,
    stopping: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) lease: Lease,
    /// On the store's monotonic clock.
    pub(super) until: Duration,
}

impl Calls {
    pub(super) fn begin(&self, lease: &Lease, until: Duration) -> u64 {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.running.insert(number, Call { lease: lease.clone(), until });
        number
    }

    /// A call has returned. `false` if it was given up before.
    pub(super) fn end(&self, number: u64, provider: &str) -> bool {
        let mut state = self.state.lock();
        let in_time = state.running.remove(&number).is_some();
        if !in_time && let Some(count) = state.abandoned.get_mut(provider) {
            *count = count.saturating_sub(1);
        }
        state.poked = true;
        drop(state);
        self.changed.notify_all();
        in_time
    }

    /// Gives up the calls whose time is over.
    pub(super) fn give_up(&self, now: Duration) -> Vec<Lease> {
        let mut state = self.state.lock();
        let over: Vec<u64> =
            state.running.iter().filter(|(_, call)| call.until <= now).map(|(number, _)| *number).collect();
        let mut leases = Vec::new();
        for number in over {
            if let Some(call) = state.running.remove(&number) {
                *state.abandoned.entry(call.lease.provider.clone()).or_default() += 1;
                leases.push(call.lease);
            }
        }
        leases
    }

    /// Of one provider: calls under way, effects asked for, and calls that were given up.
    pub(super) fn of(&self, provider: &str) -> (usize, Vec<EffectId>, usize) {
        let state = self.state.lock();
        let running = state.running.values().filter(|call| call.lease.provider == provider);
        let busy: Vec<EffectId> = running.map(|call| call.lease.id).collect();
        (busy.len(), busy, state.abandoned.get(provider).copied().unwrap_or(0))
    }

    pub(super) fn running(&self) -> usize {
        self.state.lock().running.len()
    }

    pub(super) fn abandoned(&self) -> usize {
        self.state.lock().abandoned.values().sum()
    }

    /// When the first of the calls is given up.
    pub(super) fn first_until(&self) -> Option<Duration> {
        self.state.lock().running.values().map(|call| call.until).min()
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Waits until something happens or the time is over.
    pub(super) fn wait(&self, time: Duration) {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.poked && !state.stopping, time);
        state.poked = false;
    }

    /// Waits for calls to return, while stopping.
    pub(super) fn wait_for_return(&self, time: Duration) {
        let mut state = self.state.lock();
        let before = state.running.len();
        self.changed.wait_while_for(&mut state, |state| state.running.len() == before && before > 0, time);
    }
}

/// New entries of the store wake the pump.
impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.state.lock().poked = true;
        self.changed.notify_all();
    }
}
