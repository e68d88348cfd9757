//! Effects outside the store: planned by operations, leased to a dispatcher, settled by answers, callbacks and people.

pub(super) mod dispatch;
pub(super) mod intent;
pub(super) mod list;
pub(super) mod report;
pub(super) mod rows;
pub(super) mod settle;

use std::sync::Arc;

use crate::base::error::Error;
use crate::base::sync::Mutex;
use crate::log::record::{Body, EffectRecord, EffectTransition};
use crate::state::Rows;

use super::Store;
use super::apply::ApplyError;
use super::apply::effects::with_prefix;
use super::apply::get_system;
use super::batch::Batch;
use super::job::{EffectJob, Job};
use super::reentry;
use super::rows::System;
use super::ticket;
use rows::{DueKind, EffectRow, PhaseRow, due_parts};

/// What the run before left in `sending` may have happened: it is uncertain from now on, before anything else is done.
pub(super) fn left_sending(rows: &impl Rows) -> Result<Vec<Body>, ApplyError> {
    let mut bodies = Vec::new();
    for (due, _) in with_prefix(rows, System::Due, &[DueKind::Sending.number()])? {
        let Some((_, key)) = due_parts(&due) else { continue };
        let Some(row) = get_system::<EffectRow>(rows, System::Effects, key)? else { continue };
        if matches!(row.phase, PhaseRow::Sending { .. }) {
            bodies.push(Body::Effect(record_of(&row, EffectTransition::Uncertain { ask_not_before_ms: 0 })));
        }
    }
    Ok(bodies)
}

/// A transition of an effect under its present fence.
fn record_of(row: &EffectRow, transition: EffectTransition) -> EffectRecord {
    EffectRecord {
        identity: row.intent.identity,
        fence: row.fence,
        attempt: row.attempt,
        transition,
        decided_by: None,
        reason: None,
    }
}

impl Store {
    /// Runs work on effects on the writer's thread, and waits until what it wrote is durable.
    pub(super) fn commit_effects<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Batch<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        if let Some(stopped) = shared.poison.get() {
            return Err(Error::Poisoned(stopped.cause.clone()));
        }
        let value = Arc::new(Mutex::new(None));
        let put = Arc::clone(&value);
        let work = Box::new(move |batch: &mut Batch<'_>| {
            *put.lock() = Some(work(batch)?);
            Ok(())
        });
        let (ticket, responder) = ticket::pair(shared.number);
        self.enqueue(Job::Effect(EffectJob { work, responder }), 0, Some(std::time::Duration::MAX))?;
        self.wait(ticket)?;
        let value = value.lock().take();
        Ok(value.expect("work that succeeded has put its value"))
    }
}
