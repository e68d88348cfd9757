//! Format 1, byte for byte. This file is never written anew: a change that breaks it is a new format.

use super::*;
use crate::log::frame::FrameHeader;
use crate::log::frame::FrameKind;
use crate::log::frame::{Seed, encode};
use crate::log::name::SegmentName;
use crate::log::scan::{EndReason, Scanned, SegmentReader};
use crate::log::segment::SegmentHeader;

const NAME: SegmentName = SegmentName { epoch: 7, ordinal: 0 };
const GOLDEN: &[u8] = include_bytes!("../../../tests/fixtures/log/segment-v1.bin");

fn frames() -> Vec<(FrameHeader, &'static [u8])> {
    let entry = |epoch, sequence, durable_before, payload: &'static [u8]| {
        let payload_len = u32::try_from(payload.len()).expect("small");
        let header = FrameHeader {
            kind: FrameKind::Entry,
            epoch,
            sequence,
            time_ms: 1_700_000_000_000 + sequence,
            durable_before,
            payload_len,
        };
        (header, payload)
    };
    let mark = |sequence| {
        let header = FrameHeader {
            kind: FrameKind::Mark,
            epoch: 7,
            sequence,
            time_ms: 1_700_000_000_500,
            durable_before: sequence,
            payload_len: 0,
        };
        (header, &b""[..])
    };
    vec![
        entry(6, 42, 41, b"a copy from the epoch before"),
        mark(42),
        entry(7, 43, 42, b""),
        entry(7, 44, 42, b"eight by"),
        entry(7, 45, 42, &[0xff; 301]),
        mark(45),
    ]
}

fn encoded() -> Vec<u8> {
    let header = SegmentHeader { name: NAME, continues_after: Some(41), created_ms: 1_700_000_000_000 };
    let mut bytes = header.encode(ID).to_vec();
    for (header, payload) in frames() {
        let offset = bytes.len() as u64;
        encode(&mut bytes, &Seed::new(ID, NAME), offset, &header, payload);
    }
    bytes.resize(2048, 0);
    bytes
}

#[test]
fn the_encoder_still_writes_format_1_byte_for_byte() {
    assert!(encoded() == GOLDEN, "format 1 has changed");
}

#[test]
fn the_reader_still_reads_format_1() {
    let disk = TestDisk::default();
    disk.put(&NAME.file(), GOLDEN);
    let mut reader = SegmentReader::open(&disk, ID, NAME).expect("a good header");
    assert_eq!((reader.header().continues_after, reader.header().created_ms), (Some(41), 1_700_000_000_000));
    for (header, payload) in frames() {
        match reader.next().expect("readable") {
            Scanned::Entry(frame) => assert_eq!((frame.header, &frame.payload[..]), (header, payload)),
            Scanned::Mark(mark) => assert_eq!(mark, header),
            Scanned::End(end) => panic!("{end:?}"),
        }
    }
    let end = reader.next().expect("readable");
    assert!(matches!(end, Scanned::End(end) if end.reason == EndReason::Zeros));
    let mut log = open(&disk, at(7, 41));
    assert_eq!((log.epoch, log.durable, contents_len(&mut log)), (8, 45, 4));
}

fn contents_len(log: &mut Recovered) -> usize {
    let mut count = 0;
    while log.reader.next(log.durable).expect("readable").is_some() {
        count += 1;
    }
    count
}

/// Writes the file for a new format; format 1's stays as it is.
#[test]
#[ignore = "writes a fixture"]
fn write_fixture() {
    let path = std::path::Path::new("tests/fixtures/log/segment-v1.bin");
    assert!(!path.exists(), "a segment that was released stays as it is");
    std::fs::write(path, encoded()).expect("written");
}
