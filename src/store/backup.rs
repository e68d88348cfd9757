//! A copy of the store, made while it is at work.
//!
//! A backup is one published state, written row by row into a state file of its own. It needs no log: a copied log would
//! bring the state up to the same position, and entries that nobody has folded yet are in the published maps already. So
//! it is as small as what is living, and it can be checked by itself.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::position::Position;
use crate::disk::{Disk, DiskFile, OpenMode, RedbBackend, StdDisk, WriteGate};
use crate::state::{ALL, Engine, FoldDurability, MemoryMap, Meta, Rows, hex, unhex};

use super::Store;
use super::open::STATE;
use super::open_error::OpenError;

/// What a backup has and no store.
pub(super) const BACKUP: &str = "BACKUP";

/// The first line of that file.
const MAGIC: &str = "counterfoil backup 1";

/// Rows that are written at a time, in bytes of memory.
const SLICE_BYTES: usize = 1024 * 1024;

/// Bytes of a file that are read at a time.
pub(super) const CHUNK_BYTES: usize = 1024 * 1024;

/// Why a backup was not made or not restored. Neither the store nor the backup was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The directory that was to be filled holds something.
    #[error("{location} is not empty: it holds {found:?}; choose a new or empty directory")]
    NotEmpty {
        /// Which.
        location: String,
        /// One of the files in it.
        found: String,
    },
    /// It is no backup, or one that was not finished.
    #[error("{location} is not a finished backup: {reason}")]
    Unfinished {
        /// Which.
        location: String,
        /// How one can tell.
        reason: String,
    },
    /// The backup is damaged.
    #[error("{file} of the backup is damaged: {reason}; use another backup")]
    Damaged {
        /// Which file.
        file: String,
        /// How one can tell.
        reason: String,
    },
    /// The restored store could not be made.
    #[error("the store could not be restored: {0}")]
    Open(#[from] OpenError),
    /// The operating system refused.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

impl BackupError {
    /// For `map_err`.
    pub(super) fn io(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { action, file, source }
    }
}

/// What [`Store::backup`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its own name, by chance.
    pub id: String,
    /// The last entry that is part of it; none of an empty store.
    pub position: Option<Position>,
    /// Rows in it.
    pub rows: u64,
    /// Bytes of its state file.
    pub bytes: u64,
}

/// What a backup says of itself.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) id: String,
    pub(super) store_id: String,
    /// The secret under which scopes and requests are hashed: without it no retry would find its receipt.
    secret: String,
    pub(super) created_ms: u64,
    pub(super) epoch: u64,
    pub(super) sequence: u64,
    pub(super) time_ms: u64,
    pub(super) state_bytes: u64,
    pub(super) state_blake3: String,
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manifest").field("id", &self.id).field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Manifest {
    pub(super) fn store_id(&self) -> Option<[u8; 16]> {
        unhex(&self.store_id)?.try_into().ok()
    }

    pub(super) fn backup_id(&self) -> Option<[u8; 16]> {
        unhex(&self.id)?.try_into().ok()
    }

    pub(super) fn secret(&self) -> Option<[u8; 32]> {
        unhex(&self.secret)?.try_into().ok()
    }

    /// The file as text: a mark, the fields as JSON, and a checksum of both.
    fn to_text(&self) -> String {
        let fields = serde_json::to_string(self).expect("strings and numbers are always JSON");
        let checked = format!("{MAGIC}\n{fields}\n");
        let checksum = blake3::hash(checked.as_bytes());
        format!("{checked}{checksum}\n")
    }

    /// Reads the manifest of a backup.
    pub(super) fn read(disk: &dyn Disk) -> Result<Self, BackupError> {
        let unfinished =
            |reason: &str| BackupError::Unfinished { location: disk.location(), reason: reason.to_owned() };
        let file = match disk.open(BACKUP, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(unfinished("it has no file BACKUP, which is written last"));
            }
            Err(error) => return Err(BackupError::io("open", BACKUP)(error)),
        };
        let bytes = super::identity::read_small(&*file).map_err(BackupError::io("read", BACKUP))?;
        let text = String::from_utf8(bytes).map_err(|_| unfinished("BACKUP is not text"))?;
        let mut lines = text.lines();
        let (magic, fields, checksum) = (lines.next(), lines.next(), lines.next());
        match magic {
            Some(MAGIC) => {}
            Some(other) if other.starts_with("counterfoil backup ") => {
                return Err(unfinished("it was made by a newer version of this crate"));
            }
            Some(_) | None => return Err(unfinished("BACKUP does not begin as that of a backup does")),
        }
        let (Some(fields), Some(checksum), true) = (fields, checksum, text.ends_with('\n')) else {
            return Err(unfinished("BACKUP is cut short"));
        };
        if blake3::hash(format!("{MAGIC}\n{fields}\n").as_bytes()).to_string() != checksum {
            let reason = "its checksum is wrong".to_owned();
            return Err(BackupError::Damaged { file: BACKUP.to_owned(), reason });
        }
        serde_json::from_str(fields)
            .map_err(|error| BackupError::Damaged { file: BACKUP.to_owned(), reason: error.to_string() })
    }
}

