//! One file: what is durable, what the page cache shows, and the operations between the two.

use std::sync::Arc;

use super::SECTOR_BYTES;
use super::content::Content;
use super::rng::Rng;
use super::survival::{Change, Fate, Fates};

/// A change of a file that no sync has covered yet.
#[derive(Clone, Debug)]
pub(super) enum FileOp {
    /// Bytes at an offset.
    Write { offset: usize, data: Arc<[u8]> },
    /// A new length.
    SetLen(usize),
}

impl FileOp {
    /// What it changes; content can be torn and change places.
    pub(super) fn change(&self) -> Change {
        match self {
            Self::Write { .. } => Change::Content,
            Self::SetLen(_) => Change::Length,
        }
    }

    fn is_write(&self) -> bool {
        self.change() == Change::Content
    }

    /// The length that it leads to, without its content.
    fn grow(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => content.resize(content.len().max(offset + data.len()), 0),
            Self::SetLen(len) => content.resize(*len, 0),
        }
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => put(content, *offset, data),
            Self::SetLen(len) => content.resize(*len, 0),
        }
    }

    /// Applies each sector of a write or leaves it out. The length may have reached the disk without the last sectors.
    fn apply_torn(&self, content: &mut Vec<u8>, rng: &mut Rng) {
        let (offset, data) = match self {
            Self::Write { offset, data } => (*offset, data),
            Self::SetLen(_) => return self.apply(content),
        };
        let end = offset + data.len();
        let mut at = offset;
        while at < end {
            let next = end.min((at / SECTOR_BYTES + 1) * SECTOR_BYTES);
            if rng.chance(4) {
                put(content, at, &data[at - offset..next - offset]);
            }
            at = next;
        }
        if content.len() < end && rng.chance(4) {
            content.resize(end, 0);
        }
    }
}

fn put(content: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    let end = offset + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(data);
}

/// A file apart from its names, as in a file system: a rename does not touch it and open handles keep pointing at it.
///
/// Content is shared between generations until one of them changes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// What a loss of power leaves when nothing un-synced survives.
    pub(super) durable: Arc<Content>,
    /// What reads see.
    pub(super) cached: Arc<Content>,
    /// What the next sync makes durable, oldest first, numbered across the whole disk.
    ///
    /// Usually `durable` with these applied is `cached`; after a sync that dropped data it is not.
    pub(super) pending: Vec<(u64, FileOp)>,
}

impl Inode {
    /// A file whose content is durable.
    pub(super) fn settled(content: Arc<Content>) -> Self {
        Self { durable: Arc::clone(&content), cached: content, pending: Vec::new() }
    }

    /// Changes the cache and remembers that no sync covers it yet.
    pub(super) fn change(&mut self, number: u64, op: FileOp) {
        let cached: &mut Content = Arc::make_mut(&mut self.cached);
        op.apply(cached);
        self.pending.push((number, op));
    }

    /// An honest sync.
    pub(super) fn sync(&mut self) {
        if !self.pending.is_empty() {
            let durable: &mut Content = Arc::make_mut(&mut self.durable);
            self.pending.drain(..).for_each(|(_, op)| op.apply(durable));
        }
    }

    /// A failed sync after which the kernel takes the pages for clean: nothing will write them any more.
    pub(super) fn drop_dirty_marks(&mut self) {
        self.pending.clear();
    }

    /// Memory pressure: pages taken for clean are read from the disk again. Dirty ones stay.
    pub(super) fn evict(&mut self) {
        let mut content = Vec::clone(&self.durable);
        self.pending.iter().for_each(|(_, op)| op.apply(&mut content));
        self.cached = Arc::new(content.into());
    }

    /// The content after a loss of power.
    pub(super) fn survivor(&self, fates: &mut Fates) -> Arc<Content> {
        if self.pending.iter().all(|(number, _)| fates.of(*number) == Fate::Lost) {
            return Arc::clone(&self.durable);
        }
        let mut content = Vec::clone(&self.durable);
        // Writes change places among themselves only: no file system cuts a file later than the writes that followed.
        for run in self.pending.chunk_by(|(_, before), (_, after)| before.is_write() && after.is_write()) {
            let mut run: Vec<_> = run.iter().collect();
            if fates.reordered {
                fates.rng.shuffle(&mut run);
            }
            for (number, op) in run {
                match fates.of(*number) {
                    Fate::Lost => {}
                    Fate::Kept => op.apply(&mut content),
                    Fate::Grown => op.grow(&mut content),
                    Fate::Torn => op.apply_torn(&mut content, &mut fates.rng),
                }
            }
        }
        Arc::new(content.into())
    }
}
