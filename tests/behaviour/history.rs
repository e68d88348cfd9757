//! How much of the log stays: old segments go, on purpose and in order, and nothing else does.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival, TestBed, WALL_AT_START};
use counterfoil::{Limits, LogReadError, LogStart, OpenError, Position, Reply, Store, StoreBuilder, Tx};

const KIB: u64 = 1024;
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = HOUR.saturating_mul(24);

/// Every fold is a checkpoint, and no history is asked for.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.fold_bytes = 1;
    limits.checkpoint_log_bytes = 0;
    limits.keep_log_bytes = 0;
    limits
}

fn keeping(keep: impl Fn(&mut Limits) + 'static) -> TestBed {
    bed_of(move || {
        let mut limits = limits();
        keep(&mut limits);
        builder().limits(limits)
    })
}

fn key(number: u32) -> String {
    format!("key-{number:03}")
}

/// Executes operations whose replies fill a segment of 256 KiB with two of them, and lets the store do what is due.
fn work(store: &Store, numbers: std::ops::Range<u32>) -> Vec<Position> {
    let positions = numbers.map(|number| {
        let large = |_: &Tx<'_>| Ok(Reply::ok().bytes("a/b", vec![7; 100 * 1024]));
        let position = store.execute(op(&key(number)), large).expect("executed").position();
        settle(store);
        position
    });
    positions.collect()
}

fn segments(disk: &SimDisk) -> Vec<String> {
    disk.files().into_keys().filter(|name| name.starts_with("log/")).collect()
}

/// Everything that was executed is answered from its receipt, and nothing is wrong.
fn assert_whole(store: &Store, numbers: std::ops::Range<u32>) {
    for number in numbers {
        assert!(store.execute(op(&key(number)), never).expect("it is known").is_replayed(), "{number}");
    }
    let report = store.verify().expect("checked");
    assert!(report.is_clean(), "{}", problems(&report));
}

fn sequences(store: &Store) -> Vec<u64> {
    let mut follower = store.log(LogStart::Oldest).expect("a start");
    std::iter::from_fn(|| follower.try_next().expect("readable")).map(|entry| entry.position.sequence).collect()
}

#[test]
fn without_history_only_what_the_next_open_needs_stays_and_every_answer_with_it() {
    let mut bed = keeping(|_| {});
    let mut oldest = 1;
    for round in 0..4 {
        let positions = work(bed.store(), round * 12..round * 12 + 12);
        let stats = bed.store().stats();
        assert!(stats.oldest_sequence > oldest, "round {round}: nothing was removed");
        oldest = stats.oldest_sequence;
        let kept = segments(bed.disk());
        assert!(kept.len() <= 3, "the one of the last checkpoint, the active one, the next one: {kept:?}");
        assert_eq!(sequences(bed.store()), (oldest..=stats.position.sequence).collect::<Vec<_>>());
        assert_whole(bed.store(), 0..round * 12 + 12);
        let survival = if round % 2 == 0 { Survival::Nothing } else { Survival::Everything };
        bed.crash_and_reopen(&survival).unwrap();
        assert_eq!(bed.store().stats().oldest_sequence, oldest, "what was removed is remembered");
        assert_whole(bed.store(), 0..round * 12 + 12);
        assert_eq!(bed.store().log(LogStart::After(positions[11])).unwrap().try_next().unwrap(), None);
    }
}

#[test]
fn what_the_policy_asks_for_in_bytes_stays_behind_what_the_next_open_needs() {
    let bed = keeping(|limits| limits.keep_log_bytes = 3000 * KIB);
    let file_bytes = |name: &String| bed.disk().files()[name].len() as u64;
    let mut removed = false;
    for round in 0..30 {
        work(bed.store(), round * 4..round * 4 + 4);
        let kept = segments(bed.disk());
        let all: u64 = kept.iter().map(file_bytes).sum();
        // Newest first: prepared ahead, active, and perhaps the one of the last checkpoint.
        let needed: u64 = kept.iter().rev().take(3).map(file_bytes).sum();
        removed |= bed.store().stats().oldest_sequence > 1;
        if removed {
            assert!(all >= 3000 * KIB, "round {round}: {all}");
            let oldest = file_bytes(&kept[0]);
            assert!(all <= 3000 * KIB + needed + oldest, "round {round}: {all} of which {needed} are needed");
        }
    }
    assert!(removed);
    assert_whole(bed.store(), 0..120);
}

