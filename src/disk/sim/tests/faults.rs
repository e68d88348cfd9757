//! Calls that fail, syncs above all.

use std::io;

use super::super::CallKind;
use super::{Fault, FaultError, Survival, after, kind, next, one_file};
use crate::disk::{Disk, OpenMode};

#[test]
fn a_sync_that_drops_data_leaves_it_in_the_cache_and_never_makes_it_durable() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"dropped")?;
    disk.fail(next(CallKind::Sync, FaultError::SyncDropsData));
    assert!(file.sync_data().is_err());
    file.sync_data()?;
    assert_eq!(disk.read_file("a").as_deref(), Some(&b"dropped"[..]));
    assert_eq!(disk.kill().read_file("a").as_deref(), Some(&b"dropped"[..]));
    assert_eq!(after(&disk, &Survival::Everything, "a").as_deref(), Some(&b""[..]));
    Ok(())
}

#[test]
fn what_a_failed_sync_dropped_can_vanish_from_the_cache_at_any_time() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"durable")?;
    file.sync_data()?;
    file.write_all_at(0, b"dropped")?;
    disk.fail(next(CallKind::Sync, FaultError::SyncDropsData));
    assert!(file.sync_data().is_err());
    file.write_all_at(7, b"dirty")?;
    disk.evict_clean_pages();
    assert_eq!(disk.read_file("a").as_deref(), Some(&b"durabledirty"[..]));
    Ok(())
}

#[test]
fn what_is_written_after_a_dropping_sync_becomes_durable_around_a_hole() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"lost")?;
    disk.fail(next(CallKind::Sync, FaultError::SyncDropsData));
    assert!(file.sync_data().is_err());
    file.write_all_at(4, b"kept")?;
    file.sync_data()?;
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"\0\0\0\0kept"[..]));
    Ok(())
}

#[test]
fn a_sync_can_report_an_error_although_all_is_durable() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"durable")?;
    disk.fail(next(CallKind::Sync, FaultError::SyncErrorsButDurable));
    assert!(file.sync_data().is_err());
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"durable"[..]));
    Ok(())
}

#[test]
fn a_sync_can_lie_and_a_later_honest_one_covers_the_data() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"data")?;
    disk.fail(next(CallKind::Sync, FaultError::SyncLies));
    file.sync_data()?;
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b""[..]));
    let disk = disk.kill();
    disk.open("a", OpenMode::ReadWrite)?.sync_data()?;
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"data"[..]));
    Ok(())
}

#[test]
fn a_directory_sync_that_drops_names_shows_them_until_they_are_evicted_and_a_later_one_does_not_mend_it()
-> io::Result<()> {
    let (disk, file) = one_file("log/a")?;
    file.write_all_at(0, b"content")?;
    file.sync_data()?;
    disk.rename("log/a", "log/b")?;
    disk.fail(next(CallKind::SyncDir, FaultError::SyncDropsData));
    assert!(disk.sync_dir("log").is_err());
    disk.sync_dir("log")?;
    assert_eq!(disk.kill().list("log")?, ["b"]);
    let names = |disk: &super::SimDisk| disk.files().into_keys().collect::<Vec<_>>();
    assert_eq!(names(&disk.crash(&Survival::Everything)), ["log/a"]);
    let killed = disk.kill();
    killed.evict_clean_pages();
    assert_eq!(names(&killed), ["log/a"]);
    Ok(())
}

#[test]
fn a_rename_after_a_dropped_creation_is_durable_by_itself() -> io::Result<()> {
    let (disk, _) = one_file("log/a")?;
    disk.open("log/c.new", OpenMode::Create)?;
    disk.fail(next(CallKind::SyncDir, FaultError::SyncDropsData));
    assert!(disk.sync_dir("log").is_err());
    disk.rename("log/c.new", "log/c")?;
    disk.sync_dir("log")?;
    assert_eq!(after(&disk, &Survival::Nothing, "log/c").as_deref(), Some(&b""[..]));
    Ok(())
}

#[test]
fn a_directory_sync_can_fail_with_all_names_durable_or_lie() -> io::Result<()> {
    let (disk, _) = one_file("a")?;
    disk.rename("a", "b")?;
    disk.fail(next(CallKind::SyncDir, FaultError::SyncLies));
    disk.sync_dir("")?;
    assert_eq!(after(&disk, &Survival::Nothing, "b"), None);
    let disk = disk.kill();
    disk.fail(next(CallKind::SyncDir, FaultError::SyncErrorsButDurable));
    assert!(disk.sync_dir("").is_err());
    assert_eq!(after(&disk, &Survival::Nothing, "b").as_deref(), Some(&b""[..]));
    Ok(())
}

#[test]
fn a_fault_that_is_far_away_counts_the_calls_it_is_about() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    disk.fail(Fault {
        nth: u64::MAX,
        name_contains: Some("a".to_owned()),
        ..next(CallKind::Write, FaultError::Eacces)
    });
    file.write_all_at(0, b"1")?;
    file.write_all_at(1, b"2")?;
    file.sync_data()?;
    assert_eq!((disk.faults_counted(), disk.faults_struck()), (2, 0));
    disk.fail(next(CallKind::Write, FaultError::Eacces));
    assert_eq!(kind(file.write_all_at(2, b"3")), Some(io::ErrorKind::PermissionDenied));
    Ok(())
}

