//! Calls that fail without a crash.

use std::io;

/// Which call a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// `read_at`.
    Read,
    /// `len` of a file.
    Len,
    /// `write_at`.
    Write,
    /// `sync_data`.
    Sync,
    /// `set_len`.
    SetLen,
    /// `rename`; both names are looked at.
    Rename,
    /// `remove` and `remove_dir`.
    Remove,
    /// `open` with `OpenMode::Create`, `create_dir`, and `lock` when it makes the file.
    Create,
    /// `open` in the other modes.
    Open,
    /// `lock` when the file is there.
    Lock,
    /// `sync_dir`.
    SyncDir,
    /// `list`.
    List,
    /// Every call.
    Any,
}

impl CallKind {
    /// Whether such calls change what is on the disk, and so count for the crash clock.
    pub(super) fn is_mutating(self) -> bool {
        match self {
            Self::Write
            | Self::Sync
            | Self::SetLen
            | Self::Rename
            | Self::Remove
            | Self::Create
            | Self::SyncDir
            | Self::Any => true,
            Self::Read | Self::Len | Self::Open | Self::Lock | Self::List => false,
        }
    }
}

/// How the call fails. The short and the sync kinds mean something to their own calls only; elsewhere they are `Eio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// An input/output error; the call did nothing.
    Eio,
    /// No space ([`io::ErrorKind::StorageFull`]); the call did nothing.
    Enospc,
    /// Interrupted; the call did nothing and should be made again.
    Eintr,
    /// Permission denied; the call did nothing.
    Eacces,
    /// A write takes the first half (at least one byte) and says so.
    ShortWrite,
    /// A write takes the first half into the cache and then reports an input/output error.
    EioPartWritten,
    /// A read gives the first half (at least one byte) and says so.
    ShortRead,
    /// The sync fails and the file's un-synced data is taken for clean: the cache still shows it, later syncs succeed,
    /// and it never becomes durable. This is what Linux does. Of a directory, the same happens to its names.
    SyncDropsData,
    /// The sync of a file or directory fails although everything became durable.
    SyncErrorsButDurable,
    /// The sync of a file or directory reports success and nothing became durable. It stays un-synced, as in a drive's
    /// own cache: a later honest sync covers it.
    SyncLies,
}

impl FaultError {
    /// What the caller sees.
    pub(super) fn error(self) -> io::Error {
        match self {
            Self::Enospc => io::Error::new(io::ErrorKind::StorageFull, "simulated: no space left"),
            Self::Eintr => io::Error::new(io::ErrorKind::Interrupted, "simulated: interrupted"),
            Self::Eacces => io::Error::new(io::ErrorKind::PermissionDenied, "simulated: permission denied"),
            Self::Eio
            | Self::ShortWrite
            | Self::EioPartWritten
            | Self::ShortRead
            | Self::SyncDropsData
            | Self::SyncErrorsButDurable
            | Self::SyncLies => io::Error::other("simulated: input/output error"),
        }
    }
}

/// One call that will fail, or one call and all after it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Which calls are counted.
    pub on: CallKind,
    /// Which of them fails: 1 is the next one (0 means the same).
    pub nth: u64,
    /// Only calls on names that contain this are counted. A file has the name it bears at the call.
    pub name_contains: Option<String>,
    /// How it fails.
    pub error: FaultError,
    /// Whether all later ones fail as well.
    pub permanent: bool,
}

impl Fault {
    /// The next call of this kind fails once.
    pub fn next(on: CallKind, error: FaultError) -> Self {
        Self { on, nth: 1, name_contains: None, error, permanent: false }
    }

    fn counts(&self, kind: CallKind, names: &[&str]) -> bool {
        (self.on == CallKind::Any || self.on == kind)
            && self.name_contains.as_ref().is_none_or(|part| names.iter().any(|name| name.contains(part.as_str())))
    }
}

/// The faults in wait, and how many calls failed by one.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<Fault>,
    counted: u64,
    struck: u64,
}

impl Faults {
    /// Adds one.
    pub(super) fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    /// Disarms all of them.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// How many calls a fault in wait has counted.
    pub(super) fn counted(&self) -> u64 {
        self.counted
    }

    /// How many calls failed by a fault.
    pub(super) fn struck(&self) -> u64 {
        self.struck
    }

    /// Counts a call against every fault and says how it fails, if it does. Of several, the oldest decides.
    pub(super) fn strike(&mut self, kind: CallKind, names: &[&str]) -> Option<FaultError> {
        let mut struck = None;
        let mut counted = false;
        self.waiting.retain_mut(|fault| {
            if !fault.counts(kind, names) {
                return true;
            }
            counted = true;
            fault.nth = fault.nth.saturating_sub(1);
            if fault.nth > 0 {
                return true;
            }
            struck.get_or_insert(fault.error);
            fault.permanent
        });
        self.counted += u64::from(counted);
        self.struck += u64::from(struck.is_some());
        struck
    }
}
