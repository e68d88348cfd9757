//! Runs a case against the store and the model at once, and compares after every step.

mod batch;
mod compare;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use counterfoil::testing::{Survival, TestBed, WALL_AT_START};
use counterfoil::{
    Access, Entry, EntryKind, Error, Limits, LogFollower, LogStart, Position, ReadView, Receipt, Store, StoreBuilder,
};

use crate::oracle::{Answer, Call, ORDERS, Oracle, PING, TENANTS, Who};
use crate::queue::{QUEUE_MAX, TENANT_MAX};
use crate::script::{REPLY_MAX, ROW_KEY_MAX, ROW_MAX, ROWS_MAX, Script, kinds};
use crate::steps::{Case, Step, Stop};
use crate::tables::{CELLS, Direction, NOTES, Span, Tables};
use crate::tally::Tally;

/// Operations behind one sync: few, so that a long queue takes several.
const BATCH_MAX: usize = 4;
/// Views held at once.
const HELD_MAX: usize = 4;
/// What the guard's switch says if it says no to nobody.
const NOBODY: u8 = u8::MAX;

macro_rules! ensure {
    ($holds:expr, $($message:tt)+) => {
        if !$holds {
            return Err(format!($($message)+));
        }
    };
}
use ensure;

/// A view, and what the model held when it was taken.
struct Held {
    view: ReadView,
    tables: Tables,
    position: Option<Position>,
}

/// The entries that the store wrote for itself: what fell due was swept, and what was counted of keys was written down.
/// When it does so is its own affair, so the model has no line for them.
#[derive(Default)]
struct OwnEntries {
    /// Reads behind the last entry that was looked at.
    follower: Option<LogFollower>,
    sequences: Vec<u64>,
}

/// One store and its model.
pub(crate) struct Session<'a> {
    bed: TestBed,
    release: Arc<AtomicUsize>,
    denied: Arc<AtomicU8>,
    oracle: Oracle,
    held: Vec<Held>,
    follower: Option<LogFollower>,
    /// How many entries the follower has given, and the follower before it.
    followed: usize,
    own: RefCell<OwnEntries>,
    tally: &'a Tally,
}

impl<'a> Session<'a> {
    /// Runs a whole case; the error says what differed and at which step.
    pub(crate) fn run(case: &Case, tally: &'a Tally) -> Result<(), String> {
        let mut session = Self::open(case, tally)?;
        for (number, step) in case.steps.iter().enumerate() {
            session.step(step).map_err(|error| format!("step {number}, {step:?}: {error}"))?;
        }
        session.finish().map_err(|error| format!("at the end: {error}"))
    }