#[test]
fn the_nth_call_on_a_matching_name_fails_once_or_for_ever() -> io::Result<()> {
    let (disk, file) = one_file("log/a")?;
    let other = disk.open("b", OpenMode::Create)?;
    let mut fault = Fault { nth: 2, name_contains: Some("log/".to_owned()), ..next(CallKind::Write, FaultError::Eio) };
    disk.fail(fault.clone());
    file.write_all_at(0, b"1")?;
    other.write_all_at(0, b"1")?;
    assert_eq!(kind(file.write_all_at(0, b"2")), Some(io::ErrorKind::Other));
    file.write_all_at(0, b"3")?;
    fault.permanent = true;
    disk.fail(fault);
    file.write_all_at(0, b"4")?;
    assert!(file.write_all_at(0, b"5").is_err() && file.write_all_at(0, b"6").is_err());
    assert_eq!(disk.faults_struck(), 3);
    disk.clear_faults();
    file.write_all_at(0, b"7")
}

#[test]
fn a_fault_follows_a_file_to_its_new_name() -> io::Result<()> {
    let (disk, file) = one_file("a.new")?;
    disk.rename("a.new", "a")?;
    disk.fail(Fault { name_contains: Some(".new".to_owned()), ..next(CallKind::Write, FaultError::Eio) });
    file.write_all_at(0, b"1")
}

#[test]
fn short_and_interrupted_calls_are_made_whole_by_the_seam() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    for error in [FaultError::ShortWrite, FaultError::Eintr] {
        disk.fail(Fault { nth: 1, ..next(CallKind::Write, error) });
    }
    disk.fail(next(CallKind::Read, FaultError::ShortRead));
    disk.fail(Fault { nth: 2, ..next(CallKind::Read, FaultError::Eintr) });
    file.write_all_at(0, b"in two parts")?;
    let mut bytes = [0; 12];
    file.read_exact_at(0, &mut bytes)?;
    assert_eq!(&bytes, b"in two parts");
    Ok(())
}

#[test]
fn a_failed_write_may_have_written_a_part() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    disk.fail(next(CallKind::Write, FaultError::EioPartWritten));
    assert!(file.write_at(0, b"half").is_err());
    assert_eq!(disk.read_file("a").as_deref(), Some(&b"ha"[..]));
    Ok(())
}

#[test]
fn any_call_can_fail_and_then_does_nothing() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    let hash = disk.image_hash();
    for on in [CallKind::Create, CallKind::Rename, CallKind::Remove, CallKind::SyncDir, CallKind::SetLen] {
        disk.fail(next(on, FaultError::Enospc));
    }
    for on in [CallKind::List, CallKind::Open, CallKind::Lock, CallKind::Len] {
        disk.fail(next(on, FaultError::Eio));
    }
    let full = Some(io::ErrorKind::StorageFull);
    assert_eq!(kind(disk.open("b", OpenMode::Create)), full);
    assert_eq!(kind(disk.rename("a", "b")), full);
    assert_eq!(kind(disk.remove("a")), full);
    assert_eq!(kind(disk.sync_dir("")), full);
    assert_eq!(kind(file.set_len(9)), full);
    assert!(disk.list("").is_err() && disk.open("a", OpenMode::Read).is_err());
    assert!(disk.lock("a").is_err() && file.len().is_err());
    assert_eq!(disk.image_hash(), hash);
    disk.fail(next(CallKind::Any, FaultError::Eio));
    assert!(disk.list("").is_err());
    assert_eq!(disk.list("")?, ["a"]);
    Ok(())
}

#[test]
fn a_full_disk_refuses_growth_and_nothing_else() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, &[1; 60])?;
    disk.set_capacity(Some(100));
    assert_eq!(kind(file.write_all_at(60, &[2; 41])), Some(io::ErrorKind::StorageFull));
    assert_eq!(kind(file.set_len(101)), Some(io::ErrorKind::StorageFull));
    file.write_all_at(0, &[3; 60])?;
    file.write_all_at(60, &[2; 40])?;
    assert_eq!(disk.allocated(), 100);
    file.set_len(10)?;
    disk.open("b", OpenMode::Create)?.write_all_at(0, &[4; 90])?;
    disk.set_capacity(None);
    file.set_len(1000)
}

#[test]
fn the_trace_tells_mutating_calls_by_their_number() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    assert!(disk.trace().is_empty());
    disk.start_trace();
    disk.fail(next(CallKind::Sync, FaultError::Eio));
    file.write_all_at(7, b"xyz")?;
    file.len()?;
    assert!(file.sync_data().is_err());
    disk.rename("a", "b")?;
    assert_eq!(disk.trace(), ["3: Write a 3 bytes at 7", "4: Sync a -> Eio", "5: Rename a -> b"]);
    Ok(())
}
