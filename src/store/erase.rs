//! Erasing what was said, while what was done stays known.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::name::Slot;
use crate::base::position::{Position, TimestampMs};
use crate::base::sync::mpsc;
use crate::log::LogReader;
use crate::log::record::{Body, EraseRecord, EraseTarget, Record, SlotRecord};
use crate::state::{ALL, Rows};

use super::Store;
use super::apply::{ApplyError, get_system};
use super::compact::Compacted;
use super::export::bytes_json;
use super::job::OwnContext;
use super::listing::ReceiptFilter;
use super::reentry;
use super::rows::{ErasureRow, SlotRow, System, open_row, slot_key_of};
use super::writer::Control;

/// Receipts whose rows are erased in one entry's batch, and ranges of log entries that one entry hides: some hundred
/// microseconds of the writer's time.
const RECEIPTS_PER_STEP: usize = 256;
const RANGES_PER_ENTRY: usize = 1024;

/// What is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erase(Target);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Operation(Slot),
    Actor { tenant: String, actor: String },
    Tenant { tenant: String },
}

impl Erase {
    /// One operation.
    #[must_use]
    pub const fn operation(slot: Slot) -> Self {
        Self(Target::Operation(slot))
    }

    /// Every operation of one actor of a tenant.
    #[must_use]
    pub fn actor(tenant: impl Into<String>, actor: impl Into<String>) -> Self {
        Self(Target::Actor { tenant: tenant.into(), actor: actor.into() })
    }

    /// Every operation of a tenant.
    #[must_use]
    pub fn tenant(tenant: impl Into<String>) -> Self {
        Self(Target::Tenant { tenant: tenant.into() })
    }

    fn includes(&self, slot: &SlotRecord) -> bool {
        match &self.0 {
            Target::Operation(this) => {
                this.tenant.as_str() == slot.tenant
                    && this.actor.as_str() == slot.actor
                    && this.operation.as_str() == slot.operation
                    && this.key.as_bytes() == slot.key
            }
            Target::Actor { tenant, actor } => *tenant == slot.tenant && *actor == slot.actor,
            Target::Tenant { tenant } => *tenant == slot.tenant,
        }
    }

    fn filter(&self) -> ReceiptFilter {
        match &self.0 {
            Target::Operation(slot) => ReceiptFilter {
                tenant: Some(slot.tenant.as_str().to_owned()),
                actor: Some(slot.actor.as_str().to_owned()),
                operation: Some(slot.operation.as_str().to_owned()),
            },
            Target::Actor { tenant, actor } => {
                ReceiptFilter { tenant: Some(tenant.clone()), actor: Some(actor.clone()), operation: None }
            }
            Target::Tenant { tenant } => ReceiptFilter { tenant: Some(tenant.clone()), ..ReceiptFilter::default() },
        }
    }
}

/// What [`Store::erase`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erased {
    /// Where the decision stands in the log.
    pub position: Position,
    /// Receipts whose reply and resource id went.
    pub receipts: u64,
    /// Entries of the log whose content is hidden.
    pub entries: u64,
}

/// An erasure that was decided, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Erasure {
    /// The sequence of the decision in the log.
    pub sequence: u64,
    /// When, by the store's time.
    pub time: TimestampMs,
    /// What.
    pub target: Erase,
    /// Who decided.
    pub decided_by: Option<String>,
    /// Why.
    pub reason: String,
}

impl Erasure {
    /// As one JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut line = match &self.target.0 {
            Target::Operation(slot) => json!({
                "what": "operation",
                "tenant": slot.tenant.as_str(),
                "actor": slot.actor.as_str(),
                "operation": slot.operation.as_str(),
                "key": bytes_json(slot.key.as_bytes()),
            }),
            Target::Actor { tenant, actor } => json!({ "what": "actor", "tenant": tenant, "actor": actor }),
            Target::Tenant { tenant } => json!({ "what": "tenant", "tenant": tenant }),
        };
        line["sequence"] = json!(self.sequence);
        line["time_ms"] = json!(self.time.0);
        line["decided_by"] = json!(self.decided_by);
        line["reason"] = json!(self.reason);
        line
    }
}

