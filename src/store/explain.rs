//! The whole life of a key, for the person who is asked why somebody got the answer they got.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::name::{Key, Slot};
use crate::base::position::{Position, TimestampMs};
use crate::base::receipt::{Outcome, ReceiptMeta};
use crate::log::LogReader;
use crate::log::record::{Body, ClaimAction, Record};
use crate::protocol::retention::{Phase, phase};
use crate::state::{ALL, Rows, View};

use super::Store;
use super::apply::{ApplyError, get_system};
use super::export::{bytes_json, outcome_name, position_json};
use super::rows::{ActivityRow, ScopeRow, SlotRow, System, open_row, slot_key, slot_key_of};

/// What is known of one slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Which.
    pub slot: Slot,
    /// The store's time at which this is so.
    pub store_time: TimestampMs,
    /// What a retry of the same request is answered now.
    pub now: NextAnswer,
    /// The receipt, if there is one. It is shown until it is swept, also when nobody is answered from it any more.
    pub receipt: Option<ReceiptMeta>,
    /// The reply was erased.
    pub erased: bool,
    /// How often the key was asked for again.
    pub activity: Option<KeyActivity>,
    /// What the retained log says of it, oldest first.
    pub events: Vec<KeyEvent>,
    /// The oldest entry that was looked at: what happened before is not in the log any more.
    pub log_from: u64,
}

/// What a retry of the same request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextAnswer {
    /// It would execute: nothing is known of the key, or not any more.
    Execute,
    /// The stored reply, until this time.
    Replay {
        /// By the store's time.
        until: TimestampMs,
    },
    /// [`Error::Gone`], until this time.
    Gone {
        /// By the store's time.
        until: TimestampMs,
    },
    /// [`Error::InProgress`], until the lease ends at this time.
    InProgress {
        /// By the store's time.
        until: TimestampMs,
    },
    /// The lease of a claim has ended: [`Error::NeedsReconciliation`], or it executes if its type says so.
    LeaseEnded {
        /// By the store's time.
        at: TimestampMs,
    },
}

/// At least so many replays and conflicts since a time: keys are counted in a bounded table, and a crash forgets what was
/// counted since the last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyActivity {
    /// Answers from the receipt.
    pub replays: u64,
    /// Other requests under the same key.
    pub conflicts: u64,
    /// Since when they were counted.
    pub since: TimestampMs,
    /// When the last one was.
    pub last: TimestampMs,
}

/// One entry of the log that is about the key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyEvent {
    /// Where it stands.
    pub position: Position,
    /// When, by the store's time.
    pub time: TimestampMs,
    /// When, by the wall clock of that moment.
    pub wall: TimestampMs,
    /// What.
    pub kind: KeyEventKind,
}

/// What happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyEventKind {
    /// Its operation was executed.
    Executed {
        /// How it ended.
        outcome: Outcome,
        /// The status of its reply.
        status: u16,
        /// Which attempt of the caller executed.
        attempt: u32,
        /// The trace id of that attempt.
        trace_id: Option<String>,
    },
    /// A claim was taken, extended, released, or refused because it was stale.
    Claim {
        /// Which of them.
        action: &'static str,
        /// The claim's fence.
        fence: u64,
    },
    /// An accepted operation was finished.
    Resolved {
        /// How it ended.
        outcome: Outcome,
    },
}

