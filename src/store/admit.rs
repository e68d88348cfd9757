//! From a slot to an answer: look up, ask the guard, decide.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::{Error, Gone};
use crate::base::name::Slot;
use crate::base::operation::OperationType;
use crate::base::position::TimestampMs;
use crate::base::receipt::{Receipt, ReceiptMeta};
use crate::base::reply::Reply;
use crate::protocol::admission::{Access, Admission, LookUp, Stored, Submission, admit, look_up};
use crate::protocol::identity::{Digest, ScopeHash};
use crate::protocol::minted::{KeyAge, key_age};
use crate::state::Rows;

use super::apply::{ApplyError, get_system};
use super::reentry;
use super::rows::{ReceiptRow, ScopeNames, SlotRow, System, open_row, sequence_key, slot_key};
use super::time::StoreTime;

/// May this caller see this result now? Asked with the slot and, if a receipt is stored, what it says beside the reply.
pub(super) type Guard = Box<dyn Fn(&Slot, Option<&ReceiptMeta>) -> Access + Send + Sync>;

/// A submission, hashed once on its caller's thread.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) operation_type: OperationType,
    pub(super) slot: Slot,
    pub(super) scope: ScopeHash,
    pub(super) digests: Vec<(u32, Digest)>,
    /// When the key was minted, where it says so.
    pub(super) minted_at: Option<TimestampMs>,
    pub(super) attempt: u32,
    pub(super) trace_id: Option<String>,
}

/// What a submission comes to.
#[expect(clippy::large_enum_variant, reason = "it lives for one match; a box would cost each replay an allocation")]
#[derive(Debug)]
pub(super) enum Verdict {
    Execute,
    Answer(Result<Receipt, Error>),
}

/// Decides on behalf of one store.
pub(super) struct Doorkeeper {
    pub(super) store: usize,
    pub(super) guard: Option<Guard>,
    pub(super) time: Arc<StoreTime>,
    /// By how much clocks may disagree.
    pub(super) clock_tolerance: Duration,
}

impl std::fmt::Debug for Doorkeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doorkeeper").field("guarded", &self.guard.is_some()).finish_non_exhaustive()
    }
}

impl Doorkeeper {
    /// Decides a submission against rows as they are in one view.
    pub(super) fn admit(&self, rows: &impl Rows, prepared: &Prepared, now: TimestampMs) -> Verdict {
        self.try_admit(rows, prepared, now).unwrap_or_else(|error| Verdict::Answer(Err(error.answer())))
    }

    fn try_admit(&self, rows: &impl Rows, prepared: &Prepared, now: TimestampMs) -> Result<Verdict, ApplyError> {
        let found = find(rows, prepared.scope, &prepared.slot)?;
        let access = self.ask(&prepared.slot, found.as_ref(), now);
        let mut digest = Digest([0; 32]);
        let stored =
            found.as_ref().map_or(Stored::Nothing, |found| found.row.stored(&mut digest, found.erased_through));
        let key_age = self.key_age(prepared);
        let submission =
            Submission { digests: &prepared.digests, lease_end: prepared.operation_type.lease_end, key_age };
        Ok(Verdict::Answer(match admit(access, stored, &submission, now) {
            Admission::Execute => return Ok(Verdict::Execute),
            Admission::Replay => replay(rows, &prepared.slot, found)?,
            Admission::Gone => Err(gone(found)),
            Admission::Conflict { stored_version } => Err(Error::Conflict { stored_version }),
            Admission::InProgress { retry_after } => Err(Error::InProgress { retry_after }),
            Admission::NeedsReconciliation => Err(Error::NeedsReconciliation),
            Admission::Expired => Err(Error::Expired { store_time: now }),
            Admission::FromTheFuture => {
                Err(Error::FromTheFuture { minted_at: prepared.minted_at.unwrap_or(now), store_time: now })
            }
            Admission::Denied => Err(Error::Denied),
        }))
    }

    /// No clock is read for keys that do not tell their age.
    fn key_age(&self, prepared: &Prepared) -> KeyAge {
        if prepared.minted_at.is_none() {
            return KeyAge::Good;
        }
        let horizon = prepared.operation_type.key_horizon;
        key_age(prepared.minted_at, horizon, self.time.age_time(), self.time.wall(), self.clock_tolerance)
    }

