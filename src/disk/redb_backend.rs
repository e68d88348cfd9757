//! redb on the disk seam, and the switch that keeps redb from writing by itself.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::DiskFile;

#[cfg(test)]
mod tests;

/// Decides whether redb's file may still change. Clones share one switch, which only goes one way.
///
/// redb makes a commit of its own when it is closed or dropped. That commit would make durable whatever was folded
/// since the last checkpoint, at a moment that nobody chose and in one phase only after a caught panic. So the engine
/// refuses writes first: the file then stays as the last checkpoint left it, and the next open replays the log.
///
/// A call that has already passed the switch may still finish; stop the thread that commits before relying on it.
///
/// It also remembers the first call of the file that failed: redb answers none after it, reads included, and whoever
/// runs operations on such a tree must know.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteGate(Arc<Gate>);

#[derive(Debug, Default)]
struct Gate {
    refusing: AtomicBool,
    failure: OnceLock<String>,
}

impl WriteGate {
    /// A gate that lets everything through.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// From now on every write, change of length and sync fails. Reads go on.
    pub(crate) fn refuse(&self) {
        self.0.refusing.store(true, Ordering::SeqCst);
    }

    /// Whether [`Self::refuse`] was called on this gate or a clone of it.
    pub(crate) fn is_refusing(&self) -> bool {
        self.0.refusing.load(Ordering::SeqCst)
    }

    /// The first failure of the file itself, if there was any. That writes are refused is none.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
    }

    fn note<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.inspect_err(|error| {
            self.0.failure.get_or_init(|| error.to_string());
        })
    }

    fn pass(&self) -> io::Result<()> {
        if self.is_refusing() { Err(io::Error::other("writes are refused")) } else { Ok(()) }
    }
}

/// One file of the seam as redb's storage.
///
/// It takes no lock: the store's own lock already keeps every other process out.
#[derive(Debug)]
pub(crate) struct RedbBackend {
    file: Arc<dyn DiskFile>,
    gate: WriteGate,
}

impl RedbBackend {
    /// Storage in `file`, writable as long as `gate` lets it.
    pub(crate) fn new(file: Arc<dyn DiskFile>, gate: WriteGate) -> Self {
        Self { file, gate }
    }
}

impl redb::StorageBackend for RedbBackend {
    fn len(&self) -> io::Result<u64> {
        self.gate.note(self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.gate.note(self.file.read_exact_at(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate.pass()?;
        self.gate.note(self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass()?;
        self.gate.note(self.file.sync_data())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.gate.pass()?;
        self.gate.note(self.file.write_all_at(offset, data))
    }
}
