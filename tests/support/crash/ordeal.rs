//! What can befall a workload, and how each crash point of it is reached.

use std::collections::{BTreeMap, HashSet};

use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival};

use crate::crash::check::Workload;
use crate::crash::harness::{Process, Told};
use crate::crash::hunt::{Effort, Scenario, sampled};
use crate::crash::lives;
use crate::crash::model::Tables;
use crate::crash::names;
use crate::crash::phase::{Course, Phase};
use crate::crash::script::Step;

/// What befalls the process or its disk before the power is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ordeal {
    /// Nothing: the power is lost at a disk operation.
    PowerLoss,
    /// The process is killed there and the cache kept. Another one opens the store and answers whatever is asked
    /// again. Then the power is lost.
    Kill,
    /// A sync of such a file fails, its data is taken for clean and never written. The process ends; another one opens
    /// the store and answers, from the cache or after the cache was emptied. Then the power is lost.
    FailedSync { of: &'static str },
    /// A sync of a directory fails, and its names are taken for clean.
    FailedDirectorySync,
    /// The same in the opening after a process that was killed.
    FailedDirectorySyncInRecovery,
    /// As with `FailedSync`, but from that sync on each of them reports success and makes nothing durable. No store survives this
    /// (GUARANTEES.md, N2): it shows that the hunt would notice.
    LyingSyncs { of: &'static str },
    /// The power is lost at a disk operation, and again at every operation of the opening after it (or at one in so
    /// many); and if so, at operations of the opening after that.
    LossInRecovery { every: u64, thrice: bool },
    /// So many long workloads of chance, each with crash after crash.
    Lives { count: u64 },
}

/// A disk without power, and what was told by then.
#[derive(Debug)]
pub(crate) struct Crash<'a> {
    pub(crate) disk: &'a SimDisk,
    pub(crate) told: &'a Told,
    pub(crate) phase: Phase,
    /// What happened, for whoever reads a violation.
    pub(crate) path: String,
    /// Some survivals by this seed, instead of every kind at every place.
    pub(crate) seed: Option<u64>,
}

/// Takes a crash and says what is wrong with it: how it came about, and the fault.
pub(crate) type Judge<'a> = dyn FnMut(Crash<'_>, &Workload) -> Result<(), (String, String)> + 'a;

/// Where a scenario's crashes begin, and what its run is like when nothing interrupts it.
#[derive(Debug)]
pub(crate) struct Start {
    disk: SimDisk,
    told: Told,
    pub(crate) course: Course,
}

impl Start {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let workload = &scenario.workload;
        let mut before = Process::with(SimDisk::new(), workload.limits.clone(), Told::default());
        if let Some(steps) = scenario.begins_after {
            before.run(&workload.script[..steps]).expect("nothing fails");
        }
        let (disk, told) = (before.disk.crash(&Survival::Everything), before.told);
        let mut whole = Process::with(disk.crash(&Survival::Nothing), workload.limits.clone(), told.clone());
        whole.disk.start_trace();
        whole.run(rest(scenario)).expect("nothing fails");
        Self { disk, told, course: Course::of(&whole.disk, &whole.diary) }
    }

    pub(super) fn process(&self, workload: &Workload) -> Process {
        Process::with(self.disk.crash(&Survival::Nothing), workload.limits.clone(), self.told.clone())
    }
}

pub(super) fn rest(scenario: &Scenario) -> &[Step] {
    &scenario.workload.script[scenario.begins_after.unwrap_or(0)..]
}

impl Ordeal {
    /// The numbers of all crash points and their phases.
    pub(crate) fn points(self, course: &Course, effort: &Effort) -> Vec<(u64, Phase)> {
        let by_cut = |cut| (cut, course.phase(cut));
        // The opening of a store that was closed is in the scenario of its own that reopens.
        let first = if course.phase(1) == Phase::Creation { 1 } else { course.opened_after + 1 };
        match self {
            Self::PowerLoss | Self::Kill => (first..=course.operations() + 1).map(by_cut).collect(),
            Self::LossInRecovery { .. } => (first..=course.operations()).map(by_cut).collect(),
            Self::FailedSync { of } | Self::LyingSyncs { of } => {
                let numbered = (1_u64..).zip(syncs(course, of)).filter(|(_, number)| *number >= first);
                let with_cache = |(nth, cut)| [2 * nth, 2 * nth + 1].map(|point| (point, course.phase(cut)));
                numbered.flat_map(with_cache).collect()
            }
            Self::FailedDirectorySync => names::points(course),
            Self::FailedDirectorySyncInRecovery => names::points_in_recovery(course),
            Self::Lives { count } => (1..=effort.count(count)).map(|life| (life, Phase::Append)).collect(),
        }
    }

