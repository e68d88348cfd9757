//! The bounded queue in front of the writer: a share for each tenant, taken in turn.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::base::limits::Limits;
use crate::base::name::Tenant;
use crate::base::sync::{Condvar, Mutex, may_spin};

use super::reentry;

/// How often an empty queue is looked at before its thread is put to sleep. All looks together took 60 microseconds where
/// this was measured, two thirds of a sync; other processors pause for longer or shorter. A lone client comes back with
/// the next operation as soon as it has its answer, and to wake a sleeping writer would cost it about as much.
const LOOKS_BEFORE_SLEEP: u32 = 2500;

/// Whose turn a submission waits for. Plain writes share one, and so do changes of the store's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Tenant(Tenant),
    Writes,
    Own,
}

/// Why a submission was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The queue, or the lane's share of it, is full.
    Full,
    /// The store is closing.
    Closed,
}

/// What the queue is bounded by.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    items: usize,
    bytes: usize,
    lane_items: usize,
}

struct Waiting<T> {
    item: T,
    bytes: usize,
}

struct Inner<T, C> {
    lanes: HashMap<Lane, VecDeque<Waiting<T>>>,
    /// Lanes that have something waiting, the next one to be served first.
    turns: VecDeque<Lane>,
    control: VecDeque<C>,
    items: usize,
    bytes: usize,
    closed: bool,
    /// Nobody will take anything any more.
    ended: bool,
}

/// A queue of submissions (`T`) and, ahead of them and unbounded, of control messages (`C`).
pub(super) struct Queue<T, C> {
    inner: Mutex<Inner<T, C>>,
    bounds: Bounds,
    /// Whether there may be something to do: a hint for looking without the lock, which alone decides.
    has_work: AtomicBool,
    /// How often to look before sleeping. With one processor, whoever looks keeps the others from bringing anything.
    looks: u32,
    /// Something to do.
    work: Condvar,
    /// Something was taken out.
    room: Condvar,
}

/// What [`Queue::take`] found.
#[derive(Debug)]
pub(super) struct Taken<T, C> {
    pub(super) control: Vec<C>,
    pub(super) items: Vec<T>,
    /// Closed, and nothing is left.
    pub(super) drained: bool,
}

impl<T, C> Queue<T, C> {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            inner: Mutex::new(Inner {
                lanes: HashMap::new(),
                turns: VecDeque::new(),
                control: VecDeque::new(),
                items: 0,
                bytes: 0,
                closed: false,
                ended: false,
            }),
            bounds: Bounds {
                items: limits.queue_operations_max,
                bytes: limits.queue_bytes_max,
                lane_items: limits.queue_tenant_operations_max,
            },
            has_work: AtomicBool::new(false),
            looks: if may_spin() { LOOKS_BEFORE_SLEEP } else { 0 },
            work: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Adds a submission, or gives it back. Waits for room while `remaining` gives a time.
    pub(super) fn push(
        &self,
        lane: &Lane,
        item: T,
        bytes: usize,
        remaining: impl Fn() -> Option<Duration>,
    ) -> Result<(), (T, Refusal)> {
        let mut inner = self.inner.lock();
        loop {
            if inner.closed {
                return Err((item, Refusal::Closed));
            }
            if inner.has_room(lane, bytes, self.bounds) {
                inner.push(lane, Waiting { item, bytes });
                self.has_work.store(true, Ordering::Relaxed);
                drop(inner);
                self.work.notify_one();
                return Ok(());
            }
            match remaining() {
                Some(time) if !time.is_zero() => {
                    self.room.wait_for(&mut inner, time);
                }
                Some(_) | None => return Err((item, Refusal::Full)),
            }
        }
    }

    /// Adds a control message; it is served before any submission, also when the queue is full or closed. Once the
    /// queue has ended it is dropped, and with it whatever somebody might wait for.
    pub(super) fn push_control(&self, message: C) {
        {
            let mut inner = self.inner.lock();
            if inner.ended {
                return;
            }
            inner.control.push_back(message);
            self.has_work.store(true, Ordering::Relaxed);
        }
        self.work.notify_one();
    }

