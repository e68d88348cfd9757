//! A store out of a backup.
//!
//! What the backup does not have may have been seen by somebody: positions that followed, receipts that were shown. So the
//! restored store goes on in an epoch far above the backup's, by chance, and its first entry says from where: a position
//! from after the copy is known as such and never mistaken for one of the restored store.

use std::path::Path;
use std::sync::Arc;

use crate::base::clock::{Clock, SystemClock};
use crate::base::error::Error;
use crate::base::position::{Position, TimestampMs};
use crate::disk::{CopyOnWrite, Disk, OpenMode, StdDisk};
use crate::log::record::{Body, EraseRecord, Record, RestoreRecord};
use crate::log::{LOG_DIR, RestoredLog, StoreId, begin_restored};
use crate::protocol::identity::HashKeys;
use crate::state::{ALL, Rows, check_copy};

use super::Store;
use super::apply::ApplyError;
use super::backup::{BACKUP, BackupError, Manifest, each_chunk, hash_file};
use super::erase::Erase;
use super::holder;
use super::identity::Identity;
use super::open::{STATE, clear_unfinished, is_empty_or_unfinished, random};
use super::rows::{RestoreRow, System, open_row};

/// By how much a restored store's epoch is above its backup's: more openings than there ever were, and too many values to
/// be met twice when one backup is restored twice.
const EPOCHS_MIN: u64 = 1 << 32;
const EPOCHS_MAX: u64 = 1 << 48;

/// Bytes of cache while a backup is checked.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// How a backup is restored.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    erase: Vec<(Erase, String)>,
}

impl RestoreOptions {
    /// Erases again what was erased after the backup was made, in the same step, so that it is never to be seen:
    /// [`Store::erasures`] of the store that was lost lists it.
    #[must_use]
    pub fn erase(mut self, what: Erase, reason: impl Into<String>) -> Self {
        self.erase.push((what, reason.into()));
        self
    }
}

/// What [`Store::restore`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The backup's own name.
    pub backup_id: String,
    /// The last entry that the backup had; none of an empty store.
    pub from: Option<Position>,
    /// The epoch in which the restored store goes on.
    pub epoch: u64,
}

/// What a position means to this store. See [`Store::position_state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PositionState {
    /// It is one of this store's, or was before older entries were removed.
    Committed,
    /// It was shown by the store that was lost, after the backup was made that this one was restored from: what it stood
    /// for is not here. Ask again under the same key: nothing is known of it, so it executes.
    LostInRestore {
        /// The last entry that the backup had.
        from: Position,
        /// The epoch in which this store goes on.
        epoch: u64,
    },
    /// This store has not come so far: it is another store's, or of a copy that went on by itself.
    Unknown,
}

impl Store {
    /// Makes a store out of a backup, in a directory that is absent or empty. The backup is checked first, every page of
    /// it, and stays as it is.
    ///
    /// The store goes on in an epoch that is higher by a random number, so that no position it gives was ever given
    /// before. Operations that were executed after the backup was made are not known: their keys **execute again**. Tell
    /// whoever holds their receipts, by [`Store::position_state`].
    ///
    /// # Errors
    ///
    /// [`BackupError`]. A restore that was interrupted leaves an unfinished creation, which the next one starts over.
    pub fn restore(
        backup: impl AsRef<Path>,
        directory: impl AsRef<Path>,
        options: &RestoreOptions,
    ) -> Result<Restored, BackupError> {
        let backup = StdDisk::new(backup.as_ref().to_path_buf());
        let target: Arc<dyn Disk> = Arc::new(StdDisk::new(directory.as_ref().to_path_buf()));
        Self::restore_on(&backup, &target, options)
    }

    pub(crate) fn restore_on(
        backup: &dyn Disk,
        target: &Arc<dyn Disk>,
        options: &RestoreOptions,
    ) -> Result<Restored, BackupError> {
        let manifest = Manifest::read(backup)?;
        let damaged =
            |file: &str, reason: &str| BackupError::Damaged { file: file.to_owned(), reason: reason.to_owned() };
        let identity = match (manifest.store_id(), manifest.secret()) {
            (Some(store_id), Some(secret)) => Identity { store_id, secret, created_ms: manifest.created_ms },
            _ => return Err(damaged(BACKUP, "store and secret cannot be read")),
        };
        let backup_id = manifest.backup_id().ok_or_else(|| damaged(BACKUP, "its id cannot be read"))?;
        check_state(backup, &manifest)?;

        target.create_dir("").map_err(BackupError::io("make", target.location()))?;
        if let Some(found) = is_empty_or_unfinished(&**target)? {
            return Err(BackupError::NotEmpty { location: target.location(), found });
        }
        let _lock = holder::lock(&**target, SystemClock::default().wall())?;
        identity.write_new(&**target).map_err(BackupError::io("write", "IDENTITY.new"))?;
        clear_unfinished(&**target)?;
        copy_state(backup, &**target)?;
        let epoch = manifest.epoch.saturating_add(epochs_above()?);
        begin_log(target, &identity, &manifest, backup_id, epoch, options)?;
        target.sync_dir("").map_err(BackupError::io("sync", target.location()))?;
        Identity::publish(&**target).map_err(BackupError::io("rename", "IDENTITY"))?;
        let from = Position { epoch: manifest.epoch, sequence: manifest.sequence };
        Ok(Restored { backup_id: manifest.id, from: (from.sequence > 0).then_some(from), epoch })
    }

