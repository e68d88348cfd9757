//! What is durable at a replica: a counterfoil store.
//!
//! `none`, `memory`, `local` and the majorities write the effect and the record as two plain writes, since that is what
//! they are about. Only `Execute` uses what counterfoil is for: receipt, effect and the comparison of epochs in one.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use counterfoil::{
    Execution as Executing, Failure, OpenError, OperationType, Reply, Slot as StoreSlot, Store, Table, TableError, Tx,
};
use serde::{Deserialize, Serialize};

use crate::rules::action::DiskCommand;
use crate::rules::event::DiskDone;
use crate::rules::ids::{Epoch, IncarnationId, Key, Millis, ReplicaId};
use crate::rules::record::{
    DiskIdentity, EffectRow, Executed, Execution, Fence, Grant, Receipt, Record, Slot, Standing,
};

const PAY: OperationType = OperationType::new("pay");
const TENANT: &str = "lab";
const ACTOR: &str = "room";

const IDENTITY: Table<String, DiskIdentity> = Table::new("identity");
const EFFECTS: Table<u64, EffectRow> = Table::new("effects");
const RECORDS: Table<String, Record> = Table::new("records");
/// The receipts of the store, in the same write as each of them: so that they can be listed.
const RECEIPTS: Table<String, Receipt> = Table::new("receipts");
const INTENTS: Table<String, Execution> = Table::new("intents");
const GRANTS: Table<u64, Grant> = Table::new("grants");
const PROBES: Table<u64, u64> = Table::new("probes");

const THIS: &str = "this";

/// An open disk.
#[derive(Debug, Clone)]
pub struct Disk {
    store: Store,
    identity: Arc<Mutex<DiskIdentity>>,
}

/// The disk did not do what it was told.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct DiskError {
    /// Whether certainly nothing was written.
    pub certain: bool,
    message: String,
}

/// Everything durable on one disk: for the judge, and for people who ask where a record is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskContents {
    /// Which disk.
    pub disk: DiskIdentity,
    /// What was done, in order.
    pub effects: Vec<EffectRow>,
    /// What is remembered in writes apart from the effects.
    pub records: Vec<Record>,
    /// Receipts of the store, each in one write with its effect.
    pub receipts: Vec<Receipt>,
    /// Calls of the provider that were intended.
    pub intents: Vec<Execution>,
    /// Rights that were given out.
    pub grants: Vec<Grant>,
}

/// What one disk holds for one key.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeldForKey {
    /// How often the effect happened here.
    pub effects: u64,
    /// Records of the lab's own, written apart from the effect.
    pub records: Vec<Record>,
    /// Receipts of the store, written with the effect.
    pub receipts: Vec<Receipt>,
    /// Intents to call the provider.
    pub intents: u64,
}

impl DiskError {
    fn store(error: &counterfoil::Error) -> Self {
        Self { certain: error.execution() == Executing::NotExecuted, message: error.to_string() }
    }
}

impl From<counterfoil::Error> for DiskError {
    fn from(error: counterfoil::Error) -> Self {
        Self::store(&error)
    }
}

impl From<TableError> for DiskError {
    /// Reading changes nothing.
    fn from(error: TableError) -> Self {
        Self { certain: true, message: error.to_string() }
    }
}

/// A store in which nothing was found, or something else than a disk of the lab.
#[derive(Debug, thiserror::Error)]
pub enum DiskOpenError {
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// It can be, and does not answer.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// It was made, and its identity was never written: the process died in between. Nothing else can be on it.
    #[error("the store has no identity: whoever made it died before it wrote one")]
    Blank,
}

impl Disk {
    /// Opens the disk, or makes a new one with the given standing.
    ///
    /// # Errors
    ///
    /// If the store cannot be opened or written.
    pub fn open(path: &Path, standing_if_new: Standing, now: Millis) -> Result<Self, DiskOpenError> {
        let store = open_store(path)?;
        let identity = match store.read(|view| view.table(&IDENTITY)?.get(THIS)).map_err(DiskError::from)? {
            Some(identity) => identity,
            None => new_identity(&store, standing_if_new, now)?,
        };
        Ok(Self { store, identity: Arc::new(Mutex::new(identity)) })
    }