    /// Nobody takes anything from here on: what is left is dropped.
    pub(super) fn end(&self) {
        let left = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            inner.ended = true;
            inner.items = 0;
            inner.bytes = 0;
            inner.turns.clear();
            (std::mem::take(&mut inner.lanes), std::mem::take(&mut inner.control))
        };
        // Outside the lock: dropping a submission answers it.
        let (lanes, control) = left;
        lanes.into_values().flatten().for_each(reentry::drop_quietly);
        control.into_iter().for_each(reentry::drop_quietly);
        self.room.notify_all();
    }

    /// Takes all control messages and at most `items_max` submissions, one lane after another. Waits for something to
    /// do for at most `wait`; `None` waits without bound.
    pub(super) fn take(&self, items_max: usize, wait: Option<Duration>) -> Taken<T, C> {
        if wait.is_none_or(|time| !time.is_zero()) {
            self.look_out();
        }
        let mut inner = self.inner.lock();
        if !inner.has_work() {
            match wait {
                Some(time) if time.is_zero() => {}
                Some(time) => {
                    self.work.wait_while_for(&mut inner, |inner| !inner.has_work(), time);
                }
                None => self.work.wait_while(&mut inner, |inner| !inner.has_work()),
            }
        }
        let control = inner.control.drain(..).collect();
        let mut items = Vec::new();
        while items.len() < items_max
            && let Some(item) = inner.pop()
        {
            items.push(item);
        }
        let drained = inner.closed && inner.items == 0;
        self.has_work.store(inner.has_work(), Ordering::Relaxed);
        drop(inner);
        if !items.is_empty() {
            self.room.notify_all();
        }
        Taken { control, items, drained }
    }

    /// Takes control messages alone, waiting for one for at most `wait`.
    pub(super) fn take_control(&self, wait: Duration) -> Vec<C> {
        let mut inner = self.inner.lock();
        self.work.wait_while_for(&mut inner, |inner| inner.control.is_empty(), wait);
        inner.control.drain(..).collect()
    }

    /// Looks for work for a moment without sleeping.
    fn look_out(&self) {
        for _ in 0..self.looks {
            if self.has_work.load(Ordering::Relaxed) {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Takes in nothing more; what waits is still served.
    pub(super) fn close(&self) {
        self.inner.lock().closed = true;
        self.work.notify_all();
        self.room.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    /// How many submissions wait.
    pub(super) fn len(&self) -> usize {
        self.inner.lock().items
    }
}

impl<T, C> Inner<T, C> {
    fn has_work(&self) -> bool {
        self.items > 0 || !self.control.is_empty() || self.closed
    }

    /// An empty queue takes one submission of any size: its own limits bound it.
    fn has_room(&self, lane: &Lane, bytes: usize, bounds: Bounds) -> bool {
        let lane_items = self.lanes.get(lane).map_or(0, VecDeque::len);
        self.items < bounds.items
            && lane_items < bounds.lane_items
            && (self.items == 0 || self.bytes.saturating_add(bytes) <= bounds.bytes)
    }

    fn push(&mut self, lane: &Lane, waiting: Waiting<T>) {
        self.items += 1;
        self.bytes += waiting.bytes;
        if let Some(queue) = self.lanes.get_mut(lane) {
            queue.push_back(waiting);
        } else {
            self.lanes.insert(lane.clone(), VecDeque::from([waiting]));
            self.turns.push_back(lane.clone());
        }
    }

    fn pop(&mut self) -> Option<T> {
        let lane = self.turns.pop_front()?;
        let queue = self.lanes.get_mut(&lane).expect("a lane that has a turn has a queue");
        let waiting = queue.pop_front().expect("a lane that has a turn is not empty");
        if queue.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        self.items -= 1;
        self.bytes -= waiting.bytes;
        Some(waiting.item)
    }
}

impl<T, C> std::fmt::Debug for Queue<T, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: usize, bytes: usize, lane_items: usize) -> Queue<u32, ()> {
        Queue::new(&Limits {
            queue_operations_max: items,
            queue_bytes_max: bytes,
            queue_tenant_operations_max: lane_items,
            ..Limits::default()
        })
    }

    fn tenant(name: &str) -> Lane {
        Lane::Tenant(Tenant::new(name).unwrap())
    }

    fn push(queue: &Queue<u32, ()>, lane: &Lane, item: u32) -> Result<(), Refusal> {
        queue.push(lane, item, 10, || None).map_err(|(_, refusal)| refusal)
    }

    #[test]
    fn tenants_are_served_in_turn_and_plain_writes_share_one_turn() {
        let queue = queue(100, 10_000, 50);
        for item in [10, 11, 12] {
            push(&queue, &tenant("a"), item).unwrap();
        }
        push(&queue, &tenant("b"), 20).unwrap();
        push(&queue, &Lane::Writes, 30).unwrap();
        push(&queue, &Lane::Writes, 31).unwrap();
        assert_eq!(queue.take(100, None).items, [10, 20, 30, 11, 31, 12]);
    }

    #[test]
    fn one_tenant_cannot_fill_the_queue() {
        let queue = queue(100, 10_000, 2);
        push(&queue, &tenant("a"), 1).unwrap();
        push(&queue, &tenant("a"), 2).unwrap();
        assert_eq!(push(&queue, &tenant("a"), 3), Err(Refusal::Full));
        assert_eq!(push(&queue, &tenant("b"), 4), Ok(()));
    }

    #[test]
    fn the_queue_is_bounded_by_count_and_by_bytes_but_takes_one_of_any_size() {
        let by_count = queue(1, 10_000, 50);
        push(&by_count, &tenant("a"), 1).unwrap();
        assert_eq!(push(&by_count, &tenant("b"), 2), Err(Refusal::Full));

        let by_bytes = queue(100, 15, 50);
        by_bytes.push(&tenant("a"), 1, 1_000, || None).unwrap();
        assert_eq!(push(&by_bytes, &tenant("b"), 2), Err(Refusal::Full));
        assert_eq!(by_bytes.take(1, None).items, [1]);
        assert_eq!(push(&by_bytes, &tenant("b"), 2), Ok(()));
    }

    #[test]
    fn a_full_queue_is_waited_for_within_the_deadline() {
        let queue = queue(1, 10_000, 50);
        push(&queue, &tenant("a"), 1).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| queue.push(&tenant("b"), 2, 10, || Some(Duration::from_secs(60))));
            assert_eq!(queue.take(1, None).items, [1]);
            assert!(waiter.join().unwrap().is_ok());
        });
        assert_eq!(queue.take(1, None).items, [2]);
    }

    #[test]
    fn a_closed_queue_takes_nothing_in_and_serves_what_waits() {
        let queue = queue(10, 10_000, 50);
        push(&queue, &tenant("a"), 1).unwrap();
        push(&queue, &tenant("a"), 2).unwrap();
        queue.close();
        assert_eq!(push(&queue, &tenant("a"), 3), Err(Refusal::Closed));
        let first = queue.take(1, None);
        assert!(first.items == [1] && !first.drained);
        let second = queue.take(1, None);
        assert!(second.items == [2] && second.drained);
    }

    #[test]
    fn what_is_left_when_the_queue_ends_is_dropped_and_so_is_what_comes_later() {
        let queue: Queue<std::sync::Arc<()>, std::sync::Arc<()>> = Queue::new(&Limits::default());
        let witness = std::sync::Arc::new(());
        queue.push(&Lane::Writes, witness.clone(), 1, || None).unwrap();
        queue.push_control(witness.clone());
        queue.end();
        queue.push_control(witness.clone());
        assert_eq!(std::sync::Arc::strong_count(&witness), 1);
        assert!(queue.push(&Lane::Writes, witness, 1, || None).is_err());
    }

    #[test]
    fn control_messages_wake_an_idle_writer_and_come_first() {
        let queue = queue(10, 10_000, 50);
        push(&queue, &tenant("a"), 1).unwrap();
        queue.push_control(());
        let taken = queue.take(0, None);
        assert_eq!((taken.control.len(), taken.items.len()), (1, 0));
    }
}
