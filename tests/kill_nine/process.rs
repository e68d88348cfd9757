//! The parent's side: starts a process, listens, and kills it at a seeded moment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use counterfoil::Position;

use crate::child::{CLOSE_AFTER, Key, NUMBER, SAID, STORE};

/// The function below `main.rs` that is the other process.
const FUNCTION: &str = "child_works_until_it_is_killed";

/// What a process was doing, by what it last said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Opening,
    Working,
    Closing,
}

/// Seeded numbers (SplitMix64).
#[derive(Debug)]
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Turns for nothing: as often few as many, from none to about ten milliseconds.
    fn spin(&mut self) {
        let turns = self.next() >> (40 + self.below(24));
        (0..turns).for_each(|_| std::hint::spin_loop());
    }
}

/// What was heard of one process until it was dead.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) acknowledged: Vec<(Key, Position, u64)>,
    pub(crate) refused: Vec<Key>,
    pub(crate) violations: Vec<String>,
    /// None if it had ended by itself before it was killed.
    pub(crate) killed: Option<Phase>,
    said: Vec<String>,
}

impl Heard {
    fn take(&mut self, line: &str) {
        let mut words = line.split(' ');
        match (words.next(), words.next().and_then(Key::parse)) {
            (Some("ack"), Some(key)) => {
                let mut number = || words.next().and_then(|word| word.parse().ok()).expect("three numbers");
                let position = Position { epoch: number(), sequence: number() };
                self.acknowledged.push((key, position, number()));
            }
            (Some("no"), Some(key)) => self.refused.push(key),
            (Some("violation"), _) => self.violations.push(line.to_owned()),
            _ => self.said.push(line.to_owned()),
        }
    }

    fn phase(&self) -> Option<Phase> {
        match self.said.last().map(String::as_str) {
            None | Some("opening") => Some(Phase::Opening),
            Some("open") => Some(Phase::Working),
            Some("closing") => Some(Phase::Closing),
            Some(_) => None,
        }
    }
}

/// This program once more. It is never left behind.
#[derive(Debug)]
struct OtherProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl OtherProcess {
    fn start(store: &Path, number: u64, close_after: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["--exact", FUNCTION, "--nocapture"])
            .env(STORE, store)
            .env(NUMBER, number.to_string())
            .env(CLOSE_AFTER, close_after.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program starts");
        let output = BufReader::new(child.stdout.take().expect("it was asked for"));
        Self { child, output }
    }

    /// The next line that the child says whole; none once it has ended.
    fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the child writes text");
            let whole = line.strip_suffix('\n')?;
            if let Some(said) = whole.strip_prefix(SAID) {
                return Some(said.to_owned());
            }
        }
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // Only the child itself, and nothing if it has ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts a process and kills it (SIGKILL on unix) in the phase that is meant, at a moment that the seed decides.
pub(crate) fn run_and_kill(store: &Path, number: u64, meant: Phase, seeded: &mut Seeded) -> Heard {
    let close_after = if meant == Phase::Closing { 1 + seeded.below(120) } else { u64::MAX };
    let acknowledgements = if meant == Phase::Working { 1 + seeded.below(150) } else { 0 };
    let mut process = OtherProcess::start(store, number, close_after);
    let mut heard = Heard::default();
    let is_time = |heard: &Heard| match meant {
        Phase::Opening => !heard.said.is_empty(),
        Phase::Working => heard.acknowledged.len() as u64 >= acknowledgements,
        Phase::Closing => heard.said.iter().any(|said| said == "closing"),
    };
    while !is_time(&heard) {
        let Some(line) = process.line() else { break };
        heard.take(&line);
    }
    seeded.spin();
    process.child.kill().expect("it is ours to kill");
    process.child.wait().expect("it is dead");
    // What it had said and nobody had read yet counts as well.
    while let Some(line) = process.line() {
        heard.take(&line);
    }
    heard.killed = heard.phase();
    heard
}