    /// Reaches a crash point and hands over each crash there.
    pub(crate) fn reach(
        self,
        scenario: &Scenario,
        (start, effort): (&Start, &Effort),
        point: u64,
        judge: &mut Judge<'_>,
    ) -> Result<(), (String, String)> {
        let workload = &scenario.workload;
        let mut process = start.process(workload);
        match self {
            Self::PowerLoss => {
                interrupt(&mut process, scenario, point);
                let path = format!("power lost at operation {point}");
                let crash = Crash {
                    disk: &process.disk,
                    told: &process.told,
                    phase: start.course.phase(point),
                    path,
                    seed: None,
                };
                judge(crash, workload)
            }
            Self::Kill => {
                interrupt(&mut process, scenario, point);
                let path = format!("killed at operation {point}, reopened, answered");
                answer_again(&mut process, workload).map_err(|fault| (path.clone(), fault))?;
                let crash = Crash {
                    disk: &process.disk,
                    told: &process.told,
                    phase: start.course.phase(point),
                    path,
                    seed: None,
                };
                judge(crash, workload)
            }
            Self::FailedSync { of } => {
                let fault = Fault { nth: point / 2, ..fault(of, FaultError::SyncDropsData) };
                failed_sync(process, scenario, start, (&fault, point % 2 == 1), judge)
            }
            Self::FailedDirectorySync => names::reach(scenario, start, point, judge),
            Self::FailedDirectorySyncInRecovery => names::reach_in_recovery(scenario, start, point, judge),
            Self::LyingSyncs { of } => {
                let fault = Fault { nth: point / 2, permanent: true, ..fault(of, FaultError::SyncLies) };
                failed_sync(process, scenario, start, (&fault, point % 2 == 1), judge)
            }
            Self::LossInRecovery { every, thrice } => {
                interrupt(&mut process, scenario, point);
                let mut recovery =
                    Recovery { workload, told: &process.told, every: effort.of(every), tried: HashSet::new() };
                for survival in [Survival::Everything, Survival::Nothing, Survival::Random(point)] {
                    let path = format!("power lost at operation {point}, {survival:?} survives");
                    let image = process.disk.crash(&survival);
                    recovery.lose_again(&image, (&path, u32::from(thrice)), point, judge)?;
                }
                Ok(())
            }
            Self::Lives { .. } => lives::live(point, &workload.limits, judge),
        }
    }
}

/// Runs until the power goes at this operation.
pub(super) fn interrupt(process: &mut Process, scenario: &Scenario, cut: u64) {
    process.disk.power_cut_at(cut);
    let ended = process.run(rest(scenario));
    // A segment that cannot be removed while the store is being closed is no error.
    assert!(ended.is_ok() || process.disk.is_off(), "only a cut ends a run: {ended:?}");
}

/// Kills the process, opens the store from the cache, and hears what it answers.
pub(super) fn answer_again(process: &mut Process, workload: &Workload) -> Result<(), String> {
    let heard = process.told.receipts.len();
    process.kill_and_open().map_err(|error| format!("it does not open: {error}"))?;
    process.hear_replays(&workload.operations);
    if process.told.receipts.len() < heard { Err("an answer is gone".to_owned()) } else { Ok(()) }
}

/// The next sync of such a file fails.
fn fault(of: &'static str, error: FaultError) -> Fault {
    Fault { name_contains: Some(of.to_owned()), ..Fault::next(CallKind::Sync, error) }
}

