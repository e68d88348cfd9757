//! Where a run stands, on standard error: one line that is rewritten in a terminal, else a line for each round.

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

/// Told after each turn.
pub(crate) struct Progress {
    started: Instant,
    slices: usize,
    done: usize,
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new(slices: usize) -> Self {
        Self { started: Instant::now(), slices, done: 0, is_terminal: std::io::stderr().is_terminal() }
    }

    /// A line of its own.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        eprintln!("{text}");
    }

    /// A turn begins.
    pub(crate) fn turn(&mut self, text: &str) {
        if self.is_terminal {
            let seconds = self.started.elapsed().as_secs();
            eprint!("\r\x1b[K[{}/{}, {seconds} s] {text}", self.done + 1, self.slices);
            // A terminal that cannot be written to has nobody in front of it.
            drop(std::io::stderr().flush());
        }
        self.done += 1;
    }

    /// A round has ended.
    pub(crate) fn round(&self, round: u32, rounds: u32) {
        if !self.is_terminal {
            eprintln!("round {} of {rounds} done after {} s", round + 1, self.started.elapsed().as_secs());
        }
    }

    fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
