//! Claims: "in progress" for work that is not in this store, under a lease and a fence.

use std::fmt;
use std::time::Duration;

use crate::base::error::{Error, Failure};
use crate::base::invalid::Invalid;
use crate::base::name::Slot;
use crate::base::operation::Operation;
use crate::base::position::{TimestampMs, millis};
use crate::base::receipt::Receipt;
use crate::base::reply::Decision;
use crate::log::record::{Body, ClaimAction, ClaimHolder, ClaimRecord, SlotRecord};
use crate::protocol::claim::{Beat, held};
use crate::state::{ALL, Rows};

use super::Store;
use super::admit::{Prepared, Verdict};
use super::apply::{ApplyError, get_system};
use super::batch::Batch;
use super::rows::{ClaimRow, SCOPE_BYTES, ScopeRow, SlotRow, System, slot_key};
use super::tx::Tx;

/// Most bytes of an external holder's name.
const HOLDER_BYTES_MAX: usize = 256;

/// Who holds a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// This process, while it has the store open. The next opening ends its claims at once, since nobody can be at work
    /// for them.
    ThisRun,
    /// Somebody outside, by name. Only the end of the lease ends such a claim, and an opening gives each that was alive
    /// one lease more, since nobody could be heard while the store was closed.
    External(String),
}

/// What [`Store::claim`] answers.
#[derive(Debug)]
#[must_use = "a claim that nobody completes is in progress until its lease ends"]
pub enum ClaimAnswer {
    /// The key is claimed: do the work, then complete.
    Claimed(Claim),
    /// The operation was done before: its receipt.
    Answered(Receipt),
}

/// A claim that is held. Dropping it does nothing: it stays in progress until its lease ends.
#[must_use = "a claim is completed or released"]
pub struct Claim {
    store: Store,
    prepared: Prepared,
    fence: u64,
    lease: Duration,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("slot", &self.prepared.slot).field("fence", &self.fence).finish_non_exhaustive()
    }
}

/// A claim as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimStatus {
    /// What is claimed.
    pub slot: Slot,
    /// By whom.
    pub holder: Holder,
    /// Under which fence.
    pub fence: u64,
    /// Until when. Past that it needs reconciliation, or may execute again, as its operation type says.
    pub lease_until: TimestampMs,
    /// Which attempt of the caller took it.
    pub attempt: u32,
}

/// What a person decides about a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimDecision {
    /// Its work was not done: the key is free.
    Release,
    /// Its holder gets more time from now, also if the lease had ended.
    Extend(Duration),
}

impl Store {
    /// Claims the key of an operation whose work is done elsewhere: until the lease ends, others are told that it is in
    /// progress. The holder extends, completes or releases it; what happens if the lease ends first is the operation
    /// type's choice ([`OperationType::lease_end`](crate::OperationType::lease_end)).
    ///
    /// # Errors
    ///
    /// [`Error::InProgress`] while another holds it, and as [`Store::execute`]. A lease below one millisecond is
    /// [`Error::Invalid`].
    pub fn claim(&self, operation: Operation, lease: Duration, holder: Holder) -> Result<ClaimAnswer, Error> {
        let lease = checked(lease)?;
        if let Holder::External(name) = &holder
            && name.len() > HOLDER_BYTES_MAX
        {
            let what = "name of a claim's holder";
            return Err(Invalid::TooLong { what, bytes: name.len(), bytes_max: HOLDER_BYTES_MAX }.into());
        }
        let prepared = self.prepare(operation)?;
        let of_claim = prepared.clone();
        let taken = self.commit_effects(move |batch| batch.take_claim(&of_claim, lease, holder))?;
        Ok(match taken {
            Ok(fence) => ClaimAnswer::Claimed(Claim { store: self.clone(), prepared, fence, lease }),
            Err(receipt) => ClaimAnswer::Answered(receipt),
        })
    }

    /// A claim that is held by somebody who kept its fence, such as a worker that comes back with its result. Whether it
    /// is still held is asked when it is used.
    ///
    /// # Errors
    ///
    /// As [`Store::claim`] for what can be said at once.
    pub fn held_claim(&self, operation: Operation, fence: u64, lease: Duration) -> Result<Claim, Error> {
        let lease = checked(lease)?;
        Ok(Claim { store: self.clone(), prepared: self.prepare(operation)?, fence, lease })
    }

