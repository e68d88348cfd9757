//! What readers see: one pointer, loaded once for each read. Only the writer publishes.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Condvar, Mutex, RwLock};

use crate::base::position::Position;
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
}

#[derive(Debug, Default)]
struct FollowersState {
    sequence: u64,
    ended: bool,
    wakers: Vec<Waker>,
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
    fn wake(&self, wakers: Vec<Waker>) {
        self.followers.moved.notify_all();
        for waker in wakers {
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

    /// The same for an async caller.
    pub(super) fn poll_beyond(&self, seen: u64, context: &mut Context<'_>) -> Poll<Moved> {
        let mut state = self.followers.state.lock();
        match state.beyond(seen) {
            Some(moved) => Poll::Ready(moved),
            None => {
                if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                    state.wakers.push(context.waker().clone());
                }
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
