//! Changes of the store's own, which somebody asked for.

use std::time::Duration;

use crate::base::error::Error;
use crate::base::position::Position;
use crate::log::record::Body;

use super::job::{Job, OwnContext, OwnJob};
use super::{Store, reentry, ticket};

impl Store {
    /// Commits a change of the store's own, and waits for it, also for room in the queue.
    pub(super) fn commit_own(
        &self,
        work: impl FnOnce(OwnContext<'_>) -> Result<Vec<Body>, Error> + Send + 'static,
    ) -> Result<Option<Position>, Error> {
        let shared = self.shared();
        if reentry::inside(shared.number) {
            return Err(Error::Reentrant);
        }
        if let Some(stopped) = shared.poison.get() {
            return Err(Error::Poisoned(stopped.cause.clone()));
        }
        let (ticket, responder) = ticket::pair(shared.number);
        self.enqueue(Job::Own(OwnJob { work: Box::new(work), responder }), 0, Some(Duration::MAX))?;
        self.wait(ticket)
    }
}
