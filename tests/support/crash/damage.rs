//! Files that do not hold what was written to them: durable frames that are gone, and frames of another time in their
//! place. A store must notice, or nothing that was answered is lost.

use std::collections::HashSet;

use counterfoil::Limits;
use counterfoil::testing::{SimDisk, Survival};

use crate::crash::check::Workload;
use crate::crash::harness::{Process, Stopped, Told};
use crate::crash::script::{Kind, Op, Step};

/// A write to a segment under its final name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    file: String,
    offset: usize,
    bytes: usize,
}

/// One operation after the other, each in a batch of its own and none folded, and the process is gone.
fn work(process: &mut Process, ops: &[Op]) -> Result<(), Stopped> {
    process.limits.fold_bytes = 1 << 21;
    process.disk.start_trace();
    process.open().map_err(Stopped::Open)?;
    ops.iter().try_for_each(|op| process.step(&Step::One(*op)))?;
    process.abandon();
    Ok(())
}

/// The frames that were written since the trace began.
fn frames(disk: &SimDisk) -> Vec<Frame> {
    let parse = |call: &String| {
        let words: Vec<_> = call.split(' ').collect();
        let [_, "Write", file, bytes, "bytes", "at", offset] = words[..] else { return None };
        let is_segment = file.starts_with("log/") && file.ends_with(".seg");
        let number = |text: &str| text.parse().expect("a number");
        is_segment.then(|| Frame { file: file.to_owned(), offset: number(offset), bytes: number(bytes) })
    };
    disk.trace().iter().filter_map(parse).collect()
}

fn overwrite(disk: &SimDisk, frame: &Frame, content: &[u8]) {
    let mut file = disk.read_file(&frame.file).expect("it is there");
    file[frame.offset..frame.offset + frame.bytes].copy_from_slice(content);
    disk.write_file(&frame.file, file);
}

/// Either the store is as it was told, or it does not open and names the file.
fn noticed(workload: &Workload, disk: &SimDisk, told: &Told, frame: &Frame) -> Result<(), String> {
    match workload.check(disk, told) {
        Err(fault) if fault.contains("the log cannot be recovered") && fault.contains(&frame.file) => Ok(()),
        outcome => outcome.map_err(|fault| format!("{frame:?} was damaged: {fault}")),
    }
}

fn ops(ids: std::ops::RangeInclusive<u32>) -> Vec<Op> {
    ids.map(|id| Op { id, kind: Kind::Large(300) }).collect()
}

fn workload(ops: &[Op], limits: &Limits) -> Workload {
    Workload::with_limits(ops.iter().copied().map(Step::One).collect(), limits.clone())
}

/// Each frame in turn, but for the last, which nothing proves, reads as zeros.
pub(crate) fn lost_frames(limits: &Limits) -> Result<(), String> {
    let ops = ops(1..=5);
    let mut process = Process::with(SimDisk::new(), limits.clone(), Told::default());
    work(&mut process, &ops).map_err(|stopped| format!("{stopped:?}"))?;
    let frames = frames(&process.disk);
    let (_, proven) = frames.split_last().ok_or("nothing was written")?;
    proven.iter().try_for_each(|frame| {
        let disk = process.disk.crash(&Survival::Nothing);
        overwrite(&disk, frame, &vec![0; frame.bytes]);
        noticed(&workload(&ops, limits), &disk, &process.told, frame)
    })
}

/// Power is lost with a batch of two un-synced, and of what is left the next process does something else. Whatever came
/// back of the batch must not come back a second time, behind that.
pub(crate) fn torn_batch(limits: &Limits) -> Result<(), String> {
    let stopped = |stopped: Stopped| format!("{stopped:?}");
    // The fifth and the seventh have frames of the same length, so that the sixth lies where one would follow either.
    let ops = ops(1..=7);
    let mut process = Process::with(SimDisk::new(), limits.clone(), Told::default());
    process.limits.fold_bytes = 1 << 21;
    process.open().map_err(|error| error.to_string())?;
    ops[..4].iter().try_for_each(|op| process.step(&Step::One(*op))).map_err(stopped)?;
    // Its write is done, its sync is not.
    process.disk.power_cut_at(process.disk.operations() + 2);
    if process.batch(&ops[4..6]).is_ok() {
        return Err("a batch that was not synced was answered".to_owned());
    }
    let mut tried = HashSet::new();
    for survival in (0..100).map(Survival::Torn).chain([Survival::Nothing, Survival::Everything]) {
        if !tried.insert(process.disk.crash(&survival).image_hash()) {
            continue;
        }
        let context = |fault: String| format!("{survival:?} survives of a batch, then another operation: {fault}");
        let mut next = Process::with(process.disk.crash(&survival), process.limits.clone(), process.told.clone());
        next.open().map_err(|error| context(error.to_string()))?;
        let kept = workload(&ops[..6], limits).check_state(next.store(), &next.told).map_err(context)?;
        next.step(&Step::One(ops[6])).map_err(|error| context(stopped(error)))?;
        let lived: Vec<Op> = ops[..kept].iter().chain(&ops[6..]).copied().collect();
        let after = next.disk.crash(&Survival::Nothing);
        workload(&lived, limits).check(&after, &next.told).map_err(context)?;
    }
    Ok(())
}

/// A frame is replaced by one of the same sequence, place and length that another opening of the same store wrote into a
/// segment of its own, as a stale block or a misdirected write would do.
pub(crate) fn frame_of_another_epoch(limits: &Limits) -> Result<(), String> {
    let stopped = |stopped: Stopped| format!("{stopped:?}");
    let ops = ops(1..=4);
    let mut process = Process::with(SimDisk::new(), limits.clone(), Told::default());
    process.run(&[Step::One(ops[0])]).map_err(stopped)?;

    // The epoch after the first one, in a history that did not become ours.
    let elsewhere = process.disk.crash(&Survival::Nothing);
    let mut other = Process::with(elsewhere, limits.clone(), Told::default());
    work(&mut other, &ops[1..2]).map_err(stopped)?;

    // One epoch more, in ours.
    process.disk = process.disk.crash(&Survival::Nothing);
    process.run(&[]).map_err(stopped)?;
    work(&mut process, &ops[2..]).map_err(stopped)?;
    let (stale, ours) = (frames(&other.disk), frames(&process.disk));
    let [stale, ours] = [&stale[stale.len() - 1], &ours[ours.len() - 2]];
    if (stale.offset, stale.bytes) != (ours.offset, ours.bytes) || stale.file == ours.file {
        return Err(format!("{stale:?} and {ours:?} should differ in the epoch alone"));
    }
    let content = other.disk.crash(&Survival::Nothing).read_file(&stale.file).ok_or("the stale frame is gone")?;
    let disk = process.disk.crash(&Survival::Nothing);
    overwrite(&disk, ours, &content[stale.offset..stale.offset + stale.bytes]);
    let told_of = [ops[0], ops[2], ops[3]];
    noticed(&workload(&told_of, limits), &disk, &process.told, ours)
}
