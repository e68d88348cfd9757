//! Everything that one generation of a simulated disk knows, behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use super::fault::{CallKind, FaultError, Faults};
use super::gate::Gates;
use super::inode::{FileOp, Inode};
use super::names::{NameMap, NameOp, Names, Node};
use super::survival::{Change, Survival};
use super::trace::TracedCall;

/// Whether calls still reach the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Power {
    #[default]
    On,
    Off,
    Killed,
}

impl Power {
    pub(super) fn check(self) -> io::Result<()> {
        match self {
            Self::On => Ok(()),
            Self::Off => Err(io::Error::other("power is off")),
            Self::Killed => Err(io::Error::other("the process was killed")),
        }
    }
}

/// The parts that a crash or a kill carries over (inodes, names, capacity) and those that it resets (the rest).
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) names: Names,
    /// Numbers of inodes and of un-synced operations; one counter is enough, since only order and difference matter.
    pub(super) next_number: u64,
    pub(super) capacity: Option<u64>,

    pub(super) power: Power,
    pub(super) cut_at: Option<u64>,
    pub(super) calls: u64,
    pub(super) operations: u64,
    pub(super) faults: Faults,
    pub(super) locks: BTreeSet<String>,
    pub(super) gates: Gates,
    pub(super) trace: Option<Vec<TracedCall>>,
}

