//! Where a run keeps its files, and how another terminal finds it.
//!
//! All runs stand under one parent, each in a directory named after it. A run lives while its lock is held: the system
//! releases it however the supervisor ends, so no pid has to be believed. Directories of dead runs are swept at the
//! next start, unless they were to be kept.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::sys::ProcessIdentity;

/// The environment variable that names the parent of all runs, like `--data`.
pub const DATA_VARIABLE: &str = "COUNTERFOIL_LAB_DATA";

const LOCK: &str = "lock";
const DESCRIPTION: &str = "run.json";
const KEEP: &str = "keep";
const SWEEP_LOCK: &str = "sweep.lock";

/// What a run says about itself. Whoever reads it asks the supervisor for its run id before it believes anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDescription {
    /// The run.
    pub run: String,
    /// Its supervisor.
    pub supervisor: ProcessIdentity,
    /// Where the supervisor listens, on 127.0.0.1.
    pub port: u16,
}

/// The parent of all runs.
#[derive(Clone, Debug)]
pub struct Runs {
    parent: PathBuf,
}

/// The directory of a run of this process. The lock is released when it is dropped.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    kept: bool,
    _lock: File,
}

/// What the sweep at a start found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Directories of dead runs that were removed.
    pub runs: usize,
    /// Their size.
    pub bytes: u64,
}

impl Runs {
    /// The given parent, or the one of the environment, or a directory of its own below the system's for temporary
    /// files.
    #[must_use]
    pub fn new(parent: Option<PathBuf>) -> Self {
        let named = parent.or_else(|| std::env::var_os(DATA_VARIABLE).map(PathBuf::from));
        Self { parent: named.unwrap_or_else(|| std::env::temp_dir().join("counterfoil-lab")) }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.parent
    }

    /// Sweeps what dead runs left, and makes the directory of a new one.
    ///
    /// # Errors
    ///
    /// If the parent cannot be made or written, or the run exists.
    pub fn create(&self, run: &str, keep: bool) -> io::Result<(RunDir, Swept)> {
        let explain = |error: io::Error| {
            let hint = format!("name another directory with --data or {DATA_VARIABLE}");
            io::Error::new(error.kind(), format!("{}: {error}; {hint}", self.parent.display()))
        };
        create_private(&self.parent, true).map_err(explain)?;
        // Held while directories are made and swept: a new one without a lock is not swept by a lab that starts beside.
        let sweeping = File::create(self.parent.join(SWEEP_LOCK)).map_err(explain)?;
        sweeping.lock().map_err(explain)?;
        let swept = self.sweep();
        let path = self.parent.join(run);
        create_private(&path, false).map_err(explain)?;
        let lock = File::create(path.join(LOCK))?;
        // Somebody who lists runs may hold it for a moment.
        lock.lock()?;
        if keep {
            File::create(path.join(KEEP))?;
        }
        for part in ["logs", "evidence"] {
            fs::create_dir(path.join(part))?;
        }
        Ok((RunDir { path, kept: keep, _lock: lock }, swept))
    }

    /// Runs whose lock is held and that have said where they are. A run that is just starting is not among them.
    ///
    /// # Errors
    ///
    /// If the parent cannot be read; that it does not exist means that there are none.
    pub fn alive(&self) -> io::Result<Vec<RunDescription>> {
        let mut alive = Vec::new();
        for path in self.directories()? {
            let description = fs::read(path.join(DESCRIPTION)).ok().and_then(|text| serde_json::from_slice(&text).ok());
            if let Some(description) = description
                && !is_dead(&path)
            {
                alive.push(description);
            }
        }
        alive.sort_by(|a: &RunDescription, b| a.run.cmp(&b.run));
        Ok(alive)
    }

    /// What can be removed is; the rest stays for the next start.
    fn sweep(&self) -> Swept {
        let mut swept = Swept::default();
        for path in self.directories().unwrap_or_default() {
            if path.join(KEEP).exists() || !is_dead(&path) {
                continue;
            }
            let bytes = size_of(&path);
            if fs::remove_dir_all(&path).is_ok() {
                swept.runs += 1;
                swept.bytes += bytes;
            }
        }
        swept
    }