    /// Every claim, in the order of scopes and keys.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn claims(&self) -> Result<Vec<ClaimStatus>, Error> {
        let published = self.shared().publisher.load();
        let claims = stored_claims(&published.view).map_err(|error| error.answer())?;
        Ok(claims
            .into_iter()
            .map(|(slot, _, row)| ClaimStatus {
                slot,
                holder: match row.holder {
                    ClaimHolder::Run { .. } => Holder::ThisRun,
                    ClaimHolder::External { name } => Holder::External(name),
                },
                fence: row.fence,
                lease_until: TimestampMs(row.lease_until_ms),
                attempt: row.attempt,
            })
            .collect())
    }

    /// Records what a person decided about a claim, and why. `false` if there is none under this fence.
    ///
    /// # Errors
    ///
    /// As [`Store::write`].
    pub fn decide_claim(
        &self,
        slot: &Slot,
        fence: u64,
        decision: ClaimDecision,
        decided_by: &str,
        reason: &str,
    ) -> Result<bool, Error> {
        let lease = match decision {
            ClaimDecision::Release => None,
            ClaimDecision::Extend(lease) => Some(checked(lease)?),
        };
        let key = slot_key(self.shared().hash_keys.scope(slot), slot);
        let (slot, decided_by, reason) = (slot.clone(), decided_by.to_owned(), reason.to_owned());
        self.commit_effects(move |batch| {
            let Some(row) = batch.claim_row(&key)?.filter(|row| row.fence == fence) else { return Ok(false) };
            let action = lease.map_or(ClaimAction::Released, |lease| batch.extended(lease));
            let record = record_of(key.first_chunk().copied().unwrap_or_default(), &slot, &row, action);
            let record = ClaimRecord { decided_by: Some(decided_by), reason: Some(reason), ..record };
            batch.add_frame(Body::Claim(record))?;
            Ok(true)
        })
    }
}

impl Claim {
    /// What proves that this holder holds it. Hand it to whoever does the work, so that a stale one can be told.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Extends the lease by its length, from now.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseLost`] if it has ended or another holds the claim, and as [`Store::write`].
    pub fn heartbeat(&self) -> Result<(), Error> {
        let lease = self.lease;
        self.act(move |batch| batch.extended(lease))
    }

    /// Gives the key back: the work was not done.
    ///
    /// # Errors
    ///
    /// As [`Claim::heartbeat`].
    pub fn release(self) -> Result<(), Error> {
        self.act(|_| ClaimAction::Released)
    }

