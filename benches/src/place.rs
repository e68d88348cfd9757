//! Where the data is, and on what.

use std::path::Path;

use tempfile::TempDir;

use crate::failure::{During as _, Outcome};

/// File systems in memory, on which a sync does nothing.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// A directory that is removed at the end.
pub(crate) struct Place {
    directory: TempDir,
    /// As the kernel calls it; unknown where it does not say.
    pub(crate) file_system: Option<String>,
}

impl Place {
    pub(crate) fn make(wished: Option<&Path>, scratch: &Path) -> Outcome<Self> {
        let parent = wished.unwrap_or(scratch);
        if wished.is_none() {
            std::fs::create_dir_all(parent).during("making the directory for the data")?;
        }
        let directory = tempfile::Builder::new().prefix("commit-").tempdir_in(parent);
        let directory = directory.during(&format!("making a directory for the data in {}", parent.display()))?;
        let file_system = file_system_of(directory.path());
        Ok(Self { directory, file_system })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn describe(&self) -> String {
        let file_system = self.file_system.as_deref().unwrap_or("an unknown file system");
        format!("{file_system}, {}", self.path().display())
    }

    /// What makes the figures worthless, if anything does.
    pub(crate) fn warning(&self) -> Option<String> {
        let name = self.file_system.as_deref().filter(|name| IN_MEMORY.contains(name))?;
        Some(format!("warning: {name} is memory, where a sync costs nothing: name a directory on a disk with --dir"))
    }
}

#[cfg(target_os = "linux")]
fn file_system_of(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    file_system_in(&std::fs::read_to_string("/proc/mounts").ok()?, &directory)
}

#[cfg(not(target_os = "linux"))]
fn file_system_of(_directory: &Path) -> Option<String> {
    None
}

/// The type of the innermost mount that holds a directory; of several at one point, the last one covers the others.
#[cfg(any(target_os = "linux", test))]
fn file_system_in(mounts: &str, directory: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((Path::new(fields.next()?), fields.next()?))
    });
    let holding = mounts.filter(|(point, _)| directory.starts_with(point));
    holding.max_by_key(|(point, _)| point.components().count()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_names_the_file_system() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/disk xfs rw 0 0\n";
        let of = |path| file_system_in(mounts, Path::new(path));
        assert_eq!(of("/tmp/x").as_deref(), Some("tmpfs"));
        assert_eq!(of("/tmp/disk/x").as_deref(), Some("xfs"));
        assert_eq!(of("/home").as_deref(), Some("ext4"));
    }
}
