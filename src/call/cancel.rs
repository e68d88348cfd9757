//! Stopping a call from outside.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Cancels the calls that it was given to. Clones are the same.
///
/// A call that waits ends at once; one that is under way ends as soon as its attempt does, or, where it is awaited, at once.
/// Cancelling undoes nothing: what may have been done stays uncertain.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    cancelled: bool,
    next_id: u64,
    wakers: HashMap<u64, Waker>,
}

impl Cancel {
    /// Nothing is cancelled yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels, for ever.
    pub fn cancel(&self) {
        let wakers = {
            let mut state = self.state();
            state.cancelled = true;
            std::mem::take(&mut state.wakers)
        };
        // Outside the lock: a waker is foreign code.
        wakers.into_values().for_each(Waker::wake);
    }

    /// It was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// One call listens.
    pub(crate) fn listen(&self) -> Listener {
        let mut state = self.state();
        state.next_id += 1;
        Listener { cancel: self.clone(), id: state.next_id }
    }
}

/// One call that can be cancelled. Dropped, it leaves nothing behind: one [`Cancel`] may serve for years.
#[derive(Debug)]
pub(crate) struct Listener {
    cancel: Cancel,
    id: u64,
}

impl Listener {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether it was cancelled; if not, `waker` is woken when it is.
    pub(crate) fn poll(&self, waker: &Waker) -> bool {
        let mut state = self.cancel.state();
        if !state.cancelled {
            state.wakers.insert(self.id, waker.clone());
        }
        state.cancelled
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.cancel.state().wakers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_has_ended_leaves_no_waker_behind() {
        let cancel = Cancel::new();
        let listener = cancel.listen();
        assert!(!listener.poll(Waker::noop()) && !listener.poll(Waker::noop()));
        assert_eq!(cancel.state().wakers.len(), 1);
        drop(listener);
        assert!(cancel.state().wakers.is_empty());
        let late = cancel.listen();
        cancel.cancel();
        assert!(late.is_cancelled() && late.poll(Waker::noop()) && cancel.is_cancelled());
    }
}
