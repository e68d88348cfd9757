//! Names: created, renamed and removed, with and without a directory sync.

use std::collections::BTreeSet;
use std::io;

use super::{Survival, after, kind, one_file};
use crate::disk::{Disk, OpenMode, sim::SimDisk};

#[test]
fn a_created_name_is_lost_without_a_directory_sync_even_when_its_content_was_synced() -> io::Result<()> {
    let disk = SimDisk::new();
    let file = disk.open("a", OpenMode::Create)?;
    file.write_all_at(0, b"content")?;
    file.sync_data()?;
    assert_eq!(after(&disk, &Survival::Nothing, "a"), None);
    assert_eq!(after(&disk, &Survival::Everything, "a").as_deref(), Some(&b"content"[..]));
    let disk = disk.kill();
    disk.sync_dir("")?;
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"content"[..]));
    Ok(())
}

#[test]
fn a_durable_name_says_nothing_about_content() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"content")?;
    disk.sync_dir("")?;
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b""[..]));
    Ok(())
}

#[test]
fn a_rename_is_old_or_new_and_the_open_file_follows_it() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.sync_data()?;
    disk.rename("a", "b")?;
    file.write_all_at(0, b"later")?;
    file.sync_data()?;
    assert_eq!(disk.list("")?, ["b"]);
    let names = |survival| disk.crash(&survival).files().into_iter().collect::<Vec<_>>();
    assert_eq!(names(Survival::Nothing), [("a".to_owned(), b"later".to_vec())]);
    assert_eq!(names(Survival::Everything), [("b".to_owned(), b"later".to_vec())]);
    Ok(())
}

#[test]
fn a_rename_over_a_file_leaves_one_of_the_two_whole() -> io::Result<()> {
    let disk = SimDisk::new();
    disk.write_file("old", *b"old");
    let file = disk.open("new", OpenMode::Create)?;
    file.write_all_at(0, b"new")?;
    file.sync_data()?;
    disk.rename("new", "old")?;
    let seen: BTreeSet<_> = (0..50).map(|seed| after(&disk, &Survival::Random(seed), "old")).collect();
    assert_eq!(seen, BTreeSet::from([Some(b"old".to_vec()), Some(b"new".to_vec())]));
    Ok(())
}

#[test]
fn a_lost_creation_takes_the_rename_with_it() -> io::Result<()> {
    let disk = SimDisk::new();
    disk.open("a", OpenMode::Create)?;
    disk.rename("a", "b")?;
    disk.open("c", OpenMode::Create)?;
    let names = |survival| disk.crash(&survival).files().into_keys().collect::<Vec<_>>();
    assert_eq!(names(Survival::AllButOne(0)), ["c"]);
    assert_eq!(names(Survival::AllButOne(1)), ["a", "c"]);
    assert_eq!(names(Survival::OnlyLast), ["c"]);
    Ok(())
}

#[test]
fn a_removed_file_comes_back_without_a_directory_sync() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"content")?;
    file.sync_data()?;
    disk.remove("a")?;
    assert_eq!(kind(disk.open("a", OpenMode::Read)), Some(io::ErrorKind::NotFound));
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"content"[..]));
    let disk = disk.kill();
    disk.sync_dir("")?;
    assert_eq!(after(&disk, &Survival::Nothing, "a"), None);
    Ok(())
}

#[test]
fn a_directory_whose_name_is_lost_takes_its_files_with_it() -> io::Result<()> {
    let disk = SimDisk::new();
    disk.create_dir("log")?;
    disk.open("log/a", OpenMode::Create)?.sync_data()?;
    disk.sync_dir("log")?;
    assert!(disk.crash(&Survival::Nothing).list("")?.is_empty());
    let disk = disk.kill();
    disk.sync_dir("")?;
    assert_eq!(disk.crash(&Survival::Nothing).list("log")?, ["a"]);
    Ok(())
}

#[test]
fn a_directory_sync_covers_its_own_names_only() -> io::Result<()> {
    let (disk, _) = one_file("log/a")?;
    disk.open("log/b", OpenMode::Create)?;
    disk.open("c", OpenMode::Create)?;
    disk.sync_dir("log")?;
    let names: Vec<_> = disk.crash(&Survival::Nothing).files().into_keys().collect();
    assert_eq!(names, ["log/a", "log/b"]);
    Ok(())
}

#[test]
fn names_are_refused_as_a_file_system_would() -> io::Result<()> {
    let (disk, _) = one_file("log/a")?;
    disk.create_dir("log")?;
    disk.create_dir("")?;
    assert_eq!(kind(disk.open("absent/a", OpenMode::Create)), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(disk.create_dir("absent/log")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(disk.create_dir("log/a")), Some(io::ErrorKind::AlreadyExists));
    assert_eq!(kind(disk.open("log", OpenMode::Create)), Some(io::ErrorKind::IsADirectory));
    assert_eq!(kind(disk.remove("b")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(disk.rename("b", "c")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(disk.list("absent")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(disk.sync_dir("absent")), Some(io::ErrorKind::NotFound));
    assert_eq!(kind(disk.open("../a", OpenMode::Create)), Some(io::ErrorKind::InvalidInput));
    let reader = disk.open("log/a", OpenMode::Read)?;
    assert_eq!(kind(reader.write_at(0, b"x")), Some(io::ErrorKind::PermissionDenied));
    Ok(())
}

#[test]
fn a_lock_is_exclusive_and_freed_when_dropped() -> io::Result<()> {
    let disk = SimDisk::new();
    let held = disk.lock("LOCK")?;
    assert_eq!(kind(disk.clone().lock("LOCK")), Some(io::ErrorKind::WouldBlock));
    drop(held);
    disk.lock("LOCK")?;
    assert_eq!(disk.list("")?, ["LOCK"]);
    Ok(())
}

#[test]
fn a_directory_is_removed_when_it_is_empty_and_takes_along_what_only_the_disk_has_in_it() -> io::Result<()> {
    let (disk, _) = one_file("log/a")?;
    assert_eq!(kind(disk.remove_dir("log")), Some(io::ErrorKind::DirectoryNotEmpty));
    disk.remove("log/a")?;
    disk.remove_dir("log")?;
    assert_eq!(kind(disk.remove_dir("log")), Some(io::ErrorKind::NotFound));
    assert_eq!(disk.crash(&Survival::Nothing).list("log")?, ["a"]);
    let disk = disk.kill();
    disk.create_dir("log")?;
    disk.sync_dir("")?;
    assert_eq!(disk.crash(&Survival::Nothing).list("log")?, [""; 0]);
    Ok(())
}
