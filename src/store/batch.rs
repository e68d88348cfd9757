//! A batch: submissions that run one after another on one map and are committed by one sync.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::base::error::{Error, Failure};
use crate::base::limits::{CONTENT_TYPE_BYTES_MAX, REPLY_HEADERS_MAX, RESOURCE_ID_BYTES_MAX};
use crate::base::name::Slot;
use crate::base::operation::{OperationType, Oversize};
use crate::base::position::{Position, TimestampMs};
use crate::base::receipt::{Outcome, Receipt};
use crate::base::reply::{Decision, Reply};
use crate::log::encoded_frame_bytes;
use crate::log::record::{
    Body, Completion, IntentRecord, OperationRecord, Record, RowChange, SlotRecord, TableChanges, WriteRecord,
};
use crate::protocol::retention::{Deadlines, deadlines};
use crate::state::{MemoryMap, Overlay};

use super::admit::{Prepared, Verdict};
use super::apply::{FrameFacts, apply};
use super::effects::intent::IntentBase;
use super::job::{Job, OperationJob, OwnContext, OwnJob, WriteJob};
use super::reentry;
use super::rows::SCOPE_BYTES;
use super::shared::Shared;
use super::sweep::{ExpiryKey, Sweeper};
use super::ticket::Responder;
use super::tx::Tx;

/// A frame that is not written yet.
#[derive(Debug)]
pub(super) struct PendingFrame {
    pub(super) sequence: u64,
    pub(super) time_ms: u64,
    pub(super) payload: Vec<u8>,
}

/// One submission that has its answer; nobody has heard it yet.
#[expect(clippy::large_enum_variant, reason = "nearly all members are operations")]
#[derive(Debug)]
pub(super) enum Member {
    Operation { prepared: Prepared, responder: Responder<Receipt>, answer: Result<Receipt, Error> },
    Write { responder: Responder<Option<Position>>, answer: Result<Option<Position>, Error>, wrote: bool },
}

impl Member {
    /// From here on the disk may have its frame, or one that its answer rests on.
    pub(super) fn hand_to_disk(&mut self, slots: &HashSet<Slot>) {
        match self {
            Self::Operation { prepared, responder, .. } if slots.contains(&prepared.slot) => responder.hand_to_disk(),
            Self::Write { responder, wrote: true, .. } => responder.hand_to_disk(),
            Self::Operation { .. } | Self::Write { .. } => {}
        }
    }

    pub(super) fn deliver(self, shared: &Shared) {
        match self {
            Self::Operation { prepared, responder, answer } => {
                // Not before: what is not certain yet does not show, not even as a number.
                shared.count(&prepared, &answer);
                responder.answer(answer);
            }
            Self::Write { responder, answer, .. } => responder.answer(answer),
        }
    }
}

/// The submissions behind one sync.
#[derive(Debug)]
pub(super) struct Batch<'a> {
    pub(super) shared: &'a Shared,
    pub(super) overlay: Overlay,
    epoch: u64,
    pub(super) last_sequence: u64,
    pub(super) time: TimestampMs,
    pub(super) frames: Vec<PendingFrame>,
    pub(super) frame_bytes: u64,
    pub(super) members: Vec<Member>,
    /// The slots that have a frame in this batch.
    pub(super) slots: HashSet<Slot>,
    /// The first of the expiry rows that came.
    pub(super) due_first: Option<ExpiryKey>,
    /// Expiry rows that are swept.
    pub(super) swept: u64,
}

/// What a closure left behind.
pub(super) struct Ran<T> {
    pub(super) value: T,
    pub(super) writes: MemoryMap,
    pub(super) intents: Vec<IntentRecord>,
}

/// How an operation ends, as it is stored, and what its caller is shown instead of the stored reply.
pub(super) struct Ended {
    pub(super) completion: Completion,
    pub(super) shown: Option<Reply>,
    pub(super) writes: MemoryMap,
    pub(super) intents: Vec<IntentRecord>,
}

