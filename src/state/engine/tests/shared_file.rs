//! A file for the tests of the engine.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

/// A file in memory that outlives the engine, can refuse writes (as the seam does before redb is dropped), panic, and
/// remembers what of it was synced.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedFile(Arc<State>);

#[derive(Debug, Default)]
struct State {
    cached: Mutex<Vec<u8>>,
    synced: Mutex<Vec<u8>>,
    syncs: AtomicUsize,
    refuse: AtomicBool,
    panic: AtomicBool,
}

impl SharedFile {
    pub(super) fn with(bytes: Vec<u8>) -> Self {
        let file = Self::default();
        *file.0.cached.lock().unwrap() = bytes;
        file
    }

    pub(super) fn cached(&self) -> Vec<u8> {
        self.0.cached.lock().unwrap().clone()
    }

    /// What a loss of power leaves if no un-synced write made it.
    pub(super) fn synced(&self) -> Vec<u8> {
        self.0.synced.lock().unwrap().clone()
    }

    pub(super) fn refuse(&self) {
        self.0.refuse.store(true, Ordering::SeqCst);
    }

    pub(super) fn panic(&self, panic: bool) {
        self.0.panic.store(panic, Ordering::SeqCst);
    }

    pub(super) fn syncs(&self) -> usize {
        self.0.syncs.load(Ordering::SeqCst)
    }

    fn gate(&self) -> io::Result<()> {
        assert!(!self.0.panic.load(Ordering::SeqCst), "the disk panics");
        if self.0.refuse.load(Ordering::SeqCst) { Err(io::Error::other("writes are refused")) } else { Ok(()) }
    }
}

impl StorageBackend for SharedFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.cached.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let bytes = self.0.cached.lock().unwrap();
        let from = bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.gate()?;
        self.0.cached.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate()?;
        self.0.syncs.fetch_add(1, Ordering::SeqCst);
        *self.0.synced.lock().unwrap() = self.cached();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.gate()?;
        let offset = usize::try_from(offset).unwrap();
        self.0.cached.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}
