//! `LOCK` and `HOLDER`: one process owns a store. The lock belongs to the operating system and dies with its process;
//! the holder file only says whom to name.

use std::io;

use crate::base::position::TimestampMs;
use crate::disk::{Disk, DiskLock, OpenMode};

use super::identity::read_small;
use super::open_error::OpenError;

const LOCK: &str = "LOCK";
const HOLDER: &str = "HOLDER";

/// Files that may stand in a directory that is otherwise empty.
pub(super) const LOCK_FILES: [&str; 2] = [LOCK, HOLDER];

/// Takes the lock and writes down who has it.
pub(super) fn lock(disk: &dyn Disk, wall: TimestampMs) -> Result<Box<dyn DiskLock>, OpenError> {
    let lock = disk.lock(LOCK).map_err(|error| {
        if error.kind() == io::ErrorKind::WouldBlock {
            OpenError::Held { holder: read_holder(disk) }
        } else {
            OpenError::io("lock", LOCK)(error)
        }
    })?;
    // A leftover of a dead holder is overwritten: only the lock counts.
    write_holder(disk, wall).map_err(OpenError::io("write", HOLDER))?;
    Ok(lock)
}

fn write_holder(disk: &dyn Disk, wall: TimestampMs) -> io::Result<()> {
    let (pid, started) = (std::process::id(), crate::disk::process_start());
    let text = format!("process {pid} ({started}), which opened it at {wall}");
    disk.open(HOLDER, OpenMode::Create)?.write_all_at(0, text.as_bytes())
}

/// Who holds the store, as far as the file tells; it may be read while its holder is writing it.
fn read_holder(disk: &dyn Disk) -> String {
    disk.open(HOLDER, OpenMode::Read)
        .and_then(|file| read_small(&*file))
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|text| text.starts_with("process "))
        .unwrap_or_else(|| "a process that has not written its name".to_owned())
}
