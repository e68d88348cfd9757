//! The log on a disk in memory, through its own interface.

mod crashes;
mod damage;
mod golden;
mod reading;
mod recovery;
mod retention;
mod writing;

use super::testdisk::TestDisk;
use super::*;
use crate::log::appender::Appended;
use crate::log::name::{Listing, SegmentName};

const SEGMENT_BYTES_FIRST: u64 = 256 * 1024;

const NEW_EPOCH: NewEpoch = NewEpoch { created_ms: 1_000, segment_bytes_first: SEGMENT_BYTES_FIRST };

const ID: StoreId = StoreId([0xc0; 16]);

/// What a new store's state says.
const NEW: CheckpointState = CheckpointState { epoch: 0, applied_sequence: 0, log_floor: 1 };

fn at(epoch: u64, applied_sequence: u64) -> CheckpointState {
    CheckpointState { epoch, applied_sequence, log_floor: 1 }
}

fn open(disk: &TestDisk, state: CheckpointState) -> Recovered {
    try_open(disk, state).expect("the log opens")
}

fn try_open(disk: &TestDisk, state: CheckpointState) -> Result<Recovered, LogError> {
    recover(&disk.arc(), ID, &state, NEW_EPOCH)
}

/// Appends a batch without syncing it; every payload names its sequence.
fn append(log: &mut Appender, payloads: &[&str]) -> Result<Appended, AppendError> {
    let frames: Vec<_> = (log.last() + 1..)
        .zip(payloads)
        .map(|(sequence, payload)| OutgoingFrame { sequence, time_ms: 2_000 + sequence, payload: payload.as_bytes() })
        .collect();
    log.append(&frames)
}

fn commit(log: &mut Appender, payloads: &[&str]) -> Appended {
    let appended = append(log, payloads).expect("appended");
    log.sync().expect("synced");
    appended
}

fn roll(disk: &TestDisk, log: &mut Appender) {
    let prepared = prepare_segment(disk, ID, &log.next_segment_spec(0), 3_000).expect("prepared");
    log.roll_to(prepared).expect("rolled");
}

/// Everything a reader gives up to `bound`, as sequence and payload.
fn drain(reader: &mut LogReader, bound: u64) -> Vec<(u64, String)> {
    let mut frames = Vec::new();
    while let Some(frame) = reader.next(bound).expect("readable") {
        let payload = String::from_utf8(frame.payload).expect("text");
        frames.push((frame.header.sequence, payload));
    }
    frames
}

/// Reads what recovery found and gives its payloads.
fn contents(log: &mut Recovered) -> Vec<String> {
    let durable = log.durable;
    drain(&mut log.reader, durable).into_iter().map(|(_, payload)| payload).collect()
}

fn file(epoch: u64, ordinal: u32) -> String {
    SegmentName { epoch, ordinal }.file()
}

fn assert_damaged(result: Result<Recovered, LogError>, at_file: &str, at_offset: u64, at_sequence: u64) {
    match result {
        Err(LogError::Damaged { file, offset, sequence }) => {
            assert_eq!((file.as_str(), offset, sequence), (at_file, at_offset, at_sequence));
        }
        other => panic!("damage at {at_file} {at_offset} {at_sequence} was not found: {other:?}"),
    }
}