impl Store {
    /// Erases what operations said: body, headers and resource id of their replies, and in the log everything of their
    /// entries, the table rows that they wrote included.
    ///
    /// It takes effect **at once in every answer**: a retry is answered [`Error::Gone`] without a resource id, and the log
    /// shows the entry as erased. It never allows a second execution, since key, digest and times stay until they expire.
    /// What comes later under the same actor or tenant is not erased by it.
    ///
    /// The bytes themselves leave the files with [`Store::purge`], or in their time as segments are removed and pages
    /// are used again. **Not covered**: keys, and names of tenants, actors and operations, which go with the receipt; rows
    /// of tables, which are the application's own to delete; trace ids; what a follower of the log has read; and backups,
    /// which are erased again when they are restored. A file system or a drive may keep copies that no program sees.
    ///
    /// It walks the receipts of the target's scopes and reads the whole retained log; `progress` is told how many receipts
    /// and entries are done. After an error or a crash it may be asked for again: what was decided stays decided.
    ///
    /// # Errors
    ///
    /// As [`Store::write`]; [`Error::Corrupt`] if something that is stored cannot be read.
    pub fn erase(
        &self,
        what: &Erase,
        decided_by: Option<&str>,
        reason: &str,
        mut progress: impl FnMut(u64),
    ) -> Result<Erased, Error> {
        let (decided_by, reason) = (decided_by.map(str::to_owned), reason.to_owned());
        let record = EraseRecord { target: self.erase_target(what), sequences: Vec::new(), decided_by, reason };
        let known = match &what.0 {
            Target::Operation(slot) => self.receipt_is_readable(slot)?,
            Target::Actor { .. } | Target::Tenant { .. } => false,
        };
        let decision = record.clone();
        let position = self.commit_own(move |_| Ok(vec![Body::Erase(decision)]))?;
        let position = position.expect("the decision was written");
        let mut receipts = u64::from(known);
        progress(receipts);
        if !matches!(what.0, Target::Operation(_)) {
            receipts += self.erase_receipts(what.filter(), &record.reason, |done| progress(receipts + done))?;
        }
        let entries = self.erase_entries(what, &record, position, |done| progress(receipts + done))?;
        Ok(Erased { position, receipts, entries })
    }

    /// Takes what was erased out of the files, and with it the whole history of the log: seals the active segment, makes a
    /// checkpoint, removes every segment that the next open does not need, whatever
    /// [`Limits::keep_log_bytes`](crate::Limits::keep_log_bytes) says, and rewrites the state file ([`Store::compact`]).
    ///
    /// Followers that had not read so far are told [`LogReadError::NotRetained`](crate::LogReadError::NotRetained).
    ///
    /// # Errors
    ///
    /// As [`Store::compact`]; [`Error::Corrupt`] too if somebody reads the log just now, after which it may be tried again.
    pub fn purge(&self, progress: impl FnMut(u64, u64)) -> Result<Compacted, Error> {
        // What an erasure that did not come to its end has left.
        self.erase_receipts(ReceiptFilter::default(), "an erasure that was decided before", |_| ())?;
        self.roll()?;
        // An entry in the new segment, so that no older one holds the last.
        self.commit_own(|_| Ok(vec![Body::Activity(crate::log::record::ActivityRecord::default())]))?;
        self.checkpoint_keeping_nothing()?;
        self.compact(progress)
    }

