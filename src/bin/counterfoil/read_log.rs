//! The log of a store whose holder does not answer: read from its files.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use counterfoil::admin::Answer;
use counterfoil::{DetachedLog, LogReadError, LogStart, Position};

/// How often the files are looked at for more. An entry is proven by the store about 100 ms after the last one.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Answers as the store would.
pub(crate) fn read(
    directory: &Path,
    from: Option<&str>,
    follow: bool,
    limit: Option<u64>,
    emit: &mut dyn FnMut(Answer) -> io::Result<()>,
) -> io::Result<()> {
    let start = match from.map(str::parse::<Position>) {
        None => LogStart::Oldest,
        Some(Ok(position)) => LogStart::After(position),
        Some(Err(error)) => return emit(Answer::Failed { message: error.to_string() }),
    };
    let mut entries = 0;
    match read_from(directory, start, follow, limit, &mut entries, emit) {
        Ok(told) => told.and_then(|()| emit(Answer::Done { summary: serde_json::json!({ "entries": entries }) })),
        Err(error) => emit(Answer::Failed { message: error.to_string() }),
    }
}

/// The inner error is that of whoever listens.
fn read_from(
    directory: &Path,
    start: LogStart,
    follow: bool,
    limit: Option<u64>,
    entries: &mut u64,
    emit: &mut dyn FnMut(Answer) -> io::Result<()>,
) -> Result<io::Result<()>, LogReadError> {
    let mut log = DetachedLog::open(directory, start)?;
    while limit.is_none_or(|limit| *entries < limit) {
        match log.try_next()? {
            Some(entry) => {
                if let Err(error) = emit(Answer::Line { line: entry.to_json() }) {
                    return Ok(Err(error));
                }
                *entries += 1;
            }
            None if follow => thread::sleep(LOOK_AGAIN_AFTER),
            None => break,
        }
    }
    Ok(Ok(()))
}