impl State {
    /// Every call passes here first: power, the crash clock, the trace, the faults.
    ///
    /// An error is the call's error. A fault that the kind of call gives a meaning to is handed back; it is not `None`
    /// only for reads, writes and syncs.
    pub(super) fn enter(
        &mut self,
        kind: CallKind,
        names: &[&str],
        detail: fmt::Arguments<'_>,
    ) -> io::Result<Option<FaultError>> {
        self.power.check()?;
        if kind.is_mutating() {
            if self.cut_at.is_some_and(|cut_at| self.operations + 1 >= cut_at) {
                self.power = Power::Off;
                return self.power.check().map(|()| None);
            }
            self.operations += 1;
        }
        self.calls += 1;
        let fault = self.faults.strike(kind, names);
        if let Some(trace) = self.trace.as_mut().filter(|_| kind.is_mutating()) {
            let (name, detail) = (names.join(" -> "), detail.to_string());
            trace.push(TracedCall { number: self.operations, kind, name, detail, fault });
        }
        match (fault, kind) {
            (None, _) => Ok(None),
            (Some(FaultError::ShortRead), CallKind::Read)
            | (Some(FaultError::ShortWrite | FaultError::EioPartWritten), CallKind::Write)
            | (
                Some(FaultError::SyncDropsData | FaultError::SyncErrorsButDurable | FaultError::SyncLies),
                CallKind::Sync | CallKind::SyncDir,
            ) => Ok(fault),
            (Some(fault), _) => Err(fault.error()),
        }
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// The file that a name stands for.
    pub(super) fn file(&self, name: &str) -> io::Result<u64> {
        match self.names.cached.get(name) {
            Some(Node::File(inode)) => Ok(*inode),
            Some(Node::Dir) => Err(io::Error::new(io::ErrorKind::IsADirectory, format!("{name} is a directory"))),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("{name} does not exist"))),
        }
    }

    /// The name that a file bears now; `opened_as` once it has none.
    pub(super) fn name_of(&self, inode: u64, opened_as: &Arc<str>) -> Arc<str> {
        let named = Node::File(inode);
        if self.names.cached.get(&**opened_as) == Some(&named) {
            return Arc::clone(opened_as);
        }
        let found = self.names.cached.iter().find(|(_, node)| **node == named);
        found.map_or_else(|| Arc::clone(opened_as), |(name, _)| name.as_str().into())
    }

    pub(super) fn inode(&self, inode: u64) -> &Inode {
        self.inodes.get(&inode).expect("an inode lives as long as its generation")
    }

    pub(super) fn inode_mut(&mut self, inode: u64) -> &mut Inode {
        self.inodes.get_mut(&inode).expect("an inode lives as long as its generation")
    }

    /// Changes a file in the cache, within the capacity. Length counts as allocated: this disk knows no holes.
    pub(super) fn change_file(&mut self, inode: u64, op: FileOp) -> io::Result<()> {
        let len_now = self.inode(inode).cached.len();
        let len_then = match &op {
            FileOp::Write { offset, data } => len_now.max(offset + data.len()),
            FileOp::SetLen(len) => *len,
        };
        if let Some(capacity) = self.capacity.filter(|_| len_then > len_now)
            && self.allocated() + (len_then - len_now) as u64 > capacity
        {
            return Err(FaultError::Enospc.error());
        }
        let number = self.take_number();
        self.inode_mut(inode).change(number, op);
        Ok(())
    }

    /// The sum of all file lengths.
    pub(super) fn allocated(&self) -> u64 {
        self.cached_files().map(|(_, inode)| inode.cached.len() as u64).sum()
    }

    /// Changes names in the cache.
    pub(super) fn change_names(&mut self, op: NameOp) {
        let number = self.take_number();
        self.names.change(number, op);
    }

    /// A new empty file under a name.
    pub(super) fn link_new_file(&mut self, name: &str) -> u64 {
        let inode = self.take_number();
        self.inodes.insert(inode, Inode::default());
        self.change_names(NameOp::Link { name: name.to_owned(), node: Node::File(inode) });
        inode
    }

    /// The files that calls can see.
    pub(super) fn cached_files(&self) -> impl Iterator<Item = (&str, &Inode)> {
        self.files_of(&self.names.cached)
    }

    /// The files under their durable names; reachable or not.
    pub(super) fn files_of<'a>(&'a self, names: &'a NameMap) -> impl Iterator<Item = (&'a str, &'a Inode)> {
        names.iter().filter_map(|(name, node)| match node {
            Node::Dir => None,
            Node::File(inode) => Some((name.as_str(), self.inode(*inode))),
        })
    }

    /// Un-synced operations in the order they were made, and what they change.
    pub(super) fn unsynced(&self) -> Vec<(u64, Change)> {
        let of_files = self.inodes.values().flat_map(|inode| &inode.pending);
        let of_files = of_files.map(|(number, op)| (*number, op.change()));
        let of_names = self.names.pending.iter().map(|(number, _)| (*number, Change::Name));
        let mut all: Vec<_> = of_files.chain(of_names).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    /// The next generation after a loss of power: what survives is durable, and there is nothing else.
    pub(super) fn after_crash(&self, survival: &Survival) -> Self {
        let mut fates = survival.fates(&self.unsynced());
        let names = self.names.survivor(&mut fates);
        let mut inodes = BTreeMap::new();
        for node in names.durable.values() {
            if let Node::File(inode) = node {
                let content = self.inode(*inode).survivor(&mut fates);
                inodes.insert(*inode, Inode::settled(content));
            }
        }
        Self { inodes, names, next_number: self.next_number, capacity: self.capacity, ..Self::default() }
    }

    /// The next generation after the end of the process: the cache is kept, and is as un-synced as before.
    pub(super) fn after_kill(&self) -> Self {
        Self {
            inodes: self.inodes.clone(),
            names: self.names.clone(),
            next_number: self.next_number,
            capacity: self.capacity,
            ..Self::default()
        }
    }

    /// Puts a file there as if it had always been: durable, with its name and directories, and nothing un-synced.
    pub(super) fn plant(&mut self, name: &str, content: Vec<u8>) {
        for (at, _) in name.match_indices('/') {
            if !self.names.has_dir(&name[..at]) {
                self.change_names(NameOp::Link { name: name[..at].to_owned(), node: Node::Dir });
            }
        }
        let inode = self.file(name).unwrap_or_else(|_| self.link_new_file(name));
        *self.inode_mut(inode) = Inode::settled(Arc::new(content.into()));
        self.settle_name(name);
    }

    /// Makes durable what happened to a name and to the directories above it.
    pub(super) fn settle_name(&mut self, name: &str) {
        self.names
            .sync(|touched| touched == name || name.strip_prefix(touched).is_some_and(|below| below.starts_with('/')));
    }
}