    /// Opens a disk that nobody runs on any more, to read it.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be read.
    pub fn open_evidence(path: &Path) -> Result<Self, DiskOpenError> {
        if !Store::exists(path) {
            let message = format!("{}: there is no store", path.display());
            return Err(DiskError { certain: true, message }.into());
        }
        let store = open_store(path)?;
        let identity = store.read(|view| view.table(&IDENTITY)?.get(THIS)).map_err(DiskError::from)?;
        Ok(Self { store, identity: Arc::new(Mutex::new(identity.ok_or(DiskOpenError::Blank)?)) })
    }

    /// Which disk this is.
    #[must_use]
    pub fn identity(&self) -> DiskIdentity {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does what the decision function asks for. It blocks until that is durable.
    ///
    /// # Errors
    ///
    /// [`DiskError`], which says whether certainly nothing was written.
    pub fn perform(&self, command: DiskCommand) -> Result<DiskDone, DiskError> {
        match command {
            DiskCommand::Look(slot) => Ok(DiskDone::Looked(self.record(&slot)?)),
            DiskCommand::LookReceipt(slot) => {
                Ok(DiskDone::Kept { receipt: self.receipt(&slot)?, newest: self.newest_epoch()? })
            }
            DiskCommand::Effect(row) => self.written(move |tx| append(tx, &row)),
            DiskCommand::Record(record) => self.written(move |tx| put_if_new(tx, &record)),
            DiskCommand::Intent(intent) => self.written(move |tx| tx.table(&INTENTS)?.put(&intent.slot.0, &intent)),
            DiskCommand::Execute(execution) => self.execute(execution).map(DiskDone::Executed),
            DiskCommand::IssueEpoch { to } => self.issue(to).map(DiskDone::Issued),
            DiskCommand::Records => Ok(DiskDone::Records(self.records()?)),
            DiskCommand::Adopt { records, caught_up } => self.adopt(records, caught_up),
        }
    }

    fn written(
        &self,
        write: impl FnOnce(&Tx<'_>) -> Result<(), TableError> + Send + 'static,
    ) -> Result<DiskDone, DiskError> {
        self.store.write(move |tx| Ok(write(tx)?))?;
        Ok(DiskDone::Written)
    }

    fn adopt(&self, records: Vec<Record>, caught_up: bool) -> Result<DiskDone, DiskError> {
        let mut identity = self.identity();
        if caught_up {
            identity.standing = Standing::CaughtUp;
        }
        let written = identity.clone();
        let done = self.written(move |tx| {
            records.iter().try_for_each(|record| put_if_new(tx, record))?;
            tx.table(&IDENTITY)?.put(THIS, &written)
        })?;
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = identity;
        Ok(done)
    }

    fn record(&self, slot: &Slot) -> Result<Option<Record>, DiskError> {
        Ok(self.store.read(|view| view.table(&RECORDS)?.get(&slot.0))?)
    }

    fn records(&self) -> Result<Vec<Record>, DiskError> {
        Ok(self.store.read(|view| values(view.table(&RECORDS)?.range(..)?))?)
    }

    fn receipt(&self, slot: &Slot) -> Result<Option<Receipt>, DiskError> {
        let found = self.store.receipt(&store_slot(slot)?)?;
        found.map(|receipt| read_receipt(&receipt)).transpose()
    }

    fn newest_epoch(&self) -> Result<Epoch, DiskError> {
        let last = self.store.read(|view| view.table(&GRANTS)?.last())?;
        Ok(Epoch(last.map_or(0, |(epoch, _)| epoch)))
    }

    fn issue(&self, to: ReplicaId) -> Result<Fence, DiskError> {
        let keeper = self.identity().incarnation;
        let written = self.store.write(move |tx| {
            let grants = tx.table(&GRANTS)?;
            let epoch = grants.last()?.map_or(1, |(last, _)| last + 1);
            let fence = Fence { epoch: Epoch(epoch), keeper };
            grants.put(epoch, &Grant { to, fence: fence.clone() })?;
            Ok(fence)
        })?;
        Ok(written.value)
    }

    /// Receipt, effect and the comparison of epochs in one write: what counterfoil is for.
    fn execute(&self, execution: Execution) -> Result<Executed, DiskError> {
        let Execution { slot, request, compares_amounts, row, by, fence } = execution;
        let own = self.identity().incarnation;
        // Who is stale is told so, with what stands under the slot, even if that would answer it.
        if let Some(newest) = stale(fence.as_ref(), &own, self.newest_epoch()?) {
            return Ok(Executed::Stale { newest, receipt: self.receipt(&slot)? });
        }
        // Whether another amount is a mismatch is what the digest is made of.
        let content = compares_amounts.then_some(request.amount);
        let operation = PAY.request(TENANT, ACTOR, &slot.0).and_then(|operation| operation.json(&content));
        let operation = operation.map_err(|error| DiskError { certain: true, message: error.to_string() })?;
        let receipt =
            Receipt { key: request.key, amount: request.amount, attempt: request.attempt, by, position: None };
        let name = slot.0.clone();
        let outcome = self.store.execute(operation.attempt(request.attempt.0), move |tx: &Tx<'_>| {
            let newest = tx.table(&GRANTS)?.last()?.map_or(0, |(epoch, _)| epoch);
            // It was compared before; only what is compared here, in the same write, decides.
            if let Some(newest) = stale(fence.as_ref(), &own, Epoch(newest)) {
                return Err(Failure::from(StaleEpoch(newest)));
            }
            if let Some(row) = &row {
                append(tx, row)?;
            }
            tx.table(&RECEIPTS)?.put(&name, &receipt)?;
            Ok(Reply::created().json(&receipt)?)
        });
        match outcome {
            Ok(receipt) if receipt.is_replayed() => Ok(Executed::Replayed(read_receipt(&receipt)?)),
            Ok(receipt) => Ok(Executed::First(read_receipt(&receipt)?)),
            Err(counterfoil::Error::Conflict { .. }) => {
                let held = self.receipt(&slot)?.ok_or_else(|| DiskError {
                    certain: true,
                    message: format!("the store says that {slot} stands for another amount, and shows none"),
                })?;
                Ok(Executed::Mismatch { held: held.amount })
            }
            Err(counterfoil::Error::Failed(failure)) if failure.downcast_ref::<StaleEpoch>().is_some() => {
                Ok(Executed::Stale { newest: self.newest_epoch()?, receipt: self.receipt(&slot)? })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// One durable write of a row that means nothing. It says where it stands in the log.
    ///
    /// # Errors
    ///
    /// If it was not written.
    pub fn probe(&self) -> Result<String, DiskError> {
        let written = self.store.write(|tx| {
            let probes = tx.table(&PROBES)?;
            let count = probes.get(0)?.unwrap_or(0);
            Ok(probes.put(0, &count.wrapping_add(1))?)
        })?;
        Ok(written.position.map_or_else(String::new, |position| position.to_string()))
    }

    /// How many records and receipts it holds together, and how many effects.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn counts(&self) -> Result<(u64, u64), DiskError> {
        let counts = self.store.read(|view| {
            let records = view.table(&RECORDS)?.len()? + view.table(&RECEIPTS)?.len()?;
            Ok::<_, TableError>((records, view.table(&EFFECTS)?.len()?))
        })?;
        Ok(counts)
    }

    /// Everything, as of now.
    ///
    /// # Errors
    ///
    /// If something cannot be read.
    pub fn contents(&self) -> Result<DiskContents, DiskError> {
        let disk = self.identity();
        Ok(self.store.read(|view| {
            Ok::<_, TableError>(DiskContents {
                disk,
                effects: values(view.table(&EFFECTS)?.range(..)?)?,
                records: values(view.table(&RECORDS)?.range(..)?)?,
                receipts: values(view.table(&RECEIPTS)?.range(..)?)?,
                intents: values(view.table(&INTENTS)?.range(..)?)?,
                grants: values(view.table(&GRANTS)?.range(..)?)?,
            })
        })?)
    }

    /// What it holds for a key, under any amount.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn held_for(&self, key: &Key) -> Result<HeldForKey, DiskError> {
        let DiskContents { effects, records, receipts, intents, .. } = self.contents()?;
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        Ok(HeldForKey {
            effects: count(effects.iter().filter(|row| row.key == *key).count()),
            records: records.into_iter().filter(|record| record.receipt.key == *key).collect(),
            receipts: receipts.into_iter().filter(|receipt| receipt.key == *key).collect(),
            intents: count(intents.iter().filter(|intent| intent.request.key == *key).count()),
        })
    }

    /// Closes it in order: nothing has to be recovered at the next start.
    ///
    /// # Errors
    ///
    /// If the last checkpoint could not be written; nothing that was answered is lost.
    pub fn close(self) -> Result<(), DiskError> {
        Ok(self.store.close()?)
    }
}

/// The closure of an `execute` found a later epoch.
#[derive(Debug, thiserror::Error)]
#[error("a later epoch was given out: {0}")]
struct StaleEpoch(Epoch);

fn stale(fence: Option<&Fence>, keeper: &IncarnationId, newest: Epoch) -> Option<Epoch> {
    let fence = fence?;
    (fence.keeper != *keeper || fence.epoch < newest).then_some(newest)
}

fn open_store(path: &Path) -> Result<Store, OpenError> {
    let builder = Store::builder().operation(&PAY).table(&IDENTITY).table(&EFFECTS).table(&RECORDS);
    builder.table(&RECEIPTS).table(&INTENTS).table(&GRANTS).table(&PROBES).open(path)
}

fn new_identity(store: &Store, standing: Standing, born_at: Millis) -> Result<DiskIdentity, DiskError> {
    let incarnation = IncarnationId(format!("{:08x}", fastrand::u32(..)));
    let identity = DiskIdentity { incarnation, born_at, standing };
    let written = identity.clone();
    store.write(move |tx| Ok(tx.table(&IDENTITY)?.put(THIS, &written)?))?;
    Ok(identity)
}

fn append(tx: &Tx<'_>, row: &EffectRow) -> Result<(), TableError> {
    let effects = tx.table(&EFFECTS)?;
    let next = effects.last()?.map_or(1, |(last, _)| last + 1);
    effects.put(next, row)
}

fn put_if_new(tx: &Tx<'_>, record: &Record) -> Result<(), TableError> {
    let records = tx.table(&RECORDS)?;
    if records.contains(&record.slot.0)? { Ok(()) } else { records.put(&record.slot.0, record) }
}

fn values<K, V>(rows: impl Iterator<Item = Result<(K, V), TableError>>) -> Result<Vec<V>, TableError> {
    rows.map(|row| row.map(|(_, value)| value)).collect()
}

fn store_slot(slot: &Slot) -> Result<StoreSlot, DiskError> {
    StoreSlot::new(TENANT, ACTOR, PAY.name(), &slot.0)
        .map_err(|error| DiskError { certain: true, message: error.to_string() })
}

fn read_receipt(receipt: &counterfoil::Receipt) -> Result<Receipt, DiskError> {
    let read: Receipt = receipt
        .reply()
        .body_json()
        .map_err(|error| DiskError { certain: false, message: format!("a receipt does not read: {error}") })?;
    Ok(Receipt { position: Some(receipt.position().sequence), ..read })
}
