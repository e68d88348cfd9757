//! Stores that must not be opened: a typed error each, and nothing is changed.

use counterfoil::OpenError;
use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk, Survival};

use crate::crash::check::Workload;
use crate::crash::harness::{Process, builder, declared, everything_but_the_lock, limits};
use crate::crash::script::script;

/// A store after some work, closed, with several openings behind it.
fn closed() -> (SimDisk, Process, Workload) {
    let workload = Workload::new(script());
    let disk = SimDisk::new();
    let mut process = Process::new(disk.clone());
    process.run(&workload.script).expect("nothing fails");
    (disk.crash(&Survival::Nothing), process, workload)
}

fn segments(disk: &SimDisk) -> Vec<String> {
    disk.files().into_keys().filter(|name| name.starts_with("log/")).collect()
}

/// Damages a copy, opens it, and gives the error and whether anything was changed.
fn error_of(disk: &SimDisk, damage: impl FnOnce(&SimDisk)) -> OpenError {
    let disk = disk.crash(&Survival::Nothing);
    damage(&disk);
    let before = everything_but_the_lock(&disk);
    let error = Process::new(disk.clone()).open().expect_err("it must not open");
    let after = everything_but_the_lock(&disk);
    let names = |files: &std::collections::BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&after), names(&before), "{error}");
    for (name, content) in before {
        assert!(after[&name] == content, "{name} was changed: {error}");
    }
    error
}

#[test]
fn a_part_that_is_missing_is_named() {
    let (disk, _, _) = closed();
    let missing = |damage: &dyn Fn(&SimDisk)| {
        let error = error_of(&disk, damage);
        let OpenError::Missing { missing } = error else { panic!("{error}") };
        missing
    };
    assert_eq!(missing(&|disk| assert!(disk.remove_file("state.redb"))), "state.redb");
    assert_eq!(missing(&|disk| assert!(disk.remove_file("IDENTITY"))), "IDENTITY");
    let segments = segments(&disk);
    assert!(segments.len() > 3, "{segments:?}");
    // Older segments are checked by name at open. What names cannot tell, `verify` does: that the last one of an epoch is
    // gone, or the first ones of all, which retention may have removed.
    let mut opened = 0;
    for gone in &segments[1..] {
        let damaged = disk.crash(&Survival::Nothing);
        assert!(damaged.remove_file(gone));
        let mut process = Process::new(damaged.clone());
        if process.open().is_ok() {
            assert!(!process.store().verify().unwrap().is_clean(), "{gone} is missing and nobody notices");
            opened += 1;
            continue;
        }
        process.abandon();
        let error = error_of(&disk, |disk| assert!(disk.remove_file(gone)));
        let names_it = matches!(&error, OpenError::Missing { missing } if missing == gone);
        assert!(names_it || gone == segments.last().unwrap(), "{gone}: {error}");
    }
    assert!(opened <= 2, "two epochs have a successor, and each one last segment: {segments:?}");
    let none = error_of(&disk, |disk| segments.iter().for_each(|name| assert!(disk.remove_file(name))));
    assert!(matches!(none, OpenError::Missing { .. }), "{none}");
}

#[test]
fn a_missing_log_directory_is_named() {
    let (disk, _, _) = closed();
    let files = disk.files();
    let without = SimDisk::new();
    for name in ["IDENTITY", "state.redb"] {
        without.write_file(name, files[name].clone());
    }
    let error = error_of(&without, |_| {});
    assert!(matches!(&error, OpenError::Missing { missing } if missing == "log"), "{error}");
}

#[test]
fn an_empty_or_cut_state_file_is_not_a_fresh_start() {
    let (disk, _, _) = closed();
    for len in [0, 100, 4096] {
        let error = error_of(&disk, |disk| assert!(disk.truncate_file("state.redb", len)));
        assert!(matches!(error, OpenError::State(_)), "{len}: {error}");
    }
}

#[test]
fn parts_of_two_stores_are_not_mixed() {
    let (disk, process, _) = closed();
    let other = SimDisk::new();
    let store = builder(&process.clock, limits()).identity_seed(2).open_in(&other).unwrap();
    store.close().unwrap();
    let newest = segments(&disk).pop().unwrap();
    for (into, from) in [("IDENTITY", "IDENTITY"), ("state.redb", "state.redb"), (newest.as_str(), newest.as_str())] {
        let from = if from.starts_with("log/") { segments(&other).pop().unwrap() } else { from.to_owned() };
        let content = other.read_file(&from).unwrap();
        let error = error_of(&disk, |disk| disk.write_file(into, content));
        assert!(matches!(error, OpenError::Mixed { .. }), "{into}: {error}");
    }
}

