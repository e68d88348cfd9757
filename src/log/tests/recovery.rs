use super::*;
use crate::log::retain::removable;
use crate::log::retain::remove_oldest;

#[test]
fn an_epoch_is_never_used_twice_even_if_only_a_temporary_name_carries_it() {
    let disk = TestDisk::default();
    open(&disk, NEW);
    disk.put("log/0000000000000009-00000000.seg.new", b"half");
    let log = open(&disk, at(1, 0));
    assert_eq!((log.epoch, log.report.leftovers_removed), (10, 1));
    assert_eq!(disk.names(), [file(1, 0), file(10, 0)]);
    assert_eq!(open(&disk, at(1, 0)).epoch, 11);
}

#[test]
fn names_that_are_not_segments_are_ignored() {
    let disk = TestDisk::default();
    disk.put("log/lost+found", b"");
    open(&disk, NEW);
    assert_eq!(disk.names(), [file(1, 0), "log/lost+found".into()]);
}

#[test]
fn an_unproven_batch_is_copied_and_survives_the_power_loss_that_would_have_taken_it() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    append(&mut log, &["two", "three"]).expect("in the cache only");
    let killed = disk.after_kill();
    let mut log = open(&killed, NEW);
    assert_eq!((log.durable, log.report.copied_frames), (3, 2));
    assert_eq!(contents(&mut log), ["one", "two", "three"]);
    let mut log = open(&killed.after_power_loss(), NEW);
    assert_eq!((log.durable, log.report.copied_frames), (3, 0), "L8");
    assert_eq!(contents(&mut log), ["one", "two", "three"]);
    assert_eq!(open(&disk.after_power_loss(), NEW).durable, 1, "never synced, never answered");
}

#[test]
fn a_copy_keeps_epoch_time_and_sequence() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    append(&mut log, &["one"]).expect("appended");
    let mut log = open(&disk.after_kill(), NEW);
    let frame = log.reader.next(1).expect("readable").expect("there");
    let header = frame.header;
    assert_eq!((header.epoch, header.sequence, header.time_ms, header.durable_before), (1, 1, 2_001, 0));
    assert_eq!(log.epoch, 2);
}

#[test]
fn the_second_frame_of_a_torn_batch_never_comes_back() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    let torn = append(&mut log, &["torn first", "old second"]).expect("appended");
    let disk = disk.after_kill();
    disk.edit(&file(1, 0), |bytes| bytes[usize::try_from(torn.offset).expect("small")..][..64].fill(0));

    let mut log = open(&disk, NEW);
    assert_eq!((log.durable, log.report.discarded_bytes), (1, 64 + 64));
    // Same sequences, same lengths; then only the first of them becomes durable.
    commit(&mut log.appender, &["next first"]);
    let mut log = open(&disk.after_power_loss(), NEW);
    assert_eq!(contents(&mut log), ["one", "next first"]);
    commit(&mut log.appender, &["new second"]);
    let mut log = open(&disk.after_power_loss(), NEW);
    assert_eq!(contents(&mut log), ["one", "next first"], "the second copy of the disk had its own life");
    commit(&mut log.appender, &["new second"]);
}

#[test]
fn dead_frames_of_an_older_epoch_are_not_mixed_with_live_ones_of_the_same_sequence() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    append(&mut log, &["old two", "old three"]).expect("appended");
    let disk = disk.after_kill();
    // The batch's first frame is lost, its second stays, whole.
    disk.edit(&file(1, 0), |bytes| bytes[616..624].fill(0xee));
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["new two", "new three", "new four"]);
    let mut log = open(&disk.after_kill(), at(2, 0));
    assert_eq!(contents(&mut log), ["one", "new two", "new three", "new four"]);
    for applied in 0..4 {
        assert_eq!(contents(&mut open(&disk.after_kill(), at(2, applied))).len() as u64, 4 - applied);
    }
}

