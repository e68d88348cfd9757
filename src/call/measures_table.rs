//! Where measures are kept: what happens in each call is counted without a lock.
//!
//! There are as many operation types as a program names in its source, so they are found in a table that only grows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::fold;
use super::measures::{ClassMeasures, index};
use super::observer::Event;
use super::outcome::Ending;
use crate::base::histogram::SharedHistogram;

/// Most programs name fewer operation types; those beyond are found more slowly.
const SLOTS: usize = 128;

#[derive(Debug)]
pub(super) struct Table {
    slots: Box<[OnceLock<Box<Class>>]>,
    more: Mutex<BTreeMap<&'static str, Arc<Class>>>,
}

impl Default for Table {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| OnceLock::new()).collect(), more: Mutex::default() }
    }
}

/// One operation type. What is frequent is counted in the numbers, all else in `rest`.
#[derive(Debug)]
struct Class {
    operation: &'static str,
    started: AtomicU64,
    attempts: AtomicU64,
    cost: AtomicU64,
    succeeded: AtomicU64,
    answered: [SharedHistogram; 3],
    rest: Mutex<ClassMeasures>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counters are right at each moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    pub(super) fn count(&self, event: &Event<'_>) {
        let operation = event.labels().operation;
        for slot in self.probe(operation) {
            let class = slot.get_or_init(|| Box::new(Class::new(operation)));
            if class.operation == operation {
                return class.count(event);
            }
        }
        let class = Arc::clone(lock(&self.more).entry(operation).or_insert_with(|| Arc::new(Class::new(operation))));
        class.count(event);
    }

    pub(super) fn read(&self, operation: &str) -> Option<ClassMeasures> {
        for slot in self.probe(operation) {
            match slot.get() {
                None => return None,
                Some(class) if class.operation == operation => return Some(class.read()),
                Some(_) => {}
            }
        }
        let class = lock(&self.more).get(operation).cloned();
        class.map(|class| class.read())
    }

    /// All slots, beginning where the name belongs.
    fn probe(&self, operation: &str) -> impl Iterator<Item = &OnceLock<Box<Class>>> {
        let first =
            usize::try_from(fold::hash(operation.as_bytes()) % SLOTS as u64).expect("below the number of slots");
        self.slots[first..].iter().chain(&self.slots[..first])
    }
}

impl Class {
    fn new(operation: &'static str) -> Self {
        Self {
            operation,
            started: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            cost: AtomicU64::new(0),
            succeeded: AtomicU64::new(0),
            answered: Default::default(),
            rest: Mutex::default(),
        }
    }

    fn count(&self, event: &Event<'_>) {
        let add = |counter: &AtomicU64, more| counter.fetch_add(more, Ordering::Relaxed);
        match *event {
            Event::OperationStarted { .. } => add(&self.started, 1),
            Event::AttemptStarted { hedge: false, .. } => add(&self.attempts, 1),
            Event::AttemptFinished { duration, failure: None, connection, cost, .. } => {
                self.answered[index(connection)].record(duration);
                if cost > 0 { add(&self.cost, cost) } else { 0 }
            }
            Event::OperationFinished { ending: Ending::Success { .. }, degraded: false, .. } => add(&self.succeeded, 1),
            Event::Waited { .. }
            | Event::AttemptStarted { .. }
            | Event::AttemptFinished { .. }
            | Event::RetryScheduled { .. }
            | Event::RetrySuppressed { .. }
            | Event::BreakerChanged { .. }
            | Event::BreakerUntracked { .. }
            | Event::OperationFinished { .. }
            | Event::AbandonedFinished { .. } => return lock(&self.rest).count(event),
        };
    }

    fn read(&self) -> ClassMeasures {
        let mut read = lock(&self.rest).clone();
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        read.started += number(&self.started);
        read.attempts += number(&self.attempts);
        read.cost = read.cost.saturating_add(number(&self.cost));
        let succeeded = number(&self.succeeded);
        if succeeded > 0 {
            *read.outcomes.entry("success").or_default() += succeeded;
        }
        read.durations = self.answered.each_ref().map(SharedHistogram::read);
        read
    }
}

#[cfg(test)]
mod tests {
    use super::super::observer::Labels;
    use super::*;

    fn start(table: &Table, operation: &'static str) {
        table.count(&Event::OperationStarted { labels: Labels { dependency: "d", operation, identity_hash: None } });
    }

    #[test]
    fn operation_types_are_told_apart_however_many_there_are() {
        let table = Table::default();
        let names: Vec<&'static str> =
            (0..3 * SLOTS).map(|number| &*Box::leak(format!("operation {number}").into_boxed_str())).collect();
        for (times, name) in names.iter().enumerate() {
            (0..=times % 5).for_each(|_| start(&table, name));
        }
        for (times, name) in names.iter().enumerate() {
            assert_eq!(table.read(name).unwrap().started, times as u64 % 5 + 1, "{name}");
        }
        assert!(table.read("another").is_none());
    }

    #[test]
    fn threads_that_count_a_new_operation_type_at_once_lose_nothing() {
        let table = Table::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| ["a", "b", "c"].into_iter().for_each(|name| start(&table, name))));
            }
        });
        assert_eq!(["a", "b", "c"].map(|name| table.read(name).unwrap().started), [2000; 3]);
    }
}
