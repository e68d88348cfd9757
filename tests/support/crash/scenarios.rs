//! The scenarios. A new one joins by being added to [`all`].

use counterfoil::Limits;

use crate::crash::check::Workload;
use crate::crash::harness;
use crate::crash::hunt::Scenario;
use crate::crash::ordeal::Ordeal;
use crate::crash::phase::Phase;
use crate::crash::phase::Phase::{
    Append, CatchingUp, Checkpoint, Close, Compaction, Copying, Creation, Fold, Opening, Removal, Rollover, Synced,
};
use crate::crash::script::{Kind, Op, Step};

/// Every scenario, in the order of the table.
pub(crate) fn all() -> Vec<Scenario> {
    vec![
        creation(),
        creation_lost_twice(),
        append(),
        batches(),
        folds(),
        evictions(),
        checkpoints(),
        rollover(),
        removal(),
        compaction(),
        fleeting(),
        reopening(),
        killed(),
        failed_syncs_of_the_log(),
        failed_syncs_of_the_state(),
        failed_syncs_of_directories(),
        failed_syncs_in_a_creation(),
        failed_syncs_in_a_recovery(),
        recovery(),
        third_loss(),
        lives(),
    ]
}

/// Segments that are small enough for a dozen operations to fill.
const SEGMENT_BYTES: u64 = 4096;

/// Nothing is folded or checkpointed before the close unless a scenario asks for it.
fn quiet() -> Limits {
    let mut limits = Limits::default();
    limits.cache_bytes = 1024 * 1024;
    limits.segment_bytes_first = 16 * 1024;
    limits
}

fn scenario(name: &'static str, limits: Limits, begins_after: Option<usize>, script: Vec<Step>) -> Scenario {
    let workload = Workload::with_limits(script, limits);
    Scenario {
        name,
        workload,
        begins_after,
        ordeal: Ordeal::PowerLoss,
        lacks: vec![(Removal, WHOLE_LOG), (Compaction, AS_IT_IS)],
    }
}

/// Reasons why a scenario has nothing of a phase.
const WHOLE_LOG: &str = "the whole log is kept";
const AS_IT_IS: &str = "the state file is never rewritten";
const QUIET: &str = "its limits are not reached";
const MADE_BEFORE: &str = "the store was made before crashes begin";
const OPENED_ONCE: &str = "it is opened before crashes begin and not again";
const EVERY_FOLD: &str = "every fold is a checkpoint";
const ONLY_OPENINGS: &str = "what is interrupted is an opening";
const NO_SUCH_SYNC: &str = "no sync of such a file belongs to it";

impl Scenario {
    fn lacking(mut self, phases: &[Phase], reason: &'static str) -> Self {
        self.lacks.extend(phases.iter().map(|phase| (*phase, reason)));
        self
    }

    /// Power is lost while the store that was made before is at work, and it is not opened again.
    fn at_work(self) -> Self {
        self.lacking(&[Creation], MADE_BEFORE).lacking(&[Opening, Copying, CatchingUp], OPENED_ONCE)
    }

    fn in_openings(self) -> Self {
        self.lacking(&[Append, Synced, Fold, Checkpoint, Rollover, Close], ONLY_OPENINGS)
    }
}

const fn op(id: u32, kind: Kind) -> Op {
    Op { id, kind }
}

fn one(id: u32, kind: Kind) -> Step {
    Step::One(op(id, kind))
}

fn creates(ids: std::ops::RangeInclusive<u32>) -> Vec<Step> {
    ids.map(|id| one(id, Kind::Create)).collect()
}

/// A store is made, does one thing, and is closed.
fn creation() -> Scenario {
    let scenario = scenario("creation", quiet(), None, vec![one(1, Kind::Create)]);
    scenario.lacking(&[Fold, Checkpoint], QUIET).lacking(&[Opening, Copying, CatchingUp], OPENED_ONCE)
}

