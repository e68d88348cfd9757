//! Entry points for fuzzing, which the corpus test runs as well. Each takes any bytes; a panic is a fault.

use std::sync::Arc;

use super::appender::OutgoingFrame;
use super::check::{Extent, check_all};
use super::frame::{FrameHeader, FrameKind, Seed, decode_header, encode, may_be_header};
use super::limits::{FRAME_HEADER_BYTES, HEADER_BYTES, HEADER_LEN};
use super::name::SegmentName;
use super::record::Record;
use super::recover::{CheckpointState, NewEpoch, recover};
use super::segment::SegmentHeader;
use super::{Frame, StoreId};
use crate::disk::Disk;
use crate::disk::sim::{SimDisk, Survival};

const STORE: StoreId = StoreId([7; 16]);
const NEW_EPOCH: NewEpoch = NewEpoch { created_ms: 0, segment_bytes_first: 4096 };
const SEGMENT: SegmentName = SegmentName { epoch: 9, ordinal: 2 };

/// Directories with more segments, and segments with more frames, show nothing new.
const SEGMENTS_MAX: usize = 6;
const FRAMES_MAX: u8 = 16;

/// Bytes as one frame. The first byte says which checksums are made right, since no fuzzer guesses one.
pub(crate) fn frame(input: &[u8]) {
    let Some((&repairs, bytes)) = input.split_first() else { return };
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(FRAME_HEADER_BYTES), 0);
    let seed = Seed::new(STORE, SEGMENT);
    repair(&mut bytes, &seed, HEADER_BYTES, repairs);
    let (head, rest) = bytes.split_first_chunk().expect("a whole header");
    let Ok(checked) = decode_header(head, &seed, HEADER_BYTES, HEADER_BYTES + bytes.len() as u64) else { return };
    let header = checked.header;
    assert!(may_be_header(head), "a search would pass over it");
    assert!(header.frame_bytes() <= bytes.len() as u64, "it reaches beyond its segment");
    let end = usize::try_from(header.frame_bytes()).expect("it is in memory");
    if checked.accepts(&seed, HEADER_BYTES, &rest[..end - FRAME_HEADER_BYTES]) {
        let mut again = Vec::new();
        let payload = &rest[..header.payload_len as usize];
        encode(&mut again, &seed, HEADER_BYTES, &header, payload);
        assert!(again == bytes[..end], "what was read is not what would be written");
    }
}

