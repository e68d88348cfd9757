//! A small disk in memory for this layer's tests. It knows what is durable, and can fail and lose power.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::{Disk, DiskFile, DiskLock, OpenMode};

#[derive(Clone, Debug, Default)]
struct Content {
    cached: Vec<u8>,
    durable: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct State {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Mutating calls so far.
    calls: u64,
    /// From this call on, every mutating call fails.
    broken_from: Option<u64>,
    /// This one call fails.
    fails_at: Option<(u64, io::ErrorKind)>,
}

impl State {
    fn mutate(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.broken_from.is_some_and(|from| self.calls > from) {
            return Err(io::Error::other("the machine has stopped"));
        }
        match self.fails_at {
            Some((at, kind)) if at == self.calls => Err(kind.into()),
            _ => Ok(()),
        }
    }

    fn id(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Clones share their content.
#[derive(Clone, Debug, Default)]
pub(super) struct TestDisk(Arc<Mutex<State>>);

impl TestDisk {
    pub(super) fn arc(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics inside the disk")
    }

    /// An independent copy, all calls working again: what a restarted process finds after a kill.
    pub(super) fn after_kill(&self) -> Self {
        let mut state = self.state().clone();
        (state.calls, state.broken_from, state.fails_at) = (0, None, None);
        Self(Arc::new(Mutex::new(state)))
    }

    /// The same after a loss of power that takes everything that was not synced.
    pub(super) fn after_power_loss(&self) -> Self {
        let disk = self.after_kill();
        let mut state = disk.state();
        state.names = state.durable_names.clone();
        for content in &mut state.files {
            content.cached = content.durable.clone();
        }
        drop(state);
        disk
    }

    /// The same, but of what was not synced each sector and each name may have reached the disk all the same.
    pub(super) fn after_torn_power_loss(&self, mut survives: impl FnMut() -> bool) -> Self {
        let disk = self.after_kill();
        let mut state = disk.state();
        for (name, id) in state.names.clone() {
            if state.durable_names.get(&name) != Some(&id) && survives() {
                state.durable_names.insert(name, id);
            }
        }
        let (names, kept) = (state.names.clone(), state.durable_names.clone());
        state.durable_names.retain(|name, id| {
            // A rename happens to both of its names or to neither.
            let renamed = names.iter().find(|(other, other_id)| *other_id == id && *other != name);
            names.contains_key(name) || renamed.map_or_else(|| !survives(), |(other, id)| kept.get(other) != Some(id))
        });
        state.names = state.durable_names.clone();
        for content in &mut state.files {
            let len = if survives() { content.cached.len() } else { content.durable.len() };
            let mut torn = content.durable.clone();
            torn.resize(len, 0);
            for (at, sector) in torn.chunks_mut(512).enumerate() {
                let cached = content.cached.get(at * 512..).unwrap_or(&[]);
                let cached = &cached[..cached.len().min(sector.len())];
                if sector[..cached.len()] != *cached && survives() {
                    sector[..cached.len()].copy_from_slice(cached);
                }
            }
            content.cached = torn.clone();
            content.durable = torn;
        }
        drop(state);
        disk
    }

    pub(super) fn break_after(&self, calls: u64) {
        self.state().broken_from = Some(calls);
    }

    pub(super) fn fail_call(&self, call: u64, kind: io::ErrorKind) {
        self.state().fails_at = Some((call, kind));
    }

    pub(super) fn calls(&self) -> u64 {
        self.state().calls
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.state().names.keys().cloned().collect()
    }

    /// All names and contents, for "nothing was changed".
    pub(super) fn image(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        state.names.iter().map(|(name, &id)| (name.clone(), state.files[id].cached.clone())).collect()
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        self.image().remove(name).unwrap_or_else(|| panic!("no file {name}"))
    }

    /// Changes a file behind everybody's back, durably.
    pub(super) fn edit(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.state();
        let id = state.id(name).expect("the file exists");
        let content = &mut state.files[id];
        edit(&mut content.cached);
        content.durable = content.cached.clone();
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let id = state.files.len();
        state.files.push(Content { cached: bytes.to_vec(), durable: bytes.to_vec() });
        state.names.insert(name.into(), id);
        state.durable_names.insert(name.into(), id);
    }

    pub(super) fn delete(&self, name: &str) {
        let mut state = self.state();
        state.names.remove(name).expect("the file exists");
        state.durable_names.remove(name);
    }
}

impl Disk for TestDisk {
    fn create_dir(&self, _: &str) -> io::Result<()> {
        self.state().mutate()
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let id = match (mode, state.names.get(name).copied()) {
            (OpenMode::Create, known) => {
                state.mutate()?;
                let id = known.unwrap_or(state.files.len());
                match known {
                    Some(id) => state.files[id].cached.clear(),
                    None => state.files.push(Content::default()),
                }
                state.names.insert(name.into(), id);
                id
            }
            (OpenMode::Read | OpenMode::ReadWrite, Some(id)) => id,
            (OpenMode::Read | OpenMode::ReadWrite, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(TestFile { disk: self.clone(), id, writes: mode != OpenMode::Read }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.mutate()?;
        let id = state.id(from)?;
        state.names.remove(from);
        state.names.insert(to.into(), id);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.mutate()?;
        state.id(name)?;
        state.names.remove(name);
        Ok(())
    }

    fn remove_dir(&self, _: &str) -> io::Result<()> {
        self.state().mutate()
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let prefix = format!("{dir}/");
        Ok(self.state().names.keys().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect())
    }

    fn sync_dir(&self, _: &str) -> io::Result<()> {
        let mut state = self.state();
        state.mutate()?;
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn lock(&self, _: &str) -> io::Result<Box<dyn DiskLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn location(&self) -> String {
        "memory".into()
    }
}

#[derive(Debug)]
struct TestFile {
    disk: TestDisk,
    id: usize,
    writes: bool,
}

impl TestFile {
    fn change<T>(&self, change: impl FnOnce(&mut Content) -> T) -> io::Result<T> {
        assert!(self.writes, "opened for reading");
        let mut state = self.disk.state();
        state.mutate()?;
        Ok(change(&mut state.files[self.id]))
    }
}

impl DiskFile for TestFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.id].cached.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let state = self.disk.state();
        let from = state.files[self.id].cached.get(usize::try_from(offset).expect("small")..).unwrap_or(&[]);
        // Short on purpose: callers must go on.
        let len = from.len().min(buf.len()).min(40_000);
        buf[..len].copy_from_slice(&from[..len]);
        Ok(len)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<usize> {
        let offset = usize::try_from(offset).expect("small");
        self.change(|content| {
            let len = content.cached.len().max(offset + buf.len());
            content.cached.resize(len, 0);
            content.cached[offset..offset + buf.len()].copy_from_slice(buf);
            buf.len()
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.change(|content| content.durable = content.cached.clone())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(|content| content.cached.resize(usize::try_from(len).expect("small"), 0))
    }
}
