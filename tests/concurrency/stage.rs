//! A store, what its callers heard, and what must be true of both in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use counterfoil::testing::{SimDisk, VirtualClock, WALL_AT_START};
use counterfoil::{
    EntryKind, Error, Execution, Failure, Limits, LogStart, OpenError, Operation, OperationType, Position, Receipt,
    Reply, Store, StoreBuilder, Table, Tx,
};

use crate::explore::{Chance, once, thread};

const ADD: OperationType = OperationType::new("add");
/// How often each key was executed.
const RUNS: Table<u64, u64> = Table::new("runs");
/// Under 0 the number of executions, which every execution changes.
const TOTALS: Table<u64, u64> = Table::new("totals");
/// How often each plain write was done.
const WRITES: Table<u64, u64> = Table::new("writes");

/// Part of the name of the segment that an opening writes to first, and of none that is being prepared.
pub(crate) const ACTIVE: &str = "-00000000.seg";

/// More than half of the first segment.
const LARGE_REPLY_BYTES: usize = 140 * 1024;

/// What callers heard of one key, or of one plain write.
#[derive(Debug)]
struct Answers {
    receipt: Option<(Position, Reply)>,
    /// Every submission was answered, and each with "not executed".
    never_executed: bool,
}

#[derive(Debug, Default)]
struct Heard {
    keys: BTreeMap<u64, Answers>,
    writes: BTreeMap<u64, Answers>,
    /// What readers saw: the last sequence of a view and the total in it.
    views: BTreeSet<(u64, u64)>,
    /// The entries that followers were shown.
    followed: BTreeSet<Position>,
}

/// One round: a store on a disk of its own, and everything that was said.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) disk: SimDisk,
    clock: VirtualClock,
    limits: Limits,
    heard: Arc<Mutex<Heard>>,
    /// A closure ran after the log had failed.
    ran_too_late: Arc<AtomicBool>,
}

fn builder(clock: &VirtualClock) -> StoreBuilder {
    let builder = Store::builder().operation(&ADD).table(&RUNS).table(&TOTALS).table(&WRITES);
    builder.identity_seed(7).clock(clock.clone())
}

static PREPARED: OnceLock<SimDisk> = OnceLock::new();

/// Makes the store from which every round starts.
pub(crate) fn prepare() {
    PREPARED.get_or_init(|| {
        let disk = SimDisk::new();
        let first = disk.clone();
        once(move || {
            let store = builder(&VirtualClock::new(WALL_AT_START)).manual().open_in(&first).expect("it opens");
            store.close().expect("it closes");
        });
        disk
    });
}

impl Stage {
    /// With limits so small that folds, checkpoints, full queues and waiting for the folder happen, or not.
    pub(crate) fn new(chance: &mut Chance) -> Self {
        let mut limits = Limits::default();
        if chance.is(2) {
            limits.fold_bytes = 1;
            if chance.is(2) {
                limits.map_bytes_max = 1;
            }
        }
        if chance.is(2) {
            limits.checkpoint_log_bytes = 1;
        }
        if chance.is(3) {
            limits.queue_operations_max = 1 + usize::from(chance.is(2));
        }
        if chance.is(3) {
            limits.batch_operations_max = 1;
        }
        Self {
            disk: PREPARED.get().expect("it was prepared").kill(),
            clock: VirtualClock::new(WALL_AT_START),
            limits,
            heard: Arc::default(),
            ran_too_late: Arc::default(),
        }
    }

    pub(crate) fn fold_always(&mut self) {
        self.limits.fold_bytes = 1;
    }

    pub(crate) fn narrow_queue(&mut self) {
        self.limits.queue_operations_max = 1;
    }

    pub(crate) fn try_open(&self) -> Result<Store, OpenError> {
        builder(&self.clock).limits(self.limits.clone()).open_in(&self.disk)
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open().expect("the store opens")
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        // Never held while a thread waits for another.
        self.heard.lock().expect("no panic")
    }

