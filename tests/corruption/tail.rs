//! Damage told from a torn tail, and a torn tail that must not come back.

use counterfoil::OpenError;
use counterfoil::testing::{SimDisk, Survival};

use crate::crash::check::Workload;
use crate::crash::harness::{Process, Told, everything_but_the_lock};
use crate::crash::script::{Kind, Op, Step};

/// Five operations, each in its own batch, and time enough for a mark behind each of the first four; nothing folded.
fn five(note_bytes: usize) -> (Workload, Vec<Op>) {
    let ops: Vec<_> = (1..=5).map(|id| Op { id, kind: Kind::Large(note_bytes) }).collect();
    let steps = ops.iter().flat_map(|op| [Step::One(*op), Step::Idle]).take(9).collect();
    (Workload::new(steps), ops)
}

fn unfolding(disk: SimDisk) -> Process {
    let mut process = Process::new(disk);
    process.limits.fold_bytes = 1 << 21;
    process
}

/// Where writes to the log went, as (file, offset, bytes).
fn log_writes(disk: &SimDisk) -> Vec<(String, usize, usize)> {
    let parse = |call: &String| {
        let words: Vec<_> = call.split(' ').collect();
        let [_, "Write", file, bytes, "bytes", "at", offset] = words[..] else { return None };
        (file.starts_with("log/") && file.ends_with(".seg"))
            .then(|| (file.to_owned(), offset.parse().expect("a number"), bytes.parse().expect("a number")))
    };
    disk.trace().iter().filter_map(parse).collect()
}

#[test]
fn a_flipped_byte_in_a_frame_that_is_proven_durable_is_an_error_that_names_the_place_and_changes_nothing() {
    let (workload, _) = five(300);
    let disk = SimDisk::new();
    disk.start_trace();
    let mut process = unfolding(disk.clone());
    process.open().unwrap();
    workload.script.iter().try_for_each(|step| process.step(step)).unwrap();
    let frames = log_writes(&disk);
    let marks = frames.iter().filter(|(_, _, bytes)| *bytes == 48).count();
    assert_eq!((frames.len(), marks), (10, 4), "declarations, five operations and four marks: {frames:?}");
    for (at, (file, offset, bytes)) in frames.iter().enumerate() {
        let is_last = at + 1 == frames.len();
        for place in [0, 20, bytes / 2, bytes - 1] {
            let damaged = disk.crash(&Survival::Nothing);
            let mut content = damaged.read_file(file).unwrap();
            content[offset + place] ^= 0x10;
            damaged.write_file(file, content);
            let before = everything_but_the_lock(&damaged);
            let opened = unfolding(damaged.clone()).open();
            if is_last {
                opened.unwrap_or_else(|error| panic!("a torn last batch is discarded: {error}"));
                let told = Told::default();
                workload.check(&disk_with(&disk, &before), &told).unwrap();
                continue;
            }
            let Err(OpenError::Log(message)) = opened else {
                // A mark may be damaged where the frame behind it proves the same.
                assert_eq!(*bytes, 48, "frame {at}, byte {place}: {opened:?}");
                continue;
            };
            assert!(message.contains(file), "{message}");
            let named = message.split("offset ").nth(1).and_then(|rest| rest.split(',').next()?.parse::<usize>().ok());
            let is_there = named.is_some_and(|named| (*offset..offset + bytes).contains(&named));
            assert!(*bytes == 48 || is_there, "{message} should name {offset} to {}", offset + bytes);
            assert!(everything_but_the_lock(&damaged) == before, "frame {at}: something was changed");
        }
    }
}

/// A durable disk with these files.
fn disk_with(like: &SimDisk, files: &std::collections::BTreeMap<String, Vec<u8>>) -> SimDisk {
    let disk = like.crash(&Survival::Nothing);
    files.iter().for_each(|(name, content)| disk.write_file(name, content.clone()));
    disk
}

#[test]
fn garbage_behind_the_last_proven_frame_is_discarded() {
    let (workload, _) = five(300);
    let disk = SimDisk::new();
    disk.start_trace();
    let mut process = unfolding(disk.clone());
    process.open().unwrap();
    workload.script.iter().try_for_each(|step| process.step(step)).unwrap();
    let (file, offset, bytes) = log_writes(&disk).pop().unwrap();
    for seed in 0..20_u8 {
        let crashed = disk.crash(&Survival::Nothing);
        let mut content = crashed.read_file(&file).unwrap();
        let from = offset + bytes + usize::from(seed) * 8;
        for (byte, garbage) in content[from..from + 700].iter_mut().zip((0..=255_u8).cycle()) {
            *byte = garbage.wrapping_mul(31).wrapping_add(seed);
        }
        crashed.write_file(&file, content);
        workload.check(&crashed, &process.told).unwrap();
    }
}

#[test]
fn the_second_frame_of_a_batch_whose_first_was_torn_never_comes_back() {
    let (workload, ops) = five(2_000);
    let disk = SimDisk::new();
    disk.start_trace();
    let mut process = unfolding(disk.clone());
    process.open().unwrap();
    process.batch(&ops[..2]).unwrap();
    // The next batch is written, and power is lost before it is synced.
    disk.power_cut_at(disk.operations() + 2);
    process.batch(&ops[2..4]).unwrap_err();
    process.abandon();
    let (file, offset, bytes) = log_writes(&disk).pop().unwrap();
    let second = offset + bytes / 2;
    let torn = || {
        let torn = disk.crash(&Survival::Everything);
        let mut content = torn.read_file(&file).unwrap();
        content[offset..second / 512 * 512].fill(0);
        torn.write_file(&file, content);
        torn
    };
    let opens = {
        let whole = torn();
        unfolding(whole.clone()).open().unwrap();
        whole.operations()
    };
    // The sequence numbers are given again, to frames of the same length, and power is lost once more.
    for cut in opens..opens + 8 {
        for survival in Survival::selection(4, 4) {
            let again = torn();
            again.power_cut_at(cut);
            let mut next = unfolding(again.clone());
            next.told = process.told.clone();
            if next.open().is_ok() {
                assert_eq!(workload.check_state(next.store(), &next.told), Ok(2), "the torn batch is gone");
                drop(next.step(&Step::One(ops[2])));
                if next.told.receipts.len() == 3 && cut % 2 == 0 {
                    drop(next.step(&Step::Idle));
                }
            }
            next.abandon();
            let crashed = again.crash(&survival);
            let mut last = unfolding(crashed.clone());
            last.open().unwrap();
            let entries = workload.check_state(last.store(), &next.told).unwrap();
            assert!(entries <= 3, "the old second frame came back: cut at {cut}, {survival:?}");
            drop(last);
            workload.check(&crashed, &next.told).unwrap();
        }
    }
}
