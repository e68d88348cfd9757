//! What may be removed, by bytes and by age, and where the log begins afterwards.

use super::*;
use crate::log::retain::{Keep, RemoveError, Retention, remove_oldest};

const NOTHING: Keep = Keep { bytes: 0, age_ms: 0 };

/// One segment of `bytes` for each of `sequences`, the last one active. Entry `n` is of second `n`.
fn filled(disk: &TestDisk, log: &mut Appender, sequences: std::ops::RangeInclusive<u64>) {
    for sequence in sequences.clone() {
        let payload = sequence.to_string();
        let frame = OutgoingFrame { sequence, time_ms: sequence * 1000, payload: payload.as_bytes() };
        log.append(&[frame]).expect("appended");
        log.sync().expect("synced");
        if sequence != *sequences.end() {
            roll(disk, log);
        }
    }
}

/// The ordinals, or epochs, that may go, and the floor.
fn plan(disk: &TestDisk, applied: u64, now_ms: u64, keep: Keep) -> Option<(u64, Vec<(u64, u32)>)> {
    let removal = Retention::default().plan(disk, ID, applied, now_ms, keep).expect("planned")?;
    let names = removal.segments.iter().map(|segment| (segment.name.epoch, segment.name.ordinal));
    Some((removal.floor, names.collect()))
}

#[test]
fn the_segment_of_the_last_applied_operation_and_all_after_it_stay() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=5);
    for applied in 0..=1 {
        assert_eq!(plan(&disk, applied, u64::MAX, NOTHING), None);
    }
    for applied in 2..=5_u32 {
        let gone = (0..applied - 1).map(|ordinal| (1, ordinal)).collect();
        assert_eq!(plan(&disk, applied.into(), u64::MAX, NOTHING), Some((applied.into(), gone)));
    }
}

#[test]
fn bytes_and_age_each_keep_what_they_ask_for() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=5);
    let floor = |now_ms, bytes, age_ms| plan(&disk, 5, now_ms, Keep { bytes, age_ms }).map_or(1, |(floor, _)| floor);
    // Ordinals 0 to 3 hold entries 1 to 4 and have 256, 512, 1024 and 2048 KiB.
    const KIB: u64 = 1024;
    assert_eq!(floor(5000, 0, 0), 5);
    assert_eq!(floor(5000, 1, 0), 4, "a byte keeps a segment");
    assert_eq!(floor(5000, 2048 * KIB, 0), 4);
    assert_eq!(floor(5000, 2048 * KIB + 1, 0), 3);
    assert_eq!(floor(5000, 3584 * KIB, 0), 2);
    assert_eq!(floor(5000, 3584 * KIB + 1, 0), 1);
    assert_eq!(floor(5000, u64::MAX, 0), 1);
    // A segment is as old as what follows it: entry 1 goes when entry 2 is old.
    assert_eq!(floor(11_999, 0, 10_000), 1);
    assert_eq!(floor(12_000, 0, 10_000), 2);
    assert_eq!(floor(14_999, 0, 10_000), 4);
    assert_eq!(floor(15_000, 0, 10_000), 5);
    assert_eq!(floor(15_000, 0, u64::MAX), 1, "never");
    assert_eq!(floor(14_000, 3584 * KIB, 10_000), 2, "bytes keep what age does not");
    assert_eq!(floor(12_000, 1, 10_000), 2, "age keeps what bytes do not");
}

#[test]
fn blank_and_dead_segments_of_earlier_openings_go_the_same_way_and_never_decide_where_the_log_begins() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=2);
    // Read, not proven: entry 2 is copied by the next opening and dead where it was.
    drop(prepare_segment(&disk, ID, &log.next_segment_spec(0), 0).expect("prepared"));
    drop(log);
    for epoch in 2..=4 {
        assert_eq!(open(&disk, at(epoch - 1, 1)).durable, 2);
    }
    let mut log = open(&disk, at(4, 1)).appender;
    assert_eq!(log.epoch(), 5);
    filled(&disk, &mut log, 3..=4);
    let all = disk.names().len();
    assert_eq!(plan(&disk, 2, u64::MAX, NOTHING), Some((2, vec![(1, 0), (1, 1), (1, 2)])));
    let (floor, gone) = plan(&disk, 4, u64::MAX, NOTHING).expect("something");
    assert_eq!((floor, gone.len()), (4, all - 1));
    // Whatever is kept, the floor is an entry that can be read from there on.
    let mut floors = Vec::new();
    for kib in (0..=3000).step_by(64) {
        let Some((floor, gone)) = plan(&disk, 4, u64::MAX, Keep { bytes: kib * 1024, age_ms: 0 }) else { continue };
        let rest = disk.after_power_loss();
        gone.iter().for_each(|&(epoch, ordinal)| {
            remove_oldest(&rest, SegmentName { epoch, ordinal }).expect("removed");
        });
        let mut reader = LogReader::open(rest.arc(), ID, floor).expect("the floor is there");
        assert_eq!(drain(&mut reader, 4).first().map(|(sequence, _)| *sequence), Some(floor), "{kib} KiB");
        floors.push(floor);
    }
    floors.dedup();
    assert_eq!(floors, [4, 3, 2], "the more is kept, the lower the floor");
}

