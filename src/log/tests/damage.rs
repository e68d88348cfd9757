use super::*;
use crate::log::frame::FrameKind;
use crate::log::name::SegmentName;
use crate::log::scan::{Scanned, SegmentReader};

/// A closed log of five operations in two segments, and a state that contains nothing.
fn closed() -> TestDisk {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one", "number two"]);
    commit(&mut log, &["three"]);
    roll(&disk, &mut log);
    commit(&mut log, &["four", "the fifth"]);
    log.close(None, 0).expect("closed");
    let first = disk.bytes(&file(1, 0)).len();
    disk.edit(&file(1, 0), |bytes| bytes.truncate(first.min(1024)));
    disk
}

fn problems(disk: &TestDisk) -> Vec<String> {
    let report = check_all(disk, ID, Extent::Closed { applied: 0 }, 1).expect("checked");
    report.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_log_has_no_problems() {
    let disk = closed();
    let report = check_all(&disk, ID, Extent::Closed { applied: 5 }, 1).expect("checked");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!((report.segments, report.entries, report.marks, report.ignored), (2, 5, 2, 0));
    assert_eq!((report.first_sequence, report.last_sequence), (Some(1), Some(5)));
}

/// Of a log whose oldest segments nobody needs, a damaged one is reported by checking it, and keeps nothing from opening.
#[test]
fn a_damaged_header_of_a_segment_that_opening_does_not_need_is_passed_over() {
    let disk = TestDisk::default();
    for (state, payloads) in [(NEW, ["one", "two"]), (at(1, 0), ["three", "four"])] {
        let mut log = open(&disk, state).appender;
        commit(&mut log, &payloads);
        log.close(None, 0).expect("closed");
    }
    disk.edit(&file(1, 0), |bytes| bytes[20] ^= 1);
    let needed = try_open(&disk.after_kill(), at(1, 0));
    assert!(matches!(needed, Err(LogError::BadHeader { .. })), "{needed:?}");
    let mut log = open(&disk, at(2, 2));
    assert_eq!(contents(&mut log), ["three", "four"]);
    assert_eq!(log.oldest, 3);
    assert!(problems(&disk)[0].contains(&file(1, 0)));
}

/// Only what is proven by something else can be missed. Nothing is behind the last mark, and without it the batch
/// before it is the last one and unproven: the one loss that looks like a torn write (GUARANTEES: media damage to the
/// very last batch).
#[test]
fn every_flipped_bit_is_detected_or_was_in_the_last_mark_or_unused_space() {
    let disk = closed();
    for ordinal in [0, 1] {
        let name = file(1, ordinal);
        let good = disk.bytes(&name);
        let used = 1 + good.iter().rposition(|&byte| byte != 0).expect("written");
        for bit in 0..good.len() * 8 {
            let disk = disk.after_kill();
            disk.edit(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            let found = problems(&disk);
            let opened = try_open(&disk, NEW);
            let in_last_mark = ordinal == 1 && bit / 8 >= good.len() - 48;
            if in_last_mark || bit / 8 >= used.next_multiple_of(8) {
                assert!(found.is_empty(), "{name} bit {bit}: {found:?}");
                assert_eq!(contents(&mut opened.expect("opens")).len(), 5);
            } else {
                assert!(!found.is_empty(), "{name} bit {bit}");
                assert!(opened.is_err(), "{name} bit {bit}");
            }
        }
    }
}

#[test]
fn one_bad_frame_is_reported_and_the_others_are_intact() {
    let disk = closed();
    // The payload of the second operation.
    disk.edit(&file(1, 0), |bytes| bytes[560 + 56 + 50] ^= 1);
    let report = check_all(&disk, ID, Extent::Closed { applied: 0 }, 1).expect("checked");
    assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
    assert!(matches!(report.problems[0], LogError::Damaged { offset: 616, sequence: 2, .. }));
    assert_eq!((report.entries, report.last_sequence), (4, Some(5)));
    let before = disk.image();
    assert_damaged(try_open(&disk, NEW), &file(1, 0), 616, 2);
    assert_eq!(disk.image(), before, "L7: nothing is changed, nothing deleted");
}

#[test]
fn a_bad_header_a_cut_file_and_an_empty_one_are_damage_and_not_the_end() {
    let disk = closed();
    for len in [0, 1, 511] {
        for ordinal in [0, 1] {
            let disk = disk.after_kill();
            disk.edit(&file(1, ordinal), |bytes| bytes.truncate(len));
            assert!(matches!(try_open(&disk, NEW), Err(LogError::BadHeader { .. })), "L1");
            assert_eq!(problems(&disk).len(), 1);
        }
    }
    let log = open(&disk, NEW);
    drop(prepare_segment(&disk, ID, &log.appender.next_segment_spec(0), 0).expect("prepared"));
    disk.edit(&file(2, 1), |bytes| bytes[0] = 0);
    assert!(matches!(try_open(&disk, NEW), Err(LogError::BadHeader { .. })), "L1: an unused segment as well");
}

/// What is cut off takes with it what proved it. But an open segment has room for one more mark, and a closed one ends
/// with its mark: so only a cut exactly behind a mark looks like a close.
#[test]
fn a_segment_that_was_cut_off_is_damage_unless_it_ends_behind_a_mark() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one", "number two"]);
    let marked = 512 + 48;
    let middle = disk.after_kill();
    log.append_mark(0).expect("appended");
    log.sync().expect("synced");
    commit(&mut log, &["three"]);
    let used = 1 + disk.bytes(&file(1, 0)).iter().rposition(|&byte| byte != 0).expect("written");
    let two = 1 + middle.bytes(&file(1, 0)).iter().rposition(|&byte| byte != 0).expect("written");
    let marked_again = two.next_multiple_of(8) + 48;
    for len in 512..used + 100 {
        let disk = disk.after_kill();
        disk.edit(&file(1, 0), |bytes| bytes.truncate(len));
        let found = problems(&disk);
        let opened = try_open(&disk, NEW);
        // Behind the frames and the room for a mark nothing is lost.
        if [marked, marked_again].contains(&len) || len >= used.next_multiple_of(8) + 48 {
            assert!(opened.is_ok() && found.is_empty(), "length {len}: {found:?}");
        } else {
            assert!(matches!(opened, Err(LogError::Damaged { .. })), "length {len}: {opened:?}");
            assert_eq!(found.len(), 1, "length {len}: {found:?}");
        }
    }
}

#[test]
fn a_proven_frame_replaced_by_zeros_is_damage_at_its_place() {
    let disk = closed();
    disk.edit(&file(1, 1), |bytes| bytes[512..568].fill(0));
    assert_damaged(try_open(&disk, NEW), &file(1, 0), 736, 4);
    // All of the first segment's frames, as by a lost page.
    let disk = closed();
    disk.edit(&file(1, 0), |bytes| bytes[512..].fill(0));
    assert_damaged(try_open(&disk, NEW), &file(1, 0), 512, 1);
}

#[test]
fn a_damaged_mark_in_front_of_an_unproven_operation_does_not_lose_it() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["answered, not proven yet"]);
    disk.edit(&file(1, 0), |bytes| bytes[520] ^= 1);
    assert_damaged(try_open(&disk.after_kill(), NEW), &file(1, 0), 512, 1);
    let report = check_all(&disk, ID, Extent::Closed { applied: 0 }, 1).expect("checked");
    assert_eq!(report.problems.len(), 1);
}

