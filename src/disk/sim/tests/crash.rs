//! Content: synced, un-synced, cut, killed.

use std::collections::BTreeSet;
use std::io;

use super::super::SECTOR_BYTES;
use super::{Survival, after, kind, message, one_file, sector};
use crate::disk::{Disk, OpenMode, sim::SimDisk};

#[test]
fn synced_content_survives_every_crash() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"synced")?;
    file.sync_data()?;
    assert_eq!(disk.unsynced(), 0);
    for survival in [Survival::Nothing, Survival::Everything, Survival::Random(1), Survival::Torn(1)] {
        assert_eq!(after(&disk, &survival, "a").as_deref(), Some(&b"synced"[..]), "{survival:?}");
    }
    Ok(())
}

#[test]
fn an_unsynced_write_is_seen_by_reads_and_lost_or_kept_by_a_crash() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"old")?;
    file.sync_data()?;
    file.write_all_at(0, b"newer")?;
    assert_eq!(disk.read_file("a").as_deref(), Some(&b"newer"[..]));
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"old"[..]));
    assert_eq!(after(&disk, &Survival::Everything, "a").as_deref(), Some(&b"newer"[..]));
    Ok(())
}

#[test]
fn a_prefix_a_suffix_and_a_hole_can_survive() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"...")?;
    file.sync_data()?;
    for (offset, byte) in [(0, b"1"), (1, b"2"), (2, b"3")] {
        file.write_all_at(offset, byte)?;
    }
    let left = |survival| after(&disk, &survival, "a").map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(left(Survival::Prefix(2)).as_deref(), Some("12."));
    assert_eq!(left(Survival::OnlyLast).as_deref(), Some("..3"));
    assert_eq!(left(Survival::AllButOne(1)).as_deref(), Some("1.3"));
    Ok(())
}

/// Writes behind the end, cuts, and grows, in a file whose name is durable beside one whose name is not.
fn lengths_and_names() -> io::Result<SimDisk> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"12345678")?;
    file.sync_data()?;
    file.write_all_at(8, b"9")?;
    file.set_len(4)?;
    disk.open("b", OpenMode::Create)?.write_all_at(0, b"new")?;
    Ok(disk)
}

#[test]
fn changes_of_length_are_kept_or_lost_apart_from_writes() -> io::Result<()> {
    let disk = lengths_and_names()?;
    assert_eq!(after(&disk, &Survival::WithoutLengths, "a").as_deref(), Some(&b"123456789"[..]));
    assert_eq!(after(&disk, &Survival::WithoutLengths, "b").as_deref(), Some(&b"new"[..]));
    assert_eq!(after(&disk, &Survival::OnlyMetadata, "a").as_deref(), Some(&b"1234"[..]));
    assert_eq!(after(&disk, &Survival::OnlyMetadata, "b").as_deref(), Some(&b"\0\0\0"[..]), "its length came alone");
    Ok(())
}

#[test]
fn entries_of_a_directory_are_kept_or_lost_apart_from_content() -> io::Result<()> {
    let disk = lengths_and_names()?;
    assert_eq!(after(&disk, &Survival::WithoutNames, "a").as_deref(), Some(&b"1234"[..]));
    assert_eq!(after(&disk, &Survival::WithoutNames, "b"), None);
    assert_eq!(after(&disk, &Survival::OnlyNames, "a").as_deref(), Some(&b"12345678"[..]));
    assert_eq!(after(&disk, &Survival::OnlyNames, "b").as_deref(), Some(&b""[..]), "an entry of an empty file");
    let disk = lengths_and_names()?;
    disk.rename("b", "c")?;
    disk.remove("a")?;
    let crashed = disk.crash(&Survival::WithoutNames);
    assert_eq!(crashed.files().into_keys().collect::<Vec<_>>(), ["a"], "removed and renamed in the cache only");
    let crashed = disk.crash(&Survival::OnlyNames);
    assert_eq!(crashed.files().into_keys().collect::<Vec<_>>(), ["c"]);
    Ok(())
}

#[test]
fn every_place_of_a_prefix_and_of_a_hole_is_selected_once() {
    let all = Survival::every_place(40, 2);
    for place in 1..40 {
        assert!(all.contains(&Survival::Prefix(place)) && all.contains(&Survival::AllButOne(place)), "{place}");
    }
    assert!(all.iter().enumerate().all(|(place, survival)| !all[..place].contains(survival)));
}

#[test]
fn chance_loses_keeps_and_reorders_writes_and_a_seed_repeats_exactly() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    for byte in 1..=3 {
        file.write_all_at(0, &sector(byte))?;
    }
    let first_byte = |seed| after(&disk, &Survival::Random(seed), "a").and_then(|bytes| bytes.first().copied());
    let seen: BTreeSet<_> = (0..200).map(first_byte).collect();
    assert_eq!(
        seen,
        BTreeSet::from([None, Some(0), Some(1), Some(2), Some(3)]),
        "0: the length came, the data did not"
    );
    assert!((0..200).all(|seed| first_byte(seed) == first_byte(seed)));
    Ok(())
}

#[test]
fn a_torn_write_keeps_or_loses_whole_sectors_and_leaves_the_neighbours() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, &[1; 4 * SECTOR_BYTES])?;
    file.sync_data()?;
    file.write_all_at(100, &[2; 2 * SECTOR_BYTES])?;
    let mut images = BTreeSet::new();
    for seed in 0..100 {
        let Some(image) = after(&disk, &Survival::Torn(seed), "a") else { return Err(io::ErrorKind::NotFound.into()) };
        assert!(image[..100].iter().chain(&image[100 + 2 * SECTOR_BYTES..]).all(|byte| *byte == 1));
        for range in [100..512, 512..1024, 1024..1124] {
            assert!(image[range.clone()].iter().all(|byte| *byte == image[range.start]), "seed {seed}");
        }
        images.insert(image);
    }
    assert_eq!(images.len(), 8, "three sectors, each kept or lost");
    Ok(())
}

