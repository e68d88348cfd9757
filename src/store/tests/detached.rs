//! The log read from outside, beside the process that writes it.

use std::sync::Arc;
use std::time::Duration;

use super::bed;
use crate::base::limits::Limits;
use crate::base::position::Position;
use crate::base::reply::Reply;
use crate::store::{DetachedLog, Entry, EntryKind, Erase, LogReadError, LogStart, Store};
use crate::testing::{Survival, TestBed};
use crate::{OperationType, Table, Tx};

const DO: OperationType = OperationType::new("do");
const ROWS: Table<u64, u64> = Table::new("rows");

fn small() -> TestBed {
    bed(|| {
        let limits = Limits {
            segment_bytes_first: 4096,
            segment_bytes_max: 8192,
            keep_log_bytes: u64::MAX,
            ..Limits::default()
        };
        Store::builder().operation(&DO).table(&ROWS).limits(limits)
    })
}

fn run(bed: &TestBed, actor: &str, number: u64) {
    let operation = DO.request("t", actor, format!("k{number}")).expect("a slot").json(&number).expect("a request");
    let work = move |tx: &Tx<'_>| {
        tx.table(&ROWS)?.put(number, &number)?;
        Ok(Reply::ok().bytes("text/plain", vec![b'x'; 300]))
    };
    drop(bed.store().execute(operation, work).expect("it executes"));
}

/// What stands outside: it sees the files as the operating system has them, synced or not.
fn outside(bed: &TestBed, start: LogStart) -> Result<DetachedLog, LogReadError> {
    DetachedLog::open_on(Arc::new(bed.disk().clone()), start)
}

fn rest(log: &mut DetachedLog) -> Vec<Entry> {
    std::iter::from_fn(|| log.try_next().expect("readable")).collect()
}

fn inside(bed: &TestBed) -> Vec<Entry> {
    let mut log = bed.store().log(LogStart::Oldest).expect("readable");
    std::iter::from_fn(|| log.try_next().expect("readable")).collect()
}

/// Does everything that is due, a mark included.
fn settle(bed: &TestBed) {
    while bed.store().step().expect("it steps") {}
    bed.clock().advance(Duration::from_millis(200));
    while bed.store().step().expect("it steps") {}
}

#[test]
fn an_entry_is_shown_once_something_later_proves_it_and_not_before() {
    let bed = small();
    settle(&bed);
    let mut log = outside(&bed, LogStart::Oldest).unwrap();
    let before = rest(&mut log).len();
    run(&bed, "a", 1);
    assert_eq!(rest(&mut log), [], "synced, but nothing in the log says so");
    run(&bed, "a", 2);
    let shown = rest(&mut log);
    assert_eq!(shown, inside(&bed)[before..=before], "the second one proves the first");
    settle(&bed);
    assert_eq!(rest(&mut log).len(), 1, "and a mark the second");
}

#[test]
fn it_shows_what_the_store_shows_across_segments_and_openings() {
    let mut bed = small();
    let mut log = outside(&bed, LogStart::Oldest).unwrap();
    let mut seen = Vec::new();
    for round in 0..6 {
        for number in 0..30 {
            run(&bed, "a", round * 100 + number);
            seen.extend(rest(&mut log));
        }
        settle(&bed);
        match round % 3 {
            0 => bed.kill_and_reopen().unwrap(),
            1 => bed.crash_and_reopen(&Survival::Nothing).unwrap(),
            _ => bed.close_and_reopen().unwrap(),
        }
        // The disk of the next generation is another one: whoever stands outside goes on from what was seen.
        let position = seen.last().map_or(Position { epoch: 0, sequence: 0 }, |entry: &Entry| entry.position);
        log = outside(&bed, LogStart::After(position)).unwrap();
    }
    settle(&bed);
    seen.extend(rest(&mut log));
    let places = |entries: &[Entry]| entries.iter().map(|entry| entry.position.to_string()).collect::<Vec<_>>();
    assert_eq!(places(&seen), places(&inside(&bed)));
    assert_eq!(seen, inside(&bed));
    assert!(seen.len() > 180);
    assert_eq!(rest(&mut outside(&bed, LogStart::Oldest).unwrap()), seen);
    assert_eq!(rest(&mut outside(&bed, LogStart::Now).unwrap()), []);
}

#[test]
fn what_is_erased_is_shown_as_erased_as_soon_as_that_is_written() {
    let bed = small();
    for number in 0..10 {
        run(&bed, if number % 2 == 0 { "even" } else { "odd" }, number);
    }
    settle(&bed);
    let mut early = outside(&bed, LogStart::Oldest).unwrap();
    let told = bed.store().erase(&Erase::actor("t", "odd"), None, "asked to", |_| ()).expect("erased");
    assert_eq!(told.entries, 5);
    let from_early = rest(&mut early);
    let erased = |entries: &[Entry]| entries.iter().filter(|entry| entry.kind == EntryKind::Erased).count();
    assert_eq!(erased(&from_early), 5, "a reader that was there before hides them as well");
    settle(&bed);
    assert_eq!(rest(&mut outside(&bed, LogStart::Oldest).unwrap()), inside(&bed));
    // Whoever comes again is not erased.
    run(&bed, "odd", 100);
    settle(&bed);
    let mut log = outside(&bed, LogStart::Oldest).unwrap();
    assert_eq!(erased(&rest(&mut log)), 5);
}

#[test]
fn what_was_removed_is_named_and_a_purged_log_goes_on() {
    let bed = small();
    for number in 0..60 {
        run(&bed, "a", number);
    }
    settle(&bed);
    let mut slow = outside(&bed, LogStart::Oldest).unwrap();
    let first = slow.try_next().unwrap().expect("an entry").position;
    bed.store().purge(|_, _| ()).expect("purged");
    let behind = loop {
        match slow.try_next() {
            // What it has read ahead is still its own.
            Ok(Some(_)) => {}
            Ok(None) => panic!("it cannot have come to the end"),
            Err(error) => break error,
        }
    };
    assert!(!matches!(behind, LogReadError::Newer(_)), "{behind}");
    run(&bed, "a", 1000);
    settle(&bed);
    assert!(matches!(slow.try_next(), Err(LogReadError::NotRetained { .. })));
    assert!(matches!(outside(&bed, LogStart::After(first)), Err(LogReadError::NotRetained { .. })));
    assert_eq!(rest(&mut outside(&bed, LogStart::Oldest).unwrap()), inside(&bed));
    let ahead = Position { epoch: 1, sequence: 1_000_000 };
    assert!(matches!(outside(&bed, LogStart::After(ahead)), Err(LogReadError::OtherHistory { .. })));
}
