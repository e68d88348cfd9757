//! The fail-stop guard: after a failure of disk or code the store answers what is certain and executes nothing more.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::OnceLock;

use crate::base::name::Slot;

/// Why the store stopped, and whose outcome nobody knows.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) cause: String,
    /// The slots of the batch that was handed to the disk and is not known to be synced.
    pub(super) unknown: HashSet<Slot>,
}

/// Set once, for good: the cure is to reopen the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Poison(Arc<OnceLock<Stopped>>);

impl Poison {
    /// Stops the store. The first cause stays; a second failure is a consequence.
    pub(super) fn set(&self, cause: impl Into<String>, unknown: HashSet<Slot>) {
        let cause = cause.into();
        tracing::error!(%cause, unknown = unknown.len(), "the store stopped; reopen it");
        let stopped = Stopped { cause, unknown };
        if let Err(second) = self.0.set(stopped) {
            tracing::error!(cause = %second.cause, "a further failure after the store stopped");
        }
    }

    pub(super) fn get(&self) -> Option<&Stopped> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays() {
        let poison = Poison::default();
        assert!(poison.get().is_none());
        poison.set("first", HashSet::new());
        poison.set("second", HashSet::new());
        assert_eq!(poison.get().unwrap().cause, "first");
    }
}