#[test]
fn dead_frames_stay_dead_even_if_they_read_well_again() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    log.append_mark(0).expect("marked");
    log.sync().expect("synced");
    append(&mut log, &["old two", "old three"]).expect("appended");
    let old = disk.bytes(&file(1, 0));
    let disk = disk.after_power_loss();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["new two", "new three"]);
    disk.edit(&file(1, 0), |bytes| bytes.copy_from_slice(&old));
    let report = check_all(&disk, ID, Extent::Closed { applied: 0 }, 1).expect("checked");
    assert_eq!((report.entries, report.ignored, report.problems.len()), (3, 2, 0), "L6");
    assert_eq!(drain(&mut LogReader::open(disk.arc(), ID, 1).expect("open"), 3)[1].1, "new two", "L6");
    assert_eq!(contents(&mut open(&disk, NEW)), ["one", "new two", "new three"], "L6");
}

#[test]
fn frames_of_two_appends_without_a_sync_prove_nothing() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    append(&mut log, &["one"]).expect("appended");
    append(&mut log, &["two"]).expect("appended");
    let log = open(&disk.after_kill(), NEW);
    assert_eq!((log.durable, log.report.copied_frames), (2, 2), "L5");
}

#[test]
fn an_epoch_without_its_mark_still_stands_on_what_it_continues_after() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one", "two"]);
    log.close(None, 0).expect("closed");
    open(&disk, NEW);
    disk.edit(&file(2, 0), |bytes| bytes[512..560].fill(0));
    for epoch in 3..5 {
        let mut log = open(&disk, NEW);
        assert_eq!((log.epoch, log.report.copied_frames), (epoch, 0));
        assert_eq!(contents(&mut log), ["one", "two"]);
    }
}

#[test]
fn an_epoch_that_holds_only_copies_and_a_mark_is_enough() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    append(&mut log, &["one", "two"]).expect("appended");
    let disk = disk.after_kill();
    for epoch in 2..6 {
        let mut log = open(&disk, NEW);
        assert_eq!((log.epoch, log.report.copied_frames), (epoch, if epoch == 2 { 2 } else { 0 }));
        assert_eq!(contents(&mut log), ["one", "two"]);
    }
}

#[test]
fn when_everything_is_folded_nothing_is_read_and_older_segments_may_be_gone() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one", "two"]);
    log.close(None, 0).expect("closed");
    let mut log = open(&disk, at(1, 2));
    assert_eq!((log.durable, log.epoch), (2, 2));
    assert!(contents(&mut log).is_empty());
    disk.delete(&file(1, 0));
    let mut log = open(&disk, at(1, 2));
    assert_eq!((log.durable, log.epoch, log.oldest), (2, 3, 3));
    commit(&mut log.appender, &["three"]);
    assert_eq!(contents(&mut open(&disk.after_power_loss(), at(1, 2))), ["three"]);
}

#[test]
fn an_empty_segment_at_the_end_or_in_between_is_legal() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    roll(&disk, &mut log);
    roll(&disk, &mut log);
    commit(&mut log, &["two"]);
    drop(prepare_segment(&disk, ID, &log.next_segment_spec(0), 0).expect("prepared"));
    let disk = disk.after_power_loss();
    for applied in 0..=2 {
        let mut log = open(&disk.after_kill(), at(1, applied));
        assert_eq!(log.durable, 2);
        assert_eq!(contents(&mut log).len() as u64, 2 - applied);
    }
    // And alone, once those before it were folded and removed.
    disk.delete(&file(1, 0));
    disk.delete(&file(1, 1));
    disk.delete(&file(1, 2));
    let mut log = open(&disk, at(1, 2));
    assert_eq!((log.durable, contents(&mut log).len()), (2, 0));
    let missing = try_open(&disk.after_kill(), at(1, 1));
    assert!(matches!(missing, Err(LogError::MissingBefore { sequence: 2, oldest: 3, .. })), "{missing:?}");
}

#[test]
fn a_mark_as_the_only_frame_of_a_rolled_segment_proves_the_one_before() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    roll(&disk, &mut log);
    assert!(log.append_mark(0).expect("marked"));
    log.sync().expect("synced");
    let log = open(&disk.after_kill(), NEW);
    assert_eq!((log.durable, log.report.copied_frames), (1, 0));
}

#[test]
fn a_checkpoint_proves_what_it_contains() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let appended = commit(&mut log, &["one", "two"]);
    let log = open(&disk.after_kill(), at(1, 1));
    assert_eq!((log.durable, log.report.copied_frames), (2, 1), "only the second is unproven");
    let cut = disk.after_kill();
    cut.edit(&file(1, 0), |bytes| bytes[600] ^= 1);
    assert_damaged(try_open(&cut, at(1, 1)), &file(1, 0), appended.offset, 1);
    // Without the checkpoint it looks like a torn batch.
    assert_eq!(open(&cut, NEW).durable, 0);
}