#[test]
fn an_old_segment_that_cannot_be_read_stays_with_all_after_it() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=4);
    disk.edit(&file(1, 1), |bytes| bytes[30] ^= 1);
    let planned = Retention::default().plan(&disk, ID, 4, u64::MAX, NOTHING);
    assert!(matches!(planned, Err(LogError::BadHeader { .. })), "{planned:?}");
}

#[test]
fn what_was_read_of_old_segments_is_not_read_again() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=4);
    let mut retention = Retention::default();
    let keep = Keep { bytes: 700 * 1024, age_ms: 0 };
    let first = retention.plan(&disk, ID, 4, u64::MAX, keep).expect("planned");
    assert!(first.as_ref().is_some_and(|removal| removal.segments.len() == 2), "{first:?}");
    // It would notice if it read it.
    disk.edit(&file(1, 0), |bytes| bytes[30] ^= 1);
    assert_eq!(retention.plan(&disk, ID, 4, u64::MAX, keep).expect("planned"), first);
}

#[test]
fn a_segment_that_is_gone_already_is_removed() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=3);
    let oldest = SegmentName { epoch: 1, ordinal: 0 };
    for _ in 0..2 {
        let removed: Result<(), RemoveError> = remove_oldest(&disk, oldest);
        removed.expect("removed");
        assert_eq!(disk.after_power_loss().names()[0], file(1, 1));
    }
}

/// What the state says after a checkpoint that contains `applied_sequence`.
fn checkpoint(epoch: u64, applied_sequence: u64, log_floor: u64) -> CheckpointState {
    CheckpointState { epoch, applied_sequence, log_floor }
}

#[test]
fn a_segment_that_was_removed_and_came_back_is_passed_over_and_a_hole_above_the_floor_is_an_error() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=5);
    drop(log);
    // The removal of ordinal 0 was dropped by a failed sync; those of 1 and 2 were made durable afterwards.
    disk.delete(&file(1, 1));
    disk.delete(&file(1, 2));
    for floor in 1..=3 {
        let refused = try_open(&disk.after_kill(), checkpoint(1, 4, floor));
        assert!(matches!(&refused, Err(LogError::MissingSegment { file }) if *file == self::file(1, 1)), "{refused:?}");
        let report = check_all(&disk, ID, Extent::Closed { applied: 4 }, floor).expect("checked");
        assert!(matches!(report.problems[..], [LogError::MissingSegment { .. }, ..]), "{:?}", report.problems);
    }
    let report = check_all(&disk, ID, Extent::Closed { applied: 4 }, 4).expect("checked");
    assert_eq!((report.segments, report.first_sequence, report.problems.len()), (3, Some(4), 0));
    let mut opened = open(&disk, checkpoint(1, 4, 4));
    assert_eq!((opened.durable, opened.oldest), (5, 4));
    assert_eq!(contents(&mut opened), ["5"]);
    assert!(disk.names().contains(&file(1, 0)), "opening removes no segment");
    // It goes as every old segment does; entry 5 was copied.
    let gone = Some((5, vec![(1, 0), (1, 3), (1, 4)]));
    assert_eq!(plan(&disk, 5, u64::MAX, NOTHING), gone);
}

#[test]
fn an_epoch_that_came_back_without_its_end_is_no_problem_below_the_floor() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    filled(&disk, &mut log, 1..=3);
    log.close(None, 0).expect("closed");
    let mut log = open(&disk, at(1, 3)).appender;
    filled(&disk, &mut log, 4..=5);
    disk.delete(&file(1, 2));
    let problems = |floor| check_all(&disk, ID, Extent::Closed { applied: 3 }, floor).expect("checked").problems.len();
    assert_eq!((problems(3), problems(4)), (1, 0));
    let mut opened = open(&disk, checkpoint(1, 3, 4));
    assert_eq!(contents(&mut opened), ["4", "5"]);
}