#[test]
fn a_cut_that_no_sync_covered_can_be_undone_by_a_crash() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"content")?;
    file.sync_data()?;
    disk.open("a", OpenMode::Create)?;
    assert_eq!(file.len()?, 0);
    assert_eq!(after(&disk, &Survival::Nothing, "a").as_deref(), Some(&b"content"[..]));
    assert_eq!(after(&disk, &Survival::Everything, "a").as_deref(), Some(&b""[..]));
    Ok(())
}

#[test]
fn growing_and_cutting_fill_with_zeros() -> io::Result<()> {
    let (_disk, file) = one_file("a")?;
    file.write_all_at(2, b"xy")?;
    file.set_len(3)?;
    file.set_len(5)?;
    let mut bytes = [9; 5];
    file.read_exact_at(0, &mut bytes)?;
    assert_eq!(&bytes, b"\0\0x\0\0");
    assert_eq!(file.read_at(5, &mut bytes)?, 0);
    assert_eq!(kind(file.read_exact_at(3, &mut bytes)), Some(io::ErrorKind::UnexpectedEof));
    Ok(())
}

#[test]
fn a_power_cut_stops_the_nth_operation_and_every_call_after_it() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    let made = disk.operations();
    disk.power_cut_at(made + 2);
    file.write_all_at(0, b"1")?;
    file.len()?;
    assert!(!disk.is_off());
    assert_eq!(message(file.write_all_at(1, b"2")), "power is off");
    assert!(disk.is_off());
    assert_eq!(disk.operations(), made + 1, "it did not happen");
    assert_eq!(message(file.len()), "power is off");
    assert_eq!(message(disk.list("")), "power is off");
    assert_eq!(after(&disk, &Survival::Everything, "a").as_deref(), Some(&b"1"[..]));
    Ok(())
}

#[test]
fn reads_do_not_move_the_crash_clock() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    let (operations, calls) = (disk.operations(), disk.calls());
    file.len()?;
    file.read_at(0, &mut [0])?;
    disk.list("")?;
    disk.open("a", OpenMode::ReadWrite)?;
    assert_eq!((disk.operations(), disk.calls()), (operations, calls + 4));
    Ok(())
}

#[test]
fn handles_of_an_earlier_generation_are_dead() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    let lock = disk.lock("a")?;
    let next = disk.crash(&Survival::Everything);
    assert_eq!(message(file.write_all_at(0, b"x")), "power is off");
    let _held = next.lock("a")?;
    drop(lock);
    assert_eq!(kind(next.lock("a")), Some(io::ErrorKind::WouldBlock), "the old lock holds nothing and frees nothing");
    let killed = next.kill();
    assert_eq!(message(next.list("")), "the process was killed");
    assert_eq!(killed.list("")?, ["a"]);
    Ok(())
}

#[test]
fn a_kill_keeps_the_cache_which_a_later_crash_can_still_lose() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    file.write_all_at(0, b"cached")?;
    let killed = disk.kill();
    assert_eq!(killed.read_file("a").as_deref(), Some(&b"cached"[..]));
    assert_eq!(after(&killed, &Survival::Nothing, "a").as_deref(), Some(&b""[..]));
    let synced = disk.kill();
    synced.open("a", OpenMode::Read)?.sync_data()?;
    assert_eq!(after(&synced, &Survival::Nothing, "a").as_deref(), Some(&b"cached"[..]));
    Ok(())
}

#[test]
fn a_process_can_die_at_an_operation() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    disk.power_cut_at(disk.operations() + 2);
    file.write_all_at(0, b"cached")?;
    assert!(file.sync_data().is_err());
    let killed = disk.kill();
    assert_eq!(killed.read_file("a").as_deref(), Some(&b"cached"[..]));
    assert_eq!(killed.unsynced(), 1);
    Ok(())
}

#[test]
fn one_crash_can_be_looked_at_in_many_ways() -> io::Result<()> {
    let (disk, file) = one_file("a")?;
    for place in 0..4 {
        file.write_all_at(place * 512, &sector(1))?;
    }
    let selection = Survival::selection(disk.unsynced(), 20);
    let images: BTreeSet<u128> = selection.iter().map(|survival| disk.crash(survival).image_hash()).collect();
    assert!(images.len() > 10, "{}", images.len());
    let again: BTreeSet<u128> = selection.iter().map(|survival| disk.crash(survival).image_hash()).collect();
    assert_eq!(images, again);
    assert_eq!(Survival::selection(0, 20), [Survival::Nothing, Survival::Everything]);
    Ok(())
}

#[test]
fn files_can_be_damaged_durably() {
    let disk = SimDisk::new();
    disk.write_file("log/a", *b"content");
    disk.write_file("b", *b"other");
    assert!(disk.truncate_file("log/a", 3));
    assert!(disk.rename_file("log/a", "log/c"));
    assert!(disk.remove_file("b"));
    assert!(!disk.remove_file("b") && !disk.rename_file("b", "d") && !disk.truncate_file("b", 0));
    let left = disk.crash(&Survival::Nothing).files();
    assert_eq!(left.into_iter().collect::<Vec<_>>(), [("log/c".to_owned(), b"con".to_vec())]);
}