#[test]
fn a_newer_format_is_told_from_damage() {
    let (disk, _, _) = closed();
    let mut identity = disk.read_file("IDENTITY").unwrap();
    identity[8] = 9;
    let error = error_of(&disk, |disk| disk.write_file("IDENTITY", identity.clone()));
    assert!(matches!(error, OpenError::NewerFormat { found: 9, .. }), "{error}");
    identity[8] = 1;
    identity[30] ^= 1;
    let error = error_of(&disk, |disk| disk.write_file("IDENTITY", identity));
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_directory_with_other_files_is_not_a_store() {
    let error = error_of(&SimDisk::new(), |disk| disk.write_file("thesis.tex", *b"\\section"));
    assert!(matches!(&error, OpenError::NotAStore { found, .. } if found == "thesis.tex"), "{error}");
}

#[test]
fn a_second_opening_is_told_who_holds_the_store_and_a_dead_holder_is_ignored() {
    let mut process = Process::new(SimDisk::new());
    process.open().unwrap();
    let error = Process::new(process.disk.clone()).open().unwrap_err();
    let holder = format!("process {} ", std::process::id());
    assert!(matches!(&error, OpenError::Held { holder: found } if found.starts_with(&holder)), "{error}");
    process.kill_and_open().unwrap();
    process.close().unwrap();
    process.open().unwrap();
}

#[test]
fn a_directory_that_cannot_be_written_is_a_typed_error_and_opens_later() {
    for nth in 1..=60 {
        let disk = SimDisk::new();
        disk.fail(Fault { on: CallKind::Any, nth, name_contains: None, error: FaultError::Eio, permanent: true });
        match Process::new(disk.clone()).open() {
            Ok(()) => assert_eq!(disk.faults_struck(), 0),
            Err(error) => {
                let said = matches!(error, OpenError::Io { .. } | OpenError::Log(_) | OpenError::State(_));
                assert!(said && error.to_string().contains("input/output error"), "call {nth}: {error:?}");
            }
        }
        disk.clear_faults();
        Process::new(disk).open().unwrap_or_else(|error| panic!("call {nth} failed, then: {error}"));
    }
}

#[test]
fn real_files_are_there_after_a_drop_and_after_a_close() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let workload = Workload::new(script());
    let open = || declared().limits(limits()).open(&path);
    let mut process = Process::new(SimDisk::new());
    process.store = Some(open().unwrap());
    for (round, steps) in workload.script.chunks(7).enumerate() {
        for step in steps {
            if !matches!(step, crate::crash::script::Step::Reopen | crate::crash::script::Step::Batch(_)) {
                process.step(step).unwrap();
            }
        }
        if round % 2 == 0 {
            process.close().unwrap();
        } else {
            process.store = None;
        }
        process.store = Some(open().unwrap());
        for (op, position, reply) in process.told.receipts.clone().into_values() {
            let receipt = process.store().execute(op.request(), move |tx| op.execute(tx)).unwrap();
            assert!(receipt.is_replayed() && receipt.position() == position && *receipt.reply() == reply);
        }
        process.store().assert_sound();
    }
}

#[test]
fn a_full_disk_at_any_size_says_so_at_open_and_opens_once_there_is_room() {
    for kib in (4..2_000).step_by(90) {
        let disk = SimDisk::new();
        disk.set_capacity(Some(kib * 1024));
        match declared().open_in(&disk) {
            Ok(store) => drop(store),
            Err(error) => assert!(matches!(error, OpenError::DiskFull(_)), "{kib} KiB: {error:?}"),
        }
        disk.set_capacity(None);
        declared().open_in(&disk).expect("it opens once there is room").assert_sound();
    }
}

#[test]
fn a_first_segment_that_is_gone_is_reported_and_never_taken_for_removed_on_purpose() {
    let (disk, _, _) = closed();
    let mut process = Process::new(disk.clone());
    let first = segments(&disk).first().expect("there is one").clone();
    assert!(disk.remove_file(&first));
    process.open().expect("opening needs younger segments only");
    let store = process.store();
    let report = store.verify().expect("it can be checked");
    assert_eq!(report.problems.iter().filter(|problem| problem.check == "log").count(), 1, "{:?}", report.problems);
    assert!(report.problems[0].message.contains("missing"), "{:?}", report.problems);
    let followed = store.log(counterfoil::LogStart::Oldest).and_then(|mut log| log.try_next().map(drop));
    assert!(matches!(followed, Err(counterfoil::LogReadError::Damaged(_))), "{followed:?}");
}

/// On some file systems a failed sync of a directory drops what was new in it, and the next one succeeds without it.
#[test]
fn a_creation_after_a_directory_sync_that_dropped_names_does_not_rest_on_them() {
    for nth in 1..=12 {
        let disk = SimDisk::new();
        disk.fail(Fault { nth, ..Fault::next(CallKind::SyncDir, FaultError::SyncDropsData) });
        let opened = Process::new(disk.clone()).open();
        if disk.faults_struck() == 0 {
            assert!(nth > 5 && opened.is_ok(), "the names of a creation are synced");
            return;
        }
        let workload = Workload::new(script()[..2].to_vec());
        let mut process = Process::new(disk.kill());
        process.open().unwrap_or_else(|error| panic!("sync {nth} dropped names, then: {error}"));
        workload.script.iter().try_for_each(|step| process.step(step)).unwrap();
        let checked = workload.check(&process.disk.crash(&Survival::Nothing), &process.told);
        checked.unwrap_or_else(|fault| panic!("sync {nth} dropped names: {fault}"));
    }
    panic!("a creation syncs directories less often than this");
}