    /// Only directories that a lab made: they have its lock.
    fn directories(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match fs::read_dir(&self.parent) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        Ok(paths.filter(|path| path.join(LOCK).is_file()).collect())
    }
}

impl RunDir {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log of a child.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// The disk of a replica or of the provider.
    #[must_use]
    pub fn disk(&self, name: &str) -> PathBuf {
        self.path.join(format!("disk-{name}"))
    }

    /// Where wiped disks go: only the judge reads them.
    #[must_use]
    pub fn evidence(&self) -> PathBuf {
        self.path.join("evidence")
    }

    /// The history of the run.
    #[must_use]
    pub fn history(&self) -> PathBuf {
        self.path.join("history.jsonl")
    }

    /// Tells other terminals where the supervisor is. It appears whole or not at all.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn describe(&self, description: &RunDescription) -> io::Result<()> {
        let whole = self.path.join(format!("{DESCRIPTION}.new"));
        fs::write(&whole, serde_json::to_vec(description)?)?;
        fs::rename(whole, self.path.join(DESCRIPTION))
    }

    /// Ends the run: removes the directory unless it is to be kept, and says how many bytes went.
    ///
    /// # Errors
    ///
    /// If something in it cannot be removed.
    pub fn remove(self) -> io::Result<Option<u64>> {
        if self.kept {
            fs::remove_file(self.path.join(DESCRIPTION)).or_else(unless_missing)?;
            return Ok(None);
        }
        let bytes = size_of(&self.path);
        // Windows removes no file that is open: the lock goes first, and with it the claim to be alive.
        let Self { path, _lock, .. } = self;
        drop(_lock);
        fs::remove_dir_all(&path).or_else(unless_missing)?;
        Ok(Some(bytes))
    }
}

fn unless_missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// A run whose lock can be had is dead. What cannot be decided counts as alive.
fn is_dead(path: &Path) -> bool {
    match File::open(path.join(LOCK)).map(|file| file.try_lock_shared()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
    }
}

fn size_of(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => size_of(&entry.path()),
            Ok(_) | Err(_) => entry.metadata().map_or(0, |metadata| metadata.len()),
        })
        .sum()
}

fn create_private(path: &Path, and_parents: bool) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(and_parents);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(run: &str) -> RunDescription {
        RunDescription { run: run.to_owned(), supervisor: ProcessIdentity::own().unwrap(), port: 1 }
    }

    #[test]
    fn the_directory_of_a_dead_run_is_swept_at_the_next_start_and_that_of_a_living_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let runs = Runs::new(Some(parent.path().join("labs")));
        let (living, _) = runs.create("living", false).unwrap();
        living.describe(&description("living")).unwrap();
        let (dead, _) = runs.create("dead", false).unwrap();
        fs::write(dead.path().join("file"), [7; 1000]).unwrap();
        let left = dead.path().to_owned();
        drop(dead);

        let (next, swept) = runs.create("next", false).unwrap();
        assert_eq!(swept, Swept { runs: 1, bytes: 1000 });
        assert!(!left.exists() && living.path().exists() && next.path().exists());
        // The next one has not said where it is, the living one has.
        assert_eq!(runs.alive().unwrap(), [description("living")]);
    }

    #[test]
    fn a_run_that_was_to_be_kept_is_neither_swept_nor_shown_as_alive() {
        let parent = tempfile::tempdir().unwrap();
        let runs = Runs::new(Some(parent.path().to_owned()));
        let (kept, _) = runs.create("kept", true).unwrap();
        kept.describe(&description("kept")).unwrap();
        let path = kept.path().to_owned();
        assert_eq!(kept.remove().unwrap(), None);
        let (_next, swept) = runs.create("next", false).unwrap();
        assert_eq!(swept, Swept::default());
        assert!(path.exists() && runs.alive().unwrap().is_empty());
    }

    #[test]
    fn what_is_no_run_in_the_parent_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let foreign = parent.path().join("somebody's");
        fs::create_dir(&foreign).unwrap();
        let runs = Runs::new(Some(parent.path().to_owned()));
        runs.create("run", false).unwrap();
        assert!(foreign.exists());
    }
}
