//! A world in which time passes when somebody waits, and never else.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use counterfoil::call::{
    Answer, Attempt, AttemptError, Budget, BudgetConfig, Call, Caller, CallerBuilder, Finished, Park, Pool,
    SeededRandom, Sleep, Timer, Verdict,
};
use counterfoil::{Clock, TimestampMs};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Clock, timer and parked thread in one.
#[derive(Debug, Default)]
pub(crate) struct World {
    now: Mutex<Duration>,
    wall: Mutex<u64>,
    sleepers: Mutex<Sleepers>,
}

#[derive(Debug, Default)]
struct Sleepers {
    next_id: u64,
    by_time: BTreeMap<(Duration, u64), Waker>,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        let world = Self { wall: Mutex::new(1_700_000_000_000), ..Self::default() };
        world.advance(Duration::from_secs(1000));
        Arc::new(world)
    }

    pub(crate) fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap();
        *now = now.saturating_add(by);
    }

    pub(crate) fn set_wall(&self, ms: u64) {
        *self.wall.lock().unwrap() = ms;
    }

    /// A caller in this world, with the default budget and without a pool.
    pub(crate) fn builder(self: &Arc<Self>) -> CallerBuilder {
        self.builder_with(Budget::new(BudgetConfig::default()).unwrap(), Pool::Unlimited)
    }

    pub(crate) fn builder_with(self: &Arc<Self>, budget: Budget, pool: Pool) -> CallerBuilder {
        Caller::builder("dependency", budget, pool)
            .clock(Arc::clone(self) as _)
            .timer(Arc::new(WorldTimer(Arc::clone(self))))
            .park(Arc::clone(self) as _)
            .random(Arc::new(SeededRandom::new(7)))
    }

    /// Runs a future; when it waits, time leaps to whoever wakes first.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        let woken = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = pin!(future);
        loop {
            while woken.0.swap(false, Ordering::SeqCst) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    return output;
                }
            }
            let next = self.sleepers.lock().unwrap().by_time.pop_first();
            let ((at, _), sleeper) = next.expect("somebody waits for something that will never happen");
            let mut now = self.now.lock().unwrap();
            *now = at.max(*now);
            drop(now);
            sleeper.wake();
        }
    }

    pub(crate) fn sleep(self: &Arc<Self>, duration: Duration) -> Sleep {
        Box::pin(WorldSleep { until: self.now().saturating_add(duration), world: Arc::clone(self), id: None })
    }
}

impl Clock for World {
    fn wall(&self) -> TimestampMs {
        TimestampMs(*self.wall.lock().unwrap())
    }

    fn monotonic(&self) -> Duration {
        self.now()
    }
}

impl Park for World {
    fn park(&self, at_most: Duration) {
        assert!(at_most < Duration::MAX, "parked for ever");
        self.advance(at_most);
    }
}

#[derive(Debug)]
struct WorldTimer(Arc<World>);

impl Timer for WorldTimer {
    fn sleep(&self, duration: Duration) -> Sleep {
        self.0.sleep(duration)
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct WorldSleep {
    world: Arc<World>,
    until: Duration,
    id: Option<u64>,
}

impl Future for WorldSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.world.now() >= self.until {
            return Poll::Ready(());
        }
        let world = Arc::clone(&self.world);
        let mut sleepers = world.sleepers.lock().unwrap();
        let id = self.id.unwrap_or(sleepers.next_id);
        sleepers.next_id = sleepers.next_id.max(id + 1);
        self.id = Some(id);
        sleepers.by_time.insert((self.until, id), cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for WorldSleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.world.sleepers.lock().unwrap().by_time.remove(&(self.until, id));
        }
    }
}

/// A future as one of those of [`all`].
pub(crate) fn boxed<'a, T>(future: impl Future<Output = T> + 'a) -> Pin<Box<dyn Future<Output = T> + 'a>> {
    Box::pin(future)
}

/// Runs all to their ends, each polled whenever one is woken.
pub(crate) async fn all<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut left: Vec<_> = futures.into_iter().map(Some).collect();
    let mut done: Vec<Option<T>> = left.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in left.iter_mut().zip(&mut done) {
            if let Some(Poll::Ready(output)) = future.as_mut().map(|future| future.as_mut().poll(cx)) {
                (*done, *future) = (Some(output), None);
            }
        }
        if left.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().map(|output| output.expect("all are done")).collect()
}

/// What an attempt found when it was made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) at: Duration,
    pub(crate) number: u32,
    pub(crate) remaining: Duration,
    pub(crate) key: Option<String>,
}

/// What attempts come to, one after the other, and how long each takes.
pub(crate) type Script<'a> = &'a [(u64, Result<&'static str, Verdict>)];

/// A blocking call whose attempts follow a script. The last line of the script is repeated.
pub(crate) fn play<P>(
    world: &Arc<World>,
    caller: &Caller,
    call: Call<P>,
    script: Script<'_>,
) -> (Finished<&'static str, u32>, Vec<Seen>) {
    let mut seen = Vec::new();
    let finished = caller.call_blocking(call, |attempt: Attempt| {
        seen.push(Seen {
            at: world.now(),
            number: attempt.number(),
            remaining: attempt.remaining(),
            key: attempt.identity().map(|identity| identity.key().to_string()),
        });
        let (takes, result) = script[(seen.len() - 1).min(script.len() - 1)];
        world.advance(ms(takes));
        result.map(Answer::new).map_err(|verdict| AttemptError::new(verdict, attempt.number()))
    });
    (finished, seen)
}

/// A script as an asynchronous attempt.
pub(crate) async fn take(
    world: &Arc<World>,
    takes: u64,
    result: Result<&'static str, Verdict>,
) -> Result<Answer<&'static str>, AttemptError<u32>> {
    world.sleep(ms(takes)).await;
    result.map(Answer::new).map_err(|verdict| AttemptError::new(verdict, 0))
}