    /// Answers somebody who only asks.
    pub(super) fn look_up(
        &self,
        rows: &impl Rows,
        scope: ScopeHash,
        slot: &Slot,
        now: TimestampMs,
    ) -> Result<Option<Receipt>, Error> {
        self.try_look_up(rows, scope, slot, now).unwrap_or_else(|error| Err(error.answer()))
    }

    fn try_look_up(
        &self,
        rows: &impl Rows,
        scope: ScopeHash,
        slot: &Slot,
        now: TimestampMs,
    ) -> Result<Result<Option<Receipt>, Error>, ApplyError> {
        let found = find(rows, scope, slot)?;
        let access = self.ask(slot, found.as_ref(), now);
        let mut digest = Digest([0; 32]);
        let stored =
            found.as_ref().map_or(Stored::Nothing, |found| found.row.stored(&mut digest, found.erased_through));
        Ok(match look_up(access, stored, now) {
            LookUp::Nothing => Ok(None),
            LookUp::Replay => replay(rows, slot, found)?.map(Some),
            LookUp::Gone => Err(gone(found)),
            LookUp::InProgress { retry_after } => Err(Error::InProgress { retry_after }),
            LookUp::NeedsReconciliation => Err(Error::NeedsReconciliation),
            LookUp::Denied => Err(Error::Denied),
        })
    }

    /// Asks the guard, outside every lock. One that panics has not said yes.
    fn ask(&self, slot: &Slot, found: Option<&Found>, now: TimestampMs) -> Access {
        let Some(guard) = &self.guard else { return Access::Allowed };
        let meta = match found.map(|found| &found.row) {
            Some(SlotRow::Receipt(row)) if !row.is_forgotten(now) => Some(row.meta()),
            Some(SlotRow::Receipt(_) | SlotRow::Claim(_)) | None => None,
        };
        let _inside = reentry::enter(self.store);
        let _guarding = reentry::enter_guard(self.store);
        catch_unwind(AssertUnwindSafe(|| guard(slot, meta.as_ref()))).unwrap_or_else(|_| {
            tracing::error!("the replay guard panicked; access is denied");
            Access::Denied
        })
    }
}

/// What is stored under a slot, with what its scope says of it.
struct Found {
    row: SlotRow,
    erased_through: u64,
}

/// The row of a slot. At every hit the names behind the hash are compared with the slot's.
fn find(rows: &impl Rows, scope: ScopeHash, slot: &Slot) -> Result<Option<Found>, ApplyError> {
    let Some(row) = get_system::<SlotRow>(rows, System::Slots, &slot_key(scope, slot))? else { return Ok(None) };
    let stored = rows.get(System::Scopes.id(), &scope.0)?;
    let names = stored.as_ref().map(|bytes| open_row::<ScopeNames<'_>>(System::Scopes, &scope.0, bytes)).transpose()?;
    match names {
        Some(names) if names.names(slot.tenant.as_str(), slot.actor.as_str(), slot.operation.as_str()) => {
            Ok(Some(Found { row, erased_through: names.erased_through }))
        }
        Some(_) | None => Err(ApplyError::ScopeCollision),
    }
}

fn replay(rows: &impl Rows, slot: &Slot, found: Option<Found>) -> Result<Result<Receipt, Error>, ApplyError> {
    let Some(Found { row: SlotRow::Receipt(row), .. }) = found else {
        return Ok(Err(Error::Corrupt("a replay without a receipt".to_owned())));
    };
    Ok(match get_system::<Reply>(rows, System::Replies, &sequence_key(row.position.sequence))? {
        Some(reply) => Ok(Receipt { slot: slot.clone(), meta: row.meta(), reply, replayed: true }),
        None => Err(Error::Corrupt(format!("the receipt at {} has lost its reply", row.position))),
    })
}

fn gone(found: Option<Found>) -> Error {
    let erased_through = found.as_ref().map_or(0, |found| found.erased_through);
    match found.map(|found| found.row) {
        Some(SlotRow::Receipt(ReceiptRow { resource_id, completed_ms, position, .. })) => {
            let resource_id = resource_id.filter(|_| position.sequence > erased_through);
            Error::Gone(Gone { resource_id, completed_at: TimestampMs(completed_ms), position })
        }
        Some(SlotRow::Claim(_)) | None => Error::Corrupt("a tombstone without a receipt".to_owned()),
    }
}