    pub(crate) fn operation(key: u64) -> Operation {
        let tenant = if key.is_multiple_of(2) { "acme" } else { "bolt" };
        let request = ADD.request(tenant, "alice", format!("key-{key}")).expect("a valid slot");
        request.json(&key).expect("a valid request")
    }

    /// Counts its execution. Some replies are so large that the next segment is needed.
    pub(crate) fn closure(&self, key: u64) -> impl FnOnce(&Tx<'_>) -> Result<Reply, Failure> + Send + use<> {
        let stage = self.clone();
        move |tx| {
            stage.watch();
            let runs = tx.table(&RUNS)?;
            runs.put(key, &(runs.get(key)?.unwrap_or(0) + 1))?;
            let totals = tx.table(&TOTALS)?;
            let total = totals.get(0)?.unwrap_or(0) + 1;
            totals.put(0, &total)?;
            let reply = if key % 8 == 7 { Reply::ok().bytes("a/b", vec![7; LARGE_REPLY_BYTES]) } else { Reply::ok() };
            Ok(reply.resource_id(format!("{key}")))
        }
    }

    /// The body of a plain write.
    pub(crate) fn write(&self, number: u64) -> impl FnOnce(&Tx<'_>) -> Result<(), Failure> + Send + use<> {
        let stage = self.clone();
        move |tx| {
            stage.watch();
            let writes = tx.table(&WRITES)?;
            writes.put(number, &(writes.get(number)?.unwrap_or(0) + 1))?;
            Ok(())
        }
    }

    /// Once a write or sync of the log has failed, nothing runs any more. Faults are armed on the log or on the state
    /// file; of the latter the writer is told, and may work until then.
    fn watch(&self) {
        if self.disk.faults_struck() > 0 && self.limits.fold_bytes > 1 {
            self.ran_too_late.store(true, Ordering::SeqCst);
        }
    }

    /// Writes down an answer. Whoever has it sees it in the store, unless that is closed or without power.
    pub(crate) fn note(&self, store: &Store, key: u64, answer: Result<Receipt, Error>) {
        if answer.is_ok() {
            let seen = store.receipt(Self::operation(key).slot());
            assert!(!matches!(seen, Ok(None)), "key {key} was answered before it was shown");
        }
        self.note_quietly(key, answer);
    }

    /// The same without a handle of the store.
    pub(crate) fn note_quietly(&self, key: u64, answer: Result<Receipt, Error>) {
        let answer = answer.map(|receipt| (receipt.position(), receipt.into_reply()));
        note(&mut self.heard().keys, key, answer);
    }

    pub(crate) fn note_write(&self, number: u64, answer: Result<Position, Error>) {
        note(&mut self.heard().writes, number, answer.map(|position| (position, Reply::ok())));
    }

    /// A submission whose answer nobody waits for.
    pub(crate) fn note_unheard(&self, key: u64) {
        let mut heard = self.heard();
        heard.keys.entry(key).or_insert(Answers { receipt: None, never_executed: false }).never_executed = false;
    }

    /// Looks at the store as readers do. Without power, or once it is closed, there may be nothing to see.
    pub(crate) fn look(&self, store: &Store) {
        let view = store.view();
        let total = view.table(&TOTALS).and_then(|totals| totals.get(0));
        if let (Some(position), Ok(total)) = (view.position(), total) {
            self.heard().views.insert((position.sequence, total.unwrap_or(0)));
        }
    }

    pub(crate) fn note_followed(&self, position: Position) {
        self.heard().followed.insert(position);
    }