/// A creation is interrupted, and so is what the next opening makes of it.
fn creation_lost_twice() -> Scenario {
    let twice = Ordeal::LossInRecovery { every: 1, thrice: false };
    Scenario { ordeal: twice, ..scenario("creation, twice", quiet(), None, Vec::new()) }.in_openings()
}

/// One operation after the other, of every outcome.
fn append() -> Scenario {
    let kinds = [Kind::Create, Kind::Write, Kind::Reject, Kind::Move, Kind::Fail, Kind::Create, Kind::Large(900)];
    let mut script = vec![one(1, Kind::Create)];
    script.extend((2..).zip(kinds).map(|(id, kind)| one(id, kind)));
    script.extend([Step::Retry(op(2, Kind::Create)), Step::Idle, one(9, Kind::Create)]);
    scenario("append", quiet(), Some(1), script).at_work().lacking(&[Fold, Checkpoint], QUIET)
}

/// Operations that share a sync, larger than a sector, with members that fail.
fn batches() -> Scenario {
    let batch = |ops: &[(u32, Kind)]| Step::Batch(ops.iter().map(|(id, kind)| op(*id, *kind)).collect());
    let script = vec![
        one(1, Kind::Create),
        batch(&[(2, Kind::Create), (3, Kind::Large(1500)), (4, Kind::Move)]),
        batch(&[(5, Kind::Create), (6, Kind::Fail)]),
        batch(&[(7, Kind::Reject), (8, Kind::Panic), (9, Kind::Create), (10, Kind::Large(700))]),
    ];
    scenario("batches", quiet(), Some(1), script).at_work().lacking(&[Fold, Checkpoint], QUIET)
}

/// Every few operations are folded; only the close makes a checkpoint.
fn folds() -> Scenario {
    let mut limits = quiet();
    limits.fold_bytes = 2000;
    scenario("folds", limits, Some(2), creates(1..=9)).at_work().lacking(&[Checkpoint], QUIET)
}

/// The same with a cache so small that redb writes pages before anything made them durable.
fn evictions() -> Scenario {
    let mut limits = quiet();
    limits.fold_bytes = 2000;
    limits.cache_bytes = 0;
    let mut script = creates(1..=3);
    script.extend((4..=9).map(|id| one(id, Kind::Large(3000))));
    scenario("evictions", limits, Some(2), script).at_work().lacking(&[Checkpoint], QUIET)
}

/// Every fold is a checkpoint.
fn checkpoints() -> Scenario {
    let mut limits = quiet();
    limits.fold_bytes = 2000;
    limits.checkpoint_log_bytes = 1;
    scenario("checkpoints", limits, Some(2), creates(1..=8)).at_work().lacking(&[Fold], EVERY_FOLD)
}

/// Segments are full after a few operations, and one batch is larger than a segment.
fn rollover() -> Scenario {
    let mut limits = quiet();
    limits.segment_bytes_first = SEGMENT_BYTES;
    let mut script = creates(1..=2);
    script.extend((3..=8).map(|id| one(id, Kind::Large(1800))));
    script.extend([Step::Idle, one(9, Kind::Large(20_000)), one(10, Kind::Create)]);
    scenario("rollover", limits, Some(2), script).at_work().lacking(&[Fold, Checkpoint], QUIET)
}

/// Every fold is a checkpoint, and what it makes unneeded is removed at once.
fn removal() -> Scenario {
    let (limits, script) = removing();
    let lacks = vec![(Creation, MADE_BEFORE), (Fold, EVERY_FOLD), (Compaction, AS_IT_IS)];
    Scenario { lacks, ..scenario("removal", limits, Some(2), script) }
}

