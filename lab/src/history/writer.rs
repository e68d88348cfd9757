//! Writing a history.

use std::io::{self, Write};

use crate::history::event::{HistoryEvent, Line};
use crate::rules::ids::{Endpoint, Millis};

/// Writes lines. Each is handed over whole, so that a line is there or it is not.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A history that goes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Adds one line.
    ///
    /// # Errors
    ///
    /// If it could not be written. It may be there in part; the reader will say where.
    pub fn write(&mut self, line: &Line) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Adds one line from its parts.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`].
    pub fn tell(&mut self, at: Millis, by: Endpoint, event: HistoryEvent) -> io::Result<()> {
        self.write(&Line { at, by, event })
    }

    /// Hands over what a buffer in between still holds.
    ///
    /// # Errors
    ///
    /// If it could not be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Gives back what was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}
