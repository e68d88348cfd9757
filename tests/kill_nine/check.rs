//! What the next opening must find, whatever the processes before it were doing when they were killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use counterfoil::{EntryKind, LogStart, Position, Store};

use crate::child::{Key, MADE, THREADS, TOTALS, open};
use crate::process::Heard;

/// Everything that was said of one store.
#[derive(Debug, Default)]
pub(crate) struct Told {
    acknowledged: BTreeMap<Key, (Position, u64)>,
    refused: BTreeSet<Key>,
    /// One operation of each thread may have been in flight when its process was killed.
    in_flight: BTreeSet<Key>,
    /// Of those in flight, the ones that turned out to be executed, by what they were asked for again.
    made: BTreeSet<Key>,
}

/// What one check looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checked {
    pub(crate) acknowledgements: u64,
    /// The processes whose operations were found although nobody was told of them, one for each.
    pub(crate) beyond: Vec<u64>,
}

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}

impl Told {
    pub(crate) fn note(&mut self, child: u64, heard: &Heard) {
        for (key, position, total) in &heard.acknowledged {
            self.acknowledged.insert(*key, (*position, *total));
        }
        self.refused.extend(&heard.refused);
        for thread in 0..THREADS {
            let of_thread = |key: &&Key| key.child == child && key.thread == thread;
            let answered = self.acknowledged.keys().filter(of_thread).map(|key| key.number).max().unwrap_or(0);
            let next = Key { child, thread, number: answered + 1 };
            if !self.refused.contains(&next) {
                self.in_flight.insert(next);
            }
        }
    }

    /// Opens the store and looks at everything, asks for everything again, and looks once more.
    pub(crate) fn check(&mut self, directory: &Path) -> Result<Checked, String> {
        let store = open(directory).map_err(|error| format!("it does not open: {error}"))?;
        let beyond = self.check_state(&store)?;
        self.retry(&store)?;
        self.check_state(&store)?;
        let report = store.verify().map_err(|error| format!("it cannot be verified: {error}"))?;
        ensure!(report.is_clean(), "verify found {:?}", report.problems);
        store.close().map_err(|error| format!("it does not close: {error}"))?;
        Ok(Checked { acknowledgements: self.acknowledged.len() as u64, beyond })
    }

    /// Receipts, rows, sums and the log say the same. Returns whose entries were found that nobody was told of.
    fn check_state(&self, store: &Store) -> Result<Vec<u64>, String> {
        for (key, (position, total)) in &self.acknowledged {
            let receipt = store.receipt(&key.slot()).map_err(|error| error.to_string())?;
            let Some(receipt) = receipt else { return Err(format!("{key:?} was answered at {position} and is lost")) };
            let body = serde_json::to_vec(total).expect("a number is JSON");
            let same = receipt.position() == *position
                && receipt.reply().resource() == Some(key.text().as_str())
                && receipt.reply().body() == body.as_slice();
            ensure!(same, "{key:?} was answered at {position} with {total}, and now it is {receipt:?}");
        }
        for key in &self.refused {
            let receipt = store.receipt(&key.slot()).map_err(|error| error.to_string())?;
            ensure!(receipt.is_none(), "{key:?} was executed after the answer that it was not");
        }
        let mut present: BTreeSet<Key> = self.acknowledged.keys().copied().collect();
        let mut beyond = Vec::new();
        for key in &self.in_flight {
            if store.receipt(&key.slot()).map_err(|error| error.to_string())?.is_some() {
                present.insert(*key);
                if !self.made.contains(key) {
                    beyond.push(key.child);
                }
            } else {
                ensure!(!self.made.contains(key), "{key:?} was answered when it was asked for again, and is lost");
            }
        }
        check_rows(store, &present)?;
        self.check_log(store, &present)?;
        Ok(beyond)
    }

    /// Sequences have no gap, epochs never fall, and the operations in the log are those that have a receipt.
    fn check_log(&self, store: &Store, present: &BTreeSet<Key>) -> Result<(), String> {
        let mut log = store.log(LogStart::Oldest).map_err(|error| error.to_string())?;
        let mut slots = BTreeMap::new();
        let mut last: Option<Position> = None;
        while let Some(entry) = log.try_next().map_err(|error| error.to_string())? {
            let follows = last
                .is_none_or(|last| entry.position.sequence == last.sequence + 1 && entry.position.epoch >= last.epoch);
            ensure!(follows, "entry {} follows {last:?}", entry.position);
            last = Some(entry.position);
            if let EntryKind::Operation { slot, .. } = entry.kind {
                ensure!(slots.insert(slot, entry.position).is_none(), "two entries of one operation");
            }
        }
        ensure!(slots.len() == present.len(), "{} entries of {} operations", slots.len(), present.len());
        for (key, (position, _)) in &self.acknowledged {
            ensure!(slots.get(&key.slot()) == Some(position), "the entry of {key:?} is not at {position}");
        }
        Ok(())
    }