/// Limits under which segments come and go, and work that makes them.
pub(crate) fn removing() -> (Limits, Vec<Step>) {
    let mut limits = quiet();
    // A fold is of more than one segment, so that what it makes unneeded was needed until then.
    limits.fold_bytes = 6000;
    limits.checkpoint_log_bytes = 1;
    limits.segment_bytes_first = SEGMENT_BYTES;
    limits.keep_log_bytes = 0;
    let mut script = creates(1..=2);
    script.extend((3..=8).map(|id| one(id, Kind::Large(1800))));
    script.extend([Step::Idle, Step::Reopen, one(9, Kind::Large(1800)), Step::Idle, one(10, Kind::Create)]);
    (limits, script)
}

/// The state file is rewritten, and then everything that was erased is taken out of the files.
fn compaction() -> Scenario {
    let mut limits = quiet();
    limits.fold_bytes = 4000;
    limits.segment_bytes_first = SEGMENT_BYTES;
    let mut script = creates(1..=5);
    script.extend([Step::Compact, one(6, Kind::Move), Step::Purge, one(7, Kind::Create), Step::Reopen]);
    script.extend([one(8, Kind::Create), Step::Compact]);
    let lacks = vec![(Creation, MADE_BEFORE), (Fold, QUIET)];
    Scenario { lacks, ..scenario("compaction", limits, Some(2), script) }
}

/// Receipts that are forgotten at once give their key to the next one, and operations that ignore an error give nothing.
fn fleeting() -> Scenario {
    let mut limits = quiet();
    limits.fold_bytes = 2000;
    let script = vec![
        one(1, Kind::Fleeting),
        one(2, Kind::Fleeting),
        one(3, Kind::Swallow),
        one(4, Kind::Create),
        one(5, Kind::Fleeting),
        Step::Batch(vec![op(6, Kind::Create), op(7, Kind::Swallow), op(8, Kind::Create)]),
        // More than one step of sweeping takes, so that some are left when the power goes.
        Step::Batch((9..=80).map(|id| op(id, Kind::Fleeting)).collect()),
    ];
    scenario("forgotten receipts", limits, Some(1), script).at_work().lacking(&[Checkpoint], QUIET)
}

/// The store is closed and opened again.
fn reopening() -> Scenario {
    let mut script = creates(1..=3);
    script.extend([Step::Reopen, one(4, Kind::Create), Step::Reopen, Step::Reopen, one(5, Kind::Move)]);
    let scenario = scenario("close and reopen", quiet(), Some(2), script);
    scenario.lacking(&[Creation], MADE_BEFORE).lacking(&[Fold, Checkpoint], QUIET)
}

/// A little of everything.
fn mixed() -> (Limits, Vec<Step>) {
    let mut limits = quiet();
    limits.fold_bytes = 3000;
    limits.checkpoint_log_bytes = 2000;
    limits.cache_bytes = 64 * 1024;
    limits.segment_bytes_first = SEGMENT_BYTES;
    let batch = |ids: std::ops::RangeInclusive<u32>| Step::Batch(ids.map(|id| op(id, Kind::Create)).collect());
    let mut script = creates(1..=2);
    script.extend([batch(3..=6), Step::Idle, one(7, Kind::Large(1500)), one(8, Kind::Move), Step::Reopen]);
    script.extend([one(9, Kind::Write), one(10, Kind::Reject), one(11, Kind::Create), one(12, Kind::Large(900))]);
    (limits, script)
}

fn killed() -> Scenario {
    let (limits, script) = mixed();
    Scenario { ordeal: Ordeal::Kill, ..scenario("killed, cache kept", limits, Some(1), script) }
        .lacking(&[Creation], MADE_BEFORE)
}

fn failed_syncs_of_the_log() -> Scenario {
    let (limits, script) = mixed();
    let ordeal = Ordeal::FailedSync { of: "log/" };
    let scenario = Scenario { ordeal, ..scenario("failed sync, log", limits, Some(1), script) };
    let none = [Synced, Fold, Checkpoint, Opening, CatchingUp];
    scenario.lacking(&[Creation], MADE_BEFORE).lacking(&none, NO_SUCH_SYNC)
}

