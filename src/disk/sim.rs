//! A disk in memory that knows which bytes are durable and which are only cached.
//!
//! What is modelled, and nothing else: a write, a change of length or a change of names is in the cache until a sync
//! covers it; `sync_data` covers content and length of a file, `sync_dir` covers the names in a directory. A loss of
//! power keeps what was synced and, of the rest, whatever a [`Survival`] says. The end of a process keeps the cache.
//!
//! There is no clock and no randomness but seeds, so a run repeats exactly. A test counts the operations of a workload,
//! then runs it again for each of them with [`SimDisk::power_cut_at`], crashes, and looks at what a store makes of it:
//!
//! ```text
//! let disk = SimDisk::new();
//! disk.power_cut_at(n);
//! workload(&disk);                                    // fails at operation n
//! for survival in Survival::selection(disk.unsynced(), 20) {
//!     let disk = disk.crash(&survival);               // the old disk stays as it is, so this can be repeated
//!     check(&disk);
//! }
//! ```

use std::fmt;
use std::io;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::{Disk, DiskFile, DiskLock, OpenMode, name};

mod content;
mod fault;
mod gate;
mod handle;
mod image;
mod inode;
mod names;
mod rng;
mod state;
mod survival;
#[cfg(test)]
mod tests;
mod trace;

pub use fault::{CallKind, Fault, FaultError};
pub use gate::SyncGate;
#[cfg(test)]
pub(crate) use rng::Rng;
pub use survival::Survival;
pub use trace::TracedCall;

use handle::{SimFile, SimLock};
use inode::FileOp;
use names::{NameOp, Node};
use state::{Power, State};

/// What a disk writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// One generation of a simulated disk: from a start to the next crash or kill. Clones are the same generation.
#[derive(Clone, Default)]
pub struct SimDisk {
    shared: Arc<Shared>,
}

impl fmt::Debug for SimDisk {
    /// Without the content of the files, which holds payloads and the store's secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").field("operations", &self.operations()).finish_non_exhaustive()
    }
}

/// The state and the bell that rings when a gate opens, a thread comes to one, or the power goes.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Crashes and what surrounds them.
impl SimDisk {
    /// An empty disk. The store's own directory is there and durable.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(state: State) -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }
    }

    /// How many mutating calls reached this generation: the crash clock. Those that failed by a fault count as well.
    pub fn operations(&self) -> u64 {
        self.shared.state.lock().operations
    }

    /// How many calls of any kind reached this generation.
    pub fn calls(&self) -> u64 {
        self.shared.state.lock().calls
    }

    /// How many operations no sync has covered: the places that [`Survival::Prefix`] and `AllButOne` count.
    pub fn unsynced(&self) -> usize {
        self.shared.state.lock().unsynced().len()
    }

    /// Operation number `n` (the first is 1) will not happen: it and every later call of this generation fail with
    /// "power is off". An `n` that has passed cuts at the next operation.
    pub fn power_cut_at(&self, n: u64) {
        self.shared.state.lock().cut_at = Some(n);
    }

    /// Whether the power was cut, here or by a crash.
    pub fn is_off(&self) -> bool {
        self.shared.state.lock().power == Power::Off
    }

    /// Loses power, if it was not lost yet, and starts again with what survives: all of it durable, no lock, no fault,
    /// no gate, counters at zero. The capacity stays.
    ///
    /// This generation is dead and keeps its image, so that many survivals can be tried on one crash.
    pub fn crash(&self, survival: &Survival) -> Self {
        self.end(Power::Off, |state| state.after_crash(survival))
    }

    /// Ends the process, if the power was not cut before, and starts again with the whole cache. What was un-synced
    /// still is, so that a later crash can lose it; locks, faults, gates and counters begin anew.
    ///
    /// After [`Self::power_cut_at`] this is a process that died at that operation.
    pub fn kill(&self) -> Self {
        self.end(Power::Killed, State::after_kill)
    }

    fn end(&self, power: Power, next: impl FnOnce(&State) -> State) -> Self {
        let mut state = self.shared.state.lock();
        if state.power == Power::On {
            state.power = power;
        }
        let next = next(&state);
        self.shared.changed.notify_all();
        Self::with(next)
    }
}

/// Faults, space, gates and the trace.
impl SimDisk {
    /// Arms a fault. Several can wait at once.
    pub fn fail(&self, fault: Fault) {
        self.shared.state.lock().faults.add(fault);
    }

    /// Disarms them all.
    pub fn clear_faults(&self) {
        self.shared.state.lock().faults.clear();
    }

    /// How many calls of this generation a fault has struck: 0 tells a loop over the Nth call that it is through.
    pub fn faults_struck(&self) -> u64 {
        self.shared.state.lock().faults.struck()
    }

    /// How many calls of this generation the faults in wait have counted. One that is far away counts a whole workload.
    pub fn faults_counted(&self) -> u64 {
        self.shared.state.lock().faults.counted()
    }

    /// Memory pressure: whatever a failed sync dropped while the cache still showed it is now gone, from reads and from
    /// directories as well.
    pub fn evict_clean_pages(&self) {
        let mut state = self.shared.state.lock();
        state.inodes.values_mut().for_each(inode::Inode::evict);
        state.names.evict();
    }

