//! The disk that production runs on: one directory, through `std::fs`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile, DiskLock, OpenMode, name};

#[cfg(test)]
mod tests;

/// A store's directory in the file system.
///
/// On unix, directories are made with mode 0700 and files with 0600, less what the umask takes away: a store holds
/// replies, which belong to its owner alone. Modes of what already exists are left as they are.
#[derive(Debug)]
pub(crate) struct StdDisk {
    root: PathBuf,
}

impl StdDisk {
    /// A disk whose `""` is `root`. Touches nothing.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn file_path(&self, name: &str) -> io::Result<PathBuf> {
        name::check_file(name)?;
        Ok(self.root.join(name))
    }

    /// `""` is the root itself and not `root/`, which would mean something else where the root is a symbolic link.
    fn dir_path(&self, name: &str) -> io::Result<PathBuf> {
        if name.is_empty() { Ok(self.root.clone()) } else { self.file_path(name) }
    }
}

impl Disk for StdDisk {
    /// Makes the last directory only: a missing parent is more often a typing error or an absent mount than a wish.
    ///
    /// The root is also made durable in its parent, which no other call of the seam can name. That is done for a root
    /// that is there already too: whoever made it may have died before the sync. There, a parent that this process may
    /// not read is left alone, since then somebody else provided the directory.
    fn create_dir(&self, name: &str) -> io::Result<()> {
        let path = self.dir_path(name)?;
        match private_dir_builder().create(&path) {
            Ok(()) if name.is_empty() => sync_directory(containing(&path)),
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {
                let synced = if name.is_empty() { sync_directory(containing(&path)) } else { Ok(()) };
                synced
                    .or_else(|error| if error.kind() == io::ErrorKind::PermissionDenied { Ok(()) } else { Err(error) })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!(
                    "cannot make the directory {}: its parent {} does not exist",
                    path.display(),
                    containing(&path).display()
                ),
            )),
            Err(error) => Err(told("make the directory", &path, error)),
        }
    }

    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.file_path(name)?;
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::Create => private(options.write(true).create(true).truncate(true)),
        };
        let file = options.open(&path).map_err(|error| told("open", &path, error))?;
        Ok(Arc::new(StdFile { file }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.file_path(from)?, self.file_path(to)?);
        fs::rename(&from, &to).map_err(|error| told("rename", &from, error))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.file_path(name)?;
        fs::remove_file(&path).map_err(|error| told("remove", &path, error))
    }

    fn remove_dir(&self, name: &str) -> io::Result<()> {
        let path = self.file_path(name)?;
        fs::remove_dir(&path).map_err(|error| told("remove the directory", &path, error))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let path = self.dir_path(dir)?;
        let told = |error| told("list", &path, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(told)? {
            let name = entry.map_err(told)?.file_name().into_string().map_err(|name| {
                io::Error::new(io::ErrorKind::InvalidData, format!("{} holds the name {name:?}", path.display()))
            })?;
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    /// Opens the directory and syncs it. On Windows, which has no such call and whose file system journals names by
    /// itself, this does nothing.
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        sync_directory(&self.dir_path(dir)?)
    }

    /// An advisory lock on the open file, which conflicts with any other opening, also one by this process.
    fn lock(&self, name: &str) -> io::Result<Box<dyn DiskLock>> {
        let path = self.file_path(name)?;
        let file = private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
            .open(&path)
            .map_err(|error| told("open", &path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(StdLock { _file: file })),
            Err(TryLockError::WouldBlock) => {
                Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{} is locked elsewhere", path.display())))
            }
            Err(TryLockError::Error(error)) => Err(told("lock", &path, error)),
        }
    }

    fn location(&self) -> String {
        self.root.display().to_string()
    }
}

/// Held through the open file: the system releases it when the file is closed, however the process ends.
#[derive(Debug)]
struct StdLock {
    _file: File,
}

impl DiskLock for StdLock {}

/// An open file. Only positioned calls are made, so its cursor means nothing.
#[derive(Debug)]
struct StdFile {
    file: File,
}

impl DiskFile for StdFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buf, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, buf, offset)
    }

    #[cfg(unix)]
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.file, buf, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, offset: u64, buf: &[u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.file, buf, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

/// Says what was tried on which path, and keeps the kind, which is what callers decide by.
fn told(tried: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {tried} {}: {error}", path.display()))
}

/// The directory that holds a path; `.` for a bare name.
fn containing(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

#[cfg(not(windows))]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(|error| told("sync the directory", path, error))
}

/// Nothing to call there; an error for a directory that is absent, as elsewhere.
#[cfg(windows)]
fn sync_directory(path: &Path) -> io::Result<()> {
    fs::metadata(path).map(drop).map_err(|error| told("sync the directory", path, error))
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn private_dir_builder() -> fs::DirBuilder {
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(not(unix))]
fn private_dir_builder() -> fs::DirBuilder {
    fs::DirBuilder::new()
}