impl Store {
    /// The slots that have this key, in whatever scope, in the order of tenant, actor and operation.
    ///
    /// It looks at every scope of the store, one row each.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn slots_of_key(&self, key: &Key) -> Result<Vec<Slot>, Error> {
        let published = self.shared().publisher.load();
        let mut slots = find_slots(&published.view, key).map_err(|error| error.answer())?;
        slots.sort();
        Ok(slots)
    }

    /// The whole life of a slot: what its receipt says, how often it was asked for again, what the retained log knows,
    /// and what a retry is answered now. It reads the whole retained log; `progress` is told how far it is, in entries
    /// done and in all.
    ///
    /// It does not ask the replay guard: it shows metadata, never a reply's body, and is for whoever operates the store.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if something cannot be read.
    pub fn explain(&self, slot: &Slot, mut progress: impl FnMut(u64, u64)) -> Result<Explanation, Error> {
        let shared = self.shared();
        let _held = shared.history.hold();
        let published = shared.publisher.load();
        let scope = shared.hash_keys.scope(slot);
        let key = slot_key(scope, slot);
        let store_time = shared.time.now();
        let read = || -> Result<_, ApplyError> {
            let row = get_system::<SlotRow>(&published.view, System::Slots, &key)?;
            let names = get_system::<ScopeRow>(&published.view, System::Scopes, &scope.0)?;
            let kept = get_system::<ActivityRow>(&published.view, System::Activity, &key)?;
            Ok((row, names.map_or(0, |names| names.erased_through), kept))
        };
        let (row, erased_through, kept) = read().map_err(|error| error.answer())?;
        let (receipt, erased) = match &row {
            Some(SlotRow::Receipt(receipt)) => {
                let erased = receipt.is_erased(erased_through);
                (Some(receipt.shown(erased)), erased)
            }
            Some(SlotRow::Claim(_)) | None => (None, false),
        };
        let log_from = shared.history.floor();
        let mut events = Vec::new();
        let last = published.position.sequence;
        if log_from <= last {
            let corrupt = |error: String| Error::Corrupt(error);
            let mut reader = LogReader::open(Arc::clone(&shared.disk), shared.store_id, log_from)
                .map_err(|error| corrupt(error.to_string()))?;
            let total = last - log_from + 1;
            while let Some(frame) = reader.next(last).map_err(|error| corrupt(error.to_string()))? {
                progress(frame.header.sequence - log_from + 1, total);
                let record = Record::from_bytes(&frame.payload).map_err(|error| corrupt(error.to_string()))?;
                let position = Position { epoch: frame.header.epoch, sequence: frame.header.sequence };
                events.extend(event(&key, &record.body).map(|kind| KeyEvent {
                    position,
                    time: TimestampMs(frame.header.time_ms),
                    wall: TimestampMs(record.wall_ms),
                    kind,
                }));
            }
        }
        Ok(Explanation {
            slot: slot.clone(),
            store_time,
            now: next_answer(row.as_ref(), erased, store_time),
            receipt,
            erased,
            activity: activity(kept, shared.activity.of(scope.0, slot.key.as_bytes())),
            events,
            log_from,
        })
    }
}

impl Explanation {
    /// Everything as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "tenant": self.slot.tenant.as_str(),
            "actor": self.slot.actor.as_str(),
            "operation": self.slot.operation.as_str(),
            "key": bytes_json(self.slot.key.as_bytes()),
            "store_time_ms": self.store_time.0,
            "now": self.now.to_json(),
            "receipt": self.receipt.as_ref().map(ReceiptMeta::to_json),
            "erased": self.erased,
            "activity": self.activity.map(|activity| json!({
                "replays_at_least": activity.replays,
                "conflicts_at_least": activity.conflicts,
                "since_ms": activity.since.0,
                "last_ms": activity.last.0,
            })),
            "events": self.events.iter().map(KeyEvent::to_json).collect::<Vec<_>>(),
            "log_from": self.log_from,
        })
    }
}

impl KeyEvent {
    fn to_json(&self) -> Value {
        let mut line = json!({
            "position": position_json(self.position),
            "time_ms": self.time.0,
            "wall_ms": self.wall.0,
        });
        match &self.kind {
            KeyEventKind::Executed { outcome, status, attempt, trace_id } => {
                line["event"] = json!("executed");
                line["outcome"] = json!(outcome_name(*outcome));
                line["status"] = json!(status);
                line["attempt"] = json!(attempt);
                line["trace_id"] = json!(trace_id);
            }
            KeyEventKind::Claim { action, fence } => {
                line["event"] = json!(format!("claim {action}"));
                line["fence"] = json!(fence);
            }
            KeyEventKind::Resolved { outcome } => {
                line["event"] = json!("resolved");
                line["outcome"] = json!(outcome_name(*outcome));
            }
        }
        line
    }
}

