//! redb through losses of power, failed syncs and syncs that lie.

use std::collections::BTreeSet;

use redb::Database;

use super::{Done, FILE, ROOMY, Rows, TIGHT, checkpoint, checkpointed, fold, open, recovered, rows};
use crate::disk::sim::{CallKind, Fault, FaultError, Rng, SimDisk, Survival};
use crate::disk::{Disk, OpenMode};

/// So large that the file grows more than once within a workload.
const VALUE_BYTES: usize = 3000;

/// Rounds of folds and a checkpoint, until the power goes. Returns the rows at each checkpoint, the one that failed last.
fn workload(database: &Database, rounds: u64) -> (Vec<Rows>, bool) {
    let mut model = Rows::from([(0, b"first".to_vec())]);
    let mut checkpoints = vec![model.clone()];
    let mut rng = Rng::new(7);
    for _ in 0..rounds {
        for _ in 0..3 {
            let batch: Vec<_> =
                (0..8).map(|_| (rng.next_u64() % 300, vec![rng.next_u64().to_le_bytes()[0]; VALUE_BYTES])).collect();
            if fold(database, &batch).is_err() {
                return (checkpoints, false);
            }
            model.extend(batch);
        }
        let last = (1000, rng.next_u64().to_le_bytes().to_vec());
        model.insert(last.0, last.1.clone());
        checkpoints.push(model.clone());
        if checkpoint(database, &[last]).is_err() {
            return (checkpoints, true);
        }
    }
    (checkpoints, false)
}

/// Cuts the power at every operation of the workload and opens every kind of image that can be left.
fn survives_power_loss_at_every_operation(cache_bytes: usize, rounds: u64) -> Done {
    let mut images = BTreeSet::new();
    let mut cut = 1;
    loop {
        let (disk, database, gate) = checkpointed(cache_bytes)?;
        disk.start_trace();
        disk.power_cut_at(disk.operations() + cut);
        let (checkpoints, in_flight) = workload(&database, rounds);
        if !disk.is_off() {
            let grown = disk.trace().iter().filter(|line| line.contains("SetLen")).count();
            assert!(grown > 1, "the file grew {grown} times");
            break;
        }
        gate.refuse();
        drop(database);
        let allowed = checkpoints.len() - 1 - usize::from(in_flight)..checkpoints.len();
        for survival in Survival::selection(disk.unsynced(), 5) {
            let left = disk.crash(&survival);
            if images.insert(left.image_hash()) {
                let rows = recovered(&left).map_err(|error| format!("cut {cut}, {survival:?}: {error}"))?;
                assert!(checkpoints[allowed.clone()].contains(&rows), "cut {cut}, {survival:?}");
            }
        }
        cut += 1;
    }
    assert!(cut > 30 && images.len() > 100, "{cut} cuts gave {} images", images.len());
    Ok(())
}

#[test]
fn redb_opens_at_a_checkpoint_after_a_power_loss_at_any_operation() -> Done {
    survives_power_loss_at_every_operation(ROOMY, 3)
}

#[test]
fn so_it_does_when_it_evicts_pages_within_transactions() -> Done {
    survives_power_loss_at_every_operation(TIGHT, 2)
}

