//! The clock that a person accepts.

use crate::base::error::Error;
use crate::base::position::{Position, TimestampMs};
use crate::log::record::{Body, ClockRecord};
use crate::protocol::retention::ClockState;

use super::Store;

/// What [`Store::accept_clock`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockAccepted {
    /// What the clock had looked like.
    pub before: ClockState,
    /// The store's time from then on.
    pub store_time: TimestampMs,
    /// Where the decision stands in the log.
    pub position: Position,
}

impl Store {
    /// Records that a person has looked at the wall clock and found it right, after [`Stats::clock`](crate::Stats) had
    /// shown [`ClockState::Ahead`] or [`ClockState::Behind`].
    ///
    /// Where the wall clock is ahead, the store's time leaps to it: **whatever is due by then is forgotten at once**, and
    /// its keys may become new operations. So be sure that no client still retries. Where it is behind, the store's time
    /// stays where it is, since time that went back would re-open what was forgotten; deletion goes on. `decided_by` and
    /// `reason` stay in the log.
    ///
    /// # Errors
    ///
    /// As [`Store::write`]. After an error the leap may have taken place until the store is closed; accept it again.
    pub fn accept_clock(&self, decided_by: Option<&str>, reason: &str) -> Result<ClockAccepted, Error> {
        let shared = self.shared();
        let before = shared.time.state();
        shared.time.accept();
        let (decided_by, reason) = (decided_by.map(str::to_owned), reason.to_owned());
        let position = self.commit_own(move |context| {
            // The batch began after the leap: its time is the accepted one.
            let record = ClockRecord { accepted_ms: context.time.0, decided_by, reason };
            Ok(vec![Body::ClockAccepted(record)])
        })?;
        let position = position.expect("the record was written");
        Ok(ClockAccepted { before, store_time: shared.time.now(), position })
    }
}
