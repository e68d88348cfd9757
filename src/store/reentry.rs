//! Which stores' closures, guards and wakers the current thread is running: a blocking call of such a store could never
//! end, so it is refused instead.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::base::sync::thread_local;

thread_local! {
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The thread is inside the store until this is dropped.
#[derive(Debug)]
#[must_use = "the thread is inside for as long as this lives"]
pub(super) struct Inside(());

/// Marks the current thread as being inside a store, known by its number.
pub(super) fn enter(store: usize) -> Inside {
    INSIDE.with(|inside| inside.borrow_mut().push(store));
    Inside(())
}

/// The current thread is inside this store.
pub(super) fn inside(store: usize) -> bool {
    INSIDE.with(|inside| inside.borrow().contains(&store))
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.borrow_mut().pop());
    }
}

thread_local! {
    static GUARDING: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The thread is asking a replay guard until this is dropped.
#[derive(Debug)]
#[must_use = "the thread is asking for as long as this lives"]
pub(super) struct Guarding(());

/// Marks the current thread as asking a store's replay guard. Whatever would ask it again would do so for ever.
pub(super) fn enter_guard(store: usize) -> Guarding {
    GUARDING.with(|guarding| guarding.borrow_mut().push(store));
    Guarding(())
}

/// The current thread is asking this store's replay guard.
pub(super) fn guarding(store: usize) -> bool {
    GUARDING.with(|guarding| guarding.borrow().contains(&store))
}

impl Drop for Guarding {
    fn drop(&mut self) {
        GUARDING.with(|guarding| guarding.borrow_mut().pop());
    }
}

/// Drops what a user gave. A destructor that panics stops nobody.
pub(super) fn drop_quietly<T>(value: T) {
    if catch_unwind(AssertUnwindSafe(|| drop(value))).is_err() {
        tracing::error!("a destructor in something that was handed to the store panicked");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_a_store_for_as_long_as_its_mark_lives() {
        assert!(!inside(1));
        {
            let _one = enter(1);
            let _two = enter(2);
            assert!(inside(1) && inside(2) && !inside(3));
        }
        assert!(!inside(1) && !inside(2));
    }
}
