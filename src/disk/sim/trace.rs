//! The mutating calls of a run, written down one by one.

use std::fmt;

use super::fault::{CallKind, FaultError};

/// A mutating call that reached the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// Its number on the crash clock, see [`SimDisk::power_cut_at`](super::SimDisk::power_cut_at).
    pub number: u64,
    /// What was called.
    pub kind: CallKind,
    /// The file or directory by the name that it bore then; of a rename both names, `from -> to`.
    pub name: String,
    /// Lengths and offsets.
    pub detail: String,
    /// The fault that struck it.
    pub fault: Option<FaultError>,
}

impl fmt::Display for TracedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, kind, name, detail, fault } = self;
        write!(f, "{number}: {kind:?} {name}{detail}")?;
        fault.map_or(Ok(()), |fault| write!(f, " -> {fault:?}"))
    }
}
