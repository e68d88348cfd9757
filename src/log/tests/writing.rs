use crate::log::limits::FRAME_PAYLOAD_BYTES_MAX;
use std::io;

use super::*;
use crate::base::limits::SEGMENT_BYTES_MAX;
use crate::log::limits::MARK_BYTES;

#[test]
fn what_was_committed_is_read_after_reopening() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW);
    assert_eq!((log.epoch, log.durable, log.oldest), (1, 0, 1));
    commit(&mut log.appender, &["one", "two"]);
    commit(&mut log.appender, &["three"]);
    log.appender.close(None, 9_000).expect("closed");

    let mut log = open(&disk, NEW);
    assert_eq!((log.epoch, log.durable, log.report), (2, 3, RecoveryReport::default()));
    assert_eq!(contents(&mut log), ["one", "two", "three"]);
}

#[test]
fn a_batch_is_one_contiguous_run_of_frames() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let calls = disk.calls();
    let first = append(&mut log, &["a", "bb", "a payload of some length"]).expect("appended");
    assert_eq!(disk.calls(), calls + 1, "one write");
    assert_eq!(first.bytes, 2 * encoded_frame_bytes(1) + encoded_frame_bytes(24));
    log.sync().expect("synced");
    assert_eq!(commit(&mut log, &["next"]).offset, first.offset + first.bytes);
}

#[test]
fn closing_trims_the_file_and_removes_what_was_prepared_in_vain() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let last = commit(&mut log, &["only"]);
    let spare = prepare_segment(&disk, ID, &log.next_segment_spec(0), 0).expect("prepared");
    log.close(Some(spare), 9_000).expect("closed");
    assert_eq!(disk.names(), [file(1, 0)]);
    assert_eq!(disk.bytes(&file(1, 0)).len() as u64, last.offset + last.bytes + MARK_BYTES);
    assert_eq!(disk.after_power_loss().image(), disk.image());
}

#[test]
fn after_a_clean_close_nothing_is_copied() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one", "two"]);
    log.close(None, 9_000).expect("closed");
    assert_eq!(open(&disk.after_power_loss(), NEW).report.copied_frames, 0);
}

#[test]
fn a_mark_is_written_once_and_only_for_synced_frames() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    assert!(!log.append_mark(0).expect("nothing to prove"));
    append(&mut log, &["one"]).expect("appended");
    assert!(!log.append_mark(0).expect("not synced yet"));
    log.sync().expect("synced");
    assert!(log.append_mark(0).expect("marked"));
    log.sync().expect("synced");
    assert!(!log.append_mark(0).expect("proven already"));
    assert_eq!(open(&disk.after_kill(), NEW).report.copied_frames, 0);
}

#[test]
fn a_full_segment_still_takes_the_mark_of_its_last_batch() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let payload = "x".repeat(usize::try_from(log.room()).expect("small") - 48);
    assert!(log.has_room(encoded_frame_bytes(payload.len() as u64)));
    commit(&mut log, &[&payload]);
    assert_eq!(log.room(), 0);
    assert!(matches!(append(&mut log, &[""]), Err(AppendError::NoRoom { bytes: 48, room: 0 })));
    assert!(log.append_mark(0).expect("marked"));
    log.sync().expect("synced");
    assert_eq!(open(&disk.after_power_loss(), NEW).durable, 1);
}

#[test]
fn segments_grow_and_a_large_batch_gets_one_of_its_own_size() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    assert_eq!(log.next_segment_spec(0).bytes, 2 * SEGMENT_BYTES_FIRST);
    let payload = "x".repeat(3 * 256 * 1024);
    let bytes = encoded_frame_bytes(payload.len() as u64);
    assert!(log.next_segment_spec(2 * SEGMENT_BYTES_MAX).bytes > 2 * SEGMENT_BYTES_MAX);
    let too_small = prepare_segment(&disk, ID, &log.next_segment_spec(0), 0).expect("prepared");
    drop(too_small);
    let spec = log.next_segment_spec(bytes);
    log.roll_to(prepare_segment(&disk, ID, &spec, 0).expect("prepared")).expect("rolled");
    commit(&mut log, &[&payload]);
    assert_eq!(log.room(), 0);
    assert_eq!(contents(&mut open(&disk.after_power_loss(), NEW)), [payload]);
}

