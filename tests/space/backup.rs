//! A backup is made while the store is at work, becomes a store by being restored, and never passes for the one it is of.

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival, TestBed, VirtualClock, WALL_AT_START};
use counterfoil::{
    BackupError, Erase, Error, Limits, LogReadError, LogStart, OpenError, PositionState, RestoreOptions, Store,
    StoreBuilder,
};

fn small() -> StoreBuilder {
    let mut limits = Limits::default();
    limits.fold_bytes = 3_000;
    builder().limits(limits)
}

/// A store some of whose rows are folded and some are not.
fn busy() -> TestBed {
    let bed = bed_of(small);
    for number in 0..20 {
        drop(execute(bed.store(), &KEEP, &format!("k{number}")).expect("it executes"));
    }
    bed
}

fn open(disk: &SimDisk) -> Store {
    small().manual().clock(VirtualClock::new(WALL_AT_START)).open_in(disk).expect("it opens")
}

fn replays(store: &Store, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let replay = store.execute(op(&KEEP, "acme", format!("k{number}")), never).expect("a replay");
        assert!(replay.is_replayed());
    }
}

fn restored(backup: &SimDisk, options: &RestoreOptions) -> (SimDisk, counterfoil::Restored) {
    let target = SimDisk::new();
    let restored = Store::restore_in(backup, &target, options).expect("it is restored");
    (target, restored)
}

#[test]
fn a_restored_store_has_everything_up_to_the_backup_and_goes_on_where_nobody_was() {
    let bed = busy();
    let backup = SimDisk::new();
    let made = bed.store().backup_in(&backup).unwrap();
    assert_eq!(made.position, bed.store().view().position());
    // The store goes on, and shows positions that the backup does not have.
    let later = execute(bed.store(), &KEEP, "later").unwrap();

    let (disk, restored) = restored(&backup, &RestoreOptions::default());
    assert_eq!(restored.backup_id, made.id);
    assert!(restored.epoch > made.position.unwrap().epoch + (1 << 32));
    let store = open(&disk);
    replays(&store, 0..20);
    assert_eq!(runs(&store), 20);
    let new = execute(&store, &KEEP, "new").unwrap();
    assert!(new.position() > later.position(), "no position is given twice");
    assert!(store.verify().unwrap().is_clean(), "{:?}", store.verify());

    let lost = PositionState::LostInRestore { from: made.position.unwrap(), epoch: restored.epoch };
    assert_eq!(store.position_state(later.position()).unwrap(), lost);
    assert_eq!(store.position_state(made.position.unwrap()).unwrap(), PositionState::Committed);
    assert_eq!(store.position_state(new.position()).unwrap(), PositionState::Committed);
    let beyond = counterfoil::Position { sequence: new.position().sequence + 100, ..new.position() };
    assert_eq!(store.position_state(beyond).unwrap(), PositionState::Unknown);
    let followed = store.log(LogStart::After(later.position())).unwrap_err();
    assert!(matches!(followed, LogReadError::LostInRestore { .. }), "{followed}");
    assert!(store.log(LogStart::After(new.position())).is_ok());
    assert!(!store.execute(op(&KEEP, "acme", "later"), run("later")).unwrap().is_replayed(), "it is not known");
    store.close().unwrap();
    let store = open(&disk);
    replays(&store, 0..20);
    assert_eq!(store.position_state(later.position()).unwrap(), lost);
}

#[test]
fn two_restores_of_one_backup_never_give_the_same_position() {
    let backup = SimDisk::new();
    busy().store().backup_in(&backup).unwrap();
    let epochs: std::collections::HashSet<_> =
        (0..20).map(|_| restored(&backup, &RestoreOptions::default()).1.epoch).collect();
    assert_eq!(epochs.len(), 20);
}

#[test]
fn a_backup_of_a_new_store_and_a_restore_of_a_restore_work_as_any() {
    let bed = bed_of(small);
    let first = SimDisk::new();
    bed.store().backup_in(&first).unwrap();
    let (disk, _) = restored(&first, &RestoreOptions::default());
    let store = open(&disk);
    drop(execute(&store, &KEEP, "k0").unwrap());
    let second = SimDisk::new();
    store.backup_in(&second).unwrap();
    let (disk, _) = restored(&second, &RestoreOptions::default());
    let store = open(&disk);
    replays(&store, 0..1);
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn what_was_erased_after_the_backup_is_erased_again_before_anybody_can_see_it() {
    let bed = busy();
    let backup = SimDisk::new();
    bed.store().backup_in(&backup).unwrap();
    bed.store().erase(&Erase::actor("acme", "alice"), None, "asked to", |_| ()).unwrap();
    let mut options = RestoreOptions::default();
    for erasure in bed.store().erasures().unwrap() {
        options = options.erase(erasure.target, erasure.reason);
    }
    let (disk, _) = restored(&backup, &options);
    let store = open(&disk);
    for number in 0..20 {
        let gone = store.execute(op(&KEEP, "acme", format!("k{number}")), never);
        assert!(matches!(&gone, Err(Error::Gone(gone)) if gone.resource_id.is_none()), "{gone:?}");
    }
    assert_eq!(store.erasures().unwrap().len(), 1);
    assert!(store.purge(|_, _| ()).is_ok());
    let found = disk.files().into_iter().any(|(_, bytes)| bytes.windows(10).any(|window| window == b"body of k1"));
    assert!(!found);
    assert!(store.verify().unwrap().is_clean());
}

#[test]
fn a_backup_is_no_store_and_an_unfinished_or_damaged_one_is_not_restored() {
    let bed = busy();
    let backup = SimDisk::new();
    bed.store().backup_in(&backup).unwrap();
    let refused = small().manual().open_in(&backup).unwrap_err();
    assert!(matches!(refused, OpenError::IsBackup { .. }), "{refused}");
    assert!(refused.to_string().contains("restore"));
    let full = bed.store().backup_in(&backup).unwrap_err();
    assert!(matches!(full, BackupError::NotEmpty { .. }), "{full}");

    let files = backup.files();
    let damaged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let copy = SimDisk::new();
        for (file, bytes) in &files {
            let mut bytes = bytes.clone();
            if file == name {
                change(&mut bytes);
            }
            copy.write_file(file, bytes);
        }
        let target = SimDisk::new();
        let refused = Store::restore_in(&copy, &target, &RestoreOptions::default()).unwrap_err();
        assert!(target.files().is_empty(), "nothing was made: {:?}", target.files().keys());
        refused
    };
    for at in [0, 5000, files["state.redb"].len() - 1] {
        let refused = damaged("state.redb", &|bytes| bytes[at] ^= 1);
        assert!(matches!(&refused, BackupError::Damaged { file, .. } if file == "state.redb"), "{refused}");
    }
    let cut = damaged("state.redb", &|bytes| bytes.truncate(4096));
    assert!(matches!(cut, BackupError::Damaged { .. }), "{cut}");
    for at in 0..files["BACKUP"].len() {
        let refused = damaged("BACKUP", &|bytes| bytes[at] ^= 1);
        assert!(matches!(refused, BackupError::Damaged { .. } | BackupError::Unfinished { .. }), "{at}: {refused}");
        let refused = damaged("BACKUP", &|bytes| bytes.truncate(at));
        assert!(matches!(refused, BackupError::Damaged { .. } | BackupError::Unfinished { .. }), "{at}: {refused}");
    }
}

