//! The history of a run, in the order in which the supervisor learned of it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::history::{HistoryEvent, Line, Writer};
use crate::process::clock;
use crate::rules::ids::{Endpoint, Millis, ReplicaId};

/// Writes the history of a run.
#[derive(Debug)]
pub struct Recorder {
    /// Nothing once the run has ended: nothing follows its end.
    writer: Mutex<Option<Writer<File>>>,
}

impl Recorder {
    /// A new history.
    ///
    /// # Errors
    ///
    /// If the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { writer: Mutex::new(Some(Writer::new(file))) })
    }

    /// The supervisor did something, or saw it.
    pub fn note(&self, event: HistoryEvent) {
        self.tell(clock::now(), Endpoint::Supervisor, event);
    }

    /// Something was done to a replica, or it did it.
    pub fn note_of(&self, replica: ReplicaId, event: HistoryEvent) {
        self.tell(clock::now(), Endpoint::Replica(replica), event);
    }

    /// Something happened there and then.
    pub fn tell(&self, at: Millis, by: Endpoint, event: HistoryEvent) {
        self.write(&Line { at, by, event });
    }

    /// A whole line, such as a client's.
    pub fn write(&self, line: &Line) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &mut *writer else { return };
        // A full disk must not end the lab; the judge finds that the history breaks off.
        if let Err(error) = open.write(line) {
            eprintln!("counterfoil-lab: the history could not be written: {error}");
        }
        if line.event == HistoryEvent::RunEnded {
            *writer = None;
        }
    }
}
