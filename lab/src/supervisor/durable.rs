//! What is durable, of the living, the dead and the wiped: what the judge counts.
//!
//! Disks of the dead and wiped ones are copied and the copy is opened, since opening a store writes to it. Nothing here
//! decides anything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::children::file_name;
use super::error::LabError;
use super::lab::{Lab, lock};
use super::member::Life;
use crate::provider::Ledger;
use crate::replica::disk::{Disk, DiskContents, HeldForKey};
use crate::rules::ids::{Key, ReplicaId};
use crate::rules::record::Charge;
use crate::wire::replica::ReplicaClient;

const READ_WITHIN: Duration = Duration::from_secs(20);
const ASK_WITHIN: Duration = Duration::from_secs(2);

/// Everything durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Durable {
    /// Each disk there is or was.
    pub disks: Vec<DiskRead>,
    /// The provider's ledger.
    pub charges: Vec<Charge>,
}

/// One disk that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRead {
    /// Whose it is or was.
    pub replica: ReplicaId,
    /// Whether it was taken away: only the judge reads it.
    pub wiped: bool,
    /// What is on it.
    pub contents: DiskContents,
}

/// Where the record of a key is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhereReport {
    /// Which key.
    pub key: Key,
    /// Each place that was looked at.
    pub places: Vec<Place>,
}

/// One place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// "replica A", "provider", "evidence of B".
    pub name: String,
    /// In which state it is, and who looked.
    pub state: String,
    /// What it holds; nothing if nobody could look.
    pub held: Option<HeldForKey>,
}

impl WhereReport {
    /// How often the effect happened, in all places that could be looked at.
    #[must_use]
    pub fn effects(&self) -> u64 {
        self.places.iter().filter_map(|place| place.held.as_ref()).map(|held| held.effects).sum()
    }
}

/// Reads all disks below the directory of a run in which nothing runs any more.
///
/// # Errors
///
/// [`LabError::Disk`] naming the disk that does not read: a count over fewer disks would be a lie.
pub fn collect_from(directory: &Path) -> Result<Durable, LabError> {
    let mut disks = Vec::new();
    for path in subdirectories(directory)? {
        if let Some(replica) = replica_of(&path, "disk-") {
            disks.push(DiskRead { replica, wiped: false, contents: read_copy(&path)? });
        }
    }
    for path in subdirectories(&directory.join("evidence"))? {
        if let Some(replica) = replica_of(&path, "") {
            disks.push(DiskRead { replica, wiped: true, contents: read_copy(&path)? });
        }
    }
    let ledger = directory.join("disk-provider");
    let charges = if ledger.exists() { read_ledger(&ledger)? } else { Vec::new() };
    if disks.is_empty() {
        return Err(LabError::Disk(format!("{}: there are no disks of a lab", directory.display())));
    }
    Ok(Durable { disks, charges })
}