    /// The erasures that were decided, in their order: to be carried out again on a backup from before.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn erasures(&self) -> Result<Vec<Erasure>, Error> {
        let published = self.shared().publisher.load();
        let read = || -> Result<Vec<Erasure>, ApplyError> {
            let mut erasures = Vec::new();
            for row in published.view.range(System::Erasures.id(), ALL)? {
                let (key, bytes) = row?;
                let ErasureRow { time_ms, erase } = open_row(System::Erasures, key.key(), &bytes)?;
                let Some(target) = target_of(&erase.target) else { continue };
                erasures.push(Erasure {
                    sequence: key.key().try_into().map_or(0, u64::from_be_bytes),
                    time: TimestampMs(time_ms),
                    target: Erase(target),
                    decided_by: erase.decided_by,
                    reason: erase.reason,
                });
            }
            Ok(erasures)
        };
        read().map_err(|error| error.answer())
    }

    fn erase_target(&self, what: &Erase) -> EraseTarget {
        match &what.0 {
            Target::Operation(slot) => EraseTarget::Operation(self.slot_record(slot)),
            Target::Actor { tenant, actor } => EraseTarget::Actor { tenant: tenant.clone(), actor: actor.clone() },
            Target::Tenant { tenant } => EraseTarget::Tenant { tenant: tenant.clone() },
        }
    }

    fn slot_record(&self, slot: &Slot) -> SlotRecord {
        SlotRecord {
            scope: self.shared().hash_keys.scope(slot).0,
            tenant: slot.tenant.as_str().to_owned(),
            actor: slot.actor.as_str().to_owned(),
            operation: slot.operation.as_str().to_owned(),
            key: slot.key.as_bytes().to_vec(),
        }
    }

    /// Whether there is a receipt that still has something to erase.
    fn receipt_is_readable(&self, slot: &Slot) -> Result<bool, Error> {
        let record = self.slot_record(slot);
        let published = self.shared().publisher.load();
        let key = slot_key_of(&record.scope, &record.key);
        let row = get_system::<SlotRow>(&published.view, System::Slots, &key).map_err(|error| error.answer())?;
        Ok(matches!(row, Some(SlotRow::Receipt(receipt)) if !receipt.reply_erased))
    }

    /// Erases the rows of receipts that are erased in every answer already. Returns how many.
    fn erase_receipts(&self, filter: ReceiptFilter, reason: &str, mut progress: impl FnMut(u64)) -> Result<u64, Error> {
        let view = self.view();
        let mut done = 0;
        let mut slots = Vec::new();
        let mut listed = view.receipts(filter)?;
        loop {
            let next = listed.next().transpose()?;
            let is_last = next.is_none();
            slots.extend(next.filter(|listed| listed.erased).map(|listed| self.slot_record(&listed.slot)));
            if slots.len() >= RECEIPTS_PER_STEP || (is_last && !slots.is_empty()) {
                done += self.erase_rows(std::mem::take(&mut slots), reason)?;
                progress(done);
            }
            if is_last {
                return Ok(done);
            }
        }
    }

    fn erase_rows(&self, slots: Vec<SlotRecord>, reason: &str) -> Result<u64, Error> {
        let (sender, receiver) = mpsc::channel();
        let reason = reason.to_owned();
        self.commit_own(move |context| {
            let mut bodies = Vec::new();
            for slot in slots {
                if let Some(sequence) = erasable(&context, &slot).map_err(|error| error.answer())? {
                    let sequences = vec![(sequence, sequence)];
                    let target = EraseTarget::Operation(slot);
                    bodies.push(Body::Erase(EraseRecord {
                        target,
                        sequences,
                        decided_by: None,
                        reason: reason.clone(),
                    }));
                }
            }
            if sender.send(bodies.len() as u64).is_err() {
                tracing::debug!("nobody waits for an erasure any more");
            }
            Ok(bodies)
        })?;
        receiver.recv().map_err(|_| Error::Closed)
    }

    /// Hides the entries of the retained log that are about the target, up to the decision.
    fn erase_entries(
        &self,
        what: &Erase,
        decision: &EraseRecord,
        through: Position,
        mut progress: impl FnMut(u64),
    ) -> Result<u64, Error> {
        let sequences = self.entries_of(what, through)?;
        let mut done = 0;
        for chunk in merged(&sequences).chunks(RANGES_PER_ENTRY) {
            let record = EraseRecord { sequences: chunk.to_vec(), ..decision.clone() };
            self.commit_own(move |_| Ok(vec![Body::Erase(record)]))?;
            done += chunk.iter().map(|(first, last)| last - first + 1).sum::<u64>();
            progress(done);
        }
        Ok(done)
    }

    fn entries_of(&self, what: &Erase, through: Position) -> Result<Vec<u64>, Error> {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        let _held = shared.history.hold();
        let corrupt = |error: String| Error::Corrupt(error);
        let from = shared.history.floor();
        let mut sequences = Vec::new();
        if from > through.sequence {
            return Ok(sequences);
        }
        let mut reader = LogReader::open(Arc::clone(&shared.disk), shared.store_id, from)
            .map_err(|error| corrupt(error.to_string()))?;
        while let Some(frame) = reader.next(through.sequence).map_err(|error| corrupt(error.to_string()))? {
            let record = Record::from_bytes(&frame.payload).map_err(|error| corrupt(error.to_string()))?;
            let slot = match &record.body {
                Body::Operation(operation) => &operation.slot,
                Body::Resolve(resolve) => &resolve.slot,
                Body::Claim(claim) => &claim.slot,
                Body::Write(_)
                | Body::TableDeclared(_)
                | Body::ClockAccepted(_)
                | Body::Sweep(_)
                | Body::Erase(_)
                | Body::Restore(_)
                | Body::Effect(_)
                | Body::Callback(_)
                | Body::Follower(_)
                | Body::Activity(_) => continue,
            };
            if what.includes(slot) {
                sequences.push(frame.header.sequence);
            }
        }
        Ok(sequences)
    }

    fn roll(&self) -> Result<(), Error> {
        self.ask_writer(Control::Roll)
    }

    fn checkpoint_keeping_nothing(&self) -> Result<(), Error> {
        self.ask_writer(Control::Checkpoint)
    }

    /// Sends a request to the writer that it answers when it is done.
    fn ask_writer(&self, request: impl FnOnce(mpsc::Sender<Result<(), Error>>) -> Control) -> Result<(), Error> {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        let (sender, receiver) = mpsc::channel();
        shared.queue.push_control(request(sender));
        while self.run.is_manual() && self.run.step()? {}
        let stopped = || shared.poison.get().map_or(Error::Closed, |stopped| Error::Poisoned(stopped.cause.clone()));
        receiver.recv().map_err(|_| stopped())?
    }
}

