//! Names within a store, shared by both disks so that they accept and refuse the same ones.

use std::io;

/// The directory part of a name; `""`, the store's own directory, when there is none.
#[cfg(any(test, feature = "testing"))]
pub(super) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The part after the last `/`.
#[cfg(any(test, feature = "testing"))]
pub(super) fn last(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

/// Refuses a file name that could leave the store's directory or mean something else on another platform.
pub(super) fn check_file(name: &str) -> io::Result<()> {
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', ':', '\0']);
    if name.split('/').all(plain) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is not a name within a store")))
    }
}

/// As [`check_file`], and `""` is fine: it is the store's own directory.
#[cfg(any(test, feature = "testing"))]
pub(super) fn check_dir(name: &str) -> io::Result<()> {
    if name.is_empty() { Ok(()) } else { check_file(name) }
}

#[cfg(test)]
mod tests {
    use super::{check_dir, check_file, last, parent};

    #[test]
    fn a_name_splits_into_directory_and_last_part() {
        assert_eq!((parent("log/1.seg"), last("log/1.seg")), ("log", "1.seg"));
        assert_eq!((parent("LOCK"), last("LOCK")), ("", "LOCK"));
    }

    #[test]
    fn a_name_cannot_leave_the_store() {
        for name in ["", "/etc", "../x", "log/../x", "log//x", "log/", ".", "c:x", "a\\b"] {
            assert!(check_file(name).is_err(), "{name:?}");
        }
        assert!(check_file("log/1-2.seg").is_ok());
        assert!(check_dir("").is_ok() && check_dir("log").is_ok() && check_dir("..").is_err());
    }
}