    /// Completes the operation: the closure runs as that of [`Store::execute`] does, and takes the claim's place.
    /// `evidence` is what the holder has to show for its work. If it has lost its lease, nothing is executed, and the
    /// evidence is kept in the log.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseLost`], and as [`Store::execute`]. After an error of the closure the claim is still held.
    pub fn complete<F, D>(&self, evidence: impl Into<Vec<u8>>, closure: F) -> Result<Receipt, Error>
    where
        F: FnOnce(&Tx<'_>) -> Result<D, Failure> + Send + 'static,
        D: Into<Decision>,
    {
        let (prepared, fence, evidence) = (self.prepared.clone(), self.fence, evidence.into());
        let completed = self.store.commit_effects(move |batch| {
            let key = slot_key(prepared.scope, &prepared.slot);
            let row = batch.claim_row(&key)?;
            if batch.beat(row.as_ref(), fence) == Beat::Held {
                let closure = |tx: &Tx<'_>| closure(tx).map(Into::into);
                return batch.execute(&prepared, None, Some(fence), closure).map(Some);
            }
            let record = ClaimRecord {
                slot: slot_record(prepared.scope.0, &prepared.slot),
                digest: prepared.digests[0].1.0,
                operation_version: prepared.digests[0].0,
                fence,
                action: ClaimAction::Refused { evidence },
                decided_by: None,
                reason: None,
            };
            batch.add_frame(Body::Claim(record))?;
            Ok(None)
        })?;
        completed.ok_or(Error::LeaseLost)
    }

    fn act(&self, action: impl FnOnce(&Batch<'_>) -> ClaimAction + Send + 'static) -> Result<(), Error> {
        let (scope, slot, fence) = (self.prepared.scope, self.prepared.slot.clone(), self.fence);
        self.store.commit_effects(move |batch| {
            let row = batch.claim_row(&slot_key(scope, &slot))?;
            match (batch.beat(row.as_ref(), fence), row) {
                (Beat::Held, Some(row)) => {
                    let record = record_of(scope.0, &slot, &row, action(batch));
                    batch.add_frame(Body::Claim(record)).map(drop)
                }
                (Beat::Held | Beat::Ended | Beat::Lost, _) => Err(Error::LeaseLost),
            }
        })
    }
}

impl Batch<'_> {
    /// The fence of a claim, or the receipt that answers it.
    fn take_claim(
        &mut self,
        prepared: &Prepared,
        lease: Duration,
        holder: Holder,
    ) -> Result<Result<u64, Receipt>, Error> {
        match self.shared.doorkeeper.admit(&self.overlay, prepared, self.time) {
            Verdict::Answer(answer) => return answer.map(Err),
            Verdict::Execute => {}
        }
        let bytes = slot_key(prepared.scope, &prepared.slot).len() as u64;
        self.shared.quotas.check(&self.overlay, &prepared.slot.tenant, bytes)?;
        let fence = self.last_sequence + 1;
        let (operation_version, digest) = prepared.digests[0];
        let action = ClaimAction::Taken {
            lease_ms: millis(lease),
            lease_until_ms: self.time.saturating_add(lease).0,
            holder: match holder {
                Holder::ThisRun => ClaimHolder::Run { run_id: self.shared.run_id },
                Holder::External(name) => ClaimHolder::External { name },
            },
            attempt: prepared.attempt,
            trace_id: prepared.trace_id.clone(),
        };
        self.add_frame(Body::Claim(ClaimRecord {
            slot: slot_record(prepared.scope.0, &prepared.slot),
            digest: digest.0,
            operation_version,
            fence,
            action,
            decided_by: None,
            reason: None,
        }))?;
        self.slots.insert(prepared.slot.clone());
        Ok(Ok(fence))
    }

    fn claim_row(&self, slot_key: &[u8]) -> Result<Option<ClaimRow>, Error> {
        let row = get_system::<SlotRow>(&self.overlay, System::Slots, slot_key).map_err(|error| error.answer())?;
        Ok(match row {
            Some(SlotRow::Claim(row)) => Some(row),
            Some(SlotRow::Receipt(_)) | None => None,
        })
    }

    fn beat(&self, row: Option<&ClaimRow>, fence: u64) -> Beat {
        held(row.map(|row| (row.fence, TimestampMs(row.lease_until_ms))), fence, self.time)
    }

    fn extended(&self, lease: Duration) -> ClaimAction {
        ClaimAction::Extended { lease_ms: millis(lease), lease_until_ms: self.time.saturating_add(lease).0 }
    }
}

/// What an opening says of the claims that it finds. `last_time` is the last time of the runs before.
pub(super) fn left_claims(rows: &impl Rows, last_time: TimestampMs, now: TimestampMs) -> Result<Vec<Body>, ApplyError> {
    let mut bodies = Vec::new();
    for (slot, scope, row) in stored_claims(rows)? {
        let lease_until_ms = match &row.holder {
            // Nobody is at work for it any more.
            ClaimHolder::Run { .. } if row.lease_until_ms > 0 => 0,
            ClaimHolder::External { .. } if row.lease_until_ms > last_time.0 => {
                row.lease_until_ms.max(now.0.saturating_add(row.lease_ms))
            }
            ClaimHolder::Run { .. } | ClaimHolder::External { .. } => continue,
        };
        if lease_until_ms != row.lease_until_ms {
            let action = ClaimAction::Extended { lease_ms: row.lease_ms, lease_until_ms };
            bodies.push(Body::Claim(record_of(scope, &slot, &row, action)));
        }
    }
    Ok(bodies)
}

/// Slot, scope and row of every claim.
type StoredClaim = (Slot, [u8; SCOPE_BYTES], ClaimRow);

fn stored_claims(rows: &impl Rows) -> Result<Vec<StoredClaim>, ApplyError> {
    let mut claims = Vec::new();
    for row in rows.range(System::Claims.id(), ALL)? {
        let (key, _) = row?;
        let Some((scope, name)) = key.key().split_first_chunk::<SCOPE_BYTES>() else { continue };
        let stored = get_system::<SlotRow>(rows, System::Slots, key.key())?;
        let names = get_system::<ScopeRow>(rows, System::Scopes, scope)?;
        let (Some(SlotRow::Claim(row)), Some(names)) = (stored, names) else { continue };
        if let Ok(slot) = Slot::new(&names.tenant, &names.actor, &names.operation, name) {
            claims.push((slot, *scope, row));
        }
    }
    Ok(claims)
}

fn record_of(scope: [u8; SCOPE_BYTES], slot: &Slot, row: &ClaimRow, action: ClaimAction) -> ClaimRecord {
    ClaimRecord {
        slot: slot_record(scope, slot),
        digest: row.digest,
        operation_version: row.operation_version,
        fence: row.fence,
        action,
        decided_by: None,
        reason: None,
    }
}

fn slot_record(scope: [u8; SCOPE_BYTES], slot: &Slot) -> SlotRecord {
    SlotRecord {
        scope,
        tenant: slot.tenant.as_str().to_owned(),
        actor: slot.actor.as_str().to_owned(),
        operation: slot.operation.as_str().to_owned(),
        key: slot.key.as_bytes().to_vec(),
    }
}

fn checked(lease: Duration) -> Result<Duration, Error> {
    if lease < Duration::from_millis(1) { Err(Invalid::Lease.into()) } else { Ok(lease) }
}
