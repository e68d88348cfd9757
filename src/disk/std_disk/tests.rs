//! The std disk against a real file system.

use std::io::{self, ErrorKind};

use super::StdDisk;
use crate::disk::{Disk, OpenMode};

/// A disk whose root is made, and the guard that removes it.
fn made() -> io::Result<(tempfile::TempDir, StdDisk)> {
    let outer = tempfile::tempdir()?;
    let disk = StdDisk::new(outer.path().join("store"));
    disk.create_dir("")?;
    Ok((outer, disk))
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn a_second_lock_is_refused_as_would_block_until_the_first_is_dropped() -> io::Result<()> {
    let (_outer, disk) = made()?;
    let held = disk.lock("LOCK")?;
    assert_eq!(kind(disk.lock("LOCK")), Some(ErrorKind::WouldBlock));
    drop(held);
    disk.lock("LOCK")?;
    Ok(())
}

#[cfg(unix)]
#[test]
fn directories_and_files_belong_to_their_owner_alone() -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let (outer, disk) = made()?;
    disk.create_dir("log")?;
    disk.open("log/a", OpenMode::Create)?;
    let _lock = disk.lock("LOCK")?;
    let mode = |name: &str| -> io::Result<u32> {
        Ok(std::fs::metadata(outer.path().join("store").join(name))?.permissions().mode() & 0o777)
    };
    assert_eq!((mode("")?, mode("log")?), (0o700, 0o700));
    assert_eq!((mode("log/a")?, mode("LOCK")?), (0o600, 0o600));
    Ok(())
}

#[test]
fn reads_and_writes_are_positioned() -> io::Result<()> {
    let (_outer, disk) = made()?;
    let file = disk.open("a", OpenMode::Create)?;
    file.write_all_at(4, b"tail")?;
    file.write_all_at(0, b"head")?;
    let mut bytes = [0; 8];
    file.read_exact_at(0, &mut bytes)?;
    assert_eq!(&bytes, b"headtail");
    assert_eq!(file.read_at(8, &mut bytes)?, 0);
    assert_eq!(kind(file.read_exact_at(4, &mut bytes)), Some(ErrorKind::UnexpectedEof));
    file.set_len(2)?;
    file.set_len(6)?;
    assert_eq!(file.len()?, 6);
    file.read_exact_at(0, &mut bytes[..6])?;
    assert_eq!(&bytes[..6], b"he\0\0\0\0");
    file.sync_data()?;
    disk.sync_dir("")
}

#[test]
fn create_empties_what_is_there_and_the_other_modes_want_a_file() -> io::Result<()> {
    let (_outer, disk) = made()?;
    assert_eq!(kind(disk.open("a", OpenMode::Read)), Some(ErrorKind::NotFound));
    assert_eq!(kind(disk.open("a", OpenMode::ReadWrite)), Some(ErrorKind::NotFound));
    disk.open("a", OpenMode::Create)?.write_all_at(0, b"old")?;
    assert_eq!(disk.open("a", OpenMode::ReadWrite)?.len()?, 3);
    assert!(disk.open("a", OpenMode::Read)?.write_at(0, b"x").is_err());
    assert_eq!(disk.open("a", OpenMode::Create)?.len()?, 0);
    Ok(())
}

#[test]
fn a_rename_replaces_its_target_and_names_are_listed_sorted() -> io::Result<()> {
    let (_outer, disk) = made()?;
    disk.create_dir("log")?;
    disk.create_dir("log")?;
    for name in ["b", "a", "log/x"] {
        disk.open(name, OpenMode::Create)?.write_all_at(0, name.as_bytes())?;
    }
    assert_eq!(disk.list("")?, ["a", "b", "log"]);
    disk.rename("b", "a")?;
    assert_eq!(disk.list("")?, ["a", "log"]);
    assert_eq!(disk.list("log")?, ["x"]);
    disk.remove("log/x")?;
    assert_eq!(kind(disk.remove("log/x")), Some(ErrorKind::NotFound));
    assert!(disk.list("log")?.is_empty());
    Ok(())
}

#[test]
fn a_missing_parent_is_an_error_that_names_it() -> io::Result<()> {
    let outer = tempfile::tempdir()?;
    let disk = StdDisk::new(outer.path().join("absent").join("store"));
    let Err(error) = disk.create_dir("") else {
        return Err(io::Error::other("made a directory without a parent"));
    };
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains(&outer.path().join("absent").display().to_string()), "{error}");
    Ok(())
}

#[test]
fn a_file_in_the_place_of_the_directory_is_an_error() -> io::Result<()> {
    let (_outer, disk) = made()?;
    disk.open("log", OpenMode::Create)?;
    assert_eq!(kind(disk.create_dir("log")), Some(ErrorKind::AlreadyExists));
    Ok(())
}

#[test]
fn a_directory_is_removed_only_when_it_is_empty() -> io::Result<()> {
    let (_outer, disk) = made()?;
    disk.create_dir("log")?;
    disk.open("log/a", OpenMode::Create)?;
    assert_eq!(kind(disk.remove_dir("log")), Some(ErrorKind::DirectoryNotEmpty));
    disk.remove("log/a")?;
    disk.remove_dir("log")?;
    assert_eq!(disk.list("")?, [""; 0]);
    assert_eq!(kind(disk.remove_dir("log")), Some(ErrorKind::NotFound));
    Ok(())
}
