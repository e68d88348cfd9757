//! The bulkhead: so many attempts at a time, so many waiting, and everybody else is told at once.
//!
//! One pool for each kind of work, so that a slow export does not take the places of checkouts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::config_error::ConfigError;

/// The most that a pool or its queue may hold: above this it is no limit.
pub const POOL_MAX: usize = 1 << 20;

/// How many attempts may be under way. There is no default: only you know what the other side can take.
#[derive(Clone, Debug)]
pub enum Pool {
    /// As many as come.
    Unlimited,
    /// A bounded number, and a bounded queue.
    Bounded(Bulkhead),
}

impl Pool {
    /// A pool of its own for `permits` attempts at a time and `queue` more that wait.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for no permits, and for more than [`POOL_MAX`] of either. A queue of zero is one where nobody
    /// waits.
    pub fn bounded(permits: usize, queue: usize) -> Result<Self, ConfigError> {
        Bulkhead::new(permits, queue).map(Self::Bounded)
    }
}

/// A bounded pool with a bounded queue, first come first served. Clones are the same pool.
#[derive(Clone, Debug)]
pub struct Bulkhead(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    permits: usize,
    queue_max: usize,
    /// Free permits, times two, and [`QUEUE`]. While there is no queue, permits come and go without a lock.
    free: AtomicUsize,
    /// Waiters that were granted nothing yet, in the order in which they came.
    queue: Mutex<Queue>,
}

type Queue = VecDeque<Arc<Waiter>>;

/// Somebody waits, or is about to: the free permits change under the lock only.
const QUEUE: usize = 1;
const PERMIT: usize = 2;

/// Changed under the lock of the pool's queue only; its own lock is for those who look without it.
#[derive(Debug)]
struct Waiter(Mutex<Waiting>);

#[derive(Debug)]
enum Waiting {
    Queued(Option<Waker>),
    Granted,
    Taken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No foreign code runs under these locks, so nothing is half-done in there.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a pool answers at once.
#[derive(Debug)]
pub(crate) enum Entry {
    Granted(Permit),
    Queued(Place),
    Full,
}

impl Bulkhead {
    /// A pool for `permits` attempts at a time, with a queue for `queue` more.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] for no permits, and for more than [`POOL_MAX`] of either.
    pub fn new(permits: usize, queue: usize) -> Result<Self, ConfigError> {
        if permits == 0 {
            return Err(ConfigError::Zero { what: "the number of permits of a pool" });
        }
        for (what, value) in [("the number of permits of a pool", permits), ("the queue of a pool", queue)] {
            if value > POOL_MAX {
                return Err(ConfigError::TooLarge { what, value: value as u64, most: POOL_MAX as u64 });
            }
        }
        let free = AtomicUsize::new(permits * PERMIT);
        Ok(Self(Arc::new(Inner { permits, queue_max: queue, free, queue: Mutex::default() })))
    }

    /// A permit, or a place in the queue, or neither.
    pub(crate) fn enter(&self) -> Entry {
        self.try_enter().map_or_else(|| self.enter_or_wait(), Entry::Granted)
    }

    /// A permit, if one is free and nobody waits for it.
    pub(crate) fn try_enter(&self) -> Option<Permit> {
        let take = |free| (free & QUEUE == 0 && free >= PERMIT).then(|| free - PERMIT);
        self.0.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok().map(|_| Permit(self.clone()))
    }

    fn enter_or_wait(&self) -> Entry {
        let mut queue = lock(&self.0.queue);
        // From here on whoever gives a permit back waits for the lock, and finds the queue.
        let free = self.0.free.fetch_or(QUEUE, Ordering::AcqRel);
        let entry = if queue.is_empty() && free >= PERMIT {
            self.0.free.fetch_sub(PERMIT, Ordering::AcqRel);
            Entry::Granted(Permit(self.clone()))
        } else if queue.len() >= self.0.queue_max {
            Entry::Full
        } else {
            let waiter = Arc::new(Waiter(Mutex::new(Waiting::Queued(None))));
            queue.push_back(Arc::clone(&waiter));
            Entry::Queued(Place { pool: self.clone(), waiter })
        };
        self.0.leave(&queue);
        entry
    }

    fn release(&self) {
        let give = |free| (free & QUEUE == 0).then(|| free + PERMIT);
        if self.0.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, give).is_err() {
            self.hand_on();
        }
    }

    /// Gives a permit to whoever has waited longest.
    fn hand_on(&self) {
        let woken = {
            let mut queue = lock(&self.0.queue);
            let next = queue.pop_front();
            self.0.leave(&queue);
            match next {
                None => {
                    self.0.free.fetch_add(PERMIT, Ordering::AcqRel);
                    None
                }
                Some(next) => match std::mem::replace(&mut *lock(&next.0), Waiting::Granted) {
                    Waiting::Queued(waker) => waker,
                    Waiting::Granted | Waiting::Taken => unreachable!("who was granted has left the queue"),
                },
            }
        };
        // Outside the lock: a waker is foreign code.
        if let Some(waker) = woken {
            waker.wake();
        }
    }

    /// Permits in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.0.permits - self.0.free.load(Ordering::Acquire) / PERMIT
    }

    /// Attempts that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        lock(&self.0.queue).len()
    }
}