    fn open(case: &Case, tally: &'a Tally) -> Result<Self, String> {
        let (release, denied) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU8::new(NOBODY)));
        let mut limits = Limits::default();
        limits.fold_bytes = case.fold_bytes;
        limits.checkpoint_log_bytes = case.checkpoint_log_bytes;
        limits.cache_bytes = 64 * 1024;
        limits.queue_operations_max = QUEUE_MAX;
        limits.queue_tenant_operations_max = TENANT_MAX;
        limits.batch_operations_max = BATCH_MAX;
        limits.row_key_bytes_max = ROW_KEY_MAX;
        limits.row_bytes_max = ROW_MAX;
        limits.operation_rows_max = ROWS_MAX;
        limits.reply_bytes_max = REPLY_MAX;
        let build = builder(limits, &release, &denied);
        let bed = TestBed::new(build).map_err(|error| error.to_string())?;
        let oracle = Oracle::new(WALL_AT_START.0);
        let session = Self {
            bed,
            release,
            denied,
            oracle,
            held: Vec::new(),
            follower: None,
            followed: 0,
            own: RefCell::default(),
            tally,
        };
        session.compare_all()?;
        Ok(session)
    }

    fn store(&self) -> &Store {
        self.bed.store()
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.tally.count("step", kind(step));
        match step {
            Step::Execute(call) => self.execute(call),
            Step::Batch { calls, revoked, pause, after } => self.batch(calls, *revoked, *pause, after),
            Step::Write(script) => self.write(script),
            Step::LookUp(who) => self.look_up(*who),
            Step::Scan(span, direction) => self.scan(*span, *direction),
            Step::Hold => {
                self.hold();
                Ok(())
            }
            Step::Compare => self.compare_held(false),
            Step::Guard(tenant) => {
                self.set_guard(*tenant);
                Ok(())
            }
            Step::Advance(ms) => {
                self.advance(u64::from(*ms));
                Ok(())
            }
            Step::Settle => self.settle(),
            Step::Follow { from_oldest } => self.follow(*from_oldest),
            Step::Deploy(release) => {
                self.release.store(*release, Ordering::SeqCst);
                self.oracle.release = *release;
                self.reopen(Stop::Close)
            }
            Step::Reopen(stop) => self.reopen(*stop),
        }
    }

    /// Everything is compared once more, before and after a last loss of power.
    fn finish(mut self) -> Result<(), String> {
        self.settle()?;
        self.set_guard(None);
        for _ in 0..2 {
            self.follow(true)?;
            self.compare_all()?;
            self.compare_held(false)?;
            self.store().assert_sound();
            self.reopen(Stop::Crash(self.oracle.lines.len() as u64))?;
        }
        Ok(())
    }

    fn set_guard(&mut self, tenant: Option<u8>) {
        self.denied.store(tenant.unwrap_or(NOBODY), Ordering::SeqCst);
        self.oracle.denied = tenant;
    }

    fn advance(&mut self, ms: u64) {
        self.bed.clock().advance(Duration::from_millis(ms));
        self.oracle.now += ms;
    }

    fn settle(&self) -> Result<(), String> {
        while self.store().step().map_err(|error| error.to_string())? {}
        Ok(())
    }

    fn count_acts(&self, script: &Script) {
        for kind in kinds(script, &self.oracle.tables) {
            self.tally.count("in a closure", kind);
        }
    }

    fn execute(&mut self, call: &Call) -> Result<(), String> {
        let early = self.oracle.early(call);
        let was_forgotten = self.oracle.was_forgotten(call.who);
        let expected = match early {
            Some(answer) => answer,
            None => {
                self.count_acts(&call.script);
                self.oracle.serve(call, Duration::ZERO)
            }
        };
        let script = call.script.clone();
        let operation = call.operation(self.oracle.release);
        let actual = self.store().execute(operation, move |tx| script.run(tx).map(|(_, decision)| decision));
        self.count_answer(call, &expected, was_forgotten, false);
        self.check(call.who, &expected, actual)
    }

    fn write(&mut self, script: &Script) -> Result<(), String> {
        self.count_acts(script);
        let expected = self.oracle.write(script);
        let closure = script.clone();
        let actual = self.store().write(move |tx| closure.run(tx).map(|(seen, _)| seen));
        self.check_write(&expected, actual)
    }

    fn look_up(&self, who: Who) -> Result<(), String> {
        let actual = self.store().receipt(&who.slot());
        if self.oracle.denied == Some(who.tenant) {
            self.tally.count("answer", "looked up and denied");
            ensure!(matches!(actual, Err(Error::Denied)), "denied, but {actual:?}");
            return Ok(());
        }
        match self.oracle.known(who) {
            None => {
                self.tally.count("answer", "no receipt");
                ensure!(matches!(actual, Ok(None)), "nothing is stored, but {actual:?}");
                Ok(())
            }
            Some(stored) if self.oracle.is_replayable(stored) => {
                self.tally.count("answer", "a receipt");
                let receipt = actual.map_err(|error| error.to_string())?.ok_or("there should be a receipt")?;
                self.check(who, &Answer::Replayed(stored.clone()), Ok(receipt))
            }
            Some(stored) => {
                self.tally.count("answer", "looked up and gone");
                let gone = Answer::Gone(stored.clone());
                self.check(who, &gone, actual.map(|found| found.expect("not nothing: it is gone")))
            }
        }
    }

    fn scan(&self, span: Span, direction: Direction) -> Result<(), String> {
        let (notes, cells) =
            self.store().read(|view| (span.read_notes(view, direction), span.read_cells(view, direction)));
        let (notes, cells) = (notes.map_err(|error| error.to_string())?, cells.map_err(|error| error.to_string())?);
        let expected = span.notes(&self.oracle.tables, direction);
        ensure!(notes == expected, "the notes are {notes:?}, not {expected:?}");
        let expected = span.cells(&self.oracle.tables, direction);
        ensure!(cells == expected, "the cells are {cells:?}, not {expected:?}");
        Ok(())
    }

    fn hold(&mut self) {
        if self.held.len() < HELD_MAX {
            let held = Held {
                view: self.store().view(),
                tables: self.oracle.tables.clone(),
                position: self.store().view().position(),
            };
            self.held.push(held);
        }
    }

    /// What was held shows what it showed, or, once its store is closed, an error.
    fn compare_held(&mut self, is_closed: bool) -> Result<(), String> {
        for held in &self.held {
            ensure!(held.view.position() == held.position, "the view moved to {:?}", held.view.position());
            match Tables::read(&held.view) {
                Ok(tables) => ensure!(tables == held.tables, "a held view shows {tables:?}, not {:?}", held.tables),
                Err(error) => ensure!(is_closed, "a held view cannot be read: {error}"),
            }
            self.tally.count("answer", if is_closed { "view of a closed store" } else { "view unchanged" });
        }
        Ok(())
    }

    fn follow(&mut self, from_oldest: bool) -> Result<(), String> {
        self.learn()?;
        if from_oldest || self.follower.is_none() {
            let last = self.followed.checked_sub(1).map(|last| self.oracle.lines[last].position);
            let start = match last {
                Some(position) if !from_oldest => LogStart::After(self.own.borrow().with(position)),
                Some(_) | None => {
                    self.followed = 0;
                    LogStart::Oldest
                }
            };
            self.follower = Some(self.store().log(start).map_err(|error| error.to_string())?);
        }
        let follower = self.follower.as_mut().expect("it was just made");
        while let Some(entry) = follower.try_next().map_err(|error| error.to_string())? {
            if is_own(&entry) {
                continue;
            }
            let mut entry = entry;
            entry.position = self.own.borrow().without(entry.position);
            let line = self.oracle.lines.get(self.followed).ok_or_else(|| format!("too many: {entry:?}"))?;
            compare::entry(&entry, line, self.tally)?;
            self.followed += 1;
        }
        let entries = self.oracle.lines.len();
        ensure!(self.followed == entries, "the log ends after {} of {entries} entries", self.followed);
        Ok(())
    }

    fn reopen(&mut self, stop: Stop) -> Result<(), String> {
        self.compare_held(false)?;
        self.follower = None;
        *self.own.borrow_mut() = OwnEntries::default();
        let opened = match stop {
            Stop::Close => self.bed.close_and_reopen(),
            Stop::Kill => self.bed.kill_and_reopen(),
            Stop::Crash(seed) => self.bed.crash_and_reopen(&Survival::Random(seed)),
        };
        opened.map_err(|error| format!("it does not open: {error}"))?;
        self.oracle.reopen();
        self.compare_held(true)?;
        self.held.clear();
        self.compare_all()
    }

    /// Looks at new entries for those that are the store's own.
    fn learn(&self) -> Result<(), String> {
        let mut own = self.own.borrow_mut();
        if own.follower.is_none() {
            own.follower = Some(self.store().log(LogStart::Oldest).map_err(|error| error.to_string())?);
        }
        let follower = own.follower.as_mut().expect("it was just made");
        let mut sequences = Vec::new();
        while let Some(entry) = follower.try_next().map_err(|error| error.to_string())? {
            sequences.extend(is_own(&entry).then_some(entry.position.sequence));
        }
        if !sequences.is_empty() {
            self.tally.count("answer", "entry of the store's own");
        }
        own.sequences.extend(sequences);
        Ok(())
    }

    /// The tables, the end of the log and the time.
    fn compare_all(&self) -> Result<(), String> {
        let tables = self.store().read(Tables::read).map_err(|error| error.to_string())?;
        ensure!(tables == self.oracle.tables, "the tables are {tables:?}, not {:?}", self.oracle.tables);
        self.learn()?;
        let position = self.store().view().position();
        let lines = position.map_or(0, |position| self.own.borrow().lines_up_to(position.sequence));
        ensure!(lines == self.oracle.lines.len() as u64, "the store is at {position:?}");
        ensure!(self.store().now().0 == self.oracle.now, "the store's time is {}", self.store().now());
        Ok(())
    }
}

