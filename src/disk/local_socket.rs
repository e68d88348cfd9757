//! A socket in a directory, which only the directory's owner may use.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The socket's name.
const ADMIN: &str = "ADMIN";

/// A connection.
pub(crate) type LocalStream = UnixStream;

/// Listens until it is closed, and then takes its name away.
#[derive(Debug)]
pub(crate) struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
}

/// Listens in a directory. A socket that somebody left there is replaced: the caller holds the directory's lock.
pub(crate) fn listen_local(directory: &Path) -> io::Result<LocalListener> {
    let path = directory.join(ADMIN);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&path)?;
    // The directory is 0700 as well, so nobody came in between.
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(LocalListener { listener, path })
}

pub(crate) fn connect_local(directory: &Path) -> io::Result<LocalStream> {
    UnixStream::connect(directory.join(ADMIN))
}

impl LocalListener {
    pub(crate) fn accept(&self) -> io::Result<LocalStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    /// Wakes whoever accepts, once more, and takes the name away.
    pub(crate) fn close(&self) {
        drop(UnixStream::connect(&self.path));
        drop(std::fs::remove_file(&self.path));
    }
}