    /// What a position means to this store, which may have been restored: for whoever holds one, or a receipt with one.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn position_state(&self, position: Position) -> Result<PositionState, Error> {
        let published = self.shared().publisher.load();
        let read = || -> Result<PositionState, ApplyError> {
            for row in published.view.range(System::Restores.id(), ALL)? {
                let (key, bytes) = row?;
                let epoch = key.key().try_into().map_or(0, u64::from_be_bytes);
                let restore: RestoreRow = open_row(System::Restores, key.key(), &bytes)?;
                let from = Position { epoch: restore.from_epoch, sequence: restore.from_sequence };
                if position.epoch >= from.epoch && position.epoch < epoch && position.sequence > from.sequence {
                    return Ok(PositionState::LostInRestore { from, epoch });
                }
            }
            let last = published.position;
            let is_beyond = position.sequence > last.sequence || position.epoch > self.shared().epoch;
            Ok(if is_beyond { PositionState::Unknown } else { PositionState::Committed })
        };
        read().map_err(|error| error.answer())
    }
}

/// Length, hash and every page.
fn check_state(backup: &dyn Disk, manifest: &Manifest) -> Result<(), BackupError> {
    let damaged = |reason: String| BackupError::Damaged { file: STATE.to_owned(), reason };
    let (bytes, hash) = hash_file(backup, STATE)?;
    if bytes != manifest.state_bytes {
        return Err(damaged(format!("it has {bytes} bytes, and {} were written", manifest.state_bytes)));
    }
    if hash != manifest.state_blake3 {
        return Err(damaged("its hash is not the one that was written".to_owned()));
    }
    let file = backup.open(STATE, OpenMode::Read).map_err(BackupError::io("open", STATE))?;
    let copy = CopyOnWrite::new(file).map_err(BackupError::io("read", STATE))?;
    let checked = check_copy(copy, CACHE_BYTES).map_err(|error| damaged(error.to_string()))?;
    if checked.clean { Ok(()) } else { Err(damaged("redb's check found damaged pages".to_owned())) }
}

fn copy_state(backup: &dyn Disk, target: &dyn Disk) -> Result<(), BackupError> {
    let from = backup.open(STATE, OpenMode::Read).map_err(BackupError::io("open", STATE))?;
    let to = target.open(STATE, OpenMode::Create).map_err(BackupError::io("make", STATE))?;
    each_chunk(&*from, |offset, chunk| to.write_all_at(offset, chunk)).map_err(BackupError::io("copy", STATE))?;
    to.sync_data().map_err(BackupError::io("sync", STATE))
}

fn epochs_above() -> Result<u64, BackupError> {
    let random = u64::from_le_bytes(random::<8>()?);
    Ok(EPOCHS_MIN + random % (EPOCHS_MAX - EPOCHS_MIN))
}

/// The log of the restored store: it continues after the backup, and says so first.
fn begin_log(
    target: &Arc<dyn Disk>,
    identity: &Identity,
    manifest: &Manifest,
    backup_id: [u8; 16],
    epoch: u64,
    options: &RestoreOptions,
) -> Result<(), BackupError> {
    let keys = HashKeys::derive(&identity.secret);
    let restore = RestoreRecord { backup_id, from_epoch: manifest.epoch, from_sequence: manifest.sequence };
    let erased = options.erase.iter().map(|(what, reason)| {
        let target = what.record(&keys);
        Body::Erase(EraseRecord { target, sequences: Vec::new(), decided_by: None, reason: reason.clone() })
    });
    let wall = SystemClock::default().wall();
    let bodies = std::iter::once(Body::Restore(restore)).chain(erased);
    let payloads = bodies
        .map(|body| Record { wall_ms: wall.0, body }.to_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Error::Corrupt(error.to_string()))?;
    target.create_dir(LOG_DIR).map_err(BackupError::io("make", LOG_DIR))?;
    let log = RestoredLog {
        epoch,
        continues_after: manifest.sequence,
        time_ms: TimestampMs(manifest.time_ms).0,
        created_ms: wall.0,
        payloads: &payloads,
    };
    begin_restored(target, StoreId(identity.store_id), &log).map_err(|error| BackupError::Open(error.into()))
}