fn subdirectories(directory: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries =
        fs::read_dir(directory).map_err(|error| LabError::Disk(format!("{}: {error}", directory.display())))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// `disk-a` is A's, `a-1` in the evidence was.
fn replica_of(path: &Path, prefix: &str) -> Option<ReplicaId> {
    let name = path.file_name()?.to_str()?.strip_prefix(prefix)?;
    name.split('-').next()?.parse().ok()
}

fn read_copy(path: &Path) -> Result<DiskContents, LabError> {
    with_copy(path, |copy| {
        let disk = Disk::open_evidence(copy).map_err(|error| error.to_string())?;
        let contents = disk.contents().map_err(|error| error.to_string())?;
        disk.close().map_err(|error| error.to_string())?;
        Ok(contents)
    })
}

fn read_ledger(path: &Path) -> Result<Vec<Charge>, LabError> {
    with_copy(path, |copy| {
        let ledger = Ledger::open(copy).map_err(|error| error.to_string())?;
        ledger.charges().map_err(|error| error.to_string())
    })
}

/// Works on a copy beside the original, which goes away afterwards.
fn with_copy<T>(path: &Path, work: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, LabError> {
    let failed = |error: String| LabError::Disk(format!("{}: {error}", path.display()));
    let mut copy = path.as_os_str().to_owned();
    copy.push(format!(".read-{:08x}", fastrand::u32(..)));
    let copy = PathBuf::from(copy);
    let done = copy_directory(path, &copy).map_err(|error| error.to_string()).and_then(|()| work(&copy));
    // It goes with the run's directory, if it does not go now.
    drop(fs::remove_dir_all(&copy));
    done.map_err(failed)
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

impl Lab {
    /// Everything durable: the living are asked, disks of the dead and wiped ones are read.
    ///
    /// # Errors
    ///
    /// [`LabError::Paused`] if somebody can neither be asked nor read; [`LabError::Silent`], [`LabError::Disk`].
    pub async fn collect(&self) -> Result<Durable, LabError> {
        let _nobody_starts_meanwhile = self.inner.acting.lock().await;
        let mut disks = Vec::new();
        for (replica, life, client) in self.places() {
            let contents = match life {
                Life::Running => {
                    let asked = client.contents(READ_WITHIN).await;
                    asked.map_err(|error| LabError::Silent { replica, error })?
                }
                Life::Paused => return Err(LabError::Paused(replica)),
                Life::Killed | Life::Crashed => {
                    let path = self.inner.path(|dir| dir.disk(&file_name(replica)))?;
                    if !path.exists() {
                        continue;
                    }
                    blocking(move || read_copy(&path)).await?
                }
            };
            disks.push(DiskRead { replica, wiped: false, contents });
        }
        let evidence = self.inner.path(|dir| dir.evidence())?;
        disks.extend(blocking(move || read_evidence(&evidence)).await?);
        Ok(Durable { disks, charges: self.charges().await? })
    }

    async fn charges(&self) -> Result<Vec<Charge>, LabError> {
        let provider =
            lock(&self.inner.state).provider.as_ref().map(|(child, _, client)| (child.has_ended(), client.clone()));
        match provider {
            Some((false, client)) => {
                client.ledger(READ_WITHIN).await.map_err(|error| LabError::Disk(format!("the provider: {error}")))
            }
            Some((true, _)) | None => {
                let path = self.inner.path(|dir| dir.disk("provider"))?;
                blocking(move || read_ledger(&path)).await
            }
        }
    }

    /// Where the durable record of a key is right now: every place, whether it can be asked or not.
    ///
    /// # Errors
    ///
    /// [`LabError::Disk`] if a disk of a dead replica does not read.
    pub async fn where_is(&self, key: &Key) -> Result<WhereReport, LabError> {
        let _nobody_starts_meanwhile = self.inner.acting.lock().await;
        let mut places = Vec::new();
        for (replica, life, client) in self.places() {
            let name = format!("replica {replica}");
            let (state, held) = match life {
                Life::Running => match client.where_is(key, ASK_WITHIN).await {
                    Ok(held) => ("running, it says so itself".to_owned(), Some(held)),
                    Err(error) => (format!("running, and does not answer: {error}"), None),
                },
                Life::Paused => ("PAUSED: nobody can ask it".to_owned(), None),
                Life::Killed | Life::Crashed => {
                    let path = self.inner.path(|dir| dir.disk(&file_name(replica)))?;
                    if path.exists() {
                        let held = held_on(path, key.clone()).await?;
                        (format!("{}: on the disk of a dead process, where no replica looks", life.word()), Some(held))
                    } else {
                        (format!("{}, and its disk was wiped", life.word()), None)
                    }
                }
            };
            places.push(Place { name, state, held });
        }
        for path in subdirectories(&self.inner.path(|dir| dir.evidence())?)? {
            if let Some(replica) = replica_of(&path, "") {
                let held = held_on(path, key.clone()).await?;
                let state = "WIPED: only the judge reads it".to_owned();
                places.push(Place { name: format!("a former disk of {replica}"), state, held: Some(held) });
            }
        }
        places.push(self.charged(key).await?);
        Ok(WhereReport { key: key.clone(), places })
    }

    async fn charged(&self, key: &Key) -> Result<Place, LabError> {
        let charges = self.charges().await?;
        let effects = charges.iter().filter(|charge| charge.row.key == *key).count();
        let held = HeldForKey { effects: u64::try_from(effects).unwrap_or(u64::MAX), ..HeldForKey::default() };
        Ok(Place { name: "the provider".to_owned(), state: "its ledger says so".to_owned(), held: Some(held) })
    }

    fn places(&self) -> Vec<(ReplicaId, Life, ReplicaClient)> {
        let state = lock(&self.inner.state);
        state.members.iter().map(|(id, member)| (*id, member.life, member.client.clone())).collect()
    }
}

fn read_evidence(directory: &Path) -> Result<Vec<DiskRead>, LabError> {
    let mut disks = Vec::new();
    for path in subdirectories(directory)? {
        if let Some(replica) = replica_of(&path, "") {
            disks.push(DiskRead { replica, wiped: true, contents: read_copy(&path)? });
        }
    }
    Ok(disks)
}

async fn held_on(path: PathBuf, key: Key) -> Result<HeldForKey, LabError> {
    blocking(move || {
        with_copy(&path, |copy| {
            let disk = Disk::open_evidence(copy).map_err(|error| error.to_string())?;
            disk.held_for(&key).map_err(|error| error.to_string())
        })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
) -> Result<T, LabError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| LabError::Disk(error.to_string()))?
}
