//! What the design takes for granted about redb, tried on the simulated disk.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::{RedbBackend, WriteGate};
use crate::disk::sim::{CallKind, Fault, FaultError, Rng, SimDisk, Survival};
use crate::disk::{Disk, OpenMode};

type Done<T = ()> = Result<T, Box<dyn Error>>;
type Rows = BTreeMap<u64, Vec<u8>>;

const FILE: &str = "state.redb";
const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
/// Large enough that nothing is evicted within a test.
const ROOMY: usize = 1 << 20;
/// So small that redb writes pages in the middle of transactions that are never synced.
const TIGHT: usize = 16 << 10;

/// So large that the file grows more than once within a workload.
const VALUE_BYTES: usize = 3000;

fn open(disk: &SimDisk, cache_bytes: usize) -> Done<(Database, WriteGate)> {
    let gate = WriteGate::new();
    let backend = RedbBackend::new(disk.open(FILE, OpenMode::ReadWrite)?, gate.clone());
    Ok((Database::builder().set_cache_size(cache_bytes).create_with_backend(backend)?, gate))
}

/// A disk with a database that has one checkpoint, of the row 0.
fn checkpointed(cache_bytes: usize) -> Done<(SimDisk, Database, WriteGate)> {
    let disk = SimDisk::new();
    disk.open(FILE, OpenMode::Create)?;
    disk.sync_dir("")?;
    let (database, gate) = open(&disk, cache_bytes)?;
    checkpoint(&database, &[(0, b"first".to_vec())])?;
    Ok((disk, database, gate))
}

fn put(transaction: &WriteTransaction, rows: &[(u64, Vec<u8>)]) -> Done {
    let mut table = transaction.open_table(ROWS)?;
    for (key, value) in rows {
        table.insert(key, value.as_slice())?;
    }
    Ok(())
}

/// A commit that is visible and not durable, as a fold makes it.
fn fold(database: &Database, rows: &[(u64, Vec<u8>)]) -> Done {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::None)?;
    put(&transaction, rows)?;
    Ok(transaction.commit()?)
}

/// A durable commit with quick repair.
fn checkpoint(database: &Database, rows: &[(u64, Vec<u8>)]) -> Done {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    transaction.set_quick_repair(true);
    put(&transaction, rows)?;
    Ok(transaction.commit()?)
}

fn rows(database: &Database) -> Done<Rows> {
    let mut rows = Rows::new();
    for row in database.begin_read()?.open_table(ROWS)?.iter()? {
        let (key, value) = row?;
        rows.insert(key.value(), value.value().to_vec());
    }
    Ok(rows)
}

/// Opens what a crash left, checks all of it, and closes it without redb's own commit.
fn recovered(disk: &SimDisk) -> Done<Rows> {
    let (mut database, gate) = open(disk, ROOMY)?;
    let rows = rows(&database)?;
    if !database.check_integrity()? {
        return Err("redb had to repair what a quick-repair checkpoint left".into());
    }
    gate.refuse();
    Ok(rows)
}

fn keys(rows: &Rows) -> Vec<u64> {
    rows.keys().copied().collect()
}

#[test]
fn dropping_redb_after_refusal_writes_nothing_and_the_file_is_at_its_checkpoint() -> Done {
    let (disk, database, gate) = checkpointed(ROOMY)?;
    fold(&database, &[(1, b"folded".to_vec())])?;
    let reader = database.begin_read()?;
    gate.refuse();
    let (operations, image) = (disk.operations(), disk.image_hash());
    drop(database);
    drop(reader);
    assert_eq!((disk.operations(), disk.image_hash()), (operations, image));
    assert_eq!(keys(&recovered(&disk.kill())?), [0], "the cache is at the checkpoint");
    assert_eq!(keys(&recovered(&disk.crash(&Survival::Nothing))?), [0], "so is the disk");
    Ok(())
}

#[test]
fn dropping_redb_without_refusal_commits_what_nobody_asked_to() -> Done {
    let (disk, database, _gate) = checkpointed(ROOMY)?;
    fold(&database, &[(1, b"folded".to_vec())])?;
    drop(database);
    assert_eq!(keys(&recovered(&disk.crash(&Survival::Nothing))?), [0, 1], "why the gate exists");
    Ok(())
}

#[test]
fn after_refusal_commits_fail_and_reads_go_on() -> Done {
    let (disk, database, gate) = checkpointed(ROOMY)?;
    fold(&database, &[(1, b"folded".to_vec())])?;
    gate.refuse();
    assert!(gate.is_refusing());
    assert!(checkpoint(&database, &[(2, b"refused".to_vec())]).is_err());
    assert!(database.begin_write().is_err(), "an error latches in redb until it is reopened");
    drop(database);
    assert_eq!(keys(&recovered(&disk.crash(&Survival::Everything))?), [0]);
    Ok(())
}

#[test]
fn a_write_transaction_that_outlives_the_database_writes_nothing_after_refusal() -> Done {
    let (disk, database, gate) = checkpointed(ROOMY)?;
    let transaction = database.begin_write()?;
    put(&transaction, &[(1, b"open".to_vec())])?;
    gate.refuse();
    let operations = disk.operations();
    drop(database);
    assert!(transaction.commit().is_err());
    assert_eq!(disk.operations(), operations);
    assert_eq!(keys(&recovered(&disk.crash(&Survival::Everything))?), [0]);
    Ok(())
}

#[test]
fn a_panic_caught_around_redb_writes_nothing_after_refusal() -> Done {
    let (disk, database, gate) = checkpointed(ROOMY)?;
    fold(&database, &[(1, b"folded".to_vec())])?;
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _transaction = database.begin_write();
        std::panic::resume_unwind(Box::new("thrown with a transaction open"));
    }));
    assert!(caught.is_err());
    gate.refuse();
    let operations = disk.operations();
    drop(database);
    assert_eq!(disk.operations(), operations);
    assert_eq!(keys(&recovered(&disk.crash(&Survival::Everything))?), [0]);
    Ok(())
}

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
/// and makes a checkpoint of its own; then the power goes. What that last checkpoint rests on must be there.
#[test]
fn a_checkpoint_after_a_failed_sync_and_a_kill_rests_on_durable_pages_only() -> Done {
    for error in [FaultError::SyncDropsData, FaultError::SyncErrorsButDurable, FaultError::Eio] {
        let mut failed = 0;
        for nth in 1.. {
            let (disk, database, gate) = checkpointed(ROOMY)?;
            disk.fail(Fault { nth, ..Fault::next(CallKind::Sync, error) });
            let (checkpoints, in_flight) = workload(&database, 3);
            let made = checkpoints.len() - usize::from(in_flight);
            gate.refuse();
            drop(database);
            if made == 4 {
                break;
            }
            failed += 1;
            let disk = disk.kill();
            let (database, gate) = open(&disk, ROOMY)?;
            let mut model = rows(&database)?;
            assert!(checkpoints[made - 1..].contains(&model), "{error:?}, sync {nth}");
            model.insert(2000, b"after".to_vec());
            checkpoint(&database, &[(2000, b"after".to_vec())])?;
            gate.refuse();
            drop(database);
            for survival in Survival::selection(disk.unsynced(), 3) {
                assert_eq!(recovered(&disk.crash(&survival))?, model, "{error:?}, sync {nth}, {survival:?}");
            }
        }
        assert!(failed >= 6, "two syncs a checkpoint at least: {failed}");
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
