use super::*;
use crate::log::scan::{Scanned, SegmentReader};

#[test]
fn a_reader_follows_the_appender_over_segments_and_never_past_its_bound() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW);
    let mut reader = LogReader::open(disk.arc(), ID, 1).expect("open");
    let mut seen = Vec::new();
    for round in 0..40 {
        append(&mut log.appender, &[&format!("first of {round}"), "second"]).expect("appended");
        assert!(reader.next(log.appender.durable()).expect("readable").is_none(), "not durable yet");
        log.appender.sync().expect("synced");
        if round % 3 == 0 {
            log.appender.append_mark(0).expect("marked");
        }
        log.appender.sync().expect("synced");
        if round % 5 == 0 {
            roll(&disk, &mut log.appender);
        }
        seen.extend(drain(&mut reader, log.appender.durable()));
        assert_eq!(seen.len() as u64, log.appender.durable());
        assert_eq!(reader.position(), log.appender.durable() + 1);
    }
    assert!(seen.iter().zip(1..).all(|((sequence, _), expected)| *sequence == expected));
    let from = drain(&mut LogReader::open(disk.arc(), ID, 33).expect("open"), 70);
    assert_eq!(from, seen[32..70]);
}

#[test]
fn a_segment_reader_at_the_end_sees_what_is_appended_later() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let mut reader = SegmentReader::open(&disk, ID, log.segment()).expect("a good header");
    assert!(matches!(reader.next().expect("readable"), Scanned::Mark(_)));
    assert!(matches!(reader.next().expect("readable"), Scanned::End(_)));
    commit(&mut log, &["one"]);
    assert!(matches!(reader.next().expect("readable"), Scanned::Entry(_)));
}

#[test]
fn a_reader_goes_through_epochs() {
    let disk = TestDisk::default();
    let mut all = Vec::new();
    for round in 0..5 {
        let mut log = open(&disk, NEW);
        all = contents(&mut log);
        commit(&mut log.appender, &[&format!("a{round}"), &format!("b{round}")]);
        roll(&disk, &mut log.appender);
        // Unproven, and so copied by the next opening.
        append(&mut log.appender, &[&format!("c{round}")]).expect("appended");
    }
    assert_eq!(all.len(), 12);
    for from in 1..=12_u64 {
        let mut reader = LogReader::open(disk.arc(), ID, from).expect("open");
        let read: Vec<_> = drain(&mut reader, 12).into_iter().map(|(_, payload)| payload).collect();
        assert_eq!(read, all[usize::try_from(from - 1).expect("small")..]);
    }
}

#[test]
fn a_reader_says_where_an_operation_was_lost_and_says_it_again() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    let two = commit(&mut log, &["two"]);
    roll(&disk, &mut log);
    commit(&mut log, &["three"]);
    disk.edit(&file(1, 0), |bytes| bytes[usize::try_from(two.offset).expect("small") + 50] ^= 4);
    let mut reader = LogReader::open(disk.arc(), ID, 1).expect("open");
    assert_eq!(drain(&mut reader, 1).len(), 1);
    for _ in 0..2 {
        match reader.next(3) {
            Err(LogError::Damaged { file: named, offset, sequence: 2 }) => {
                assert_eq!((named, offset), (file(1, 0), two.offset));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_reader_may_begin_at_what_does_not_exist_yet() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    let mut reader = LogReader::open(disk.arc(), ID, 2).expect("open");
    assert!(reader.next(1).expect("nothing").is_none());
    roll(&disk, &mut log);
    commit(&mut log, &["two"]);
    assert_eq!(drain(&mut reader, 2), [(2, "two".into())]);
}

#[test]
fn a_reader_at_a_place_in_a_trimmed_file_finds_its_end() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    let mut reader = LogReader::open(disk.arc(), ID, 1).expect("open");
    assert_eq!(drain(&mut reader, 1).len(), 1);
    log.close(None, 0).expect("closed");
    assert!(matches!(reader.next(2), Err(LogError::Damaged { sequence: 2, .. })));
}
