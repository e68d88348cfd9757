//! How a call waits. Handed in, like the clock, so that tests need not wait at all.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::base::clock::{Clock, SystemClock};

/// A future that is ready after some time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How an asynchronous call waits.
pub trait Timer: Send + Sync + fmt::Debug + 'static {
    /// Ready after `duration`, on the caller's monotonic clock.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// How a blocking call waits.
pub trait Park: Send + Sync + fmt::Debug + 'static {
    /// Blocks this thread for `at_most` so long, or until it is unparked; it may also return for no reason.
    fn park(&self, at_most: Duration);
}

/// [`std::thread::park_timeout`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadPark;

impl Park for ThreadPark {
    fn park(&self, at_most: Duration) {
        std::thread::park_timeout(at_most);
    }
}

/// tokio's timers. It needs a runtime with time enabled wherever a call is awaited.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

#[cfg(feature = "tokio")]
impl Timer for TokioTimer {
    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// One thread for the whole process that wakes whoever sleeps. It needs no runtime: any executor will do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTimer;

impl Timer for ThreadTimer {
    fn sleep(&self, duration: Duration) -> Sleep {
        let alarms = Alarms::get();
        let until = alarms.clock.monotonic().saturating_add(duration);
        Box::pin(ThreadSleep { alarms, until, id: None })
    }
}

struct Alarms {
    clock: SystemClock,
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

#[derive(Default)]
struct Sleepers {
    next_id: u64,
    by_time: BTreeMap<(Duration, u64), Waker>,
}

impl Alarms {
    fn get() -> &'static Self {
        static ALARMS: OnceLock<Alarms> = OnceLock::new();
        static THREAD: OnceLock<()> = OnceLock::new();
        let alarms = ALARMS.get_or_init(|| Self {
            clock: SystemClock::default(),
            sleepers: Mutex::default(),
            changed: Condvar::new(),
        });
        THREAD.get_or_init(|| {
            let thread = std::thread::Builder::new().name("counterfoil-timer".to_owned());
            thread.spawn(move || alarms.run()).map(drop).expect("a thread for timers can be started");
        });
        alarms
    }

    fn lock(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut sleepers = self.lock();
        loop {
            let now = self.clock.monotonic();
            let Some(first) = sleepers.by_time.first_entry() else {
                sleepers = self.changed.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let until = first.key().0;
            if until > now {
                let waited = self.changed.wait_timeout(sleepers, until.saturating_sub(now));
                sleepers = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let waker = first.remove();
            drop(sleepers);
            // Outside the lock, and a waker that panics must not stop the others.
            let woken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
            drop(woken);
            sleepers = self.lock();
        }
    }
}

struct ThreadSleep {
    alarms: &'static Alarms,
    until: Duration,
    id: Option<u64>,
}

impl Future for ThreadSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.alarms.clock.monotonic() >= self.until {
            return Poll::Ready(());
        }
        let alarms = self.alarms;
        let mut sleepers = alarms.lock();
        let id = self.id.unwrap_or_else(|| {
            sleepers.next_id += 1;
            sleepers.next_id
        });
        self.id = Some(id);
        sleepers.by_time.insert((self.until, id), cx.waker().clone());
        drop(sleepers);
        alarms.changed.notify_one();
        Poll::Pending
    }
}

impl Drop for ThreadSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.alarms.lock().by_time.remove(&(self.until, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Unpark(std::thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[test]
    fn the_timer_thread_wakes_sleepers_in_their_order_and_forgets_the_dropped() {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut cx = Context::from_waker(&waker);
        let mut never = ThreadTimer.sleep(Duration::from_secs(3600));
        assert!(never.as_mut().poll(&mut cx).is_pending());
        let waiting = Alarms::get().lock().by_time.len();
        drop(never);
        assert_eq!(Alarms::get().lock().by_time.len(), waiting - 1);

        let clock = SystemClock::default();
        let mut short = ThreadTimer.sleep(Duration::from_millis(2));
        while short.as_mut().poll(&mut cx).is_pending() {
            std::thread::park();
        }
        assert!(clock.monotonic() >= Duration::from_millis(2));
    }
}