#[test]
fn a_missing_segment_is_named() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    for payload in ["one", "two", "three"] {
        commit(&mut log, &[payload]);
        roll(&disk, &mut log);
    }
    for (gone, applied) in [(1, 0), (2, 0), (1, 3)] {
        let disk = disk.after_kill();
        disk.delete(&file(1, gone));
        let before = disk.image();
        match try_open(&disk, at(1, applied)) {
            Err(LogError::MissingSegment { file: named }) => assert_eq!(named, file(1, gone)),
            other => panic!("{other:?}"),
        }
        assert_eq!(disk.image(), before, "L7: nothing is changed");
    }
    disk.delete(&file(1, 0));
    assert!(matches!(try_open(&disk, at(1, 0)), Err(LogError::MissingBefore { sequence: 1, oldest: 2, .. })));
    assert_eq!(contents(&mut open(&disk, at(1, 1))), ["two", "three"]);
}

#[test]
fn a_state_of_a_later_epoch_than_any_segment_misses_that_segment() {
    let disk = TestDisk::default();
    open(&disk, NEW);
    for (disk, epoch) in [(&disk, 2), (&TestDisk::default(), 1)] {
        match try_open(disk, at(epoch, 0)) {
            Err(LogError::MissingSegment { file: named }) => assert_eq!(named, file(epoch, 0)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_epoch_that_does_not_reach_the_next_one_is_damaged() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    let two = commit(&mut log, &["two"]);
    log.close(None, 0).expect("closed");
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["three"]);
    disk.edit(&file(1, 0), |bytes| bytes.truncate(usize::try_from(two.offset).expect("small")));
    let before = disk.image();
    assert_damaged(try_open(&disk, at(1, 0)), &file(1, 0), two.offset, 2);
    assert_eq!(disk.image(), before, "L7: nothing is changed");
    let worse = disk.after_kill();
    worse.edit(&file(2, 0), |bytes| bytes[520] ^= 1);
    assert_damaged(try_open(&worse, at(1, 0)), &file(1, 0), two.offset, 2);
    // Once it is folded, an older epoch is not needed.
    assert_eq!(contents(&mut open(&disk, at(1, 2))), ["three"]);
}

#[test]
fn a_state_that_contains_what_the_log_gave_up_is_refused() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    log.close(None, 0).expect("closed");
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["two"]);
    let diverged = try_open(&disk, at(1, 2));
    assert!(matches!(diverged, Err(LogError::Diverged { applied: 2, continues_after: 1, .. })), "{diverged:?}");
}

#[test]
fn the_oldest_sequence_follows_what_is_kept() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    for payload in ["one", "two", "three"] {
        commit(&mut log, &[payload]);
        roll(&disk, &mut log);
    }
    commit(&mut log, &["four"]);
    for from in 1..=4_u64 {
        let removable = removable(&disk, ID, from).expect("listed");
        assert!(removable.len() <= 1, "the ones before went in the last round");
        for segment in removable {
            remove_oldest(&disk, segment.name).expect("removed");
        }
        assert_eq!(oldest_sequence(&disk, ID, &Listing::read(&disk).expect("listed")).expect("known"), Some(from));
        let mut log = open(&disk.after_power_loss(), at(1, from - 1));
        assert_eq!(contents(&mut log).len() as u64, 5 - from);
    }
    assert_eq!(disk.names(), [file(1, 3)]);
    assert!(matches!(LogReader::open(disk.arc(), ID, 3), Err(LogError::NotRetained { sequence: 3, oldest: 4 })));
}

#[test]
fn a_segment_whose_name_was_being_made_anew_is_found_under_the_other_one() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    roll(&disk, &mut log);
    commit(&mut log, &["two"]);
    drop(log);
    for name in [file(1, 0), file(1, 1)] {
        disk.arc().rename(&name, &format!("{name}.moved")).expect("renamed");
        let disk = disk.after_kill();
        assert_eq!(contents(&mut open(&disk, NEW)), ["one", "two"]);
        assert!(disk.names().iter().all(|name| !name.ends_with(".moved")));
    }
}
