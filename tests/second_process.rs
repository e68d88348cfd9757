//! A second process of the operating system: the lock keeps it out, and SIGKILL takes away nothing that was answered.
//!
//! The test starts itself again as the other process, with a filter that names one function below.

#![cfg(feature = "store")]

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use counterfoil::{OpenError, OperationType, Receipt, Reply, Store, Table, Tx};

const COUNT: OperationType = OperationType::new("count");
const COUNTED: Table<String, u64> = Table::new("counted");

/// Names the store to the other process; where it is not set, nobody is one.
const STORE: &str = "COUNTERFOIL_TEST_STORE";
/// Begins every line that is the child's own and not the test harness's.
const SAID: &str = "child: ";
/// Operations of the child are in flight from so many threads.
const THREADS: usize = 4;
/// So many answers are heard before the child is killed.
const ANSWERS: usize = 400;

fn open(directory: &Path) -> Result<Store, OpenError> {
    Store::builder().operation(&COUNT).table(&COUNTED).open(directory)
}

/// Each key makes one row. Executed a second time it would fail, since the row is there.
fn count(store: &Store, key: &str) -> Receipt {
    let request = COUNT.request("acme", "alice", key).expect("names are valid").json(&key).expect("text is JSON");
    let row = key.to_owned();
    let closure = move |tx: &Tx<'_>| {
        let counted = tx.table(&COUNTED)?;
        let number = counted.len()?;
        counted.insert_new(row.clone(), &number)?;
        Ok(Reply::created().resource_id(format!("{row} is {number}")))
    };
    store.execute(request, closure).expect("it is executed once or replayed")
}

/// A line of its own, whatever the harness has begun to write.
fn say(text: &str) {
    println!("\n{SAID}{text}");
}

fn store_of_the_child() -> Option<Store> {
    let directory: OsString = std::env::var_os(STORE)?;
    Some(open(Path::new(&directory)).expect("the parent does not have it open"))
}

/// The other process of the first test. By itself it does nothing.
#[test]
fn child_holds_the_store() {
    let Some(_store) = store_of_the_child() else { return };
    say("open");
    // Until it is killed, or its parent is gone.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// The other process of the second test. By itself it does nothing.
#[test]
fn child_answers_until_it_is_killed() {
    let Some(store) = store_of_the_child() else { return };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &store;
            scope.spawn(move || {
                for number in 0..u64::MAX {
                    let key = format!("{thread}-{number}");
                    let receipt = count(store, &key);
                    // With nobody listening this panics, which ends the process.
                    say(&format!("{key}={}", receipt.reply().resource().unwrap()));
                }
            });
        }
    });
}

/// This program once more, running one of the functions above. It is never left behind.
struct OtherProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(function: &str, store: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", function, "--nocapture"])
            .env(STORE, store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        Self { child, output }
    }

    /// The next line that the child says whole; none once it has ended.
    fn heard(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the child writes text");
            let whole = line.strip_suffix('\n')?;
            if let Some(said) = whole.strip_prefix(SAID) {
                return Some(said.to_owned());
            }
        }
    }

    /// SIGKILL, and waits until it is dead.
    fn kill(&mut self) {
        self.child.kill().expect("it is ours to kill");
        self.child.wait().expect("it is dead");
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // Only the child itself, and nothing if it has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn another_process_is_refused_by_name_until_the_holder_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut holder = OtherProcess::start("child_holds_the_store", directory.path());
    assert_eq!(holder.heard().as_deref(), Some("open"));

    let refused = open(directory.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Held { .. }), "{refused}");
    let named = format!("process {} ", holder.child.id());
    assert!(refused.to_string().contains(&named), "{refused} names {named}");

    holder.kill();
    open(directory.path()).unwrap().close().unwrap();
}

#[test]
fn what_a_process_answered_before_it_was_killed_is_replayed_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let mut service = OtherProcess::start("child_answers_until_it_is_killed", directory.path());
    let mut answers = Vec::new();
    while answers.len() < ANSWERS {
        answers.push(service.heard().expect("it goes on until it is killed"));
    }
    service.kill();
    // What it had said and nobody had read yet counts as well.
    answers.extend(std::iter::from_fn(|| service.heard()));

    let store = open(directory.path()).unwrap();
    let mut next = [0; THREADS];
    for answer in &answers {
        let (key, resource) = answer.split_once('=').unwrap();
        let receipt = count(&store, key);
        assert!(receipt.is_replayed(), "{key} was answered and is executed again");
        assert_eq!(receipt.reply().resource(), Some(resource));
        next[key.split_once('-').unwrap().0.parse::<usize>().unwrap()] += 1;
    }
    // One more of each thread may have been executed, and not have been answered. Asked again it is there once.
    for (thread, number) in next.iter().enumerate() {
        let receipt = count(&store, &format!("{thread}-{number}"));
        assert!(!receipt.is_rejected());
    }
    let rows = store.read(|view| view.table(&COUNTED).unwrap().len().unwrap());
    assert_eq!(rows, (answers.len() + next.len()) as u64);
    assert!(store.verify().unwrap().is_clean());
    store.close().unwrap();
}