/// The sequence of a slot's receipt, if it is erased in every answer and its rows are not erased yet.
fn erasable(context: &OwnContext<'_>, slot: &SlotRecord) -> Result<Option<u64>, ApplyError> {
    let key = slot_key_of(&slot.scope, &slot.key);
    let through = get_system::<super::rows::ScopeRow>(context.rows, System::Scopes, &slot.scope)?;
    let through = through.map_or(0, |names| names.erased_through);
    Ok(match get_system::<SlotRow>(context.rows, System::Slots, &key)? {
        Some(SlotRow::Receipt(receipt)) if !receipt.reply_erased && receipt.is_erased(through) => {
            Some(receipt.position.sequence)
        }
        Some(SlotRow::Receipt(_) | SlotRow::Claim(_)) | None => None,
    })
}

/// Sequences in ascending order as inclusive ranges.
fn merged(sequences: &[u64]) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &sequence in sequences {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == sequence => *last = sequence,
            Some(_) | None => ranges.push((sequence, sequence)),
        }
    }
    ranges
}

fn target_of(target: &EraseTarget) -> Option<Target> {
    Some(match target {
        EraseTarget::Operation(slot) => {
            // The names were checked when they came in.
            Target::Operation(Slot::new(&slot.tenant, &slot.actor, &slot.operation, &slot.key).ok()?)
        }
        EraseTarget::Actor { tenant, actor } => Target::Actor { tenant: tenant.clone(), actor: actor.clone() },
        EraseTarget::Tenant { tenant } => Target::Tenant { tenant: tenant.clone() },
    })
}
