//! redb, as a careful program uses it without this store.

use std::path::Path;

use redb::{
    Database, Durability, ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _, TableDefinition,
};

use crate::failure::{During as _, Failure, Outcome};
use crate::peer::Commit;
use crate::workload::Op;

const RECEIPTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("receipts");
const REPLIES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("replies");
const EXPIRY: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("expiry");
const ORDERS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("orders");

/// The cache that this store gives to the redb inside it.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// One database.
pub(crate) struct Redb {
    database: Database,
}

impl Redb {
    pub(crate) fn open(directory: &Path) -> Outcome<Self> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(directory.join("peer.redb"));
        Ok(Self { database: database.during("opening redb")? })
    }

    fn try_commit(&self, ops: &[Op]) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut receipts = transaction.open_table(RECEIPTS)?;
            let mut replies = transaction.open_table(REPLIES)?;
            let mut expiry = transaction.open_table(EXPIRY)?;
            let mut orders = transaction.open_table(ORDERS)?;
            for op in ops {
                let slot = op.slot();
                // The look-up is what makes it idempotent; keys of this benchmark are new.
                if receipts.get(slot.as_slice())?.is_none() {
                    receipts.insert(slot.as_slice(), op.receipt_row().as_slice())?;
                    replies.insert(op.number, op.reply_row().as_slice())?;
                    expiry.insert(op.expiry_key().as_slice(), op.expiry_row().as_slice())?;
                    orders.insert(op.key.as_slice(), op.order.as_slice())?;
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn try_orders(&self) -> Result<u64, redb::Error> {
        match self.database.begin_read()?.open_table(ORDERS) {
            Ok(orders) => Ok(orders.len()?),
            Err(redb::TableError::TableDoesNotExist(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl Commit for Redb {
    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        self.try_commit(ops).during("committing to redb")
    }

    fn orders(&mut self) -> Outcome<u64> {
        self.try_orders().map_err(|error| Failure::new(format!("counting redb's orders: {error}"), "report this"))
    }
}
