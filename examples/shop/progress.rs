//! Progress on standard error: one line that is rewritten on a terminal, a few lines elsewhere.

use std::io::{IsTerminal, Write};

use crate::habits::Habit;

/// Shows how far the runs are.
#[derive(Debug)]
pub(crate) struct Meter {
    terminal: bool,
    orders: u64,
    kills: usize,
    run: usize,
    habit: Habit,
    /// Of the run, in percent, at the last sparse line.
    shown: u64,
}

/// Elsewhere than on a terminal, a line for each so many percent.
const SPARSE_PERCENT: u64 = 25;

impl Meter {
    pub(crate) fn new(orders: u64, kills: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { terminal, orders, kills, run: 0, habit: Habit::Counterfoil, shown: 0 }
    }

    pub(crate) const fn begin(&mut self, habit: Habit) {
        self.run += 1;
        self.habit = habit;
        self.shown = 0;
    }

    pub(crate) fn show(&mut self, settled: u64, kills: usize) {
        let percent = settled * 100 / self.orders.max(1);
        if !self.terminal {
            if percent < self.shown + SPARSE_PERCENT {
                return;
            }
            self.shown = percent - percent % SPARSE_PERCENT;
        }
        let (orders, kills_planned) = (self.orders, self.kills);
        let runs = Habit::ALL.len();
        let line = format!(
            "run {} of {runs}, {:<18}  {settled:>6} of {orders} orders settled, {kills} of {kills_planned} kills",
            self.run, self.habit
        );
        self.write(&line);
    }

    /// Clears the line, so that nothing is written over it.
    pub(crate) fn end(&self) {
        if self.terminal {
            self.write("");
        }
    }

    fn write(&self, line: &str) {
        let mut err = std::io::stderr().lock();
        // A progress line that cannot be written is not worth stopping for.
        drop(if self.terminal { write!(err, "\r\x1b[2K{line}") } else { writeln!(err, "{line}") });
        drop(err.flush());
    }
}
