//! Bytes as the life of a store: operations of every outcome, faults, crashes and reopenings, against what was told.

use std::collections::BTreeMap;
use std::time::Duration;

use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival, VirtualClock, WALL_AT_START};
use counterfoil::{
    Decision, Error, Execution, Failure, Limits, Operation, OperationType, Position, Receipt, Reply, Store, Table, Tx,
};

use super::input::Input;

const ADD: OperationType = OperationType::new("add");
/// How often each key was executed and not rejected.
const RUNS: Table<u64, u64> = Table::new("runs");
const TOTALS: Table<u64, u64> = Table::new("totals");

/// Longer lives show nothing that shorter ones do not.
const STEPS_MAX: usize = 60;
const KEYS: u8 = 12;
const LARGE_REPLY_BYTES: usize = 140 * 1024;

/// What callers were told about a key.
#[derive(Debug)]
struct Told {
    receipt: Option<(Position, Reply)>,
    /// Never anything else than that it was not executed.
    never_executed: bool,
}

struct Life {
    disk: SimDisk,
    clock: VirtualClock,
    limits: Limits,
    store: Store,
    told: BTreeMap<u64, Told>,
}

/// Lives the life that the bytes say, and panics if anything that was answered does not hold.
pub(crate) fn operations(input: &[u8]) {
    let mut input = Input(input);
    let mut life = Life::begin(input.byte());
    for _ in 0..STEPS_MAX {
        if input.is_done() {
            break;
        }
        life.step(&mut input);
    }
    life.end(&survival(&mut input));
}

fn operation(key: u64, content: u64) -> Operation {
    let request = ADD.request("acme", "alice", format!("key-{key}")).expect("a valid slot");
    request.json(&content).expect("a valid request")
}

/// What a key does is its own: a retry is the same operation.
fn closure(key: u64) -> impl FnOnce(&Tx<'_>) -> Result<Decision, Failure> + Send {
    move |tx| {
        let runs = tx.table(&RUNS)?;
        runs.put(key, &(runs.get(key)?.unwrap_or(0) + 1))?;
        let totals = tx.table(&TOTALS)?;
        let total = totals.get(0)?.unwrap_or(0) + 1;
        totals.put(0, &total)?;
        match key % 6 {
            2 => Ok(Decision::Reject(Reply::refused())),
            3 => Err(Failure::message("not today")),
            4 => std::panic::resume_unwind(Box::new("an operation's own panic")),
            5 => Ok(Reply::ok().bytes("a/b", vec![7; LARGE_REPLY_BYTES]).into()),
            _ => Ok(Reply::created().resource_id(format!("{key}")).json(&total)?.into()),
        }
    }
}

fn survival(input: &mut Input<'_>) -> Survival {
    match input.small(7) {
        0 => Survival::Nothing,
        1 => Survival::Everything,
        2 => Survival::Prefix(usize::from(input.byte())),
        3 => Survival::OnlyLast,
        4 => Survival::AllButOne(usize::from(input.byte())),
        5 => Survival::Torn(u64::from(input.byte())),
        _ => Survival::Random(u64::from(input.byte())),
    }
}

impl Life {
    fn begin(shape: u8) -> Self {
        let (disk, clock) = (SimDisk::new(), VirtualClock::new(WALL_AT_START));
        let mut limits = Limits::default();
        limits.cache_bytes = 64 * 1024;
        if shape & 1 != 0 {
            limits.fold_bytes = 1;
        }
        if shape & 2 != 0 {
            limits.checkpoint_log_bytes = 1;
        }
        let store = open(&disk, &clock, &limits);
        Self { disk, clock, limits, store, told: BTreeMap::new() }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.small(14) {
            0..=2 => {
                let key = input.small(KEYS);
                let answer = self.store.execute(operation(key, key), closure(key));
                self.note(key, answer);
            }
            3 => self.batch(input),
            4 => self.conflict(input.small(KEYS)),
            5 => drop(self.store.step().expect("the store is open")),
            6 => while self.store.step().expect("the store is open") {},
            7 => self.clock.advance(Duration::from_millis(input.small(250))),
            8 => {
                self.disk.clear_faults();
                let next = self.disk.crash(&survival(input));
                self.reopen(next);
            }
            9 => {
                self.disk.clear_faults();
                let next = self.disk.kill();
                self.reopen(next);
            }
            10 => self.close_and_open(),
            11 => self.disk.fail(fault(input)),
            12 => self.disk.clear_faults(),
            _ => {
                let key = input.small(KEYS);
                match self.store.submit(operation(key, key), closure(key)) {
                    // What is queued goes; what was answered from its receipt does not.
                    Ok(ticket) => match ticket.cancel() {
                        Ok(()) => self.note(key, Err(Error::Cancelled)),
                        Err(ticket) => self.note(key, ticket.wait()),
                    },
                    Err(error) => self.note(key, Err(error)),
                }
            }
        }
    }

