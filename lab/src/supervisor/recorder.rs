//! The history: what happened, as lines of JSON, in the order in which the supervisor learned of it.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::process::clock;
use crate::rules::ids::Millis;

/// Writes the history of a run.
#[derive(Debug)]
pub struct Recorder {
    file: Mutex<File>,
}

impl Recorder {
    /// A new history.
    ///
    /// # Errors
    ///
    /// If the file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(File::options().create(true).append(true).open(path)?) })
    }

    /// Something happened now.
    pub fn note(&self, what: &str, detail: Value) {
        self.note_at(clock::now(), what, detail);
    }

    /// Something happened then.
    pub fn note_at(&self, time: Millis, what: &str, detail: Value) {
        let mut line = json!({ "time": time.0, "what": what });
        if let (Value::Object(line), Value::Object(detail)) = (&mut line, detail) {
            line.extend(detail);
        }
        self.line(&line.to_string());
    }

    /// A line of a client.
    pub fn line(&self, line: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk must not end the lab; a judge finds the history short.
        if let Err(error) = writeln!(file, "{line}") {
            eprintln!("counterfoil-lab: the history could not be written: {error}");
        }
    }
}
