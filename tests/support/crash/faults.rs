//! The workload on a disk whose Nth call of a kind fails, once or from then on, and what must hold afterwards: whoever
//! was answered was told the truth, whoever was not was told what may be assumed, and work goes on.
//!
//! Each trial is run twice. The first run ends at the first failure that anybody notices, and the disk is looked at as
//! another process finds it: with the cache, with clean pages evicted, and after a loss of power that took everything
//! un-synced. The second run overcomes the failure as a service would: it asks again, reopens the store if it stopped,
//! and works on to the end.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use counterfoil::Limits;
use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival};

use crate::crash::check::Workload;
use crate::crash::harness::{Process, Told, limits};
use crate::crash::scenarios::removing;
use crate::crash::script::{Op, Step, operations, script};

mod ask;
pub(crate) mod plan;

use ask::{attempt, check_nothing_swallowed, check_open_error, check_stopped, is_stopped, open, reopen};
pub(crate) use plan::{Figures, KINDS, Trouble, Violation, plans};
use plan::{Noticed, Struck};

/// Steps of the workload in which calls fail. Trials are many, and the whole script would only repeat itself.
const STEPS: usize = 34;

/// Where a trial begins.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) name: &'static str,
    /// A process that died, or none: then the store is created.
    dead: Option<SimDisk>,
    told: Told,
    pub(crate) limits: Limits,
    steps: Vec<Step>,
    operations: Vec<Op>,
    /// Only the calls of the opening fail.
    opening_only: bool,
    /// The store has threads of its own.
    pub(crate) threads: bool,
    /// What was looked at already: many errors leave the same disk and the same answers.
    seen: Arc<Mutex<HashSet<(u128, usize, u64)>>>,
}

impl Start {
    /// The whole life of a store: creation, work, close, open, work, close.
    pub(crate) fn creation() -> Self {
        // Three rounds: every kind of step, and an opening in between.
        Self::life("life", limits(), script()[..STEPS].to_vec())
    }

    /// The same, in which every fold is a checkpoint, and segments of 4 KiB are prepared, filled and removed at once.
    pub(crate) fn removal() -> Self {
        let (limits, steps) = removing();
        Self::life("removal", limits, steps)
    }

    fn life(name: &'static str, limits: Limits, steps: Vec<Step>) -> Self {
        let operations = operations(&steps);
        Self {
            name,
            dead: None,
            told: Told::default(),
            limits,
            steps,
            operations,
            opening_only: false,
            threads: false,
            seen: Arc::default(),
        }
    }

    /// The same with a writer, a folder and a preparer of segments at work at the same time.
    pub(crate) fn with_threads() -> Self {
        Self { name: "threads", threads: true, ..Self::creation() }
    }

    /// The opening after a process that died between the write of a batch and its sync.
    pub(crate) fn recovery() -> Self {
        let steps = script();
        let operations = operations(&steps);
        let whole = SimDisk::new();
        whole.start_trace();
        Process::new(whole.clone()).run(&steps).expect("nothing fails");
        let is_commit = |call: &&String| call.contains(": Sync log/") && !call.contains(".new");
        let trace = whole.trace();
        let syncs: Vec<_> = trace.iter().filter(is_commit).collect();
        // Late, so that there is something to apply, and not at the end, so that there is something left to do.
        let cut = syncs[syncs.len() * 4 / 5].split_once(':').expect("a call has a number").0;
        let disk = SimDisk::new();
        disk.power_cut_at(cut.parse().expect("a number"));
        let mut process = Process::new(disk);
        process.open().expect("the power is on");
        let done = steps.iter().take_while(|step| process.step(step).is_ok()).count();
        process.abandon();
        let Process { disk, told, .. } = process;
        let steps = steps[done..].to_vec();
        Self { dead: Some(disk), told, operations, opening_only: true, ..Self::life("recovery", limits(), steps) }
    }

    /// Whether nobody has looked at this disk after these answers.
    fn is_new(&self, disk: &SimDisk, told: &Told) -> bool {
        let mut hasher = DefaultHasher::new();
        format!("{told:?}").hash(&mut hasher);
        let key = (disk.image_hash(), disk.unsynced(), hasher.finish());
        self.seen.lock().expect("nobody panics here").insert(key)
    }

    /// How many different disks were looked at.
    pub(crate) fn distinct(&self) -> usize {
        self.seen.lock().expect("nobody panics here").len()
    }