#[test]
fn the_oldest_segment_with_a_damaged_first_frame_is_damaged_and_not_missing() {
    let disk = closed();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["six"]);
    disk.delete(&file(1, 0));
    disk.edit(&file(1, 1), |bytes| bytes[512] ^= 1);
    assert_damaged(try_open(&disk, at(1, 3)), &file(1, 1), 512, 4);
}

#[test]
fn the_same_frames_in_another_segment_are_not_frames() {
    let disk = closed();
    let source = disk.bytes(&file(1, 0));
    let log = open(&disk, NEW);
    let stale = &source[512..736];
    for offset in [560, 1024] {
        let disk = disk.after_kill();
        disk.edit(&file(2, 0), |bytes| bytes[offset..offset + stale.len()].copy_from_slice(stale));
        let opened = open(&disk, NEW);
        assert_eq!(opened.durable, log.durable, "L2");
        let mut reader = SegmentReader::open(&disk, ID, SegmentName { epoch: 2, ordinal: 0 }).expect("good header");
        assert!(matches!(reader.next().expect("readable"), Scanned::Mark(mark) if mark.kind == FrameKind::Mark));
        assert!(reader.search(560).expect("readable").found.is_none(), "L2");
    }
}

#[test]
fn another_stores_log_is_refused() {
    let disk = closed();
    let other = StoreId([1; 16]);
    let outcome = recover(&disk.arc(), other, &NEW, NEW_EPOCH);
    assert!(matches!(outcome, Err(LogError::ForeignStore { found: ID, .. })));
    assert!(matches!(LogReader::open(disk.arc(), other, 1), Err(LogError::ForeignStore { .. })));
}

#[test]
fn a_live_log_is_checked_up_to_what_is_durable() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    append(&mut log, &["two"]).expect("appended");
    let report = check_all(&disk, ID, Extent::Live { durable: log.durable() }, 1).expect("checked");
    assert!(report.problems.is_empty());
    assert_eq!((report.entries, report.ignored), (1, 1));
    let report = check_all(&disk, ID, Extent::Live { durable: 3 }, 1).expect("checked");
    assert!(matches!(report.problems[..], [LogError::Damaged { sequence: 3, .. }]));
}