/// A sync fails and its data is gone although the cache shows it; the process dies, the next one opens from that cache
/// (or finds the clean pages evicted) and makes a checkpoint of its own; then the power goes. What that last checkpoint
/// rests on must be there. In one phase it is not: redb then reports that all roots are corrupted.
fn survives_a_failed_sync(error: FaultError, cache_bytes: usize, evicted: bool) -> Done {
    for nth in 1.. {
        let told = format!("{error:?}, sync {nth}, {cache_bytes} bytes of cache, evicted: {evicted}");
        let (disk, database, gate) = checkpointed(cache_bytes)?;
        disk.fail(Fault { nth, ..Fault::next(CallKind::Sync, error) });
        let (checkpoints, in_flight) = workload(&database, 3);
        gate.refuse();
        drop(database);
        if disk.faults_struck() == 0 {
            assert!(nth > 6, "two syncs a checkpoint at least");
            return Ok(());
        }
        let disk = disk.kill();
        if evicted {
            disk.evict_clean_pages();
        }
        let (database, gate) = open(&disk, cache_bytes)?;
        let mut model = rows(&database)?;
        let made = checkpoints.len() - usize::from(in_flight);
        assert!(checkpoints[made - 1..].contains(&model), "{told}");
        model.insert(2000, b"after".to_vec());
        checkpoint(&database, &[(2000, b"after".to_vec())])?;
        gate.refuse();
        drop(database);
        for survival in Survival::selection(disk.unsynced(), 3) {
            assert_eq!(recovered(&disk.crash(&survival))?, model, "{told}, {survival:?}");
        }
    }
    Ok(())
}

#[test]
fn a_checkpoint_after_a_failed_sync_and_a_kill_rests_on_durable_pages_only() -> Done {
    for error in [FaultError::SyncDropsData, FaultError::SyncErrorsButDurable, FaultError::Eio] {
        for cache_bytes in [ROOMY, TIGHT] {
            survives_a_failed_sync(error, cache_bytes, false)?;
            survives_a_failed_sync(error, cache_bytes, true)?;
        }
    }
    Ok(())
}

/// The open after a crash writes too; a second crash there must not lose what the first one left.
#[test]
fn a_second_power_loss_while_redb_opens_leaves_the_same_checkpoint() -> Done {
    let (disk, database, gate) = checkpointed(ROOMY)?;
    disk.power_cut_at(disk.operations() + 20);
    let (checkpoints, _) = workload(&database, 3);
    gate.refuse();
    drop(database);
    let mut cuts = 0;
    for first in Survival::selection(disk.unsynced(), 10) {
        for cut in 1.. {
            let left = disk.crash(&first);
            left.power_cut_at(cut);
            if open(&left, ROOMY).map(|(_, gate)| gate.refuse()).is_ok() {
                break;
            }
            cuts += 1;
            for second in Survival::selection(left.unsynced(), 3) {
                let rows = recovered(&left.crash(&second))?;
                assert!(checkpoints.contains(&rows), "{first:?}, cut {cut} of the open, {second:?}");
            }
        }
    }
    assert!(cuts > 10, "an open writes: {cuts}");
    Ok(())
}

/// The other way round: a promise that nobody can make. It also shows that the simulated disk is able to hurt redb.
#[test]
fn a_disk_that_lies_about_syncs_loses_checkpoints() -> Done {
    let (disk, database, gate) = checkpointed(ROOMY)?;
    disk.fail(Fault { permanent: true, ..Fault::next(CallKind::Sync, FaultError::SyncLies) });
    let (checkpoints, in_flight) = workload(&database, 3);
    gate.refuse();
    drop(database);
    assert_eq!((checkpoints.len(), in_flight), (4, false), "redb noticed nothing");
    assert_eq!(recovered(&disk.crash(&Survival::Nothing))?, checkpoints[0]);
    Ok(())
}

/// The store makes the file before its identity is complete and starts over; this is what it would meet if it did not.
#[test]
fn an_interrupted_creation_is_refused_or_opens_without_tables_and_never_panics() -> Done {
    let mut refused = 0;
    for cut in 1.. {
        let disk = SimDisk::new();
        disk.open(FILE, OpenMode::Create)?;
        disk.sync_dir("")?;
        disk.power_cut_at(disk.operations() + cut);
        if open(&disk, ROOMY).map(|(_, gate)| gate.refuse()).is_ok() {
            break;
        }
        for survival in Survival::selection(disk.unsynced(), 10) {
            match open(&disk.crash(&survival), ROOMY) {
                Ok((database, gate)) => {
                    assert!(rows(&database).is_err(), "cut {cut}, {survival:?}");
                    gate.refuse();
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 0, "a file without its magic number is not a new file");
    Ok(())
}