    /// What is there is replayed, what was in flight is executed once at most, what was refused is executed now.
    fn retry(&mut self, store: &Store) -> Result<(), String> {
        for (key, (position, _)) in &self.acknowledged {
            let receipt = key.execute(store).map_err(|error| format!("{key:?} asked again: {error}"))?;
            ensure!(receipt.is_replayed() && receipt.position() == *position, "{key:?} was executed again");
        }
        for key in self.in_flight.iter().chain(&self.refused) {
            let there = store.receipt(&key.slot()).map_err(|error| error.to_string())?.is_some();
            let receipt = key.execute(store).map_err(|error| format!("{key:?} asked again: {error}"))?;
            ensure!(receipt.is_replayed() == there, "{key:?} was replayed: {}", receipt.is_replayed());
        }
        self.in_flight.extend(std::mem::take(&mut self.refused));
        self.made.extend(&self.in_flight);
        Ok(())
    }
}

/// A row for each operation that is there and for no other, and sums that count each once.
fn check_rows(store: &Store, present: &BTreeSet<Key>) -> Result<(), String> {
    let (rows, totals) = store
        .read(|view| {
            let rows: Result<Vec<_>, _> = view.table(&MADE)?.range(..)?.collect();
            let totals: Result<BTreeMap<_, _>, _> = view.table(&TOTALS)?.range(..)?.collect();
            Ok::<_, counterfoil::TableError>((rows?, totals?))
        })
        .map_err(|error| error.to_string())?;
    ensure!(rows.len() == present.len(), "{} rows of {} operations", rows.len(), present.len());
    for (text, (number, note)) in rows {
        let key = Key::parse(&text).filter(|key| present.contains(key));
        ensure!(key.is_some_and(|key| key.number == number && key.note() == note), "the row {text} is nobody's");
    }
    for thread in 0..THREADS {
        let made = present.iter().filter(|key| key.thread == thread).count() as u64;
        let total = totals.get(&thread).copied().unwrap_or(0);
        ensure!(total == made, "thread {thread} made {made} rows and counted {total}");
    }
    Ok(())
}

/// A store with three operations, and what was said of them.
fn three() -> (tempfile::TempDir, Told) {
    let directory = tempfile::tempdir().expect("the file system is sound");
    let store = open(directory.path()).expect("the file system is sound");
    let mut told = Told::default();
    for number in 1..=3 {
        let key = Key { child: 1, thread: 0, number };
        let receipt = key.execute(&store).expect("the file system is sound");
        told.acknowledged.insert(key, (receipt.position(), number));
    }
    store.close().expect("the file system is sound");
    (directory, told)
}

#[test]
fn the_check_passes_what_is_right_and_gives_away_every_kind_of_fault() {
    let fault = |change: fn(&mut Told)| {
        let (directory, mut told) = three();
        change(&mut told);
        told.check(directory.path()).unwrap_err()
    };
    let (directory, mut told) = three();
    assert_eq!(told.check(directory.path()).unwrap().acknowledgements, 3);
    let lost = fault(|told| {
        let (position, _) = *told.acknowledged.last_entry().unwrap().get();
        told.acknowledged.insert(Key { child: 1, thread: 0, number: 4 }, (position, 4));
    });
    assert!(lost.contains("is lost"), "{lost}");
    let moved = fault(|told| {
        told.acknowledged.last_entry().unwrap().get_mut().0.sequence += 1;
    });
    assert!(moved.contains("and now it is"), "{moved}");
    let other = fault(|told| told.acknowledged.last_entry().unwrap().get_mut().1 = 7);
    assert!(other.contains("and now it is"), "{other}");
    let unasked = fault(|told| assert!(told.acknowledged.pop_last().is_some()));
    assert!(unasked.contains("3 rows of 2"), "{unasked}");
    let refused = fault(|told| {
        let (key, _) = told.acknowledged.pop_last().unwrap();
        told.refused.insert(key);
    });
    assert!(refused.contains("it was not"), "{refused}");
}