    /// Limits the sum of all file lengths; growing beyond it is [`io::ErrorKind::StorageFull`] and does nothing.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.shared.state.lock().capacity = bytes;
    }

    /// The sum of all file lengths, as the capacity counts it.
    pub fn allocated(&self) -> u64 {
        self.shared.state.lock().allocated()
    }

    /// Holds every `sync_data` of a file in `log/`.
    pub fn hold_syncs(&self) -> SyncGate {
        self.hold_syncs_of("log/")
    }

    /// Holds every `sync_data` of a file whose name contains this.
    pub fn hold_syncs_of(&self, name_contains: &str) -> SyncGate {
        SyncGate::close(&self.shared, name_contains)
    }

    /// From now on mutating calls are written down.
    pub fn start_trace(&self) {
        self.shared.state.lock().trace = Some(Vec::new());
    }

    /// The mutating calls since [`Self::start_trace`], each with its number on the crash clock, for reading.
    pub fn trace(&self) -> Vec<String> {
        self.traced_calls().iter().map(TracedCall::to_string).collect()
    }

    /// The same, for counting.
    pub fn traced_calls(&self) -> Vec<TracedCall> {
        self.shared.state.lock().trace.clone().unwrap_or_default()
    }
}

impl Disk for SimDisk {
    fn create_dir(&self, name: &str) -> io::Result<()> {
        name::check_dir(name)?;
        let mut state = self.shared.state.lock();
        state.enter(CallKind::Create, &[name], format_args!(" (directory)"))?;
        if state.names.has_dir(name) {
            return Ok(());
        }
        check_parent(&state, name)?;
        if state.names.cached.contains_key(name) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{name} is a file")));
        }
        state.change_names(NameOp::Link { name: name.to_owned(), node: Node::Dir });
        Ok(())
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        name::check_file(name)?;
        let mut state = self.shared.state.lock();
        let kind = if mode == OpenMode::Create { CallKind::Create } else { CallKind::Open };
        state.enter(kind, &[name], format_args!(""))?;
        let inode = if mode == OpenMode::Create { open_new(&mut state, name)? } else { state.file(name)? };
        Ok(Arc::new(SimFile {
            shared: Arc::clone(&self.shared),
            inode,
            opened_as: name.into(),
            writable: mode != OpenMode::Read,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        name::check_file(from)?;
        name::check_file(to)?;
        let mut state = self.shared.state.lock();
        state.enter(CallKind::Rename, &[from, to], format_args!(""))?;
        let file = state.file(from)?;
        check_parent(&state, to)?;
        if state.names.has_dir(to) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, format!("{to} is a directory")));
        }
        state.change_names(NameOp::Rename { from: from.to_owned(), to: to.to_owned(), node: Node::File(file) });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        name::check_file(name)?;
        let mut state = self.shared.state.lock();
        state.enter(CallKind::Remove, &[name], format_args!(""))?;
        state.file(name)?;
        state.change_names(NameOp::Unlink { name: name.to_owned() });
        Ok(())
    }

    fn remove_dir(&self, name: &str) -> io::Result<()> {
        name::check_file(name)?;
        let mut state = self.shared.state.lock();
        state.enter(CallKind::Remove, &[name], format_args!(" (directory)"))?;
        check_dir(&state, name)?;
        if state.names.cached.keys().any(|inside| name::parent(inside) == name) {
            return Err(io::Error::new(io::ErrorKind::DirectoryNotEmpty, format!("{name} is not empty")));
        }
        state.change_names(NameOp::Unlink { name: name.to_owned() });
        Ok(())
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        name::check_dir(dir)?;
        let mut state = self.shared.state.lock();
        state.enter(CallKind::List, &[dir], format_args!(""))?;
        check_dir(&state, dir)?;
        let inside = state.names.cached.keys().filter(|name| name::parent(name) == dir);
        Ok(inside.map(|name| name::last(name).to_owned()).collect())
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        name::check_dir(dir)?;
        let mut state = self.shared.state.lock();
        let fault = state.enter(CallKind::SyncDir, &[dir], format_args!(""))?;
        check_dir(&state, dir)?;
        let inside = |name: &str| name::parent(name) == dir;
        match fault {
            Some(FaultError::SyncLies) => return Ok(()),
            Some(FaultError::SyncDropsData) => state.names.drop_dirty_marks(inside),
            Some(_) | None => state.names.sync(inside),
        }
        fault.map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn lock(&self, name: &str) -> io::Result<Box<dyn DiskLock>> {
        name::check_file(name)?;
        let mut state = self.shared.state.lock();
        let absent = !state.names.cached.contains_key(name);
        state.enter(if absent { CallKind::Create } else { CallKind::Lock }, &[name], format_args!(" (lock)"))?;
        if absent {
            open_new(&mut state, name)?;
        } else {
            state.file(name)?;
        }
        if !state.locks.insert(name.to_owned()) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{name} is locked elsewhere")));
        }
        Ok(Box::new(SimLock { shared: Arc::clone(&self.shared), name: name.to_owned() }))
    }

    fn location(&self) -> String {
        "a simulated disk".to_owned()
    }
}

/// The file under a name, made if absent and emptied if present.
fn open_new(state: &mut State, name: &str) -> io::Result<u64> {
    match state.file(name) {
        Ok(inode) => {
            if !state.inode(inode).cached.is_empty() {
                state.change_file(inode, FileOp::SetLen(0))?;
            }
            Ok(inode)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_parent(state, name)?;
            Ok(state.link_new_file(name))
        }
        Err(error) => Err(error),
    }
}

fn check_dir(state: &State, dir: &str) -> io::Result<()> {
    if state.names.has_dir(dir) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, format!("the directory {dir} does not exist")))
    }
}

fn check_parent(state: &State, name: &str) -> io::Result<()> {
    check_dir(state, name::parent(name))
}