impl Store {
    /// Copies the store into a new directory while it is at work: one state, as a reader would see it now.
    ///
    /// The copy cannot be opened as a store, so that two stores never go on from the same place under one name;
    /// [`Store::restore`] makes one of it. The history in the log is not part of it. It holds the secret of the store, and
    /// what is erased later: keep it as you keep the store. `progress` is told how many rows of how many are written.
    ///
    /// **Copying the directory of an open store with other tools gives a torn copy**, which opening notices in most cases,
    /// and not in all.
    ///
    /// # Errors
    ///
    /// [`BackupError`]; an unfinished backup is told by the file `BACKUP` that it lacks, and may be deleted.
    pub fn backup(&self, directory: impl AsRef<Path>, progress: impl FnMut(u64, u64)) -> Result<Backup, BackupError> {
        self.backup_on(&StdDisk::new(directory.as_ref().to_path_buf()), progress)
    }

    pub(crate) fn backup_on(&self, disk: &dyn Disk, mut progress: impl FnMut(u64, u64)) -> Result<Backup, BackupError> {
        let shared = self.shared();
        disk.create_dir("").map_err(BackupError::io("make", disk.location()))?;
        let found = disk.list("").map_err(BackupError::io("list", disk.location()))?;
        if let Some(found) = found.into_iter().next() {
            return Err(BackupError::NotEmpty { location: disk.location(), found });
        }
        let view = self.view();
        let position = view.published().position;
        let time = shared.time.now();
        let meta = Meta {
            store_id: shared.store_id.as_u128(),
            epoch: shared.epoch,
            applied_epoch: position.epoch,
            applied_sequence: position.sequence,
            clock_mark_ms: time.0,
            clock_trusted_ms: shared.time.trusted(time).0,
            log_floor: position.sequence.saturating_add(1),
        };
        let rows = self.write_state(disk, meta, &view, &mut progress)?;
        disk.sync_dir("").map_err(BackupError::io("sync", disk.location()))?;
        let (state_bytes, state_blake3) = hash_file(disk, STATE)?;
        let identity = super::identity::Identity::read(&*shared.disk)?;
        let manifest = Manifest {
            id: hex(&super::open::random::<16>()?),
            store_id: hex(&identity.store_id),
            secret: hex(&identity.secret),
            created_ms: shared.time.wall().0,
            epoch: position.epoch,
            sequence: position.sequence,
            time_ms: time.0,
            state_bytes,
            state_blake3,
        };
        write_file(disk, BACKUP, manifest.to_text().as_bytes()).map_err(BackupError::io("write", BACKUP))?;
        disk.sync_dir("").map_err(BackupError::io("sync", disk.location()))?;
        let position = (position.sequence > 0).then_some(position);
        Ok(Backup { id: manifest.id, position, rows, bytes: state_bytes })
    }

    /// Writes every row of a view into a state file, durable when it returns. Returns their number.
    fn write_state(
        &self,
        disk: &dyn Disk,
        meta: Meta,
        view: &super::reads::ReadView,
        progress: &mut impl FnMut(u64, u64),
    ) -> Result<u64, BackupError> {
        let shared = self.shared();
        let rows_of = &view.published().view;
        let failed =
            |error: &dyn fmt::Display| BackupError::Damaged { file: STATE.to_owned(), reason: error.to_string() };
        let corrupt = |error: &dyn fmt::Display| BackupError::Store(Error::Corrupt(error.to_string()));
        let mut total = 0;
        for (id, _) in shared.catalog.all() {
            total += rows_of.len(id).map_err(|error| corrupt(&error))?;
        }
        let file = disk.open(STATE, OpenMode::Create).map_err(BackupError::io("make", STATE))?;
        let gate = WriteGate::new();
        let backend = RedbBackend::new(file, gate.clone());
        let engine = Engine::create(backend, Arc::clone(&shared.catalog), meta, shared.limits.cache_bytes)
            .map_err(|error| failed(&error))?;
        let written = || -> Result<u64, BackupError> {
            let (mut slice, mut written) = (MemoryMap::new(), 0);
            for (id, _) in shared.catalog.all() {
                for row in rows_of.range(id, ALL).map_err(|error| corrupt(&error))? {
                    let (key, value) = row.map_err(|error| corrupt(&error))?;
                    slice.set(key, Some(value));
                    written += 1;
                    if slice.bytes() >= SLICE_BYTES {
                        let full = std::mem::take(&mut slice);
                        engine.fold(&full, meta, FoldDurability::Volatile).map_err(|error| failed(&error))?;
                        progress(written, total);
                    }
                }
            }
            engine.fold(&slice, meta, FoldDurability::Checkpoint).map_err(|error| failed(&error))?;
            progress(written, total);
            Ok(written)
        }();
        // redb makes no commit of its own as it goes.
        gate.refuse();
        drop(engine);
        written
    }
}

/// The length and the hash of a file.
pub(super) fn hash_file(disk: &dyn Disk, name: &str) -> Result<(u64, String), BackupError> {
    let file = disk.open(name, OpenMode::Read).map_err(BackupError::io("open", name))?;
    let mut hasher = blake3::Hasher::new();
    let bytes = each_chunk(&*file, |_, chunk| {
        hasher.update(chunk);
        Ok(())
    })
    .map_err(BackupError::io("read", name))?;
    Ok((bytes, hasher.finalize().to_string()))
}

/// Reads a file a piece at a time. Returns its length.
pub(super) fn each_chunk(file: &dyn DiskFile, mut take: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<u64> {
    let len = file.len()?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut offset = 0;
    while offset < len {
        let bytes = usize::try_from((len - offset).min(CHUNK_BYTES as u64)).expect("a chunk fits");
        file.read_exact_at(offset, &mut chunk[..bytes])?;
        take(offset, &chunk[..bytes])?;
        offset += bytes as u64;
    }
    Ok(len)
}

fn write_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let file = disk.open(name, OpenMode::Create)?;
    file.write_all_at(0, bytes)?;
    file.sync_data()
}