fn is_own(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Swept { .. } | EntryKind::Maintenance { name: "activity" })
}

impl OwnEntries {
    /// How many of the entries up to a sequence the model has lines for.
    fn lines_up_to(&self, sequence: u64) -> u64 {
        sequence - self.sequences.partition_point(|own| *own <= sequence) as u64
    }

    /// A position as the model counts.
    fn without(&self, position: Position) -> Position {
        Position { sequence: self.lines_up_to(position.sequence), ..position }
    }

    /// A position of the model as the store counts.
    fn with(&self, position: Position) -> Position {
        let mut sequence = position.sequence;
        for own in &self.sequences {
            sequence += u64::from(*own <= sequence);
        }
        Position { sequence, ..position }
    }
}

/// A program that deploys one of the releases, with a guard that says no to one tenant.
fn builder(limits: Limits, release: &Arc<AtomicUsize>, denied: &Arc<AtomicU8>) -> impl Fn() -> StoreBuilder + use<> {
    let (release, denied) = (Arc::clone(release), Arc::clone(denied));
    move || {
        let denied = Arc::clone(&denied);
        Store::builder()
            .operation(&ORDERS[release.load(Ordering::SeqCst)])
            .operation(&PING)
            .table(&NOTES)
            .table(&CELLS)
            .limits(limits.clone())
            .identity_seed(7)
            .replay_guard(move |slot, _| {
                let tenant = TENANTS.get(usize::from(denied.load(Ordering::SeqCst)));
                if tenant.is_some_and(|tenant| *tenant == slot.tenant.as_str()) {
                    Access::Denied
                } else {
                    Access::Allowed
                }
            })
    }
}

const fn kind(step: &Step) -> &'static str {
    match step {
        Step::Execute(_) => "execute",
        Step::Batch { .. } => "batch",
        Step::Write(_) => "write",
        Step::LookUp(_) => "look up",
        Step::Scan(..) => "scan",
        Step::Hold => "hold a view",
        Step::Compare => "compare held views",
        Step::Guard(_) => "guard",
        Step::Advance(_) => "time passes",
        Step::Settle => "settle",
        Step::Follow { .. } => "follow the log",
        Step::Deploy(_) => "deploy",
        Step::Reopen(Stop::Close) => "close and reopen",
        Step::Reopen(Stop::Kill) => "kill and reopen",
        Step::Reopen(Stop::Crash(_)) => "crash and reopen",
    }
}

type Answered = Result<Receipt, Error>;
