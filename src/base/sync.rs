//! Locks, threads and channels of the store, by one name each.
//!
//! They are parking_lot's and std's. Built with `--cfg counterfoil_shuttle` they are those of a model checker, which decides at each
//! of them who goes on: `tests/concurrency` runs whole stores under thousands of schedules. What is below the store
//! (disks, rows, redb) keeps its real locks, since no schedule has to turn inside them.

#[cfg(not(counterfoil_shuttle))]
pub(crate) use std::{sync::mpsc, thread, thread_local};

#[cfg(not(counterfoil_shuttle))]
pub(crate) use parking_lot::{Condvar, Mutex, RwLock};

#[cfg(counterfoil_shuttle)]
pub(crate) use model::{Condvar, Mutex, RwLock};
#[cfg(counterfoil_shuttle)]
pub(crate) use shuttle::{sync::mpsc, thread, thread_local};

/// Whether somebody who looks for work without sleeping leaves a processor to those who bring it. In a model each look
/// would be a step, and nothing would be learnt from it.
pub(crate) fn may_spin() -> bool {
    #[cfg(counterfoil_shuttle)]
    return false;
    #[cfg(not(counterfoil_shuttle))]
    thread::available_parallelism().is_ok_and(|n| n.get() > 1)
}

/// A place where a model lets others go first. Else it is nothing.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn pause() {
    #[cfg(counterfoil_shuttle)]
    thread::sleep(std::time::Duration::ZERO);
}

/// The checker's locks with the interface of parking_lot: no poisoning, and a condition variable that borrows the guard.
#[cfg(counterfoil_shuttle)]
mod model {
    use std::ops::{Deref, DerefMut};
    use std::sync::PoisonError;
    use std::time::Duration;

    use shuttle::rand::Rng;
    use shuttle::sync;

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    /// Empty only while its thread waits.
    #[derive(Debug)]
    pub(crate) struct MutexGuard<'a, T> {
        mutex: &'a sync::Mutex<T>,
        held: Option<sync::MutexGuard<'a, T>>,
    }

    const HELD: &str = "a guard is empty only inside a wait";

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            let mut guard = MutexGuard { mutex: &self.0, held: None };
            guard.take_back();
            guard
        }
    }

    impl<T> MutexGuard<'_, T> {
        fn take_back(&mut self) {
            self.held = Some(self.mutex.lock().unwrap_or_else(PoisonError::into_inner));
        }

        /// Gives the lock away and takes it back.
        fn let_others_go(&mut self) {
            self.held = None;
            shuttle::thread::yield_now();
            self.take_back();
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.held.as_ref().expect(HELD)
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.held.as_mut().expect(HELD)
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> sync::RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn write(&self) -> sync::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) const fn new() -> Self {
            Self(sync::Condvar::new())
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.held.take().expect(HELD);
            guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }

        pub(crate) fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, mut condition: impl FnMut(&mut T) -> bool) {
            while condition(guard) {
                self.wait(guard);
            }
        }

        /// There is no time in a model: a wait either ends at once or only when somebody ends it, as if each were drawn
        /// by lot. So what relies on a time-out to be woken gets stuck in some schedule, and what cannot bear an early
        /// one fails in another.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) {
            if times_out(time) {
                guard.let_others_go();
            } else {
                self.wait(guard);
            }
        }

        pub(crate) fn wait_while_for<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: impl FnMut(&mut T) -> bool,
            time: Duration,
        ) {
            if times_out(time) {
                guard.let_others_go();
            } else {
                self.wait_while(guard, condition);
            }
        }
    }

    fn times_out(time: Duration) -> bool {
        time.is_zero() || shuttle::rand::thread_rng().gen_bool(0.5)
    }
}