    /// Opens what is left and compares it with everything that was heard.
    pub(crate) fn check(&self, disk: &SimDisk) {
        assert!(!self.ran_too_late.load(Ordering::SeqCst), "a closure ran after the log had failed");
        let store = builder(&self.clock).manual().open_in(disk).expect("what is left opens");
        let entries = check_log(&store, &self.heard());
        let heard = self.heard();
        let mut executed = 0;
        for (key, answers) in &heard.keys {
            let receipt = store.receipt(Self::operation(*key).slot()).expect("receipts can be read");
            let runs = store.read(|view| view.table(&RUNS).expect("declared").get(*key).expect("a row"));
            assert_eq!(runs, receipt.as_ref().map(|_| 1), "key {key}: one execution for one receipt");
            check_answers(*key, answers, receipt.map(|receipt| (receipt.position(), receipt.into_reply())));
            executed += runs.unwrap_or(0);
        }
        for (number, answers) in &heard.writes {
            let done = store.read(|view| view.table(&WRITES).expect("declared").get(*number).expect("a row"));
            assert!(done.unwrap_or(1) == 1, "write {number} was done {done:?} times");
            let heard = answers.receipt.clone().filter(|(position, _)| entries.contains_key(position));
            assert!(heard == answers.receipt && (heard.is_none() || done.is_some()), "write {number} was answered");
            assert!(!answers.never_executed || done.is_none(), "write {number} was said not to be done");
        }
        assert_eq!(total(&store), executed, "each execution counted once");
        for key in heard.keys.keys() {
            let there = store.receipt(Self::operation(*key).slot()).expect("readable").is_some();
            let again = store.execute(Self::operation(*key), self.closure(*key)).expect("it answers");
            assert_eq!(again.is_replayed(), there, "key {key} is replayed if and only if it was there");
        }
        assert_eq!(total(&store), heard.keys.len() as u64, "after retrying everything is there once");
        store.assert_sound();
        store.close().expect("it closes");
    }
}

fn total(store: &Store) -> u64 {
    store.read(|view| view.table(&TOTALS).expect("declared").get(0).expect("a row")).unwrap_or(0)
}

fn note(all: &mut BTreeMap<u64, Answers>, key: u64, answer: Result<(Position, Reply), Error>) {
    let answers = all.entry(key).or_insert(Answers { receipt: None, never_executed: true });
    match answer {
        Ok(receipt) => {
            let first = answers.receipt.get_or_insert_with(|| receipt.clone());
            assert_eq!(*first, receipt, "key {key}: all hear the same");
            answers.never_executed = false;
        }
        Err(error) => match error.execution() {
            Execution::NotExecuted => {}
            Execution::Unknown => answers.never_executed = false,
            Execution::Executed => panic!("key {key}: {error:?} is not an answer that can occur here"),
        },
    }
}

fn check_answers(key: u64, answers: &Answers, stored: Option<(Position, Reply)>) {
    if let Some(heard) = &answers.receipt {
        assert_eq!(Some(heard), stored.as_ref(), "key {key}: what was answered is what is stored");
    }
    assert!(!answers.never_executed || stored.is_none(), "key {key} was executed and everybody was told it was not");
}

/// The entries of the log and what was seen of it: every view showed the state after an entry that is there.
fn check_log(store: &Store, heard: &Heard) -> BTreeMap<Position, u64> {
    let mut executions = 0;
    let mut entries = BTreeMap::new();
    let mut after = BTreeMap::new();
    for entry in store_log(store) {
        executions += u64::from(matches!(entry.kind, EntryKind::Operation { .. }));
        entries.insert(entry.position, executions);
        after.insert(entry.position.sequence, executions);
    }
    for (sequence, total) in &heard.views {
        assert_eq!(after.get(sequence), Some(total), "a view at {sequence} showed what is not there");
    }
    for position in &heard.followed {
        assert!(entries.contains_key(position), "a follower was shown {position}, which is not there");
    }
    entries
}

fn store_log(store: &Store) -> Vec<counterfoil::Entry> {
    let mut log = store.log(LogStart::Oldest).expect("the log can be read");
    let mut entries = Vec::new();
    while let Some(entry) = log.try_next().expect("an entry can be read") {
        entries.push(entry);
    }
    entries
}

/// Threads that belong to a round.
pub(crate) type Crowd = Vec<thread::JoinHandle<()>>;

pub(crate) fn join(crowd: Crowd) {
    crowd.into_iter().for_each(|one| one.join().expect("no assertion failed"));
}
