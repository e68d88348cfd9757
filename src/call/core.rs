//! What all calls of one caller share.

use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::Clock;
use crate::protocol::backoff::Backoff;

use super::breaker_registry::BreakerRegistry;
use super::budget::Budget;
use super::bulkhead::{Bulkhead, Pool};
use super::deadline::DeadlinePolicy;
use super::limits::AttemptLimits;
use super::observer::{Event, Observer};
use super::random::Randomness;
use super::timer::{Park, Timer};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) dependency: Arc<str>,
    pub(crate) policy: DeadlinePolicy,
    pub(crate) limits: AttemptLimits,
    pub(crate) attempts_max: u32,
    pub(crate) backoff: Backoff,
    pub(crate) hint_ceiling: Duration,
    pub(crate) budget: Budget,
    pub(crate) pool: Pool,
    pub(crate) breakers: Option<BreakerRegistry>,
    pub(crate) hedge: Option<HedgeParts>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Randomness>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) park: Arc<dyn Park>,
}

/// What hedges take from: never the pool and the budget of other calls.
#[derive(Debug)]
pub(crate) struct HedgeParts {
    pub(crate) after: Duration,
    pub(crate) pool: Bulkhead,
    pub(crate) budget: Budget,
}

impl Core {
    pub(crate) fn observe(&self, event: &Event<'_>) {
        self.observers.iter().for_each(|observer| observer.observe(event));
    }
}