#[test]
fn what_the_policy_asks_for_in_time_stays_whatever_it_takes() {
    let bed = keeping(|limits| limits.keep_log_age = 3 * HOUR);
    let mut last_of_hour = Vec::new();
    for hour in 0..10 {
        last_of_hour.extend(work(bed.store(), hour * 6..hour * 6 + 6).pop());
        let oldest = bed.store().stats().oldest_sequence;
        match hour.checked_sub(3) {
            None => assert_eq!(oldest, 1, "hour {hour}: nothing is three hours old"),
            Some(old) => assert!(oldest <= last_of_hour[old as usize].sequence + 1, "hour {hour}: too young to go"),
        }
        bed.clock().advance(HOUR);
    }
    let oldest = bed.store().stats().oldest_sequence;
    assert!(oldest > last_of_hour[2].sequence, "whole segments are older than three hours: {oldest}");
    assert_whole(bed.store(), 0..60);
}

#[test]
fn a_clock_in_doubt_makes_nothing_old() {
    let build = || {
        let mut limits = limits();
        limits.keep_log_age = 2 * DAY;
        builder().limits(limits)
    };
    let mut bed = bed_of(build);
    work(bed.store(), 0..6);
    bed.clock().set_wall(WALL_AT_START.saturating_add(400 * DAY));
    bed.close_and_reopen().unwrap();
    assert!(bed.store().now() > WALL_AT_START.saturating_add(6 * DAY), "the store's time leaped");
    work(bed.store(), 6..12);
    assert_eq!(bed.store().stats().oldest_sequence, 1);
}

#[test]
fn whoever_wants_everything_keeps_it() {
    let bed = keeping(|limits| limits.keep_log_bytes = u64::MAX);
    work(bed.store(), 0..30);
    let stats = bed.store().stats();
    assert_eq!((stats.oldest_sequence, sequences(bed.store()).len() as u64), (1, stats.position.sequence));
    // All but the one that is prepared.
    let files = segments(bed.disk());
    let active = files[..files.len() - 1].iter().map(|name| bed.disk().files()[name].len() as u64);
    assert_eq!(stats.log_bytes, active.sum::<u64>());
    bed.store().assert_sound();
}

#[test]
fn the_bytes_of_the_log_are_those_of_its_segments_after_removals_too() {
    let mut bed = keeping(|_| {});
    for round in 0..3 {
        work(bed.store(), round * 10..round * 10 + 10);
        let files = segments(bed.disk());
        let active = files[..files.len() - 1].iter().map(|name| bed.disk().files()[name].len() as u64);
        assert_eq!(bed.store().stats().log_bytes, active.sum::<u64>(), "round {round}");
        bed.close_and_reopen().unwrap();
        let files = segments(bed.disk());
        let all = files.iter().map(|name| bed.disk().files()[name].len() as u64);
        assert_eq!(bed.store().stats().log_bytes, all.sum::<u64>(), "round {round}");
    }
}

#[test]
fn a_position_below_the_floor_is_not_retained_and_says_what_is() {
    let bed = keeping(|_| {});
    let positions = work(bed.store(), 0..20);
    let oldest = bed.store().stats().oldest_sequence;
    let (below, kept): (Vec<Position>, Vec<_>) =
        positions.into_iter().partition(|position| position.sequence + 1 < oldest);
    assert!(below.len() > 10 && !kept.is_empty());
    for position in below {
        let error = bed.store().log(LogStart::After(position)).expect_err("it was removed");
        let LogReadError::NotRetained { after, oldest: named } = error else { panic!("{error}") };
        assert_eq!((after, named), (position, oldest));
    }
    for position in kept {
        let next = bed.store().log(LogStart::After(position)).unwrap().try_next().unwrap();
        assert_eq!(next.map_or(position.sequence + 1, |entry| entry.position.sequence), position.sequence + 1);
    }
}

#[test]
fn a_follower_that_falls_behind_what_is_kept_is_told_and_stays_where_it_is() {
    let bed = keeping(|_| {});
    let first = work(bed.store(), 0..1)[0];
    let mut slow = bed.store().log(LogStart::Oldest).unwrap();
    while slow.try_next().unwrap().is_some_and(|entry| entry.position != first) {}
    let mut quick = bed.store().log(LogStart::After(first)).unwrap();
    let mut followed = Vec::new();
    for number in 1..30 {
        work(bed.store(), number..number + 1);
        followed.extend(quick.try_next().unwrap());
    }
    assert_eq!(followed.len(), 29, "one that keeps up loses nothing");
    // Some of what it needs may still be open; then it is told, again and again.
    let mut last = first;
    let error = loop {
        match slow.try_next() {
            Ok(entry) => last = entry.expect("it is far behind").position,
            Err(error) => break error,
        }
    };
    let oldest = bed.store().stats().oldest_sequence;
    for error in [error, slow.try_next().unwrap_err(), block_on(slow.next_entry()).unwrap_err()] {
        let LogReadError::NotRetained { after, oldest: named } = error else { panic!("{error}") };
        assert_eq!((after, named), (last, oldest));
    }
    let rest = LogStart::After(Position { epoch: first.epoch, sequence: oldest - 1 });
    assert!(bed.store().log(rest).unwrap().try_next().unwrap().is_some(), "it goes on from the oldest one");
}

