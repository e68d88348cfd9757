//! The names of the disk: which are durable, which are only cached, and the operations between the two.

use std::collections::{BTreeMap, BTreeSet};

use super::survival::{Fate, Fates};
use crate::disk::name;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A directory; its content is the names below it.
    Dir,
    /// A file, by the number of its inode.
    File(u64),
}

/// Names in full, parents before their children.
pub(super) type NameMap = BTreeMap<String, Node>;

/// A change of names that no directory sync has covered yet.
#[derive(Clone, Debug)]
pub(super) enum NameOp {
    /// A new file or directory.
    Link { name: String, node: Node },
    /// A removed file, or a removed directory with whatever the disk still has in it.
    Unlink { name: String },
    /// Atomic: both names change or neither. The new one says by itself which file it is: whether the old one ever was
    /// durable does not matter to it.
    Rename { from: String, to: String, node: Node },
}

impl NameOp {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Link { name, .. } | Self::Unlink { name } => vec![name],
            Self::Rename { from, to, .. } => vec![from, to],
        }
    }

    fn apply(&self, names: &mut NameMap) {
        match self {
            Self::Link { name, node } => {
                names.insert(name.clone(), *node);
            }
            Self::Unlink { name } => {
                if names.remove(name) == Some(Node::Dir) {
                    names.retain(|inside, _| name::parent(inside) != name);
                }
            }
            Self::Rename { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// All names of one disk. The store's own directory `""` is always there and not listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// What a loss of power leaves when nothing un-synced survives.
    pub(super) durable: NameMap,
    /// What calls see.
    pub(super) cached: NameMap,
    /// Oldest first, numbered together with the changes of files.
    pub(super) pending: Vec<(u64, NameOp)>,
}

impl Names {
    /// Names that are all durable. One whose directory is absent has gone with it.
    pub(super) fn settled(mut names: NameMap) -> Self {
        let mut dirs = BTreeSet::from([String::new()]);
        names.retain(|name, node| {
            let reachable = dirs.contains(name::parent(name));
            if reachable && *node == Node::Dir {
                dirs.insert(name.clone());
            }
            reachable
        });
        Self { durable: names.clone(), cached: names, pending: Vec::new() }
    }

    /// Changes the cache and remembers that no directory sync covers it yet.
    pub(super) fn change(&mut self, number: u64, op: NameOp) {
        op.apply(&mut self.cached);
        self.pending.push((number, op));
    }

    /// Whether a directory is there.
    pub(super) fn has_dir(&self, dir: &str) -> bool {
        dir.is_empty() || self.cached.get(dir) == Some(&Node::Dir)
    }

    /// Makes the operations durable that touch a chosen name, and the earlier ones that those build on.
    pub(super) fn sync(&mut self, chosen: impl Fn(&str) -> bool) {
        let mut wanted = BTreeSet::new();
        let mut synced = BTreeSet::new();
        for (number, op) in self.pending.iter().rev() {
            let names = op.names();
            if names.iter().any(|name| chosen(name) || wanted.contains(*name)) {
                wanted.extend(names.into_iter().map(str::to_owned));
                synced.insert(*number);
            }
        }
        let durable = &mut self.durable;
        self.pending.retain(|(number, op)| {
            let sync = synced.contains(number);
            if sync {
                op.apply(durable);
            }
            !sync
        });
    }

    /// A failed sync after which the kernel takes the directory for clean: nothing will write these names any more.
    pub(super) fn drop_dirty_marks(&mut self, chosen: impl Fn(&str) -> bool) {
        self.pending.retain(|(_, op)| !op.names().into_iter().any(&chosen));
    }

    /// Memory pressure: directories taken for clean are read from the disk again.
    pub(super) fn evict(&mut self) {
        let mut names = self.durable.clone();
        self.pending.iter().for_each(|(_, op)| op.apply(&mut names));
        // What is in a directory that has gone has gone with it.
        self.cached = Self::settled(names).cached;
    }

    /// The names after a loss of power. Once an operation is lost, so is every later one on a name that it touched.
    pub(super) fn survivor(&self, fates: &mut Fates) -> Self {
        let mut names = self.durable.clone();
        let mut broken = BTreeSet::new();
        for (number, op) in &self.pending {
            let touched = op.names();
            let lost = fates.of(*number) == Fate::Lost || touched.iter().any(|name| broken.contains(*name));
            if lost {
                broken.extend(touched.into_iter().map(str::to_owned));
            } else {
                op.apply(&mut names);
            }
        }
        Self::settled(names)
    }
}