fn failed_syncs_of_the_state() -> Scenario {
    let (limits, script) = mixed();
    let ordeal = Ordeal::FailedSync { of: "state.redb" };
    let scenario = Scenario { ordeal, ..scenario("failed sync, state", limits, Some(1), script) };
    // A fold that makes the file longer syncs it.
    let none = [Append, Synced, Rollover, Opening, Copying];
    scenario.lacking(&[Creation], MADE_BEFORE).lacking(&none, NO_SUCH_SYNC)
}

/// Segments come and go, and what is done to their names may be in the cache only.
fn failed_syncs_of_directories() -> Scenario {
    let (limits, mut script) = removing();
    script.extend((11..=20).map(|id| one(id, Kind::Large(1800))));
    let ordeal = Ordeal::FailedDirectorySync;
    let none = [Creation, Append, Synced, Fold, Checkpoint, CatchingUp];
    let scenario = Scenario {
        ordeal,
        lacks: vec![(Compaction, AS_IT_IS)],
        ..scenario("failed sync, names", limits, Some(2), script)
    };
    scenario.lacking(&none, NO_SUCH_SYNC)
}

/// A name of the creation may be in the cache only.
fn failed_syncs_in_a_creation() -> Scenario {
    let script = vec![one(1, Kind::Create), Step::Reopen, one(2, Kind::Create)];
    let scenario = scenario("failed sync, creation", quiet(), None, script);
    let none = [Append, Synced, Fold, Checkpoint, CatchingUp];
    Scenario { ordeal: Ordeal::FailedDirectorySync, ..scenario }.lacking(&none, NO_SUCH_SYNC)
}

/// The name of a recovery's own segment, with copies in it, may be in the cache only.
fn failed_syncs_in_a_recovery() -> Scenario {
    let (limits, script) = mixed();
    let scenario = scenario("failed sync, recovery", limits, Some(1), script);
    Scenario { ordeal: Ordeal::FailedDirectorySyncInRecovery, ..scenario }
        .in_openings()
        .lacking(&[Creation], MADE_BEFORE)
        .lacking(&[CatchingUp], NO_SUCH_SYNC)
}

/// A disk that lies: not a scenario of the table, since it must be found out.
pub(crate) fn lying_disk() -> Scenario {
    Scenario { ordeal: Ordeal::LyingSyncs { of: "log/" }, ..scenario("lying disk", quiet(), Some(1), creates(1..=4)) }
}

/// Power is lost again at every operation of the opening after it, with a tail to copy that nothing proves.
fn recovery() -> Scenario {
    let (mut limits, _) = mixed();
    limits.fold_bytes = 2000;
    let batch = Step::Batch((3..=6).map(|id| op(id, Kind::Create)).collect());
    let script = vec![one(1, Kind::Create), one(2, Kind::Create), batch, one(7, Kind::Large(1200)), one(8, Kind::Move)];
    let recovery = Ordeal::LossInRecovery { every: 1, thrice: false };
    Scenario { ordeal: recovery, ..scenario("second loss", limits, Some(1), script) }
        .in_openings()
        .lacking(&[Creation], MADE_BEFORE)
}

/// And once more in the opening after that.
fn third_loss() -> Scenario {
    let batch = Step::Batch((2..=4).map(|id| op(id, Kind::Create)).collect());
    let script = vec![one(1, Kind::Create), batch];
    let recovery = Ordeal::LossInRecovery { every: 1, thrice: true };
    Scenario { ordeal: recovery, ..scenario("third loss", quiet(), Some(1), script) }
        .in_openings()
        .lacking(&[Creation], MADE_BEFORE)
}

/// Long workloads of chance under limits so small that everything happens.
fn lives() -> Scenario {
    let mut limits = harness::limits();
    limits.segment_bytes_first = SEGMENT_BYTES;
    limits.checkpoint_log_bytes = 6000;
    let ordeal = Ordeal::Lives { count: 2200 };
    Scenario { ordeal, lacks: vec![(Compaction, AS_IT_IS)], ..scenario("long lives", limits, None, Vec::new()) }
}