impl<'a> Batch<'a> {
    /// Begins on what is published. `time` is not before that of the last frame.
    pub(super) fn begin(shared: &'a Shared, epoch: u64, time: TimestampMs) -> Self {
        let published = shared.publisher.load();
        Self {
            shared,
            overlay: Overlay::new(&published.view),
            epoch,
            last_sequence: published.position.sequence,
            time,
            frames: Vec::new(),
            frame_bytes: 0,
            members: Vec::new(),
            slots: HashSet::new(),
            due_first: None,
            swept: 0,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.frame_bytes >= self.shared.limits.batch_bytes_max as u64
    }

    /// The same, while the batch goes on.
    pub(super) fn map(&self) -> &MemoryMap {
        &self.overlay.view().active
    }

    /// The map with every frame of the batch applied.
    pub(super) fn into_map(self) -> MemoryMap {
        self.overlay.into_map()
    }

    pub(super) fn last_position(&self) -> Position {
        Position { epoch: self.epoch, sequence: self.last_sequence }
    }

    /// Runs one submission and keeps its answer.
    pub(super) fn run(&mut self, job: Job) {
        if !job.start() {
            self.shared.counters.cancelled.add(1);
            reentry::drop_quietly(job);
            return;
        }
        match job {
            Job::Operation(job) => self.run_operation(job),
            Job::Write(job) => self.run_write(job),
            Job::Own(job) => self.run_own(job),
            Job::Effect(job) => self.run_effect(job),
        }
    }

    fn run_operation(&mut self, job: OperationJob) {
        let OperationJob { prepared, closure, responder, deadline } = job;
        let remaining = deadline.map(|deadline| deadline.saturating_sub(self.shared.time.monotonic()));
        let verdict = if remaining == Some(Duration::ZERO) {
            Verdict::Answer(Err(Error::DeadlineExceeded))
        } else {
            self.shared.doorkeeper.admit(&self.overlay, &prepared, self.time)
        };
        let answer = match verdict {
            Verdict::Execute => self.execute(&prepared, remaining, None, closure),
            Verdict::Answer(answer) => {
                reentry::drop_quietly(closure);
                answer
            }
        };
        self.members.push(Member::Operation { prepared, responder, answer });
    }

    /// Runs an operation, in place of the claim under `claim_fence` if it completes one.
    pub(super) fn execute(
        &mut self,
        prepared: &Prepared,
        remaining: Option<Duration>,
        claim_fence: Option<u64>,
        closure: impl FnOnce(&Tx<'_>) -> Result<Decision, Failure>,
    ) -> Result<Receipt, Error> {
        let slot = &prepared.slot;
        let key_bytes = SCOPE_BYTES + slot.key.as_bytes().len();
        // Before the closure runs, which would be for nothing, and again with what its reply adds.
        self.shared.quotas.check(&self.overlay, &slot.tenant, key_bytes as u64)?;
        let (operation_version, digest) = prepared.digests[0];
        let base = IntentBase {
            scope: prepared.scope.0,
            key: slot.key.as_bytes().to_vec(),
            digest: digest.0,
            first_ordinal: 0,
        };
        let ran = self.run_closure(remaining, Some(base), closure)?;
        let Ended { completion, shown, writes, intents } = self.end(slot, &prepared.operation_type, ran, 0)?;
        self.refuse_open(&intents)?;
        let stored_bytes = key_bytes + completion.reply.counted_bytes();
        self.shared.quotas.check(&self.overlay, &slot.tenant, stored_bytes as u64)?;
        let body_dropped = completion.body_dropped;
        let record = OperationRecord {
            slot: SlotRecord {
                scope: prepared.scope.0,
                tenant: slot.tenant.as_str().to_owned(),
                actor: slot.actor.as_str().to_owned(),
                operation: slot.operation.as_str().to_owned(),
                key: slot.key.as_bytes().to_vec(),
            },
            digest: digest.0,
            operation_version,
            completion,
            attempt: prepared.attempt,
            trace_id: prepared.trace_id.clone(),
            changes: self.changes(&writes),
            intents,
            claim_fence,
        };
        let record = self.add_frame(Body::Operation(record))?;
        self.slots.insert(slot.clone());
        let receipt = self.receipt(slot, record);
        // A body that is not stored because it is too large is not answered either, whatever redaction left of it.
        Ok(match shown {
            Some(reply) if !body_dropped => Receipt { reply, ..receipt },
            Some(_) | None => receipt,
        })
    }

    /// Turns what a closure decided into what is stored. `window_ms` is how long providers of the operation's earlier
    /// intents know them.
    pub(super) fn end(
        &self,
        slot: &Slot,
        operation_type: &OperationType,
        ran: Ran<Decision>,
        window_ms: u64,
    ) -> Result<Ended, Error> {
        let (outcome, mut reply, writes, intents) = match ran.value {
            Decision::Reply(reply) => (Outcome::Completed, reply, ran.writes, ran.intents),
            Decision::Reject(reply) => (Outcome::Rejected, reply, MemoryMap::new(), Vec::new()),
            Decision::Accept(reply) => (Outcome::Accepted, reply, ran.writes, ran.intents),
        };
        let allowed_for = reply.allowed_for.take();
        let (reply, shown) = match self.redact(slot, &reply)? {
            Some(stored) => (stored, Some(reply)),
            None => (reply, None),
        };
        let (reply, body_dropped) = self.check_reply(reply, operation_type.oversize)?;
        let mut deadlines = deadlines(self.time, operation_type.retention, allowed_for);
        if outcome == Outcome::Accepted {
            self.check_accepted(operation_type, &intents)?;
            // Retention counts from completion.
            let never = TimestampMs(u64::MAX);
            deadlines = Deadlines { replay_until: never, refuse_until: never, allowed_until: None };
        }
        // Whoever forgets an operation before its provider does would send a repetition under the same identity.
        let windows = intents.iter().filter_map(|intent| intent.abilities.dedupe_window_ms);
        let window_ms = windows.max().unwrap_or(0).max(window_ms);
        let known_until = self.time.saturating_add(Duration::from_millis(window_ms));
        let completion = Completion {
            outcome,
            replay_until_ms: deadlines.replay_until.0,
            refuse_until_ms: deadlines.refuse_until.max(known_until).0,
            allowed_until_ms: deadlines.allowed_until.map(|until| until.0),
            reply,
            body_dropped,
            redacted: shown.is_some(),
        };
        Ok(Ended { completion, shown, writes, intents })
    }

    /// What is stored of a reply, if that is not the whole of it.
    fn redact(&self, slot: &Slot, reply: &Reply) -> Result<Option<Reply>, Error> {
        let _inside = reentry::enter(self.shared.number);
        catch_unwind(AssertUnwindSafe(|| self.shared.redaction.redact(slot, reply))).map_err(|panic| {
            let message = format!("in the redaction of a reply: {}", panic_message(&*panic));
            reentry::drop_quietly(panic);
            Error::Panicked { message }
        })
    }

    /// The first answer, from the record itself: a replay later reads the same from the rows.
    fn receipt(&self, slot: &Slot, record: Record) -> Receipt {
        let wall = TimestampMs(record.wall_ms);
        let Body::Operation(operation) = record.body else { unreachable!("the record of an operation was just made") };
        let completion = operation.completion;
        Receipt {
            slot: slot.clone(),
            meta: crate::base::receipt::ReceiptMeta {
                outcome: completion.outcome,
                operation_version: operation.operation_version,
                position: self.last_position(),
                completed_at: self.time,
                completed_at_wall: wall,
                replay_until: TimestampMs(completion.replay_until_ms),
                refuse_until: TimestampMs(completion.refuse_until_ms),
                attempt: operation.attempt,
                trace_id: operation.trace_id,
                resource_id: completion.reply.resource_id.clone(),
                body_dropped: completion.body_dropped,
                redacted: completion.redacted,
            },
            reply: completion.reply,
            replayed: false,
        }
    }

    fn run_write(&mut self, job: WriteJob) {
        let WriteJob { closure, responder } = job;
        let answer = self.run_closure(None, None, closure).and_then(|ran| {
            let changes = self.changes(&ran.writes);
            if changes.is_empty() {
                return Ok(None);
            }
            self.add_frame(Body::Write(WriteRecord { changes }))?;
            Ok(Some(self.last_position()))
        });
        let wrote = matches!(answer, Ok(Some(_)));
        self.members.push(Member::Write { responder, answer, wrote });
    }

    fn run_own(&mut self, job: OwnJob) {
        let OwnJob { work, responder } = job;
        let before = self.last_sequence;
        let context = OwnContext { rows: &self.overlay, time: self.time };
        let answer = work(context).and_then(|bodies| {
            bodies.into_iter().try_for_each(|body| self.add_frame(body).map(drop))?;
            Ok((self.last_sequence > before).then(|| self.last_position()))
        });
        let wrote = self.last_sequence > before;
        self.members.push(Member::Write { responder, answer, wrote });
    }

    /// Adds one step of sweeping behind everything else.
    pub(super) fn sweep(&mut self, sweeper: &mut Sweeper) {
        let Some(sweep) = sweeper.step(&self.overlay, self.time) else { return };
        let rows = sweep.rows;
        match self.add_frame(Body::Sweep(sweep)) {
            Ok(_) => self.swept += rows,
            Err(error) => sweeper.give_up(&error),
        }
    }

    /// Runs a closure on its own copy of the map, which is dropped whatever happens: that is the whole of rollback.
    pub(super) fn run_closure<T>(
        &self,
        remaining: Option<Duration>,
        base: Option<IntentBase>,
        closure: impl FnOnce(&Tx<'_>) -> Result<T, Failure>,
    ) -> Result<Ran<T>, Error> {
        let tx = Tx::begin(self.shared, self.overlay.view(), remaining, self.time, base);
        let started = self.shared.time.monotonic();
        let outcome = {
            let _inside = reentry::enter(self.shared.number);
            catch_unwind(AssertUnwindSafe(|| closure(&tx)))
        };
        self.note_duration(started);
        let finished = tx.finish();
        match outcome {
            Err(panic) => {
                let message = panic_message(&*panic);
                reentry::drop_quietly(panic);
                Err(Error::Panicked { message })
            }
            Ok(Err(failure)) => Err(Error::Failed(failure)),
            Ok(Ok(value)) => finished.map(|(writes, intents)| Ran { value, writes, intents }),
        }
    }

    fn note_duration(&self, started: Duration) {
        let took = self.shared.time.monotonic().saturating_sub(started);
        if took > self.shared.limits.slow_closure {
            self.shared.counters.slow_closures.add(1);
            tracing::warn!(ms = took.as_millis(), "a closure held up the writer");
        }
    }

    /// Checks a reply against the limits and the allow-list; a body above the limit goes as the operation type says.
    fn check_reply(&self, reply: Reply, oversize: Oversize) -> Result<(Reply, bool), Error> {
        if let Some(fault) = reply.fault() {
            return Err(Error::Invalid(fault));
        }
        limit("the reply's resource id", reply.resource_id.as_ref().map_or(0, String::len), RESOURCE_ID_BYTES_MAX)?;
        limit("the reply's content type", reply.content_type.as_ref().map_or(0, String::len), CONTENT_TYPE_BYTES_MAX)?;
        limit("the reply's number of headers", reply.headers.len(), REPLY_HEADERS_MAX)?;
        if let Some((name, _)) = reply.headers.iter().find(|(name, _)| !self.shared.headers.contains(name)) {
            return Err(Error::Undeclared { what: "reply header", name: name.clone() });
        }
        match (limit("the reply", reply.counted_bytes(), self.shared.limits.reply_bytes_max), oversize) {
            (Ok(()), _) => Ok((reply, false)),
            (Err(error), Oversize::Refuse) => Err(error),
            (Err(_), Oversize::DropBody) => Ok((reply.without_body(), true)),
        }
    }

    /// The rows of a closure's map by table, one final value each.
    pub(super) fn changes(&self, writes: &MemoryMap) -> Vec<TableChanges> {
        let mut tables: Vec<TableChanges> = Vec::new();
        let mut current = None;
        for (key, value) in writes.iter() {
            if current != Some(key.table()) {
                current = Some(key.table());
                let table = self.shared.catalog.name(key.table()).to_string();
                tables.push(TableChanges { table, rows: Vec::new() });
            }
            let key = key.key().to_vec();
            let row = match value {
                Some(value) => RowChange::Put { key, value: value.clone() },
                None => RowChange::Remove { key },
            };
            tables.last_mut().expect("a table was just pushed").rows.push(row);
        }
        tables
    }

    /// Encodes a record, applies it to the batch's map and takes the next sequence, or does nothing of it.
    pub(super) fn add_frame(&mut self, body: Body) -> Result<Record, Error> {
        let record = Record { wall_ms: self.shared.time.wall().0, body };
        let payload = record.to_bytes().map_err(|error| Error::Table(error.to_string()))?;
        limit("the operation's record", payload.len(), self.shared.limits.record_bytes_max)?;
        let position = Position { epoch: self.epoch, sequence: self.last_sequence + 1 };
        let facts = FrameFacts { position, time_ms: self.time.0 };
        let applied = apply(&mut self.overlay, &self.shared.catalog, facts, &record)
            .map_err(|error| Error::Corrupt(error.to_string()))?;
        self.due_first = self.due_first.into_iter().chain(applied.due_first).min();
        self.last_sequence = position.sequence;
        self.frame_bytes += encoded_frame_bytes(payload.len() as u64);
        self.frames.push(PendingFrame { sequence: position.sequence, time_ms: self.time.0, payload });
        Ok(record)
    }
}

fn limit(what: &'static str, actual: usize, limit: usize) -> Result<(), Error> {
    if actual > limit { Err(Error::Limit { what, actual, limit }) } else { Ok(()) }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
