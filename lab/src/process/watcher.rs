//! The watcher: a process that nobody pauses and that ends the children when the supervisor is gone.
//!
//! It is told of each child before anything else is done with it. When its standard input ends without the word that
//! all is done, it kills whoever of them is still there, paused or not. It compares start times, so a foreign process
//! that has an old pid by now is left alone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::spawn::{Child, ChildReport, ChildSpec};
use super::sys::{ProcessIdentity, Signal};

/// The hidden command that runs it.
pub const COMMAND: &str = "watcher";

/// How long the watcher goes on looking for children that do not go.
const ENDING_MAX: Duration = Duration::from_secs(2);

const DONE: &str = "done";

/// The supervisor's hold on its watcher.
#[derive(Debug, Clone)]
pub struct Watcher {
    child: Child,
}

impl Watcher {
    /// Starts it, and waits until it watches.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn start(program: PathBuf, log: PathBuf) -> io::Result<Self> {
        let (sender, reports) = std::sync::mpsc::channel();
        let spec = ChildSpec { name: COMMAND.to_owned(), program, arguments: vec![OsString::from(COMMAND)], log };
        let child = Child::spawn(spec, move |report| drop(sender.send(report)))?;
        match reports.recv_timeout(Duration::from_secs(10)) {
            Ok(ChildReport::Line(_)) => Ok(Self { child }),
            Ok(ChildReport::Ended(_)) | Err(_) => {
                Err(io::Error::other(format!("the watcher did not start{}", child.last_words())))
            }
        }
    }

    /// Has a child watched.
    ///
    /// # Errors
    ///
    /// If the watcher is gone.
    pub fn watch(&self, child: ProcessIdentity) -> io::Result<()> {
        self.child.tell(&format!("+ {} {}", child.pid, child.started))
    }

    /// The child was waited for.
    ///
    /// # Errors
    ///
    /// If the watcher is gone.
    pub fn forget(&self, child: ProcessIdentity) -> io::Result<()> {
        self.child.tell(&format!("- {} {}", child.pid, child.started))
    }

    /// All children were waited for: it may go.
    pub fn dismiss(&self) {
        // If it is gone already, there is nobody to tell.
        drop(self.child.tell(DONE));
        self.child.ask_to_end();
    }

    /// The process.
    #[must_use]
    pub const fn child(&self) -> &Child {
        &self.child
    }
}

/// Runs the watcher until its supervisor is done or gone.
///
/// # Errors
///
/// If it cannot say that it watches.
pub fn run() -> io::Result<()> {
    println!("watching");
    io::stdout().flush()?;
    let children = children_left(io::stdin().lock());
    end(children);
    Ok(())
}

/// Reads who is to be watched until the input ends; what it gives back is to be ended.
fn children_left(input: impl BufRead) -> BTreeSet<ProcessIdentity> {
    let mut children = BTreeSet::new();
    for line in input.lines().map_while(Result::ok) {
        if line == DONE {
            return BTreeSet::new();
        }
        let mut words = line.split(' ');
        let sign = words.next();
        let (Some(Ok(pid)), Some(Ok(started))) = (words.next().map(str::parse), words.next().map(str::parse)) else {
            continue;
        };
        let child = ProcessIdentity { pid, started };
        match sign {
            Some("+") => drop(children.insert(child)),
            Some("-") => drop(children.remove(&child)),
            Some(_) | None => {}
        }
    }
    children
}

fn end(children: BTreeSet<ProcessIdentity>) {
    let began = Instant::now();
    let mut left = children;
    while !left.is_empty() && began.elapsed() < ENDING_MAX {
        left.retain(|child| match child.signal(Signal::Kill) {
            Ok(()) => child.is_running(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        });
        if !left.is_empty() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_announced_and_not_forgotten_is_ended_when_the_input_ends() {
        let left = children_left("+ 10 100\n+ 11 101\n- 10 100\nnonsense\n+ 12\n".as_bytes());
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [ProcessIdentity { pid: 11, started: 101 }]);
    }

    #[test]
    fn nobody_is_ended_after_the_word_that_all_is_done() {
        assert!(children_left("+ 10 100\ndone\n".as_bytes()).is_empty());
    }

    #[test]
    fn a_foreign_process_that_has_an_old_pid_is_left_alone() {
        let own = ProcessIdentity::own().unwrap();
        // Were the start time not compared, this would end the test.
        end(BTreeSet::from([ProcessIdentity { started: own.started - 1, ..own }]));
        assert!(own.is_running());
    }
}
