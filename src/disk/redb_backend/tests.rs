//! What the design takes for granted about redb, tried on the simulated disk.

use std::collections::BTreeMap;
use std::error::Error;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::{RedbBackend, WriteGate};
use crate::disk::sim::{CallKind, Fault, FaultError, SimDisk, Survival};
use crate::disk::{Disk, OpenMode};

mod power;

type Done<T = ()> = Result<T, Box<dyn Error>>;
type Rows = BTreeMap<u64, Vec<u8>>;

const FILE: &str = "state.redb";
const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
/// Large enough that nothing is evicted within a test.
const ROOMY: usize = 1 << 20;
/// So small that redb writes pages in the middle of transactions that are never synced.
const TIGHT: usize = 16 << 10;

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

#[test]
fn the_first_failure_of_the_file_is_remembered_and_a_refused_write_is_none() -> Done {
    let (disk, database, gate) = checkpointed(TIGHT)?;
    assert_eq!(gate.failure(), None);
    disk.fail(Fault { name_contains: Some(FILE.to_owned()), ..Fault::next(CallKind::Sync, FaultError::Enospc) });
    assert!(checkpoint(&database, &[(1, b"second".to_vec())]).is_err());
    gate.refuse();
    drop(database);
    assert_eq!(gate.failure(), Some("simulated: no space left"));
    let (_disk, database, gate) = checkpointed(TIGHT)?;
    gate.refuse();
    drop(database);
    assert_eq!(gate.failure(), None);
    Ok(())
}
