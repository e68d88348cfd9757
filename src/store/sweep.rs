//! Finding what fell due, a bounded number of rows at a time.

use std::ops::Bound;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::position::TimestampMs;
use crate::log::record::{Body, SweepRecord};
use crate::protocol::retention::ClockState;
use crate::state::{EngineError, Rows};

use super::Store;
use super::rows::{System, deadline_of, expiry_key, sequence_of};

/// Expiry rows that one step sweeps. Each costs some microseconds, so a step is a fraction of what a sync takes and an
/// operation that comes in the middle of it does not notice.
const ROWS_PER_STEP: u64 = 64;

/// After a sweep could not be committed (a full disk, mostly) it is tried again after this long.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The key of an expiry row: deadline and sequence, both big-endian.
pub(super) type ExpiryKey = [u8; 16];

const FIRST: ExpiryKey = [0; 16];

/// Knows where in the expiry table to look next, so that a step does not walk over what earlier ones removed.
#[derive(Debug, Default)]
pub(super) struct Sweeper {
    /// No expiry row is before this one.
    from: ExpiryKey,
    /// The deadline of the first expiry row, if it is known.
    next_due_ms: Option<u64>,
    /// On the monotonic clock.
    not_before: Duration,
    /// A row cannot be read: nothing is swept any more, since rows are swept in order.
    gave_up: bool,
}

/// What is due, up to a number of rows.
#[derive(Debug, PartialEq, Eq)]
struct Due {
    sweep: Option<SweepRecord>,
    /// The first row that is not covered.
    next: Option<ExpiryKey>,
}

impl Sweeper {
    pub(super) fn is_due(&self, now: TimestampMs, monotonic: Duration) -> bool {
        !self.gave_up && monotonic >= self.not_before && self.next_due_ms.is_none_or(|due| due <= now.0)
    }

    /// How long it takes until something is due; none if nothing will be.
    pub(super) fn until_due(&self, now: TimestampMs) -> Option<Duration> {
        let due = self.next_due_ms.unwrap_or(now.0);
        let never = self.gave_up || due == u64::MAX;
        (!never).then(|| TimestampMs(due).since(now))
    }

    /// The deadline of the first expiry row; the largest number if there is none.
    pub(super) fn next_due_ms(&self) -> u64 {
        self.next_due_ms.unwrap_or(u64::MAX)
    }

    /// The next step.
    pub(super) fn step(&mut self, rows: &impl Rows, now: TimestampMs) -> Option<SweepRecord> {
        match due(rows, self.from, now) {
            Ok(Due { sweep, next }) => {
                self.next_due_ms = Some(next.map_or(u64::MAX, |key| deadline_of(&key)));
                self.from = next.unwrap_or_else(|| match &sweep {
                    Some(sweep) => expiry_key(sweep.deadline_ms, sweep.sequence),
                    None => self.from,
                });
                sweep
            }
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    pub(super) fn give_up(&mut self, error: &dyn std::fmt::Display) {
        tracing::error!(%error, "nothing is swept until the store is opened again; run verify");
        self.gave_up = true;
    }

    /// A batch is durable, and this is the first of the expiry rows that came with it.
    pub(super) fn committed(&mut self, due_first: Option<ExpiryKey>) {
        if let Some(first) = due_first {
            self.from = self.from.min(first);
            self.next_due_ms = self.next_due_ms.map(|due| due.min(deadline_of(&first)));
        }
    }

    /// A batch was not committed, and with it perhaps a sweep.
    pub(super) fn not_committed(&mut self, monotonic: Duration) {
        *self =
            Self { gave_up: self.gave_up, not_before: monotonic.saturating_add(TRY_AGAIN_AFTER), ..Self::default() };
    }
}

fn due(rows: &impl Rows, from: ExpiryKey, now: TimestampMs) -> Result<Due, EngineError> {
    let mut covered: Option<(ExpiryKey, ExpiryKey)> = None;
    let mut count = 0;
    let mut next = None;
    for row in rows.range(System::Expiry.id(), (Bound::Included(&from), Bound::Unbounded))? {
        let (key, _) = row?;
        // A key of another length is damage: it is met again when the sweep is applied, which says so.
        let key = key.key().try_into().unwrap_or(FIRST);
        if count == ROWS_PER_STEP || deadline_of(&key) > now.0 {
            next = Some(key);
            break;
        }
        covered = Some((covered.map_or(key, |(first, _)| first), key));
        count += 1;
    }
    let sweep = covered.map(|(first, last)| SweepRecord {
        from_deadline_ms: deadline_of(&first),
        from_sequence: sequence_of(&first),
        deadline_ms: deadline_of(&last),
        sequence: sequence_of(&last),
        rows: count,
    });
    Ok(Due { sweep, next })
}

/// What [`Store::sweep`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Replies and receipts that went meanwhile; a receipt whose both deadlines had passed counts twice.
    pub rows: u64,
    /// The clock is in doubt, so nothing is deleted; see [`Store::accept_clock`].
    pub paused: Option<ClockState>,
}

impl Store {
    /// Sweeps everything that is due, and tells `progress` how many rows went so far.
    ///
    /// A store sweeps by itself, behind its operations and while there are none, so this is for whoever wants it done
    /// now. It changes no answer: whether a receipt still answers is decided by its deadlines at every read.
    ///
    /// # Errors
    ///
    /// As [`Store::write`]. What was swept before the error stays swept.
    pub fn sweep(&self, mut progress: impl FnMut(u64)) -> Result<Swept, Error> {
        let counter = &self.shared().counters.swept;
        let before = counter.get();
        let swept = |paused| Swept { rows: counter.get() - before, paused };
        let mut sweeper = Sweeper::default();
        loop {
            let state = self.shared().time.state();
            if state != ClockState::Good {
                return Ok(swept(Some(state)));
            }
            let (sender, receiver) = crate::base::sync::mpsc::channel();
            let position = self.commit_own(move |context| {
                let step = sweeper.step(context.rows, context.time);
                let rows = step.as_ref().map_or(0, |step| step.rows);
                // Whoever asked waits for it.
                drop(sender.send((sweeper, rows)));
                Ok(step.map(Body::Sweep).into_iter().collect())
            })?;
            let Ok((back, rows)) = receiver.recv() else { return Err(Error::Closed) };
            if position.is_none() {
                return Ok(swept(None));
            }
            // Rows that moved to their second deadline may be due too, and stand before where this one stopped.
            sweeper = back;
            sweeper.committed(Some(FIRST));
            counter.add(rows);
            progress(swept(None).rows);
        }
    }
}
