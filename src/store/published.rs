//! What readers see: one pointer, loaded once for each read. Only the writer publishes.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use crate::base::position::Position;
use crate::base::sync::{Condvar, Mutex, RwLock};
use crate::state::View;

/// One durable state of the store.
#[derive(Debug)]
pub(super) struct Published {
    pub(super) view: View,
    /// The last entry that is part of it; sequence 0 before the first.
    pub(super) position: Position,
}

/// Where the writer puts the newest state, and where followers wait for it.
#[derive(Debug)]
pub(super) struct Publisher {
    current: RwLock<Arc<Published>>,
    followers: Followers,
}

#[derive(Debug, Default)]
struct Followers {
    state: Mutex<FollowersState>,
    moved: Condvar,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct FollowersState {
    sequence: u64,
    ended: bool,
    /// Of the followers that wait without blocking, by their numbers.
    wakers: HashMap<u64, Waker>,
}

/// What a follower waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// There are entries up to this sequence.
    Up(u64),
    /// There will be no more.
    Ended,
}

impl Publisher {
    pub(super) fn new(first: Published) -> Self {
        let state = FollowersState { sequence: first.position.sequence, ..FollowersState::default() };
        let followers = Followers { state: Mutex::new(state), ..Followers::default() };
        Self { current: RwLock::new(Arc::new(first)), followers }
    }

    pub(super) fn load(&self) -> Arc<Published> {
        Arc::clone(&self.current.read())
    }

    /// Makes a state visible and gives back the one before it.
    pub(super) fn publish(&self, next: Published) -> Arc<Published> {
        let sequence = next.position.sequence;
        let next = Arc::new(next);
        let previous = std::mem::replace(&mut *self.current.write(), next);
        if previous.position.sequence != sequence {
            self.move_to(sequence);
        }
        previous
    }

    fn move_to(&self, sequence: u64) {
        let wakers = {
            let mut state = self.followers.state.lock();
            state.sequence = sequence;
            std::mem::take(&mut state.wakers)
        };
        self.wake(wakers);
    }

    /// No entry will follow: every follower is told.
    pub(super) fn end(&self) {
        let wakers = {
            let mut state = self.followers.state.lock();
            state.ended = true;
            std::mem::take(&mut state.wakers)
        };
        self.wake(wakers);
    }

    /// Wakes outside the lock; a waker that panics stops nobody.
    fn wake(&self, wakers: HashMap<u64, Waker>) {
        self.followers.moved.notify_all();
        for waker in wakers.into_values() {
            if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake())).is_err() {
                tracing::error!("a follower's waker panicked");
            }
        }
    }

    /// Blocks until there is an entry after `seen`.
    pub(super) fn wait_beyond(&self, seen: u64) -> Moved {
        let mut state = self.followers.state.lock();
        self.followers.moved.wait_while(&mut state, |state| state.sequence <= seen && !state.ended);
        state.beyond(seen).unwrap_or(Moved::Ended)
    }

    /// A follower's number, under which it waits without blocking.
    pub(super) fn enter(&self) -> u64 {
        self.followers.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The follower waits no more.
    pub(super) fn leave(&self, follower: u64) {
        let waker = self.followers.state.lock().wakers.remove(&follower);
        drop(waker);
    }

    /// The same as [`Publisher::wait_beyond`] for an async caller.
    pub(super) fn poll_beyond(&self, follower: u64, seen: u64, context: &mut Context<'_>) -> Poll<Moved> {
        let waker = context.waker().clone();
        let mut state = self.followers.state.lock();
        match state.beyond(seen) {
            Some(moved) => Poll::Ready(moved),
            None => {
                let old = state.wakers.insert(follower, waker);
                drop(state);
                drop(old);
                Poll::Pending
            }
        }
    }
}

impl FollowersState {
    fn beyond(&self, seen: u64) -> Option<Moved> {
        if self.sequence > seen {
            Some(Moved::Up(self.sequence))
        } else if self.ended {
            Some(Moved::Ended)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;
    use std::task::Wake;

    use super::*;
    use crate::state::{Catalog, Engine, Meta};

    struct Witness;

    impl Wake for Witness {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_follower_that_leaves_takes_its_waker_along_and_one_that_polls_again_has_one() {
        let meta = Meta {
            store_id: 1,
            epoch: 1,
            applied_epoch: 0,
            applied_sequence: 0,
            clock_mark_ms: 0,
            clock_trusted_ms: 0,
            log_floor: 1,
        };
        let engine = Engine::create_in_memory(Arc::new(Catalog::new(&[])), meta).unwrap();
        let position = Position { epoch: 1, sequence: 0 };
        let publisher = Publisher::new(Published { view: View::new(engine.snapshot().unwrap()), position });
        let follower = publisher.enter();
        let mut wakers: Vec<Weak<Witness>> = Vec::new();
        for _ in 0..3 {
            let witness = Arc::new(Witness);
            wakers.push(Arc::downgrade(&witness));
            let waker = Waker::from(witness);
            assert!(publisher.poll_beyond(follower, 0, &mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(wakers.iter().filter(|waker| waker.strong_count() > 0).count(), 1);
        publisher.leave(follower);
        assert!(wakers.iter().all(|waker| waker.strong_count() == 0));
    }
}
