//! Long lives of chance: operations of every kind in batches of any size, with pauses and reopenings in between, and
//! power lost again and again, each time at any disk operation of the part of the life that had begun.

use counterfoil::Limits;
use counterfoil::testing::{SimDisk, Survival};

use crate::crash::chance::Chance;
use crate::crash::check::Workload;
use crate::crash::harness::{Process, Told};
use crate::crash::ordeal::{Crash, Judge};
use crate::crash::phase::Course;
use crate::crash::script::{Kind, Op, Step};

/// Operations of most lives, and the most of them between two losses of power.
const OPERATIONS: u32 = 12;
const PART: u64 = 6;
/// One life in so many has this many, and more of them between two losses.
const LONG_EVERY: u64 = 10;
const LONG_OPERATIONS: u32 = 60;
const LONG_PART: u64 = 20;
/// Losses of power in one life: each may come before anything was done.
const LOSSES_MAX: usize = 30;

/// Lives through it; the seed decides everything.
pub(crate) fn live(seed: u64, limits: &Limits, judge: &mut Judge<'_>) -> Result<(), (String, String)> {
    let mut chance = Chance::new(seed);
    let (operations, part_max) =
        if seed.is_multiple_of(LONG_EVERY) { (LONG_OPERATIONS, LONG_PART) } else { (OPERATIONS, PART) };
    let all: Vec<Op> = (1..=operations).map(|id| Op { id, kind: kind(&mut chance) }).collect();
    let mut limits = limits.clone();
    if chance.one_in(2) {
        limits.keep_log_bytes = 0;
    }
    let workload = Workload::with_limits(all.iter().copied().map(Step::One).collect(), limits.clone());
    let (mut disk, mut told, mut done) = (SimDisk::new(), Told::default(), 0);
    for number in 1..=LOSSES_MAX {
        let rest = &all[done..];
        // What leaves no entry is never known to be done.
        if !rest.iter().any(|op| op.has_frame()) {
            break;
        }
        let part = rest.len().min(usize::try_from(2 + chance.below(part_max)).unwrap_or(2));
        let steps = steps(&all[..done], &rest[..part], &mut chance);
        let start = |told: &Told| Process::with(disk.crash(&Survival::Nothing), limits.clone(), told.clone());

        let mut whole = start(&told);
        whole.disk.start_trace();
        whole.run(&steps).map_err(|stopped| (format!("part {number}"), format!("{stopped:?}")))?;
        let course = Course::of(&whole.disk, &whole.diary);
        let cut = 1 + chance.below(course.operations() + 1);

        let mut dying = start(&told);
        dying.disk.power_cut_at(cut);
        drop(dying.run(&steps));
        let path = format!("power lost in part {number} at operation {cut}");
        let (phase, chosen) = (course.phase(cut), chance.below(1 << 32));
        let crash = Crash { disk: &dying.disk, told: &dying.told, phase, path: path.clone(), seed: Some(chosen) };
        judge(crash, &workload)?;

        disk = dying.disk.crash(&Survival::Random(chosen));
        told = dying.told.clone();
        done = survived(&disk, &workload, &told).map_err(|fault| (path, fault))?;
        // What is lost is known to be: an attempt that is not executed from here on was not executed at all.
        told.unknown.retain(|_, op| all[..done].contains(op));
    }
    Ok(())
}

/// How many of the operations need not be tried again.
fn survived(disk: &SimDisk, workload: &Workload, told: &Told) -> Result<usize, String> {
    let mut process = Process::with(disk.crash(&Survival::Nothing), workload.limits.clone(), Told::default());
    process.open().map_err(|error| format!("it does not open: {error}"))?;
    let entries = workload.check_state(process.store(), told)?;
    let last = entries.checked_sub(1).map(|last| workload.model.entries[last].op);
    Ok(last.map_or(0, |last| workload.operations.iter().position(|op| *op == last).map_or(0, |place| place + 1)))
}

fn kind(chance: &mut Chance) -> Kind {
    match chance.below(20) {
        0..=8 => Kind::Create,
        9 | 10 => Kind::Write,
        11 | 12 => Kind::Move,
        13 | 14 => Kind::Reject,
        15 => Kind::Fail,
        16 => Kind::Panic,
        _ => Kind::Large(200 + usize::try_from(chance.below(4000)).unwrap_or(0)),
    }
}

/// The operations alone and in batches, and what happens between them.
fn steps(before: &[Op], ops: &[Op], chance: &mut Chance) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = ops;
    while let Some(first) = rest.first() {
        let batch = in_order(rest).min(usize::try_from(1 + chance.below(5)).unwrap_or(1));
        let (now, later) = rest.split_at(batch.max(1));
        steps.push(if now.len() == 1 { Step::One(*first) } else { Step::Batch(now.to_vec()) });
        rest = later;
        if chance.one_in(4) {
            steps.push(Step::Idle);
        }
        if chance.one_in(12) {
            steps.push(Step::Reopen);
        }
        if chance.one_in(5) {
            let done: Vec<&Op> = before.iter().chain(&ops[..ops.len() - rest.len()]).collect();
            let again = done[usize::try_from(chance.below(done.len() as u64)).unwrap_or(0)];
            steps.extend(again.has_receipt().then_some(Step::Retry(*again)));
        }
    }
    steps
}

/// How many of these commit in their own order when they are submitted together: tenants are served in turn, and plain
/// writes are not submitted.
fn in_order(ops: &[Op]) -> usize {
    let longest = [2, 3, 5, 4, 3][ops[0].id as usize % 5];
    ops.iter().take(longest).take_while(|op| op.has_receipt() || !op.has_frame()).count()
}