#[test]
fn the_floor_is_durable_before_anything_is_removed_and_each_removal_before_the_next() {
    let bed = keeping(|_| {});
    bed.disk().start_trace();
    work(bed.store(), 0..20);
    let trace = bed.disk().trace();
    let is = |call: &str, kind: &str, name: &str| call.contains(&format!(": {kind} ")) && call.contains(name);
    let mut removals = 0;
    let (mut floor_is_durable, mut names_are_durable) = (false, true);
    for call in &trace {
        if is(call, "Sync", "state.redb") {
            floor_is_durable = true;
        } else if is(call, "Remove", "log/") {
            assert!(floor_is_durable && names_are_durable, "{call}");
            (names_are_durable, removals) = (false, removals + 1);
        } else if is(call, "SyncDir", "log") {
            names_are_durable = true;
        }
    }
    assert!(removals > 2 && names_are_durable, "{removals} removals");
}

#[test]
fn a_loss_of_power_at_any_step_of_removal_leaves_a_store_that_is_whole_and_knows_what_it_lacks() {
    // Returns how many were answered before the power failed.
    let run = |cut: Option<u64>| {
        let bed = keeping(|_| {});
        let start = bed.disk().operations();
        if let Some(cut) = cut {
            bed.disk().power_cut_at(start + cut);
        }
        let answered = (0..8).take_while(|number| {
            let large = |_: &Tx<'_>| Ok(Reply::ok().bytes("a/b", vec![7; 100 * 1024]));
            let answer = bed.store().execute(op(&key(*number)), large);
            settle(bed.store());
            answer.is_ok()
        });
        let answered = u32::try_from(answered.count()).unwrap();
        (bed, start, answered)
    };
    let (whole, start, _) = run(None);
    let steps = whole.disk().operations() - start;
    let floor = whole.store().stats().oldest_sequence;
    assert!(floor > 6, "{steps} steps, {floor}");
    let mut floors = std::collections::BTreeSet::new();
    for cut in 1..=steps {
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(cut)] {
            let (mut bed, _, answered) = run(Some(cut));
            bed.crash_and_reopen(&survival).unwrap_or_else(|error| panic!("{cut} {survival:?}: {error}"));
            floors.insert(bed.store().stats().oldest_sequence);
            assert_whole(bed.store(), 0..answered);
            work(bed.store(), 20..23);
            assert_whole(bed.store(), 20..23);
        }
    }
    assert!(floors.contains(&1) && floors.contains(&floor), "before removals, behind them, and between: {floors:?}");
}

#[test]
fn a_segment_that_is_missing_above_the_floor_is_not_taken_for_a_removed_one() {
    let mut bed = keeping(|limits| limits.keep_log_bytes = 600 * KIB);
    work(bed.store(), 0..20);
    bed.close_and_reopen().unwrap();
    let oldest = bed.store().stats().oldest_sequence;
    assert!(oldest > 1);
    assert!(bed.disk().remove_file(&segments(bed.disk())[0]));
    bed.close_and_reopen().unwrap();
    let found = problems(&bed.store().verify().unwrap());
    assert!(found.contains(&format!("entries {oldest} to ")) && found.contains("are missing"), "{found}");
    let error = bed.store().log(LogStart::Oldest).map(drop).unwrap_err();
    assert!(matches!(error, LogReadError::Damaged(_)), "{error}");
}

#[test]
fn a_segment_that_cannot_be_removed_stops_nobody_and_goes_later() {
    let bed = keeping(|_| {});
    bed.disk().fail(Fault { permanent: true, ..Fault::next(CallKind::Remove, FaultError::Eio) });
    work(bed.store(), 0..20);
    let (stats, kept) = (bed.store().stats(), segments(bed.disk()));
    assert_eq!(stats.stopped, None);
    assert!(stats.oldest_sequence > 1 && kept.len() > 4, "the floor rose, the files stay: {kept:?}");
    assert_whole(bed.store(), 0..20);
    bed.disk().clear_faults();
    work(bed.store(), 20..22);
    assert!(segments(bed.disk()).len() <= 3, "{:?}", segments(bed.disk()));
    assert_whole(bed.store(), 0..22);
}