    /// Submitted together; the same key may come twice.
    fn batch(&mut self, input: &mut Input<'_>) {
        let keys: Vec<u64> = (0..=input.small(3)).map(|_| input.small(KEYS)).collect();
        let submit = |key: u64| self.store.submit(operation(key, key), closure(key));
        let tickets: Vec<_> = keys.iter().map(|key| (*key, submit(*key))).collect();
        self.store.step().expect("the store is open");
        for (key, ticket) in tickets {
            let answer = ticket.and_then(counterfoil::Ticket::wait);
            self.note(key, answer);
        }
    }

    /// Another request under a key that was answered is a conflict, or cannot be said while the store is stopped.
    fn conflict(&mut self, key: u64) {
        let known = self.told.get(&key).is_some_and(|told| told.receipt.is_some());
        if known {
            let answer = self.store.execute(operation(key, key + 1000), |_| -> Result<Reply, _> {
                Err(Failure::message("a key that was answered is executed again"))
            });
            assert!(
                matches!(answer, Err(Error::Conflict { .. } | Error::Poisoned(_) | Error::Corrupt(_))),
                "key {key}: {answer:?}"
            );
        }
    }

    fn note(&mut self, key: u64, answer: Result<Receipt, Error>) {
        let told = self.told.entry(key).or_insert(Told { receipt: None, never_executed: true });
        match answer {
            Ok(receipt) => {
                let heard = (receipt.position(), receipt.into_reply());
                let first = told.receipt.get_or_insert_with(|| heard.clone());
                assert_eq!(*first, heard, "key {key}: a replay is the first answer");
                told.never_executed = false;
            }
            Err(error) => match error.execution() {
                Execution::NotExecuted => {}
                Execution::Unknown => told.never_executed = false,
                Execution::Executed => panic!("key {key}: {error:?} cannot occur here"),
            },
        }
    }

    fn close_and_open(&mut self) {
        self.disk.clear_faults();
        let closed = self.store.clone().close();
        assert!(closed.is_ok() || self.disk.faults_struck() > 0, "{closed:?}");
        // After a failure the next process finds what the cache has.
        let next = if closed.is_ok() { self.disk.clone() } else { self.disk.kill() };
        self.reopen(next);
    }

    fn reopen(&mut self, next: SimDisk) {
        self.disk = next;
        self.store = open(&self.disk, &self.clock, &self.limits);
        self.check();
    }

    /// What was told holds: receipts with their one execution, and nothing else.
    fn check(&self) {
        let mut executed = 0;
        for (key, told) in &self.told {
            let receipt = self.store.receipt(operation(*key, *key).slot()).expect("receipts can be read");
            let runs = self.store.read(|view| view.table(&RUNS).expect("declared").get(*key).expect("a row"));
            let counts = receipt.as_ref().is_some_and(|receipt| !receipt.is_rejected());
            assert_eq!(runs, counts.then_some(1), "key {key}: one execution for one receipt");
            executed += runs.unwrap_or(0);
            let stored = receipt.map(|receipt| (receipt.position(), receipt.into_reply()));
            assert!(told.receipt.is_none() || told.receipt == stored, "key {key} was answered and is not there");
            assert!(!told.never_executed || stored.is_none(), "key {key} was executed after it was said not to be");
        }
        let total = self.store.read(|view| view.table(&TOTALS).expect("declared").get(0).expect("a row"));
        assert_eq!(total.unwrap_or(0), executed, "each execution counted once");
    }

    /// The last crash; then everything is tried once more.
    fn end(mut self, survival: &Survival) {
        self.disk.clear_faults();
        let next = self.disk.crash(survival);
        self.reopen(next);
        for key in 0..u64::from(KEYS) {
            let there = self.store.receipt(operation(key, key).slot()).expect("receipts can be read").is_some();
            let answer = self.store.execute(operation(key, key), closure(key));
            match &answer {
                Ok(receipt) => assert_eq!(receipt.is_replayed(), there, "key {key}"),
                Err(error) => assert!(matches!(error, Error::Failed(_) | Error::Panicked { .. }), "{key}: {error:?}"),
            }
            self.note(key, answer);
        }
        self.check();
        self.store.assert_sound();
        self.store.close().expect("it closes");
    }
}

fn open(disk: &SimDisk, clock: &VirtualClock, limits: &Limits) -> Store {
    let builder = Store::builder().operation(&ADD).table(&RUNS).table(&TOTALS);
    let builder = builder.limits(limits.clone()).clock(clock.clone()).manual().identity_seed(1);
    builder.open_in(disk).expect("a disk that works holds a store")
}

fn fault(input: &mut Input<'_>) -> Fault {
    let kinds =
        [CallKind::Write, CallKind::Sync, CallKind::SetLen, CallKind::Rename, CallKind::SyncDir, CallKind::Create];
    let errors = [
        FaultError::Eio,
        FaultError::Enospc,
        FaultError::Eintr,
        FaultError::ShortWrite,
        FaultError::EioPartWritten,
        FaultError::SyncDropsData,
        FaultError::SyncErrorsButDurable,
    ];
    let names = [None, Some("log/".to_owned()), Some("state.redb".to_owned())];
    Fault {
        on: kinds[input.below(kinds.len())],
        nth: 1 + input.small(6),
        name_contains: names[input.below(names.len())].clone(),
        error: errors[input.below(errors.len())],
        permanent: input.byte() & 1 != 0,
    }
}