    fn process(&self) -> Process {
        let disk = self.dead.as_ref().map_or_else(SimDisk::new, SimDisk::kill);
        Process::with(disk, self.limits.clone(), self.told.clone())
    }

    /// How many calls of a kind there are when nothing fails.
    pub(crate) fn calls(&self, on: CallKind) -> u64 {
        self.calls_of(Fault { nth: u64::MAX, ..Fault::next(on, FaultError::Eio) })
    }

    /// How many calls a fault that is far away is about.
    pub(crate) fn calls_of(&self, far: Fault) -> u64 {
        let mut process = self.process();
        process.disk.fail(far);
        open(&mut process, self.threads).expect("nothing fails");
        if !self.opening_only {
            self.steps.iter().for_each(|step| self.whole_step(&mut process, step));
            process.close().expect("nothing fails");
        }
        process.disk.faults_counted()
    }

    /// Runs the workload on a disk whose syncs lie: for ever from the Nth on and until the end, or once and until right
    /// behind the lie. Says what a loss of power shows of it, if anything.
    pub(crate) fn lie(&self, lie: Fault, survival: &Survival) -> Option<String> {
        let mut process = self.process();
        let permanent = lie.permanent;
        process.disk.fail(lie);
        open(&mut process, self.threads).expect("a lie is no error");
        for step in &self.steps {
            if !permanent && process.disk.faults_struck() > 0 {
                break;
            }
            self.whole_step(&mut process, step);
        }
        process.abandon();
        let crashed = process.disk.crash(survival);
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(&crashed, &process.told)));
        judged.unwrap_or_else(|panic| Err(message(&*panic))).err()
    }

    /// The bytes that the files have together at the beginning, and the most that they ever have.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let mut process = self.process();
        let first = process.disk.allocated();
        open(&mut process, self.threads).expect("nothing fails");
        let mut most = process.disk.allocated();
        for step in &self.steps {
            self.whole_step(&mut process, step);
            most = most.max(process.disk.allocated());
        }
        (first, most)
    }

    fn whole_step(&self, process: &mut Process, step: &Step) {
        let noticed = attempt(process, step, self.threads).expect("nothing fails");
        assert_eq!(noticed, None, "nothing fails");
    }

    /// One trial.
    pub(crate) fn try_one(&self, trouble: Trouble) -> Result<Figures, Violation> {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let figures = self.look_at_once(trouble)?;
            if figures.answered == 0 {
                self.overcome(trouble)?;
            }
            Ok(figures)
        }));
        let trial = || format!("{}, {trouble:?}", self.name);
        match tried {
            Ok(Ok(figures)) => Ok(figures),
            Ok(Err(what)) => Err(Violation { trial: trial(), what }),
            Err(panic) => Err(Violation { trial: trial(), what: message(&*panic) }),
        }
    }

    /// Ends at the first thing that anybody notices, or at the end of the workload.
    fn look_at_once(&self, trouble: Trouble) -> Result<Figures, String> {
        let mut process = self.process();
        process.disk.start_trace();
        trouble.begin(&process.disk);
        let noticed = self.until_noticed(&mut process)?;
        let stopped = is_stopped(&process);
        if noticed == Some(Noticed::Unknown) && !stopped {
            return Err("somebody was told \"unknown\" and the store goes on".to_owned());
        }
        if noticed.is_none() && !stopped {
            check_nothing_swallowed(&process.disk)?;
        }
        if stopped {
            check_stopped(&mut process, trouble)?;
        }
        process.abandon();
        let Process { disk, told, .. } = process;
        let struck = Struck::on(&disk);
        let evictions: &[bool] = if trouble.drops_data() { &[false, true] } else { &[false] };
        for &evict in evictions {
            let killed = disk.kill();
            Trouble::end(&killed);
            if evict {
                killed.evict_clean_pages();
            }
            if !self.is_new(&killed, &told) {
                continue;
            }
            let mut next = Process::with(killed, self.limits.clone(), told.clone());
            next.open().map_err(|error| format!("after a kill (evicted: {evict}) it does not open: {error}"))?;
            next.hear_replays(&self.operations);
            let crashed = next.disk.crash(&Survival::Nothing);
            self.judge(&crashed, &next.told)
                .map_err(|fault| format!("killed (evicted: {evict}), answered: {fault}"))?;
        }
        let crashed = disk.crash(&Survival::Nothing);
        Trouble::end(&crashed);
        self.judge(&crashed, &told).map_err(|fault| format!("power lost: {fault}"))?;
        Ok(Figures::one(noticed, stopped, struck))
    }

    fn until_noticed(&self, process: &mut Process) -> Result<Option<Noticed>, String> {
        if let Err(error) = open(process, self.threads) {
            check_open_error(&error)?;
            return Ok(Some(Noticed::Open));
        }
        for step in &self.steps {
            if let Some(noticed) = attempt(process, step, self.threads)? {
                return Ok(Some(noticed));
            }
        }
        Ok(process.close().is_err().then_some(Noticed::Close))
    }

    /// Goes on whatever is noticed, and is through in the end.
    fn overcome(&self, trouble: Trouble) -> Result<(), String> {
        let mut process = self.process();
        trouble.begin(&process.disk);
        if open(&mut process, self.threads).is_err() {
            // Once more with the same disk, then with a mended one.
            reopen(&mut process, self.threads)?;
        }
        for step in &self.steps {
            self.insist(&mut process, step, trouble)?;
        }
        if process.close().is_err() {
            reopen(&mut process, self.threads)?;
        }
        // An opening need not make the calls that still fail; a close does.
        Trouble::end(&process.disk);
        let closed = process.close();
        closed.map_err(|error| format!("the mended store does not close: {error}"))?;
        let all = self.operations.iter().filter(|op| op.has_receipt());
        if let Some(op) = all.clone().find(|op| !process.told.receipts.contains_key(&op.id)) {
            return Err(format!("{op:?} was never answered"));
        }
        let crashed = process.disk.crash(&Survival::Nothing);
        self.judge(&crashed, &process.told).map_err(|fault| format!("overcome, then power lost: {fault}"))
    }

    /// Asks until it is answered. A store that did not stop goes on without being reopened as soon as the disk does.
    fn insist(&self, process: &mut Process, step: &Step, trouble: Trouble) -> Result<(), String> {
        for round in 0..4 {
            let Some(noticed) = attempt(process, step, self.threads)? else { return Ok(()) };
            if round > 0 {
                Trouble::end(&process.disk);
            }
            if is_stopped(process) {
                check_stopped(process, trouble)?;
                reopen(process, self.threads)?;
            } else if process.store.is_none() {
                reopen(process, self.threads)?;
            } else if noticed == Noticed::Unknown {
                return Err("somebody was told \"unknown\" and the store goes on".to_owned());
            }
        }
        Err(format!("{step:?} is not answered although the disk was mended"))
    }

    /// The model in the order in which this run committed, against what is on the disk.
    fn judge(&self, crashed: &SimDisk, told: &Told) -> Result<(), String> {
        if !self.is_new(crashed, told) {
            return Ok(());
        }
        let mut heard = told.clone();
        if told.unknown.len() > 1 {
            // Who of several unknown ones came first, only the store knows.
            let crashed = crashed.crash(&Survival::Everything);
            let mut process = Process::with(crashed, self.limits.clone(), told.clone());
            process.open().map_err(|error| format!("it does not open: {error}"))?;
            process.hear_replays(&self.operations);
            heard = process.told;
        }
        let positions: BTreeMap<u32, _> = heard.positions().map(|(op, position)| (op.id, position)).collect();
        let mut order = self.operations.clone();
        order.sort_by_key(|op| {
            let position = positions.get(&op.id);
            (position.is_none(), position.copied(), !heard.unknown.contains_key(&op.id), op.id)
        });
        let steps = order.into_iter().map(Step::One).collect();
        Workload::with_limits(steps, self.limits.clone()).check(&crashed.crash(&Survival::Everything), told)
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// Tries every `every`th call of every plan, in a removal and in the life of a store with these limits, one after the
/// other, and stops at the first violation.
pub(crate) fn fault_hunt(limits: &Limits, every: u64) -> Result<Figures, Box<Violation>> {
    let mut figures = Figures::default();
    let mutant = |mut start: Start| {
        start.limits.mutant = limits.mutant;
        start
    };
    for start in [mutant(Start::removal()), mutant(Start::creation())] {
        for on in KINDS {
            let calls = start.calls(on);
            for plan in plans(on) {
                for nth in (1..=calls).step_by(usize::try_from(every).expect("a small number")) {
                    figures.add(start.try_one(Trouble::Fault(plan, nth))?);
                }
            }
        }
    }
    Ok(figures)
}
