//! The clock of the processes. Rules never read it; the time is handed to them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::rules::ids::Millis;

/// Now.
#[must_use]
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long until then; nothing if it has passed.
#[must_use]
pub fn until(then: Millis) -> Duration {
    Duration::from_millis(then.since(now()))
}