fn find_slots(view: &View, key: &Key) -> Result<Vec<Slot>, ApplyError> {
    let mut slots = Vec::new();
    for row in view.range(System::Scopes.id(), ALL)? {
        let (scope, bytes) = row?;
        let Ok(scope) = scope.key().try_into() else { continue };
        if view.get(System::Slots.id(), &slot_key_of(&scope, key.as_bytes()))?.is_none() {
            continue;
        }
        let names = open_row::<ScopeRow>(System::Scopes, &scope, &bytes)?;
        // The names were checked when they came in.
        slots.extend(Slot::new(&names.tenant, &names.actor, &names.operation, key.as_bytes()).ok());
    }
    Ok(slots)
}

pub(super) fn next_answer(row: Option<&SlotRow>, erased: bool, now: TimestampMs) -> NextAnswer {
    match row {
        None => NextAnswer::Execute,
        Some(SlotRow::Receipt(receipt)) => {
            let (replay_until, refuse_until) =
                (TimestampMs(receipt.replay_until_ms), TimestampMs(receipt.refuse_until_ms));
            match phase(now, replay_until, refuse_until) {
                Phase::Replay if !erased => NextAnswer::Replay { until: replay_until },
                Phase::Replay | Phase::Refuse => NextAnswer::Gone { until: refuse_until },
                Phase::Forgotten => NextAnswer::Execute,
            }
        }
        Some(SlotRow::Claim(claim)) => {
            let until = TimestampMs(claim.lease_until_ms);
            if now < until { NextAnswer::InProgress { until } } else { NextAnswer::LeaseEnded { at: until } }
        }
    }
}

/// What was written down, and what was counted since.
fn activity(kept: Option<ActivityRow>, counted: Option<(u64, u64, TimestampMs, TimestampMs)>) -> Option<KeyActivity> {
    let kept = kept.map(|row| KeyActivity {
        replays: row.replays,
        conflicts: row.conflicts,
        since: TimestampMs(row.since_ms),
        last: TimestampMs(row.last_ms),
    });
    let counted = counted.map(|(replays, conflicts, since, last)| KeyActivity { replays, conflicts, since, last });
    match (kept, counted) {
        (Some(kept), Some(counted)) => Some(KeyActivity {
            replays: kept.replays + counted.replays,
            conflicts: kept.conflicts + counted.conflicts,
            since: kept.since,
            last: counted.last,
        }),
        (kept, counted) => kept.or(counted),
    }
}

fn event(key: &[u8], body: &Body) -> Option<KeyEventKind> {
    let is_it =
        |slot: &crate::log::record::SlotRecord| key.strip_prefix(&slot.scope[..]).is_some_and(|rest| rest == slot.key);
    match body {
        Body::Operation(operation) if is_it(&operation.slot) => Some(KeyEventKind::Executed {
            outcome: operation.completion.outcome,
            status: operation.completion.reply.status(),
            attempt: operation.attempt,
            trace_id: operation.trace_id.clone(),
        }),
        Body::Claim(claim) if is_it(&claim.slot) => {
            let action = match claim.action {
                ClaimAction::Taken { .. } => "taken",
                ClaimAction::Extended { .. } => "extended",
                ClaimAction::Released => "released",
                ClaimAction::Refused { .. } => "refused",
            };
            Some(KeyEventKind::Claim { action, fence: claim.fence })
        }
        Body::Resolve(resolve) if is_it(&resolve.slot) => {
            Some(KeyEventKind::Resolved { outcome: resolve.completion.outcome })
        }
        Body::Operation(_)
        | Body::Claim(_)
        | Body::Resolve(_)
        | Body::Write(_)
        | Body::TableDeclared(_)
        | Body::ClockAccepted(_)
        | Body::Sweep(_)
        | Body::Erase(_)
        | Body::Restore(_)
        | Body::Effect(_)
        | Body::Callback(_)
        | Body::Follower(_)
        | Body::Activity(_) => None,
    }
}
