//! A directory sync fails and its names are taken for clean: the cache shows them (or no longer shows what was removed),
//! and no later sync makes that durable. What a process does about it may be prevented as well.

use counterfoil::testing::{CallKind, Fault, FaultError};

use crate::crash::harness::Process;
use crate::crash::hunt::Scenario;
use crate::crash::ordeal::{Crash, Judge, Start, answer_again, interrupt, rest};
use crate::crash::phase::{Course, Phase};
use crate::crash::script::Step;

/// What befalls the process right after the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// Nothing: it takes two more steps, or says that it cannot.
    GoesOn,
    /// It is killed before another call.
    Dies,
    /// It can take no name back: no segment can be removed, and `IDENTITY` not be renamed. It asks for everything again.
    CannotTakeBack,
}

const THEN: [Then; 3] = [Then::GoesOn, Then::Dies, Then::CannotTakeBack];

/// With each of those, the cache kept and the cache emptied; and the power lost when the next process has answered, or
/// when it has worked on.
const VARIANTS: u64 = 4 * THEN.len() as u64;

/// The crash points: each sync of a directory, in each variant.
pub(crate) fn points(course: &Course) -> Vec<(u64, Phase)> {
    let syncs = (1_u64..).zip(syncs(course));
    syncs
        .flat_map(|(nth, cut)| (0..VARIANTS).map(move |variant| (nth * VARIANTS + variant, cut)))
        .map(|(point, cut)| (point, course.phase(cut)))
        .collect()
}

fn syncs(course: &Course) -> impl Iterator<Item = u64> {
    course.calls.iter().filter(|call| call.kind == CallKind::SyncDir).map(|call| call.number)
}

/// The failure, the end of the process, another one that answers and then works on, and a loss of power.
pub(crate) fn reach(
    scenario: &Scenario,
    start: &Start,
    point: u64,
    judge: &mut Judge<'_>,
) -> Result<(), (String, String)> {
    let (nth, variant) = (point / VARIANTS, point % VARIANTS);
    let (then, evict, works_on) = (THEN[usize::try_from(variant / 4).unwrap_or(0)], variant % 2 == 1, variant % 4 > 1);
    let cache = if evict { "emptied" } else { "kept" };
    let mut path = format!("directory sync {nth} failed, then {then:?}, cache {cache}, reopened, answered");
    let cut = usize::try_from(nth - 1).ok().and_then(|nth| syncs(&start.course).nth(nth));
    let Some(cut) = cut else { return Err((path, "there is no such sync".to_owned())) };

    let mut process = start.process(&scenario.workload);
    process.disk.fail(Fault { nth, ..Fault::next(CallKind::SyncDir, FaultError::SyncDropsData) });
    match then {
        Then::GoesOn => {}
        Then::Dies => process.disk.power_cut_at(cut + 1),
        Then::CannotTakeBack => keep_from_taking_back(&process),
    }
    if then == Then::GoesOn {
        go_on(&mut process, rest(scenario));
    } else {
        drop(process.run(rest(scenario)));
    }
    if then == Then::CannotTakeBack && process.store.is_some() {
        drop(rest(scenario).iter().try_for_each(|step| process.step(step)));
    }
    if process.disk.faults_struck() == 0 {
        return Err((path, "no sync was struck".to_owned()));
    }
    die(&mut process, evict);
    let phase = start.course.phase(cut);
    answer_again(&mut process, &scenario.workload).map_err(|fault| (path.clone(), fault))?;
    if works_on {
        path += ", worked on";
        let worked = rest(scenario).iter().try_for_each(|step| process.step(step));
        worked.map_err(|stopped| (path.clone(), format!("{stopped:?}")))?;
        process.settle();
    }
    judge(Crash { disk: &process.disk, told: &process.told, phase, path, seed: None }, &scenario.workload)
}

/// Until two steps after the failure, so that there is something left to do for the next process.
fn go_on(process: &mut Process, steps: &[Step]) {
    let mut more = 2;
    if process.open().is_err() {
        return;
    }
    for step in steps {
        if process.disk.faults_struck() > 0 {
            more -= 1;
        }
        if process.step(step).is_err() || more == 0 {
            return;
        }
    }
    drop(process.close());
}

fn keep_from_taking_back(process: &Process) {
    let never = |on, nth, name: &str| Fault {
        nth,
        name_contains: Some(name.to_owned()),
        permanent: true,
        ..Fault::next(on, FaultError::Eio)
    };
    process.disk.fail(never(CallKind::Remove, 1, ".seg"));
    // The first one is the end of the creation itself.
    process.disk.fail(never(CallKind::Rename, 2, "IDENTITY"));
}

fn die(process: &mut Process, evict: bool) {
    process.abandon();
    process.disk = process.disk.kill();
    if evict {
        process.disk.evict_clean_pages();
    }
}

/// The syncs of directories that an opening makes: of the store's own, and of the segments' before and after there is one
/// more.
const SYNCS_OF_AN_OPENING: u64 = 3;

/// Each of them fails in the opening after each operation, and the name cannot be taken back; cache kept and emptied.
const VARIANTS_IN_RECOVERY: u64 = 2 * SYNCS_OF_AN_OPENING;

/// The crash points in openings after a process that was killed at any operation of its work.
pub(crate) fn points_in_recovery(course: &Course) -> Vec<(u64, Phase)> {
    (course.opened_after + 1..=course.operations())
        .flat_map(|cut| (0..VARIANTS_IN_RECOVERY).map(move |variant| cut * VARIANTS_IN_RECOVERY + variant))
        .map(|point| (point, phase_in_recovery(point)))
        .collect()
}

fn phase_in_recovery(point: u64) -> Phase {
    if point % VARIANTS_IN_RECOVERY < 2 { Phase::Opening } else { Phase::Copying }
}

/// A process is killed, in the next one a directory sync fails, the one after that answers, and the power is lost.
pub(crate) fn reach_in_recovery(
    scenario: &Scenario,
    start: &Start,
    point: u64,
    judge: &mut Judge<'_>,
) -> Result<(), (String, String)> {
    let (cut, variant) = (point / VARIANTS_IN_RECOVERY, point % VARIANTS_IN_RECOVERY);
    let (nth, evict) = (1 + variant / 2, variant % 2 == 1);
    let cache = if evict { "emptied" } else { "kept" };
    let path =
        format!("killed at operation {cut}, directory sync {nth} of the opening failed, cache {cache}, answered");
    let mut process = start.process(&scenario.workload);
    interrupt(&mut process, scenario, cut);
    die(&mut process, false);
    process.disk.fail(Fault { nth, ..Fault::next(CallKind::SyncDir, FaultError::SyncDropsData) });
    keep_from_taking_back(&process);
    let opened = process.open();
    if process.disk.faults_struck() == 0 {
        return Err((path, format!("no sync was struck: {opened:?}")));
    }
    die(&mut process, evict);
    answer_again(&mut process, &scenario.workload).map_err(|fault| (path.clone(), fault))?;
    let phase = phase_in_recovery(point);
    judge(Crash { disk: &process.disk, told: &process.told, phase, path, seed: None }, &scenario.workload)
}
