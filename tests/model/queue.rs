//! The order in which submissions are served: bounded, a share for each lane, lanes in turn.

use std::collections::{BTreeMap, VecDeque};

/// Most submissions waiting, of all and of one tenant, in the sessions' limits.
pub(crate) const QUEUE_MAX: usize = 9;
pub(crate) const TENANT_MAX: usize = 5;

/// A tenant's number, or the lane of plain writes.
pub(crate) type Lane = Option<u8>;

#[derive(Debug)]
pub(crate) struct Queue<T> {
    lanes: BTreeMap<Lane, VecDeque<T>>,
    turns: VecDeque<Lane>,
    len: usize,
}

impl<T> Queue<T> {
    pub(crate) const fn new() -> Self {
        Self { lanes: BTreeMap::new(), turns: VecDeque::new(), len: 0 }
    }

    /// False if it is full.
    pub(crate) fn push(&mut self, lane: Lane, item: T) -> bool {
        let waiting = self.lanes.get(&lane).map_or(0, VecDeque::len);
        if self.len >= QUEUE_MAX || waiting >= TENANT_MAX {
            return false;
        }
        self.len += 1;
        if waiting == 0 {
            self.turns.push_back(lane);
        }
        self.lanes.entry(lane).or_default().push_back(item);
        true
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let lane = self.turns.pop_front()?;
        let waiting = self.lanes.get_mut(&lane).expect("a lane that has a turn");
        let item = waiting.pop_front();
        if waiting.is_empty() {
            self.lanes.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        self.len -= 1;
        item
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