#[test]
fn rolling_before_a_sync_or_to_another_segment_is_refused() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let next = prepare_segment(&disk, ID, &log.next_segment_spec(0), 0).expect("prepared");
    append(&mut log, &["one"]).expect("appended");
    assert!(matches!(log.roll_to(next), Err(AppendError::WrongSegment { .. })));
    log.sync().expect("synced");
    let mut spec = log.next_segment_spec(0);
    spec.name.ordinal += 1;
    let other = prepare_segment(&disk, ID, &spec, 0).expect("prepared");
    assert!(matches!(log.roll_to(other), Err(AppendError::WrongSegment { .. })));
    commit(&mut log, &["two"]);
}

#[test]
fn a_frame_out_of_order_or_too_large_is_refused_and_nothing_is_written() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let before = disk.image();
    let frame = OutgoingFrame { sequence: 2, time_ms: 0, payload: b"" };
    let error = log.append(&[frame]).expect_err("sequence 1 is next");
    assert!(error.nothing_written());
    let payload = vec![0; FRAME_PAYLOAD_BYTES_MAX as usize + 1];
    let error = log.append(&[OutgoingFrame { sequence: 1, time_ms: 0, payload: &payload }]).expect_err("too large");
    assert!(matches!(error, AppendError::TooLarge { .. }) && error.nothing_written());
    assert_eq!(disk.image(), before);
    commit(&mut log, &["one"]);
}

#[test]
fn after_a_failed_sync_or_write_the_appender_takes_nothing_more() {
    for (call, kind) in [(1, io::ErrorKind::StorageFull), (1, io::ErrorKind::Other), (2, io::ErrorKind::Other)] {
        let disk = TestDisk::default();
        let mut log = open(&disk, NEW).appender;
        disk.fail_call(disk.calls() + call, kind);
        let error = append(&mut log, &["one"]).and_then(|_| log.sync()).expect_err("the call fails");
        assert_eq!(matches!(error, AppendError::Full { .. }), kind == io::ErrorKind::StorageFull);
        assert!(!error.nothing_written());
        let image = disk.image();
        assert!(log.has_failed());
        assert!(matches!(append(&mut log, &["two"]), Err(AppendError::Failed { .. })), "L9");
        assert!(matches!(log.sync(), Err(AppendError::Failed { .. })), "L9: no second try");
        assert!(matches!(log.append_mark(0), Err(AppendError::Failed { .. })), "L9");
        assert!(matches!(log.close(None, 0), Err(AppendError::Failed { .. })), "L9");
        assert_eq!(disk.image(), image);
    }
}

#[test]
fn a_segment_that_cannot_be_prepared_leaves_nothing_and_the_log_goes_on() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    let spec = log.next_segment_spec(0);
    let names = disk.names();
    for call in 1.. {
        disk.fail_call(disk.calls() + call, io::ErrorKind::StorageFull);
        match prepare_segment(&disk, ID, &spec, 0) {
            Err(error) => assert!(error.is_full()),
            Ok(prepared) => {
                // Open, two pieces of zeros, header, sync, rename, sync of the directory.
                assert_eq!(call, 8);
                log.roll_to(prepared).expect("rolled");
                break;
            }
        }
        assert_eq!(disk.names(), names, "call {call}");
        commit(&mut log, &["on"]);
    }
    assert_eq!(open(&disk.after_power_loss(), NEW).durable, 7);
}

#[test]
fn a_prepared_segment_has_its_name_only_when_its_content_is_durable() {
    let whole = TestDisk::default();
    let spec = open(&whole, NEW).appender.next_segment_spec(0);
    for calls in 0..8 {
        let disk = whole.after_kill();
        disk.break_after(calls);
        let outcome = prepare_segment(&disk, ID, &spec, 0);
        assert_eq!(outcome.is_ok(), calls == 7);
        let lost = disk.after_power_loss();
        let has_name = lost.names().contains(&spec.name.file());
        assert!(outcome.is_err() || has_name, "L1");
        assert!(!has_name || lost.bytes(&spec.name.file()).len() as u64 == spec.bytes, "L1");
    }
}

#[test]
fn a_blank_segment_keeps_its_length_at_a_close() {
    let disk = TestDisk::default();
    let mut log = open(&disk, NEW).appender;
    commit(&mut log, &["one"]);
    assert!(log.append_mark(0).expect("marked"));
    log.sync().expect("synced");
    roll(&disk, &mut log);
    log.close(None, 0).expect("closed");
    let mut log = open(&disk, NEW);
    assert_eq!(contents(&mut log), ["one"]);
}
