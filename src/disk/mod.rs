//! The file-system seam: every file access of the log and of redb goes through [`Disk`].
//!
//! Production runs on the std implementation. Tests run on a simulated disk that knows which bytes are durable and
//! which are only cached, so that a loss of power at any call can be enumerated.

mod copy_on_write;
#[cfg(all(unix, feature = "admin"))]
mod local_socket;
mod name;
mod redb_backend;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod sim;
mod std_disk;

use std::fmt;
use std::io;
use std::sync::Arc;

pub(crate) use copy_on_write::CopyOnWrite;
#[cfg(all(unix, feature = "admin"))]
pub(crate) use local_socket::{LocalListener, LocalStream, connect_local, listen_local};
pub(crate) use redb_backend::{RedbBackend, WriteGate};
pub(crate) use std_disk::StdDisk;

/// How [`Disk::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A file for reading and writing that is made if absent and emptied if present (mode 0600).
    Create,
}

/// A directory that holds one store.
///
/// Names are relative to that directory, with `/` between parts; `""` is the directory itself.
/// A new, renamed or removed name is durable only after [`Disk::sync_dir`] on its directory.
pub(crate) trait Disk: Send + Sync + fmt::Debug + 'static {
    /// Makes a directory (mode 0700); one that exists is fine. `""` makes the store's own directory, whose parent must
    /// exist, and makes its name durable, since [`Disk::sync_dir`] cannot name that parent.
    fn create_dir(&self, name: &str) -> io::Result<()>;
    /// Opens a file.
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file within the store, replacing the target.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Removes a directory, which must be empty.
    fn remove_dir(&self, name: &str) -> io::Result<()>;
    /// The names (last part only) in a directory, sorted.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Takes the exclusive lock on a file, which is made if absent. Held elsewhere: [`io::ErrorKind::WouldBlock`].
    fn lock(&self, name: &str) -> io::Result<Box<dyn DiskLock>>;
    /// Where the store is, for error messages.
    fn location(&self) -> String;
}

/// When this process was started, for a person who looks for the holder of a lock: in clock ticks since boot where the
/// system tells, which together with the process id names one process.
pub(crate) fn process_start() -> String {
    std::fs::read_to_string("/proc/self/stat")
        .ok()
        // The second field is the program's name in parentheses and may hold anything; the 22nd is the start.
        .and_then(|stat| stat.rsplit_once(')')?.1.split_whitespace().nth(19).map(str::to_owned))
        .map_or_else(|| "start time unknown".to_owned(), |ticks| format!("started {ticks} ticks after boot"))
}

/// An exclusive lock, released when dropped.
pub(crate) trait DiskLock: Send + Sync + fmt::Debug {}

/// One open file.
pub(crate) trait DiskFile: Send + Sync + fmt::Debug {
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Reads at an offset; may be short, and is 0 at the end.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;
    /// Writes at an offset; may be short.
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<usize>;
    /// Makes content and length durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reads exactly `buf.len()` bytes, retrying short and interrupted reads.
    fn read_exact_at(&self, mut offset: u64, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read_at(offset, buf) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buf = &mut buf[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `buf`, retrying short and interrupted writes.
    fn write_all_at(&self, mut offset: u64, mut buf: &[u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match self.write_at(offset, buf) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    buf = &buf[written..];
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
