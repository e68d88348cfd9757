//! What the stores hold, as plain data. Whoever reads them is somebody else.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::{IncarnationId, ReplicaId},
    majority::Members,
    record::{Charge, DiskIdentity, EffectRow, Receipt, Record},
};

/// Everything durable that a run left.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Every disk that there ever was.
    pub stores: Vec<StoreEvidence>,
    /// The provider's ledger.
    pub charges: Vec<Charge>,
}

/// One disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreEvidence {
    /// Under which name it ran.
    pub replica: ReplicaId,
    /// Which disk.
    pub disk: DiskIdentity,
    /// Whether it was wiped away. Replicas never see it again; the judge does.
    pub wiped: bool,
    /// What was executed here.
    pub effects: Vec<EffectRow>,
    /// Records of the lab's own, written apart from the effect.
    pub records: Vec<Record>,
    /// Receipts of the store, written with the effect.
    pub receipts: Vec<Receipt>,
}

impl Evidence {
    /// Every execution: one row each.
    pub fn rows(&self) -> impl Iterator<Item = &EffectRow> {
        let inside = self.stores.iter().flat_map(|store| &store.effects);
        inside.chain(self.charges.iter().map(|charge| &charge.row))
    }

    /// What should be here and is not. A disk that was not read is not a disk without effects.
    pub(super) fn missing(&self, members: Option<Members>, wiped: &BTreeSet<IncarnationId>) -> Vec<String> {
        let mut missing = Vec::new();
        for replica in members.iter().flat_map(|members| members.iter()) {
            if !self.stores.iter().any(|store| store.replica == replica) {
                missing.push(format!("no disk of {replica} was read"));
            }
        }
        for incarnation in wiped {
            if !self.stores.iter().any(|store| store.disk.incarnation == *incarnation) {
                missing.push(format!("the disk {incarnation} was wiped, and is not among the evidence"));
            }
        }
        missing
    }
}
