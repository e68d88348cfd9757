//! The child's side: it ends with its supervisor.

use std::io::{self, BufRead};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use super::sys::{ProcessIdentity, die_with_parent};

/// What a supervisor may write to a child's standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Block the thread that runs the event loop, where the system cannot pause a process.
    Pause,
    /// Go on.
    Resume,
}

impl Order {
    /// The line for it.
    #[must_use]
    pub const fn line(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }
}

/// The gate at which a child's event loop stands still while it is paused by an order.
#[derive(Debug, Default)]
pub struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn set(&self, closed: bool) {
        *self.closed.lock().unwrap_or_else(PoisonError::into_inner) = closed;
        self.opened.notify_all();
    }

    /// Blocks the calling thread while the gate is closed.
    pub fn pass(&self) {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(closed, |closed| *closed).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Ties this process to its supervisor. `ended` runs when the supervisor closes the pipe or is gone, and must end the
/// process; `paused` is called after the gate was closed, to bring the event loop to it.
///
/// # Errors
///
/// If the supervisor is gone already.
pub fn tie(
    parent: ProcessIdentity,
    gate: &'static Gate,
    paused: impl Fn() + Send + 'static,
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    die_with_parent(parent)?;
    thread::Builder::new().name("lab-tether".to_owned()).spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if line == Order::Pause.line() {
                gate.set(true);
                paused();
            } else if line == Order::Resume.line() {
                gate.set(false);
            }
        }
        gate.set(false);
        ended();
    })?;
    Ok(())
}