/// Makes checksums right: bit 0 that of the payload, bit 1 that of the header.
fn repair(bytes: &mut [u8], seed: &Seed, offset: u64, which: u8) {
    let len = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")) as usize;
    let payload = bytes[FRAME_HEADER_BYTES..].get(..len);
    if let Some(crc) = payload.filter(|_| which & 1 != 0).map(|payload| seed.checksum(offset, payload)) {
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    }
    if which & 2 != 0 {
        let crc = seed.checksum(offset, &bytes[4..FRAME_HEADER_BYTES]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Bytes as the record of an entry. Integers may be longer than they need be, so the bytes are compared from the second
/// encoding on. Returns the record, if they are one.
pub(crate) fn record(input: &[u8]) -> Option<Record> {
    let record = Record::from_bytes(input).ok()?;
    let bytes = record.to_bytes().expect("what was read can be written");
    assert!(bytes.len() <= input.len(), "no form is shorter than the one that is written");
    let again = Record::from_bytes(&bytes).expect("what was written can be read");
    assert!(again == record, "what was written is read as something else");
    assert!(again.to_bytes().expect("it was written before") == bytes, "it is written in two ways");
    Some(record)
}

/// Bytes as a recipe for a directory of segments: right and wrong headers, frames with right checksums and any numbers,
/// frames that are none, segments that are cut or missing. Recovery takes it or refuses it, and changes nothing that was
/// there; what it takes can be read, goes on, and is found again after a loss of power.
pub(crate) fn segments(input: &[u8]) {
    let mut recipe = Recipe(input);
    let (epoch, applied_sequence) = (recipe.below(6), recipe.below(8));
    let log_floor = if epoch % 2 == 0 { 1 } else { applied_sequence + 1 };
    let state = CheckpointState { epoch, applied_sequence, log_floor };
    let disk = SimDisk::new();
    disk.write_file("log/.keep", Vec::new());
    for _ in 0..SEGMENTS_MAX {
        if recipe.is_done() {
            break;
        }
        let (name, bytes) = recipe.segment();
        disk.write_file(&name, bytes);
    }
    let before = disk.files();
    let disk_of_log: Arc<dyn Disk> = Arc::new(disk.clone());
    let recovered = recover(&disk_of_log, STORE, &state, NEW_EPOCH);
    let after = disk.files();
    if let Err(error) = &recovered {
        assert!(before == after, "a log that was refused was changed: {error}");
    }
    for (name, content) in before.iter().filter(|(name, _)| !name.ends_with(".new")) {
        assert!(after.get(name) == Some(content), "recovery changed {name}");
    }
    let Ok(mut recovered) = recovered else { return };
    let last = recovered.durable;
    let first = read(|| recovered.reader.next(last).expect("recovery has proven it"), state.applied_sequence, last);
    check_all(&disk, STORE, Extent::Live { durable: last }, log_floor)
        .expect("the log that was recovered can be listed");
    let frame = OutgoingFrame { sequence: last + 1, time_ms: 5, payload: b"new work" };
    recovered.appender.append(&[frame]).expect("there is room");
    recovered.appender.sync().expect("the disk works");

    let disk: Arc<dyn Disk> = Arc::new(disk.crash(&Survival::Nothing));
    let mut again = recover(&disk, STORE, &state, NEW_EPOCH).expect("what was recovered once is recovered again");
    assert_eq!(again.durable, last + 1, "what was synced is there");
    let second = read(|| again.reader.next(last).expect("recovery has proven it"), state.applied_sequence, last);
    assert!(first == second, "another log after the loss of power");
}

/// All frames up to `last`, which follow each other without a gap.
fn read(mut next: impl FnMut() -> Option<Frame>, applied: u64, last: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(frame) = next() {
        assert_eq!(frame.header.sequence, applied + 1 + frames.len() as u64, "sequences follow each other");
        frames.push(frame);
    }
    assert_eq!(applied.max(last), applied + frames.len() as u64, "all were read");
    frames
}

/// The rest of the input; an exhausted one gives zeros.
struct Recipe<'a>(&'a [u8]);

impl Recipe<'_> {
    fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, bound: u8) -> u64 {
        u64::from(self.byte() % bound)
    }

    /// A file of the log's directory.
    fn segment(&mut self) -> (String, Vec<u8>) {
        let (place, fate) = (self.byte(), self.byte());
        let name = SegmentName { epoch: 1 + u64::from(place & 3), ordinal: u32::from((place >> 2) & 3) };
        let continues_after = (name.ordinal == 0).then(|| self.below(16));
        let header = SegmentHeader { name, continues_after, created_ms: 0 };
        let mut bytes = header.encode(STORE).to_vec();
        if fate & 1 != 0 {
            bytes[usize::from(self.byte())] ^= 1;
        }
        let seed = Seed::new(STORE, name);
        for _ in 0..self.byte() % FRAMES_MAX {
            self.frame(&mut bytes, &seed, name.epoch);
        }
        bytes.resize(bytes.len() + 8 * usize::from(self.byte()), 0);
        if fate & 2 != 0 {
            bytes.truncate(bytes.len().saturating_sub(usize::from(self.byte())).max(HEADER_LEN / 2));
        }
        (if fate & 4 == 0 { name.file() } else { name.temporary() }, bytes)
    }

    /// One frame, or something that looks like one.
    fn frame(&mut self, bytes: &mut Vec<u8>, seed: &Seed, epoch: u64) {
        let (offset, start, fate) = (bytes.len() as u64, bytes.len(), self.byte());
        let header = FrameHeader {
            kind: FrameKind::Entry,
            epoch,
            sequence: u64::MAX,
            time_ms: 0,
            durable_before: 0,
            payload_len: u32::from(fate >> 5),
        };
        encode(bytes, seed, offset, &header, &[fate; 8][..usize::from(fate >> 5)]);
        let frame = &mut bytes[start..];
        frame[24..32].copy_from_slice(&self.below(16).to_le_bytes());
        frame[40..48].copy_from_slice(&self.below(16).to_le_bytes());
        match fate & 7 {
            0..=3 => {}
            4 => {
                // A mark, if it has no payload.
                frame[12] = 2;
            }
            5 => frame[16..24].copy_from_slice(&self.below(8).to_le_bytes()),
            6 => frame[13] = self.byte(),
            _ => {
                let at = usize::from(self.byte()) % FRAME_HEADER_BYTES;
                frame[at] ^= self.byte();
            }
        }
        // One in four is torn.
        if fate & 24 != 24 {
            repair(frame, seed, offset, 2);
        }
    }
}