/// Runs with a fault; with `evict` the cache is emptied before the next opening.
fn failed_sync(
    mut process: Process,
    scenario: &Scenario,
    start: &Start,
    (fault, evict): (&Fault, bool),
    judge: &mut Judge<'_>,
) -> Result<(), (String, String)> {
    process.disk.fail(fault.clone());
    drop(process.run(rest(scenario)));
    note_what_is_seen(&mut process, &scenario.workload);
    let of = fault.name_contains.as_deref().unwrap_or_default();
    let cache = if evict { "emptied" } else { "kept" };
    let path = format!("sync {} of {of}: {:?}, cache {cache}, reopened, answered", fault.nth, fault.error);
    if process.disk.faults_struck() == 0 {
        return Err((path, "no sync was struck".to_owned()));
    }
    process.abandon();
    process.disk = process.disk.kill();
    if evict {
        process.disk.evict_clean_pages();
    }
    answer_again(&mut process, &scenario.workload).map_err(|fault| (path.clone(), fault))?;
    if of == "state.redb" {
        // The next checkpoint rests on pages that may exist in the cache alone.
        process.close().map_err(|error| (path.clone(), format!("it does not close: {error}")))?;
    }
    let phase = syncs(&start.course, of).nth(usize::try_from(fault.nth - 1).unwrap_or(usize::MAX));
    let phase = phase.map_or(Phase::Close, |cut| start.course.phase(cut));
    judge(Crash { disk: &process.disk, told: &process.told, phase, path, seed: None }, &scenario.workload)
}

/// A store that stopped is still read: what it shows must be there for good.
fn note_what_is_seen(process: &mut Process, workload: &Workload) {
    let tables = process.store.as_ref().and_then(Tables::try_read);
    process.told.seen = tables.map_or(0, |tables| workload.model.seen(&tables).expect("tables after some entry"));
}

/// The numbers of the disk operations that are syncs of such a file.
fn syncs(course: &Course, of: &str) -> impl Iterator<Item = u64> {
    let syncs = course.calls.iter().filter(move |call| call.kind == CallKind::Sync && call.name.contains(of));
    syncs.map(|call| call.number)
}

/// Losses of power in openings.
struct Recovery<'a> {
    workload: &'a Workload,
    /// What was told before the first loss.
    told: &'a Told,
    /// At one operation in so many.
    every: u64,
    /// Images whose opening was tried already, and how deep.
    tried: HashSet<(u128, u32)>,
}

impl Recovery<'_> {
    /// Of each phase its share, and at least one; which ones differs from place to place.
    fn cuts(&self, course: &Course, place: u64) -> Vec<u64> {
        let mut by_phase: BTreeMap<Phase, Vec<u64>> = BTreeMap::new();
        for cut in 1..=course.operations() {
            by_phase.entry(course.phase(cut)).or_default().push(cut);
        }
        by_phase.into_values().flat_map(|cuts| sampled(cuts, self.every, place)).collect()
    }

    /// Loses power at operations of the opening of an image; which ones depends on `first`; then, so many times more, at operations
    /// of the opening after that.
    fn lose_again(
        &mut self,
        image: &SimDisk,
        (path, deeper): (&str, u32),
        first: u64,
        judge: &mut Judge<'_>,
    ) -> Result<(), (String, String)> {
        if !self.tried.insert((image.image_hash(), deeper)) {
            return Ok(());
        }
        let limits = &self.workload.limits;
        let process = || Process::with(image.crash(&Survival::Nothing), limits.clone(), Told::default());
        let mut whole = process();
        whole.disk.start_trace();
        whole.open().map_err(|error| (path.to_owned(), format!("it does not open: {error}")))?;
        let course = Course::of(&whole.disk, &whole.diary);
        for cut in self.cuts(&course, first) {
            let mut dying = process();
            dying.disk.power_cut_at(cut);
            drop(dying.open());
            let path = format!("{path}, power lost at operation {cut} of the opening");
            let (told, phase) = (self.told, course.phase(cut));
            judge(Crash { disk: &dying.disk, told, phase, path: path.clone(), seed: None }, self.workload)?;
            if deeper > 0 {
                let survival = if cut % 2 == 0 { Survival::Everything } else { Survival::Random(cut) };
                let next = dying.disk.crash(&survival);
                self.lose_again(&next, (&format!("{path}, {survival:?} survives"), deeper - 1), cut, judge)?;
            }
        }
        Ok(())
    }
}