#[test]
fn a_loss_of_power_at_any_step_of_a_backup_or_a_restore_leaves_nothing_that_passes_for_finished() {
    let bed = busy();
    let whole = SimDisk::new();
    bed.store().backup_in(&whole).unwrap();
    for at in 1..=whole.operations() {
        let backup = SimDisk::new();
        backup.power_cut_at(at);
        drop(bed.store().backup_in(&backup));
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(at)] {
            let left = backup.crash(&survival);
            let target = SimDisk::new();
            // Finished only if every byte of it is there.
            if Store::restore_in(&left, &target, &RestoreOptions::default()).is_ok() {
                replays(&open(&target), 0..20);
            }
        }
    }
    let target = SimDisk::new();
    Store::restore_in(&whole, &target, &RestoreOptions::default()).unwrap();
    for at in 1..=target.operations() {
        let target = SimDisk::new();
        target.power_cut_at(at);
        drop(Store::restore_in(&whole, &target, &RestoreOptions::default()));
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(at)] {
            let left = target.crash(&survival);
            if !left.files().contains_key("IDENTITY") {
                let again = Store::restore_in(&whole, &left, &RestoreOptions::default());
                assert!(again.is_ok(), "at {at}, {survival:?}: {again:?}");
            }
            let store = open(&left);
            replays(&store, 0..20);
            assert!(store.verify().unwrap().is_clean(), "at {at}, {survival:?}");
        }
    }
}

#[test]
fn a_store_is_not_restored_over_another() {
    let bed = busy();
    let backup = SimDisk::new();
    bed.store().backup_in(&backup).unwrap();
    let other = busy();
    let refused = Store::restore_in(&backup, other.disk(), &RestoreOptions::default()).unwrap_err();
    assert!(matches!(refused, BackupError::NotEmpty { .. }), "{refused}");
    let strange = SimDisk::new();
    strange.write_file("letters.txt", b"dear".as_slice());
    let refused = Store::restore_in(&backup, &strange, &RestoreOptions::default()).unwrap_err();
    assert!(matches!(&refused, BackupError::NotEmpty { found, .. } if found == "letters.txt"), "{refused}");
}

#[test]
fn a_backup_that_is_made_while_the_store_works_is_one_state_of_it() {
    let disk = SimDisk::new();
    let store = small().open_in(&disk).unwrap();
    let backups: Vec<SimDisk> = std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            for number in 0..300 {
                drop(execute(&store, &KEEP, &format!("k{number}")).unwrap());
            }
        });
        let mut backups = Vec::new();
        while !working.is_finished() || backups.is_empty() {
            let backup = SimDisk::new();
            store.backup_in(&backup).unwrap();
            backups.push(backup);
        }
        backups
    });
    for backup in backups.iter().step_by((backups.len() / 5).max(1)) {
        let (disk, _) = restored(backup, &RestoreOptions::default());
        let store = small().manual().open_in(&disk).unwrap();
        // Each receipt with its row, and no row without its receipt.
        replays(&store, 0..u32::try_from(runs(&store)).unwrap());
        store.assert_sound();
    }
}

#[test]
fn a_plain_copy_whose_state_is_ahead_of_its_log_is_refused() {
    let bed = busy();
    settle(bed.store());
    let early = bed.disk().files();
    for number in 20..60 {
        drop(execute(bed.store(), &KEEP, &format!("k{number}")).unwrap());
    }
    settle(bed.store());
    bed.store().compact(|_, _| ()).unwrap();
    let late = bed.disk().files();
    // A tool copied the log first and the state file later.
    let copy = SimDisk::new();
    for (name, bytes) in &early {
        copy.write_file(name, if name == "state.redb" { late[name].clone() } else { bytes.clone() });
    }
    let refused = small().manual().open_in(&copy).unwrap_err();
    assert!(matches!(refused, OpenError::Log(_) | OpenError::Missing { .. }), "{refused}");
}
