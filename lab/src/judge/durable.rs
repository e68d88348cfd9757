//! What the supervisor read, as evidence.

use crate::judge::evidence::{Evidence, StoreEvidence};
use crate::supervisor::durable::{DiskRead, Durable};

impl From<Durable> for Evidence {
    fn from(durable: Durable) -> Self {
        let store = |DiskRead { replica, wiped, contents }: DiskRead| StoreEvidence {
            replica,
            disk: contents.disk,
            wiped,
            effects: contents.effects,
            records: contents.records,
            receipts: contents.receipts,
        };
        Self { stores: durable.disks.into_iter().map(store).collect(), charges: durable.charges }
    }
}