#[test]
fn after_a_failed_sync_of_the_directory_nothing_is_removed_until_the_store_was_opened_again() {
    let mut bed = keeping(|limits| limits.keep_log_bytes = 400 * KIB);
    work(bed.store(), 0..4);
    let removals = |bed: &TestBed| bed.disk().trace().iter().filter(|call| call.contains(": Remove log/")).count();
    bed.disk().start_trace();
    // Segments are prepared with the same call; the one that fails is the first behind a removal.
    let mut next = 4;
    while removals(&bed) == 0 {
        let large = |_: &Tx<'_>| Ok(Reply::ok().bytes("a/b", vec![7; 100 * 1024]));
        drop(bed.store().execute(op(&key(next)), large).unwrap());
        next += 1;
        while bed.store().step().unwrap() {
            bed.disk().clear_faults();
            if bed.store().stats().oldest_sequence > 1 {
                bed.disk().fail(Fault::next(CallKind::SyncDir, FaultError::Eio));
            }
        }
    }
    bed.disk().clear_faults();
    assert_eq!(bed.store().stats().stopped, None);
    work(bed.store(), next..next + 20);
    assert_eq!(removals(&bed), 1, "a second removal could leave a hole");
    assert_whole(bed.store(), 0..next + 20);
    bed.crash_and_reopen(&Survival::Nothing).unwrap();
    work(bed.store(), next + 20..next + 22);
    assert!(segments(bed.disk()).len() <= 6, "{:?}", segments(bed.disk()));
    assert_whole(bed.store(), 0..next + 22);
}

#[test]
fn a_lost_state_file_is_an_error_whose_cure_is_a_backup() {
    let mut bed = keeping(|_| {});
    work(bed.store(), 0..20);
    assert!(bed.store().stats().oldest_sequence > 1);
    assert!(bed.disk().remove_file("state.redb"));
    let error = bed.crash_and_reopen(&Survival::Everything).unwrap_err();
    assert!(matches!(&error, OpenError::Missing { missing } if missing == "state.redb"), "{error}");
    assert!(error.to_string().contains("restore it from a backup"), "{error}");
}

#[test]
fn segments_of_openings_that_did_little_do_not_pile_up() {
    let mut bed = keeping(|_| {});
    for number in 0..40 {
        drop(bed.store().execute(op(&key(number)), add("n")).unwrap());
        bed.close_and_reopen().unwrap();
        assert!(segments(bed.disk()).len() <= 3, "opening {number}: {:?}", segments(bed.disk()));
    }
    assert_whole(bed.store(), 0..40);
    assert_eq!(total(bed.store(), "n"), 40);
}

#[test]
fn what_failed_openings_left_goes_the_same_way() {
    let disk = SimDisk::new();
    let open = |builder: StoreBuilder| builder.limits(limits()).manual().open_in(&disk);
    let store = open(builder()).unwrap();
    drop(store.execute(op(&key(0)), add("n")).unwrap());
    store.close().unwrap();
    const OTHER: counterfoil::Table<u64, u64> = counterfoil::Table::new("totals");
    for _ in 0..20 {
        open(Store::builder().operation(&ADD).table(&OTHER)).expect_err("the table has other keys");
    }
    assert!(segments(&disk).len() > 20);
    let store = open(builder()).unwrap();
    work(&store, 1..6);
    assert!(segments(&disk).len() <= 3, "{:?}", segments(&disk));
    assert_whole(&store, 0..6);
}

#[test]
fn a_store_with_threads_removes_what_is_past_the_policy_and_is_checked_meanwhile() {
    let disk = SimDisk::new();
    let store = builder().limits(limits()).open_in(&disk).unwrap();
    let writing = std::thread::spawn({
        let store = store.clone();
        move || {
            for number in 0..60 {
                let large = |_: &Tx<'_>| Ok(Reply::ok().bytes("a/b", vec![7; 100 * 1024]));
                drop(store.execute(op(&key(number)), large).expect("executed"));
            }
        }
    });
    while !writing.is_finished() {
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{}", problems(&report));
    }
    writing.join().unwrap();
    store.close().unwrap();
    let kept = segments(&disk);
    let store = builder().limits(limits()).open_in(&disk).unwrap();
    assert!(store.stats().oldest_sequence > 1, "{kept:?}");
    assert_whole(&store, 0..60);
    store.close().unwrap();
}
