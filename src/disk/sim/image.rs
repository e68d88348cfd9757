//! What tests see of a disk besides its calls, and what they may damage.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::SimDisk;
use super::names::{NameOp, Node};

/// Looking at files and damaging them. None of this counts as a call, and it works without power as well.
impl SimDisk {
    /// A digest of all names and contents, durable and cached: equal images need to be checked only once.
    pub fn image_hash(&self) -> u128 {
        let state = self.shared.state.lock();
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        let mut last = None;
        for names in [&state.names.durable, &state.names.cached] {
            if last == Some(names) {
                part(b"the same names");
                continue;
            }
            last = Some(names);
            names.keys().for_each(|name| part(name.as_bytes()));
            part(b"");
            for (name, inode) in state.files_of(names) {
                part(name.as_bytes());
                part(inode.durable.digest());
                // Comparing is much cheaper than hashing, and after a crash the two are the same bytes.
                let is_same = Arc::ptr_eq(&inode.cached, &inode.durable) || inode.cached == inode.durable;
                part(if is_same { b"the same content" } else { inode.cached.digest() });
            }
        }
        let digest = *hasher.finalize().as_bytes();
        u128::from_le_bytes(digest[..16].try_into().expect("16 of 32 bytes"))
    }

    /// Every file with the content that reads see.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.shared.state.lock();
        state.cached_files().map(|(name, inode)| (name.to_owned(), Vec::clone(&inode.cached))).collect()
    }

    /// The content that reads of this file see; `None` if it is absent.
    pub fn read_file(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.shared.state.lock();
        state.file(name).ok().map(|inode| Vec::clone(&state.inode(inode).cached))
    }

    /// Puts a file there, with missing directories, durable at once. An existing one keeps its identity.
    pub fn write_file(&self, name: &str, bytes: impl Into<Vec<u8>>) {
        self.shared.state.lock().plant(name, bytes.into());
    }

    /// Removes a file, durably at once. False if it is absent.
    pub fn remove_file(&self, name: &str) -> bool {
        let mut state = self.shared.state.lock();
        let there = state.file(name).is_ok();
        if there {
            state.change_names(NameOp::Unlink { name: name.to_owned() });
            state.settle_name(name);
        }
        there
    }

    /// Renames a file, durably at once. False if it is absent.
    pub fn rename_file(&self, from: &str, to: &str) -> bool {
        let mut state = self.shared.state.lock();
        let there = state.file(from).is_ok();
        if there {
            let node = Node::File(state.file(from).expect("it is there"));
            state.change_names(NameOp::Rename { from: from.to_owned(), to: to.to_owned(), node });
            state.settle_name(to);
        }
        there
    }

    /// Cuts or extends a file, durably at once. False if it is absent.
    pub fn truncate_file(&self, name: &str, len: usize) -> bool {
        let Some(mut content) = self.read_file(name) else { return false };
        content.resize(len, 0);
        self.write_file(name, content);
        true
    }
}
