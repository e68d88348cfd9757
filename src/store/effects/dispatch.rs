//! What a dispatcher asks of the store: what is due, leased under a fence, and where the answers go.

use std::collections::HashSet;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::base::error::Error;
use crate::base::position::{TimestampMs, millis};
use crate::log::record::{Body, EffectReport, EffectTransition, ReportSource, Reported};
use crate::protocol::effect::{
    Comparison, Event, News, Phase, SendResult, Step, after_look_up, after_send, compare, next_step,
};
use crate::state::{EngineError, Rows};
use crate::store::Store;
use crate::store::apply::effects::{effect_by_id, with_prefix};
use crate::store::apply::{ApplyError, get_system};
use crate::store::batch::Batch;
use crate::store::published::Moved;
use crate::store::rows::System;

use super::intent::EffectId;
use super::record_of;
use super::rows::{DueKind, EffectRow, due_parts, due_prefix, look_up_of};

/// One call that a dispatcher owes.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) id: EffectId,
    pub(crate) fence: u64,
    /// Ask what became of it instead of sending it.
    pub(crate) ask: bool,
    pub(crate) attempt: u32,
    pub(crate) provider: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) content_type: Option<String>,
    pub(crate) reference: Option<String>,
}

/// What a provider's dispatch may take.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) provider: String,
    /// Calls that may begin.
    pub(crate) free: usize,
    pub(crate) call: Duration,
    /// Look-ups that are under way: they leave no trace in the store.
    pub(crate) asking: HashSet<EffectId>,
}

/// What was found due.
#[derive(Debug, Default)]
pub(crate) struct Due {
    pub(crate) leases: Vec<Lease>,
    /// Effects that went on without a call.
    pub(crate) moved: usize,
    /// When the next one falls due, as far as it is known.
    pub(crate) next_ms: Option<u64>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Applied {
        reference: Option<String>,
        body: Vec<u8>,
    },
    Refused {
        reference: Option<String>,
        body: Vec<u8>,
    },
    NotApplied,
    /// Of a sending: it may have been applied. Of a look-up: nothing was learnt.
    Unknown,
    NotFound,
}

impl CallEnd {
    fn report(self, source: ReportSource) -> (News, EffectReport) {
        let (news, outcome, reference, body) = match self {
            Self::Applied { reference, body } => (News::Applied, Reported::Applied, reference, body),
            Self::Refused { reference, body } => (News::Refused, Reported::Refused, reference, body),
            Self::NotApplied | Self::NotFound => (News::Open, Reported::NotFound, None, Vec::new()),
            Self::Unknown => (News::Open, Reported::Pending, None, Vec::new()),
        };
        (news, EffectReport { outcome, source, provider_reference: reference, body })
    }
}

impl Store {
    /// Takes what is due for a provider. What is to be sent is durably in `sending` when this returns.
    pub(crate) fn lease_effects(&self, want: Want) -> Result<Due, Error> {
        let shared = self.shared();
        let now = shared.time.now();
        let published = shared.publisher.load();
        let (due, next_ms) = due_now(&published.view, &want, now).map_err(|error| error.answer())?;
        drop(published);
        if due.is_empty() {
            return Ok(Due { next_ms, ..Due::default() });
        }
        let mut taken = self.commit_effects(move |batch| batch.lease(&want))?;
        taken.next_ms = next_ms;
        Ok(taken)
    }

    /// Operations whose continuation is due.
    pub(crate) fn due_continuations(&self) -> Result<Vec<u64>, Error> {
        let published = self.shared().publisher.load();
        let due = with_prefix(&published.view, System::Due, &[DueKind::Continuation.number()]);
        let keys = due.map_err(|error| error.answer())?;
        Ok(keys
            .iter()
            .filter_map(|(key, _)| key.get(1..)?.first_chunk::<8>())
            .map(|sequence| u64::from_be_bytes(*sequence))
            .collect())
    }

    /// Runs one of them. `false` if its type has no continuation here.
    pub(crate) fn continue_operation(&self, sequence: u64) -> Result<bool, Error> {
        self.commit_effects(move |batch| batch.resolve(sequence, Vec::new(), &[]))
    }

    /// A call has ended; what comes next may come after `again`.
    pub(crate) fn end_call(&self, lease: Lease, end: CallEnd, again: Duration) -> Result<(), Error> {
        self.commit_effects(move |batch| batch.end_call(&lease, end, again))
    }

    pub(crate) fn effect_time(&self) -> Duration {
        self.shared().time.monotonic()
    }

    /// Whether a provider was declared.
    pub(crate) fn knows_provider(&self, name: &str) -> bool {
        self.shared().providers.contains_key(name)
    }

    /// A number under which a dispatcher is woken by new entries.
    pub(crate) fn enter_effects(&self) -> u64 {
        self.shared().publisher.enter()
    }

    pub(crate) fn leave_effects(&self, follower: u64) {
        self.shared().publisher.leave(follower);
    }

    pub(crate) fn effects_seen(&self) -> u64 {
        self.shared().publisher.load().position.sequence
    }

    /// Whether there are entries after `seen`; `Some(false)` if there will be none. None: the waker is told.
    pub(crate) fn poll_effects(&self, follower: u64, seen: u64, waker: &Waker) -> Option<bool> {
        match self.shared().publisher.poll_beyond(follower, seen, &mut Context::from_waker(waker)) {
            Poll::Ready(Moved::Up(_)) => Some(true),
            Poll::Ready(Moved::Ended) => Some(false),
            Poll::Pending => None,
        }
    }
}

/// Effects with their keys.
type Found = Vec<(Vec<u8>, EffectRow)>;

