//! What a killed process does: several threads execute operations and say what was answered, until they are killed.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil::{
    Error, Execution, Limits, OpenError, Operation, OperationType, Receipt, Reply, Slot, Store, Table, Tx,
};

pub(crate) const MAKE: OperationType = OperationType::new("make");
/// A row for each operation, with its number and a note of seeded length.
pub(crate) const MADE: Table<String, (u64, String)> = Table::new("made");
/// How many each thread made: an operation that is done twice shows here.
pub(crate) const TOTALS: Table<u32, u64> = Table::new("totals");

/// Names the store to the other process; where it is not set, nobody is one.
pub(crate) const STORE: &str = "COUNTERFOIL_TEST_STORE";
/// Number of the process, which begins its keys.
pub(crate) const NUMBER: &str = "COUNTERFOIL_TEST_CHILD";
/// So many operations are begun before the store is closed, with the threads still at work.
pub(crate) const CLOSE_AFTER: &str = "COUNTERFOIL_TEST_CLOSE_AFTER";
/// Begins every line that is the child's own and not the test harness's.
pub(crate) const SAID: &str = "child: ";
/// Operations are in flight from so many threads.
pub(crate) const THREADS: u32 = 4;

/// One operation of one thread of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) child: u64,
    pub(crate) thread: u32,
    pub(crate) number: u64,
}

impl Key {
    pub(crate) fn text(self) -> String {
        format!("{}-{}-{}", self.child, self.thread, self.number)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let child = parts.next()?.parse().ok()?;
        let thread = parts.next()?.parse().ok()?;
        Some(Self { child, thread, number: parts.next()?.parse().ok()? })
    }

    pub(crate) fn slot(self) -> Slot {
        Slot::new("acme", "alice", MAKE.name(), self.text()).expect("names are valid")
    }

    fn request(self) -> Operation {
        let request = MAKE.request("acme", "alice", self.text()).expect("names are valid");
        request.json(&(self.thread, self.number)).expect("numbers are JSON")
    }

    /// Mostly short, and now and then so long that segments end.
    pub(crate) fn note(self) -> String {
        let len = if self.number % 16 == 7 { 60_000 } else { 200 + self.number % 700 };
        "n".repeat(usize::try_from(len).expect("a short note"))
    }

    /// Executed a second time it would fail, since the row is there.
    pub(crate) fn execute(self, store: &Store) -> Result<Receipt, Error> {
        store.execute(self.request(), move |tx: &Tx<'_>| {
            tx.table(&MADE)?.insert_new(self.text(), &(self.number, self.note()))?;
            let totals = tx.table(&TOTALS)?;
            let total = totals.get(self.thread)?.unwrap_or(0) + 1;
            totals.put(self.thread, &total)?;
            Ok(Reply::created().resource_id(self.text()).json(&total)?)
        })
    }
}

/// Limits so small that folds, checkpoints and new segments happen within a hundred operations. All else is as in
/// production.
pub(crate) fn open(directory: &Path) -> Result<Store, OpenError> {
    let mut limits = Limits::default();
    limits.fold_bytes = 16 * 1024;
    limits.checkpoint_log_bytes = 96 * 1024;
    limits.cache_bytes = 256 * 1024;
    Store::builder().operation(&MAKE).table(&MADE).table(&TOTALS).limits(limits).open(directory)
}

/// A line of its own, whatever the harness has begun to write, in one piece. With nobody listening this panics, which
/// ends the process.
fn say(text: &str) {
    std::io::stdout().lock().write_all(format!("\n{SAID}{text}\n").as_bytes()).expect("somebody listens");
}

fn number_from(variable: &str) -> u64 {
    let text = std::env::var(variable).expect("the parent set it");
    text.parse().expect("the parent wrote a number")
}

/// Opens, works and maybe closes. By itself, without a parent that names a store, it does nothing.
pub(crate) fn work_until_killed() {
    let Some(directory): Option<OsString> = std::env::var_os(STORE) else { return };
    // A parent that is gone leaves nobody behind.
    std::thread::spawn(|| {
        drop(std::io::stdin().read_to_end(&mut Vec::new()));
        std::process::exit(0);
    });
    let (child, close_after) = (number_from(NUMBER), number_from(CLOSE_AFTER));
    say("opening");
    let store = open(Path::new(&directory)).expect("nobody has it open");
    say("open");
    let begun = AtomicU64::new(0);
    let due = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, begun, due) = (store.clone(), &begun, &due);
            scope.spawn(move || {
                for number in 1.. {
                    if begun.fetch_add(1, Ordering::Relaxed) + 1 == close_after {
                        *due.0.lock().expect("nobody panics") = true;
                        due.1.notify_all();
                    }
                    if !answer(&store, Key { child, thread, number }) {
                        return;
                    }
                }
            });
        }
        let guard = due.0.lock().expect("nobody panics");
        drop(due.1.wait_while(guard, |due| !*due).expect("nobody panics"));
        say("closing");
        store.close().expect("the disk is sound");
        say("closed");
    });
}

/// Executes one operation and says what was answered. Not after the end.
fn answer(store: &Store, key: Key) -> bool {
    match key.execute(store) {
        Ok(receipt) => {
            let position = receipt.position();
            let total: u64 = serde_json::from_slice(receipt.reply().body()).expect("a number");
            say(&format!("ack {} {} {} {total}", key.text(), position.epoch, position.sequence));
            // Some ask twice, as clients do whose answer got lost.
            if key.number % 8 == 3 {
                match key.execute(store) {
                    Ok(again) if again.is_replayed() && again.position() == position => {}
                    Err(Error::Closed) => {}
                    other => say(&format!("violation {} asked again: {other:?}", key.text())),
                }
            }
            true
        }
        Err(error) => {
            match error.execution() {
                Execution::NotExecuted => say(&format!("no {}", key.text())),
                Execution::Executed | Execution::Unknown => say(&format!("violation {}: {error}", key.text())),
            }
            false
        }
    }
}
