//! The simulator's own semantics: a test bed that is wrong proves nothing.

use std::io;
use std::sync::Arc;

use super::{Fault, FaultError, SimDisk, Survival};
use crate::disk::{Disk, DiskFile, OpenMode};

mod crash;
mod faults;
mod gates;
mod names;

/// A disk with one durable empty file, open.
fn one_file(name: &str) -> io::Result<(SimDisk, Arc<dyn DiskFile>)> {
    let disk = SimDisk::new();
    if let Some((dir, _)) = name.split_once('/') {
        disk.create_dir(dir)?;
        disk.sync_dir("")?;
    }
    let file = disk.open(name, OpenMode::Create)?;
    disk.sync_dir(crate::disk::name::parent(name))?;
    Ok((disk, file))
}

/// The content after a crash.
fn after(disk: &SimDisk, survival: &Survival, name: &str) -> Option<Vec<u8>> {
    disk.crash(survival).read_file(name)
}

/// One sector full of a byte.
fn sector(byte: u8) -> Vec<u8> {
    vec![byte; super::SECTOR_BYTES]
}

/// A fault on the next such call.
fn next(on: super::CallKind, error: FaultError) -> Fault {
    Fault::next(on, error)
}

fn kind<T>(result: io::Result<T>) -> Option<io::ErrorKind> {
    result.err().map(|error| error.kind())
}

fn message<T>(result: io::Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}
