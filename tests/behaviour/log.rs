//! Followers of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{Change, Decision, Entry, EntryKind, LogReadError, LogStart, Outcome, Position, Reply, Store, Tx};

fn all(store: &Store, start: LogStart) -> Vec<Entry> {
    let mut follower = store.log(start).expect("a start");
    std::iter::from_fn(|| follower.try_next().expect("readable")).collect()
}

#[test]
fn entries_carry_who_what_and_every_change() {
    let mut bed = bed();
    let store = bed.store();
    let start = store.stats().position;
    let body = |tx: &Tx<'_>| {
        let totals = tx.table(&TOTALS)?;
        totals.put("a", &1)?;
        totals.put("a", &2)?;
        totals.put("b", &3)?;
        Ok(Reply::created().resource_id("r/1").json("done")?)
    };
    let operation = op("k").attempt(2).trace_id("trace-1").unwrap();
    let first = store.execute(operation, body).unwrap();
    let no = |tx: &Tx<'_>| {
        tx.table(&TOTALS)?.put("c", &1)?;
        Ok(Decision::Reject(Reply::refused()))
    };
    let rejected = store.execute(op("no"), no).unwrap();
    let written = store.write(|tx| Ok(tx.table(&TOTALS)?.remove("a")?)).unwrap();
    assert!(store.execute(op("fails"), |_: &Tx<'_>| -> Result<Reply, _> { panic!("no entry") }).is_err());

    let check = |entries: &[Entry]| {
        assert_eq!(entries.len(), 3);
        let positions: Vec<_> = entries.iter().map(|entry| Some(entry.position)).collect();
        assert_eq!(positions, [Some(first.position()), Some(rejected.position()), written.position]);
        let EntryKind::Operation { slot, version, outcome, reply, attempt, trace_id, .. } = &entries[0].kind else {
            panic!("{:?}", entries[0].kind)
        };
        assert_eq!((slot, reply, *version, *outcome), (first.slot(), first.reply(), 1, Outcome::Completed));
        assert_eq!((*attempt, trace_id.as_deref()), (2, Some("trace-1")));
        assert_eq!((entries[0].time, entries[0].wall), (first.meta().completed_at, first.meta().completed_at_wall));
        let changes: Vec<_> = entries[0].changes.iter().map(row).collect();
        assert_eq!(changes, [("totals", Some("2")), ("totals", Some("3"))], "one final value for each row");
        assert!(matches!(&entries[1].kind, EntryKind::Operation { outcome: Outcome::Rejected, .. }));
        assert!(entries[1].changes.is_empty(), "the mutation of a no is dropped");
        assert!(matches!(entries[2].kind, EntryKind::Write));
        assert_eq!(entries[2].changes.iter().map(row).collect::<Vec<_>>(), [("totals", None)]);
    };
    check(&all(store, LogStart::After(start)));
    let oldest = all(store, LogStart::Oldest);
    assert_eq!(oldest[0].position.sequence, 1);
    assert!(matches!(&oldest[0].kind, EntryKind::TableDeclared { table, version: 1 } if table == "totals"));
    check(&oldest[usize::try_from(start.sequence).unwrap()..]);
    assert!(all(store, LogStart::Now).is_empty());
    assert_eq!(all(store, LogStart::After(rejected.position())).len(), 1);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    check(&all(bed.store(), LogStart::After(start)));
}

fn row(change: &Change) -> (&str, Option<&str>) {
    (&change.table, change.value.as_ref().map(|value| std::str::from_utf8(value).expect("JSON")))
}

#[test]
fn a_position_that_was_never_given_or_is_of_another_epoch_is_of_another_history() {
    let mut bed = bed();
    let first = bed.store().execute(op("k"), add("n")).unwrap().position();
    bed.close_and_reopen().unwrap();
    let second = bed.store().execute(op("l"), add("n")).unwrap().position();
    assert!(second.epoch > first.epoch && second.sequence == first.sequence + 1);
    for (epoch, sequence) in [
        (first.epoch, second.sequence),
        (second.epoch, first.sequence),
        (second.epoch, second.sequence + 1),
        (second.epoch + 1, second.sequence),
        (second.epoch, u64::MAX),
        (0, first.sequence),
    ] {
        let position = Position { epoch, sequence };
        let error = bed.store().log(LogStart::After(position)).expect_err("another history");
        assert!(matches!(error, LogReadError::OtherHistory { position: named } if named == position), "{error:?}");
    }
    assert_eq!(all(bed.store(), LogStart::After(first)).len(), 1);
    assert_eq!(all(bed.store(), LogStart::After(second)).len(), 0);
}

#[test]
fn a_blocking_follower_sees_every_entry_once_in_order_and_ends_when_the_store_is_closed() {
    let store = threaded(&SimDisk::new());
    let followers: Vec<_> = (0..3)
        .map(|_| {
            let follower = store.log(LogStart::Now).unwrap();
            std::thread::spawn(move || follower.map(|entry| entry.unwrap().position).collect::<Vec<_>>())
        })
        .collect();
    let mut positions: Vec<_> =
        (0..50).map(|n| store.execute(op(&n.to_string()), add("n")).unwrap().position()).collect();
    positions.push(store.write(|tx| Ok(tx.table(&TOTALS)?.put("w", &1)?)).unwrap().position.unwrap());
    store.close().unwrap();
    for follower in followers {
        assert_eq!(follower.join().unwrap(), positions);
    }
}

#[test]
fn a_follower_ends_when_the_last_handle_is_dropped() {
    let store = threaded(&SimDisk::new());
    let follower = store.log(LogStart::Now).unwrap();
    let reading = std::thread::spawn(move || follower.count());
    drop(store.execute(op("k"), add("n")).unwrap());
    drop(store);
    assert_eq!(reading.join().unwrap(), 1);
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_follower_is_polled_without_any_runtime() {
    let bed = bed();
    let mut follower = bed.store().log(LogStart::Now).unwrap();
    let counts = Arc::new(Counts::default());
    let waker = Waker::from(Arc::clone(&counts));
    let mut context = Context::from_waker(&waker);
    for round in 1..4 {
        assert!(follower.poll_next(&mut context).is_pending());
        assert!(follower.poll_next(&mut context).is_pending(), "polled again for nothing");
        let receipt = bed.store().execute(op(&round.to_string()), add("n")).unwrap();
        assert_eq!(counts.0.load(Ordering::SeqCst), round, "woken once an entry");
        let Poll::Ready(Ok(Some(entry))) = follower.poll_next(&mut context) else { panic!("an entry") };
        assert_eq!(entry.position, receipt.position());
    }
    assert!(follower.poll_next(&mut context).is_pending());
    bed.store().clone().close().unwrap();
    assert_eq!(counts.0.load(Ordering::SeqCst), 4);
    assert!(matches!(follower.poll_next(&mut context), Poll::Ready(Ok(None))));
    assert!(follower.next().is_none() && block_on(follower.next_entry()).unwrap().is_none());
}

#[test]
fn a_follower_crosses_segments() {
    let bed = bed();
    let mut follower = bed.store().log(LogStart::Now).unwrap();
    let big = |_: &Tx<'_>| Ok(Reply::ok().bytes("a/b", vec![7; 200 * 1024]));
    let positions: Vec<_> = (0..30)
        .map(|n| {
            let receipt = bed.store().execute(op(&n.to_string()), big).unwrap();
            settle(bed.store());
            receipt.position()
        })
        .collect();
    assert!(bed.store().stats().segments > 1, "more than one segment was filled");
    let followed: Vec<_> = std::iter::from_fn(|| follower.try_next().unwrap()).map(|entry| entry.position).collect();
    assert_eq!(followed, positions);
    assert_eq!(all(bed.store(), LogStart::After(positions[10])).len(), 19);
    bed.store().assert_sound();
}
