//! Small stores to be damaged, the same to the byte whenever they are made.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{Entry, Limits, LogStart};

use crate::crash::check::Workload;
use crate::crash::harness::{Process, builder, limits};
use crate::crash::script::{Kind, Op, Step};

/// The tables that the first opening declares: entries before those of the workload.
const DECLARED: usize = 3;

/// A store, what it holds and what of that is proven durable.
#[derive(Debug)]
pub(crate) struct Specimen {
    pub(crate) name: &'static str,
    disk: SimDisk,
    pub(crate) workload: Workload,
    pub(crate) limits: Limits,
    /// What the log held before anything was damaged.
    pub(crate) log: Vec<Entry>,
    /// Entries of the workload that the log proves durable: only the last batch of an unclean stop is not.
    pub(crate) proven: usize,
}

impl Specimen {
    /// A disk of its own with these files, all of it durable.
    pub(crate) fn disk(&self) -> SimDisk {
        self.disk.crash(&Survival::Nothing)
    }

    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.disk.files()
    }

    pub(crate) fn process(&self, disk: &SimDisk) -> Process {
        let mut process = Process::new(disk.clone());
        process.limits = self.limits.clone();
        // Hours later: nothing is forgotten yet.
        process.clock.advance(Duration::from_secs(3600));
        process
    }

    pub(crate) fn entries(&self) -> usize {
        self.workload.model.entries.len() - 1
    }

    /// How many entries of the workload lie at or before a sequence.
    pub(crate) fn entries_at(sequence: u64) -> usize {
        usize::try_from(sequence).expect("a small log").saturating_sub(DECLARED)
    }
}

fn op(id: u32, kind: Kind) -> Op {
    Op { id, kind }
}

fn one(id: u32, kind: Kind) -> Step {
    Step::One(op(id, kind))
}

/// Two epochs, folds and a checkpoint in each, closed in good order: everything is in the state file.
pub(crate) fn closed(seed: u64) -> Specimen {
    let first = vec![
        one(1, Kind::Create),
        one(2, Kind::Write),
        Step::Idle,
        Step::Batch(vec![op(3, Kind::Create), op(4, Kind::Reject), op(5, Kind::Move)]),
        one(6, Kind::Large(900)),
        one(7, Kind::Fail),
        Step::Idle,
        Step::Reopen,
    ];
    let second = vec![one(8, Kind::Create), one(9, Kind::Large(1_500)), one(10, Kind::Write), one(11, Kind::Create)];
    let script = [first, second].concat();
    make("closed", seed, script, None, limits())
}

/// One operation, closed in good order: small enough for every byte and every length.
pub(crate) fn tiny(seed: u64) -> Specimen {
    make("tiny", seed, vec![one(1, Kind::Create)], None, limits())
}

/// Two epochs, the second with two segments and not closed: all of it is in the log alone, and its last batch is not
/// proven.
pub(crate) fn killed(seed: u64) -> Specimen {
    let first = vec![one(1, Kind::Create), one(2, Kind::Write), one(3, Kind::Create), Step::Reopen];
    let second = vec![
        one(4, Kind::Create),
        Step::Idle,
        one(5, Kind::Large(130_000)),
        one(6, Kind::Large(120_000)),
        one(7, Kind::Large(400)),
        Step::Batch(vec![op(8, Kind::Create), op(9, Kind::Reject)]),
        Step::Idle,
        one(10, Kind::Move),
    ];
    let last = Step::Batch(vec![op(11, Kind::Create), op(12, Kind::Create)]);
    let script = [first, second].concat();
    let mut limits = limits();
    // Nothing is folded.
    limits.fold_bytes = 1 << 21;
    make("killed", seed, script, Some(last), limits)
}

fn make(name: &'static str, seed: u64, script: Vec<Step>, last: Option<Step>, limits: Limits) -> Specimen {
    let mut process = Process::new(SimDisk::new());
    process.limits = limits.clone();
    let open = |process: &mut Process| {
        let store = builder(&process.clock, process.limits.clone()).identity_seed(seed).open_in(&process.disk);
        process.store = Some(store.expect("a new store"));
    };
    open(&mut process);
    for step in &script {
        process.step(step).expect("the workload runs");
    }
    let proven = Workload::new(script.clone()).model.entries.len() - 1;
    let script: Vec<Step> = script.into_iter().chain(last.clone()).collect();
    let disk = match last {
        Some(last) => {
            process.step(&last).expect("the last batch runs");
            process.disk.crash(&Survival::Nothing)
        }
        None => {
            process.close().expect("it closes");
            process.disk.crash(&Survival::Nothing)
        }
    };
    let workload = Workload::new(script);
    let mut specimen = Specimen { name, disk, workload, limits, log: Vec::new(), proven };
    let mut reader = specimen.process(&specimen.disk());
    reader.open().expect("it opens");
    let mut log = reader.store().log(LogStart::Oldest).expect("the log can be read");
    while let Some(entry) = log.try_next().expect("the log is whole") {
        specimen.log.push(entry);
    }
    assert_eq!(specimen.log.len(), specimen.entries() + DECLARED);
    specimen
}

/// Where the frames of a segment lie.
pub(crate) fn frames(segment: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = 512;
    while let Some(header) = segment.get(at..at + 48)
        && header.iter().any(|byte| *byte != 0)
    {
        let payload = u32::from_le_bytes(header[8..12].try_into().expect("four bytes"));
        let end = at + 48 + usize::try_from(payload).expect("a length").next_multiple_of(8);
        frames.push(at..end);
        at = end;
    }
    frames
}
