//! A disk that keeps its word: what it has said is written is there after every crash.

use std::collections::BTreeMap;

use counterfoil_lab::rules::{
    action::DiskCommand,
    event::DiskDone,
    ids::{Epoch, IncarnationId, Millis},
    record::{DiskIdentity, EffectRow, Executed, Execution, Fence, Receipt, Record, Slot, Standing},
};

#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) identity: DiskIdentity,
    pub(crate) records: BTreeMap<Slot, Record>,
    pub(crate) receipts: BTreeMap<Slot, Receipt>,
    pub(crate) intents: BTreeMap<Slot, Execution>,
    pub(crate) effects: Vec<EffectRow>,
    newest: Epoch,
    position: u64,
}

impl Disk {
    pub(crate) fn new(incarnation: String, born_at: Millis, standing: Standing) -> Self {
        Self {
            identity: DiskIdentity { incarnation: IncarnationId(incarnation), born_at, standing },
            records: BTreeMap::new(),
            receipts: BTreeMap::new(),
            intents: BTreeMap::new(),
            effects: Vec::new(),
            newest: Epoch(0),
            position: 0,
        }
    }

    pub(crate) fn carry_out(&mut self, command: DiskCommand) -> DiskDone {
        match command {
            DiskCommand::Look(slot) => DiskDone::Looked(self.records.get(&slot).cloned()),
            DiskCommand::LookReceipt(slot) => {
                DiskDone::Kept { receipt: self.receipts.get(&slot).cloned(), newest: self.newest }
            }
            DiskCommand::Effect(row) => {
                self.effects.push(row);
                DiskDone::Written
            }
            DiskCommand::Record(record) => {
                self.records.entry(record.slot.clone()).or_insert(record);
                DiskDone::Written
            }
            DiskCommand::Intent(execution) => {
                self.intents.entry(execution.slot.clone()).or_insert(execution);
                DiskDone::Written
            }
            DiskCommand::Execute(execution) => DiskDone::Executed(self.execute(execution)),
            DiskCommand::IssueEpoch { .. } => {
                self.newest = Epoch(self.newest.0 + 1);
                DiskDone::Issued(Fence { epoch: self.newest, keeper: self.identity.incarnation.clone() })
            }
            DiskCommand::Records => DiskDone::Records(self.records.values().cloned().collect()),
            DiskCommand::Adopt { records, caught_up } => {
                for record in records {
                    self.records.entry(record.slot.clone()).or_insert(record);
                }
                if caught_up {
                    self.identity.standing = Standing::CaughtUp;
                }
                DiskDone::Written
            }
        }
    }

    /// All of it or nothing, and in one go: this is what a counterfoil store gives.
    fn execute(&mut self, execution: Execution) -> Executed {
        let stored = self.receipts.get(&execution.slot).cloned();
        if execution.fence.as_ref().is_some_and(|fence| fence.epoch < self.newest) {
            return Executed::Stale { newest: self.newest, receipt: stored };
        }
        match stored {
            Some(receipt) if execution.compares_amounts && receipt.amount != execution.request.amount => {
                Executed::Mismatch { held: receipt.amount }
            }
            Some(receipt) => Executed::Replayed(receipt),
            None => {
                self.position += 1;
                let request = execution.request;
                let receipt = Receipt {
                    key: request.key,
                    amount: request.amount,
                    attempt: request.attempt,
                    by: execution.by,
                    position: Some(self.position),
                };
                self.receipts.insert(execution.slot, receipt.clone());
                self.effects.extend(execution.row);
                Executed::First(receipt)
            }
        }
    }
}
