//! SQLite, as a careful program uses it without this store.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use crate::failure::{During as _, Failure, Outcome};
use crate::peer::Commit;
use crate::workload::Op;

/// `cache_size` is 64 MiB, as for the others.
const SETUP: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA cache_size = -65536;
    CREATE TABLE receipts (slot BLOB PRIMARY KEY, receipt BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE replies (sequence INTEGER PRIMARY KEY, reply BLOB NOT NULL);
    CREATE TABLE expiry (due BLOB PRIMARY KEY, slot BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE orders (id BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID;
";

/// One connection.
pub(crate) struct Sqlite {
    connection: Connection,
}

impl Sqlite {
    pub(crate) fn open(directory: &Path) -> Outcome<Self> {
        let connection = Connection::open(directory.join("peer.sqlite")).during("opening SQLite")?;
        connection.execute_batch(SETUP).during("setting SQLite up")?;
        let mode: String = connection
            .query_row("PRAGMA journal_mode", (), |row| row.get(0))
            .during("asking SQLite for its journal")?;
        if mode != "wal" {
            return Err(Failure::new(
                format!("SQLite keeps a journal of mode {mode} here, and not a WAL"),
                "this file system cannot have one: name another directory with --dir, or leave SQLite out with --peers",
            ));
        }
        Ok(Self { connection })
    }

    fn try_commit(&mut self, ops: &[Op]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut known = transaction.prepare_cached("SELECT 1 FROM receipts WHERE slot = ?1")?;
            let mut receipt = transaction.prepare_cached("INSERT INTO receipts VALUES (?1, ?2)")?;
            let mut reply = transaction.prepare_cached("INSERT INTO replies VALUES (?1, ?2)")?;
            let mut expiry = transaction.prepare_cached("INSERT INTO expiry VALUES (?1, ?2)")?;
            let mut order = transaction.prepare_cached("INSERT INTO orders VALUES (?1, ?2)")?;
            for op in ops {
                let slot = op.slot();
                // The look-up is what makes it idempotent; keys of this benchmark are new.
                if known.query_row((&slot[..],), |_| Ok(())).optional()?.is_none() {
                    receipt.execute((&slot[..], &op.receipt_row()[..]))?;
                    reply.execute((op.number.cast_signed(), &op.reply_row()[..]))?;
                    expiry.execute((&op.expiry_key()[..], &op.expiry_row()[..]))?;
                    order.execute((&op.key[..], &op.order[..]))?;
                }
            }
        }
        transaction.commit()
    }
}

impl Commit for Sqlite {
    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        self.try_commit(ops).during("committing to SQLite")
    }

    fn orders(&mut self) -> Outcome<u64> {
        let count = self.connection.query_row("SELECT count(*) FROM orders", (), |row| row.get::<_, i64>(0));
        count.map(i64::cast_unsigned).during("counting SQLite's orders")
    }
}
