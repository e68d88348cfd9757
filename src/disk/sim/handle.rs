//! Open files and locks of the simulated disk.

use std::io;
use std::sync::Arc;

use super::Shared;
use super::fault::{CallKind, FaultError};
use super::gate;
use super::inode::FileOp;
use crate::base::sync::pause;
use crate::disk::{DiskFile, DiskLock};

/// An open file: a generation of the disk and an inode in it.
#[derive(Debug)]
pub(super) struct SimFile {
    pub(super) shared: Arc<Shared>,
    pub(super) inode: u64,
    pub(super) opened_as: Arc<str>,
    pub(super) writable: bool,
}

impl SimFile {
    /// Others may go between the calls on the log. Those on the state file are made by redb, which holds locks of its own
    /// that no model knows.
    fn let_others_go(&self) {
        if self.opened_as.starts_with("log/") {
            pause();
        }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} was opened for reading only", self.opened_as),
            ))
        }
    }
}

impl DiskFile for SimFile {
    fn len(&self) -> io::Result<u64> {
        let mut state = self.shared.state.lock();
        let name = state.name_of(self.inode, &self.opened_as);
        state.enter(CallKind::Len, &[&name], format_args!(""))?;
        Ok(state.inode(self.inode).cached.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut state = self.shared.state.lock();
        let name = state.name_of(self.inode, &self.opened_as);
        let fault = state.enter(CallKind::Read, &[&name], format_args!(""))?;
        let content = &state.inode(self.inode).cached;
        let rest = usize::try_from(offset).ok().and_then(|offset| content.get(offset..)).unwrap_or_default();
        let mut count = rest.len().min(buf.len());
        if fault == Some(FaultError::ShortRead) {
            count = part(count);
        }
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<usize> {
        self.check_writable()?;
        self.let_others_go();
        let mut state = self.shared.state.lock();
        let name = state.name_of(self.inode, &self.opened_as);
        let fault = state.enter(CallKind::Write, &[&name], format_args!(" {} bytes at {offset}", buf.len()))?;
        let count = if fault.is_some() { part(buf.len()) } else { buf.len() };
        let offset = addressable(offset)?;
        addressable(offset as u64 + count as u64)?;
        if count > 0 {
            state.change_file(self.inode, FileOp::Write { offset, data: buf[..count].into() })?;
        }
        match fault {
            Some(error @ FaultError::EioPartWritten) => Err(error.error()),
            Some(_) | None => Ok(count),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.let_others_go();
        let mut state = self.shared.state.lock();
        gate::pass(&self.shared, &mut state, self.inode, &self.opened_as);
        let name = state.name_of(self.inode, &self.opened_as);
        let fault = state.enter(CallKind::Sync, &[&name], format_args!(""))?;
        let inode = state.inode_mut(self.inode);
        match fault {
            Some(FaultError::SyncLies) => Ok(()),
            Some(error @ FaultError::SyncDropsData) => {
                inode.drop_dirty_marks();
                Err(error.error())
            }
            Some(error) => {
                inode.sync();
                Err(error.error())
            }
            None => {
                inode.sync();
                Ok(())
            }
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut state = self.shared.state.lock();
        let name = state.name_of(self.inode, &self.opened_as);
        state.enter(CallKind::SetLen, &[&name], format_args!(" {len}"))?;
        state.change_file(self.inode, FileOp::SetLen(addressable(len)?))
    }
}

/// The first half, and at least one byte of a call that asks for any.
fn part(count: usize) -> usize {
    count.div_ceil(2)
}

/// Files are held in memory; a position far beyond it is a fault of the caller, not a reason to allocate.
fn addressable(position: u64) -> io::Result<usize> {
    const POSITION_MAX: u64 = 1 << 30;
    usize::try_from(position).ok().filter(|_| position <= POSITION_MAX).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("position {position} is beyond what is simulated"))
    })
}

/// A held lock. That of an earlier generation holds nothing.
#[derive(Debug)]
pub(super) struct SimLock {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.shared.state.lock().locks.remove(&self.name);
    }
}
