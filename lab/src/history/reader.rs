//! Reading a history.
//!
//! A history that does not read is an error that names its line, never a run with fewer events: a verdict over half a
//! history would be green for the wrong reason.

use std::io::{self, BufRead, Read};

use crate::history::event::{FORMAT, HistoryEvent, Line};

/// The longest line. A line of the lab has a few hundred bytes; a file without line ends is not a history, and must not
/// fill the memory before that is found out.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// A history that does not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Io {
        /// Which line it was at.
        line: u64,
        /// Why.
        source: io::Error,
    },
    /// A line is no event.
    #[error("line {line} is no event of a history: {source}")]
    Malformed {
        /// Which line.
        line: u64,
        /// Why.
        source: serde_json::Error,
    },
    /// A line is too long to be one.
    #[error("line {line} has more than {LINE_BYTES_MAX} bytes")]
    TooLong {
        /// Which line.
        line: u64,
    },
    /// The last line has no end: whoever wrote it was interrupted, or something is missing.
    #[error("line {line} breaks off")]
    BreaksOff {
        /// Which line.
        line: u64,
    },
    /// It does not begin with `run-started`.
    #[error("line 1 does not start a run")]
    NoStart,
    /// It begins again.
    #[error("line {line} starts a run in the middle of another")]
    SecondStart {
        /// Which line.
        line: u64,
    },
    /// Something follows its end.
    #[error("line {line} follows the end of the run")]
    AfterEnd {
        /// Which line.
        line: u64,
    },
    /// It was written by a later lab.
    #[error("the history has format {found}; this lab reads format {FORMAT}")]
    Format {
        /// Which format it has.
        found: u32,
    },
    /// There is nothing.
    #[error("the history is empty")]
    Empty,
}

/// Reads a whole history and hands each line over, with its number. What is handed over may still turn out to belong to a
/// history that does not read to its end.
///
/// # Errors
///
/// [`HistoryError`], with the line.
pub fn read(mut input: impl BufRead, mut each: impl FnMut(u64, Line)) -> Result<u64, HistoryError> {
    let mut bytes = Vec::new();
    let (mut number, mut ended) = (0_u64, false);
    loop {
        bytes.clear();
        let line = number + 1;
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
        let limited = input.by_ref().take(limit).read_until(b'\n', &mut bytes);
        if limited.map_err(|source| HistoryError::Io { line, source })? == 0 {
            break;
        }
        match bytes.pop() {
            Some(b'\n') => {}
            Some(_) if bytes.len() >= LINE_BYTES_MAX => return Err(HistoryError::TooLong { line }),
            _ => return Err(HistoryError::BreaksOff { line }),
        }
        let read: Line = serde_json::from_slice(&bytes).map_err(|source| HistoryError::Malformed { line, source })?;
        number = line;
        in_its_place(line, ended, &read.event)?;
        ended = read.event == HistoryEvent::RunEnded || ended;
        each(line, read);
    }
    if number == 0 { Err(HistoryError::Empty) } else { Ok(number) }
}

/// A run starts once, at its beginning, and nothing but a judgement follows its end.
fn in_its_place(line: u64, ended: bool, event: &HistoryEvent) -> Result<(), HistoryError> {
    if let HistoryEvent::RunStarted { format, .. } = event {
        return match line {
            1 if *format == FORMAT => Ok(()),
            1 => Err(HistoryError::Format { found: *format }),
            _ => Err(HistoryError::SecondStart { line }),
        };
    }
    match (line, ended) {
        (1, _) => Err(HistoryError::NoStart),
        (_, true) if !matches!(event, HistoryEvent::Judged { .. }) => Err(HistoryError::AfterEnd { line }),
        (_, _) => Ok(()),
    }
}