/// The effects that are due, at most as many as are wanted, and when the next one is.
fn due_now(rows: &impl Rows, want: &Want, now: TimestampMs) -> Result<(Found, Option<u64>), ApplyError> {
    let mut due = Vec::new();
    let mut next_ms = None;
    for kind in [DueKind::Sending, DueKind::Ready] {
        let prefix = due_prefix(kind, &want.provider);
        let range = rows.range(System::Due.id(), (std::ops::Bound::Included(&prefix), std::ops::Bound::Unbounded))?;
        for row in range {
            let (key, _) = row.map_err(|error: EngineError| error)?;
            if !key.key().starts_with(&prefix) || due.len() >= want.free {
                break;
            }
            let Some((at_ms, effect)) = due_parts(key.key()) else { continue };
            if at_ms > now.0 {
                next_ms = next_ms.into_iter().chain([at_ms]).min();
                break;
            }
            let Some(row) = get_system::<EffectRow>(rows, System::Effects, effect)? else { continue };
            if !want.asking.contains(&EffectId(row.intent.identity)) {
                due.push((effect.to_vec(), row));
            }
        }
    }
    Ok((due, next_ms))
}

impl Batch<'_> {
    fn lease(&mut self, want: &Want) -> Result<Due, Error> {
        let (due, _) = due_now(&self.overlay, want, self.time).map_err(|error| error.answer())?;
        let mut taken = Due::default();
        let run_id = self.shared.run_id;
        let call_ms = millis(want.call);
        for (_, row) in due {
            let step = next_step(&row.state(), &row.plan(call_ms), run_id, self.time.0);
            let transition = match step {
                Step::Wait { .. } | Step::Nothing => continue,
                Step::LookUp => {
                    taken.leases.push(lease_of(row, true));
                    continue;
                }
                Step::Send => {
                    EffectTransition::Sending { run_id, lease_until_ms: self.time.saturating_add(want.call).0 }
                }
                Step::Doubt => EffectTransition::Uncertain { ask_not_before_ms: self.time.0 },
                Step::Park(_) => EffectTransition::Parked,
            };
            let mut record = record_of(&row, transition);
            if step == Step::Send {
                record.fence += 1;
                record.attempt += 1;
            }
            if let Step::Park(reason) = step {
                record.reason = Some(reason.text().to_owned());
            }
            let (fence, attempt) = (record.fence, record.attempt);
            self.add_frame(Body::Effect(record))?;
            if step == Step::Send {
                taken.leases.push(Lease { fence, attempt, ..lease_of(row, false) });
            } else {
                taken.moved += 1;
            }
        }
        Ok(taken)
    }

    fn end_call(&mut self, lease: &Lease, end: CallEnd, again: Duration) -> Result<(), Error> {
        let found = effect_by_id(&self.overlay, &lease.id.0).map_err(|error| error.answer())?;
        let Some((key, row)) = found else { return Ok(()) };
        let source = if lease.ask { ReportSource::LookUp } else { ReportSource::Handler };
        let not_found = end == CallEnd::NotFound;
        let result = match &end {
            CallEnd::Applied { .. } => SendResult::Applied,
            CallEnd::Refused { .. } => SendResult::Refused,
            CallEnd::NotApplied => SendResult::NotApplied,
            CallEnd::Unknown | CallEnd::NotFound => SendResult::Unknown,
        };
        let (news, report) = end.report(source);
        let state = row.state();
        if state.phase.is_final() {
            // A callback or a person was faster.
            if compare(state.phase, news) == Comparison::Contradicts {
                self.add_frame(Body::Effect(record_of(&row, EffectTransition::Disputed(report))))?;
            }
            return Ok(());
        }
        let stale = row.fence != lease.fence
            || match (lease.ask, state.phase) {
                (true, Phase::Uncertain { .. }) | (false, Phase::Sending { .. }) => false,
                // Its lease has ended, and nobody has sent it again: what it knows is welcome if it settles something.
                (false, Phase::Uncertain { .. } | Phase::Parked) => news == News::Open,
                _ => true,
            };
        if stale {
            let mut record = record_of(&row, EffectTransition::Stale(report));
            record.attempt = lease.attempt;
            return self.add_frame(Body::Effect(record)).map(drop);
        }
        let again_ms = self.time.saturating_add(again).0;
        let event = if lease.ask && not_found {
            after_look_up(&state, look_up_of(row.intent.abilities.lookup), self.time.0, again_ms)
        } else if lease.ask && news == News::Open {
            Event::Uncertain { ask_not_before_ms: again_ms }
        } else {
            after_send(&state, result, again_ms)
        };
        let transition = match event {
            Event::Applied => return self.settle(&key, record_of(&row, EffectTransition::Applied(report)), &[]),
            Event::Refused => return self.settle(&key, record_of(&row, EffectTransition::Refused(report)), &[]),
            Event::Planned { not_before_ms } => EffectTransition::Planned { not_before_ms },
            Event::Uncertain { ask_not_before_ms } => EffectTransition::Uncertain { ask_not_before_ms },
            Event::Sending { .. } | Event::Parked => unreachable!("no answer sends or parks"),
        };
        self.add_frame(Body::Effect(record_of(&row, transition))).map(drop)
    }
}

fn lease_of(row: EffectRow, ask: bool) -> Lease {
    Lease {
        id: EffectId(row.intent.identity),
        fence: row.fence,
        ask,
        attempt: row.attempt,
        provider: row.intent.provider,
        payload: row.intent.payload,
        content_type: row.intent.content_type,
        reference: row.reference,
    }
}