impl Inner {
    /// Before the lock is given back: without a queue nobody needs it.
    fn leave(&self, queue: &Queue) {
        if queue.is_empty() {
            self.free.fetch_and(!QUEUE, Ordering::AcqRel);
        }
    }
}

/// A place in the queue. Dropping it leaves the queue, or hands on what it was granted.
#[derive(Debug)]
pub(crate) struct Place {
    pool: Bulkhead,
    waiter: Arc<Waiter>,
}

impl Place {
    /// Whether it is this one's turn; if not, `waker` is woken when it is.
    pub(crate) fn is_granted(&self, waker: &Waker) -> bool {
        match &mut *lock(&self.waiter.0) {
            Waiting::Queued(registered) => {
                if !registered.as_ref().is_some_and(|same| same.will_wake(waker)) {
                    *registered = Some(waker.clone());
                }
                false
            }
            Waiting::Granted | Waiting::Taken => true,
        }
    }

    /// The permit, if it is this one's turn. One place is one permit.
    pub(crate) fn take(&self) -> Option<Permit> {
        let mut waiting = lock(&self.waiter.0);
        let granted = matches!(*waiting, Waiting::Granted);
        granted.then(|| {
            *waiting = Waiting::Taken;
            Permit(self.pool.clone())
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let granted = {
            let mut queue = lock(&self.pool.0.queue);
            queue.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            self.pool.0.leave(&queue);
            matches!(*lock(&self.waiter.0), Waiting::Granted)
        };
        if granted {
            self.pool.release();
        }
    }
}

/// The right to have one attempt under way. The attempt holds it, so whoever still reads the body of an answer keeps it by
/// keeping the attempt.
#[derive(Debug)]
pub(crate) struct Permit(Bulkhead);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    fn granted(entry: Entry) -> Permit {
        let Entry::Granted(permit) = entry else { panic!("{entry:?}") };
        permit
    }

    fn queued(entry: Entry) -> Place {
        let Entry::Queued(place) = entry else { panic!("{entry:?}") };
        place
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn beyond_permits_and_queue_the_answer_is_immediate() {
        let pool = Bulkhead::new(1, 1).unwrap();
        let _permit = granted(pool.enter());
        let _place = queued(pool.enter());
        assert!(matches!(pool.enter(), Entry::Full));
        assert_eq!((pool.in_use(), pool.waiting()), (1, 1));
    }

    #[test]
    fn who_waits_is_served_in_order_and_woken() {
        let pool = Bulkhead::new(1, 2).unwrap();
        let permit = granted(pool.enter());
        let (first, second) = (queued(pool.enter()), queued(pool.enter()));
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        assert!(!first.is_granted(&waker) && second.take().is_none());
        drop(permit);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert!(second.take().is_none());
        let permit = first.take().unwrap();
        assert!(first.take().is_none(), "one place is one permit");
        drop(permit);
        assert!(second.take().is_some());
    }

    #[test]
    fn nobody_overtakes_a_queue() {
        let pool = Bulkhead::new(1, 2).unwrap();
        let permit = granted(pool.enter());
        let place = queued(pool.enter());
        drop(permit);
        assert!(pool.try_enter().is_none() && matches!(pool.enter(), Entry::Queued(_)));
        assert!(place.take().is_some());
    }

    #[test]
    fn who_leaves_the_queue_makes_room_and_hands_on_what_it_was_granted() {
        let pool = Bulkhead::new(1, 1).unwrap();
        let permit = granted(pool.enter());
        drop(queued(pool.enter()));
        let granted_and_gone = queued(pool.enter());
        drop(permit);
        drop(granted_and_gone);
        assert_eq!((pool.in_use(), pool.waiting()), (0, 0));
        granted(pool.enter());
    }

    #[test]
    fn a_permit_is_held_until_it_is_dropped() {
        let pool = Bulkhead::new(2, 0).unwrap();
        let (one, two) = (granted(pool.enter()), granted(pool.enter()));
        assert_eq!(pool.in_use(), 2);
        drop(one);
        assert_eq!(pool.in_use(), 1);
        drop(two);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn a_pool_of_nothing_is_refused_and_a_queue_of_nothing_is_not() {
        assert!(matches!(Pool::bounded(0, 5), Err(ConfigError::Zero { .. })));
        assert!(matches!(Pool::bounded(POOL_MAX + 1, 0), Err(ConfigError::TooLarge { .. })));
        assert!(matches!(Pool::bounded(1, usize::MAX), Err(ConfigError::TooLarge { .. })));
        assert!(Pool::bounded(1, 0).is_ok());
    }

    #[test]
    fn permits_are_neither_lost_nor_made_when_threads_come_and_go() {
        let pool = Bulkhead::new(3, 4).unwrap();
        let (inside, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4_usize {
                let (pool, inside, most) = (&pool, &inside, &most);
                scope.spawn(move || {
                    for round in 0..2000_usize {
                        let permit = match pool.enter() {
                            Entry::Granted(permit) => Some(permit),
                            Entry::Queued(place) if (round + thread) % 3 == 0 => place.take(),
                            Entry::Queued(place) => loop {
                                if let Some(permit) = place.take() {
                                    break Some(permit);
                                }
                                std::thread::yield_now();
                            },
                            Entry::Full => None,
                        };
                        if permit.is_some() {
                            most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert_eq!((pool.in_use(), pool.waiting()), (0, 0));
        assert!(most.load(Ordering::SeqCst) <= 3);
    }
}
