//! Looking at a disk while a sync is under way.

use std::io;
use std::sync::Arc;
use std::thread;

use super::{Survival, after, message, one_file};
use crate::disk::{Disk, OpenMode};

fn joined<T>(thread: thread::JoinHandle<io::Result<T>>) -> io::Result<T> {
    thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

#[test]
fn a_held_sync_has_not_happened_until_the_gate_is_released() -> io::Result<()> {
    let (disk, file) = one_file("log/a")?;
    file.write_all_at(0, b"content")?;
    let gate = disk.hold_syncs();
    let syncing = Arc::clone(&file);
    let thread = thread::spawn(move || syncing.sync_data());
    gate.wait_until_blocked();
    assert_eq!((gate.blocked(), disk.unsynced()), (1, 1));
    assert_eq!(file.len()?, 7, "other calls go on");
    disk.open("b", OpenMode::Create)?.sync_data()?;
    gate.release();
    joined(thread)?;
    assert_eq!(after(&disk, &Survival::Nothing, "log/a").as_deref(), Some(&b"content"[..]));
    Ok(())
}

#[test]
fn a_crash_ends_a_held_sync_with_an_error() -> io::Result<()> {
    let (disk, file) = one_file("log/a")?;
    file.write_all_at(0, b"content")?;
    let gate = disk.hold_syncs_of("a");
    let thread = thread::spawn(move || file.sync_data());
    gate.wait_until_blocked();
    let next = disk.crash(&Survival::Nothing);
    assert_eq!(message(joined(thread)), "power is off");
    assert_eq!(next.read_file("log/a").as_deref(), Some(&b""[..]));
    next.open("log/a", OpenMode::ReadWrite)?.sync_data()
}
