//! What travels with a call: the time that is left, how many attempts there were, and that somebody owns the retries.
//!
//! Never a moment: another machine has another clock. What travels is rounded down, and never zero.

pub mod grpc;
pub mod http;

use std::time::Duration;

use super::deadline::Deadline;
use super::trace::TraceId;

/// What is sent along with an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Onward {
    /// What is left of its time, never zero. `None`: it has no end.
    pub remaining: Option<Duration>,
    /// Attempts before this one.
    pub previous_attempts: u32,
    /// Failures are retried by whoever sends this, or above it.
    pub owned: bool,
    /// The attempt's trace id.
    pub trace: TraceId,
}

/// What came along with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inbound {
    /// When its caller stops waiting. Work for it should stop then, queued and active: see [`Deadline::has_passed`].
    pub deadline: Deadline,
    /// Attempts before this one.
    pub previous_attempts: u32,
    /// Failures are retried above: calls made on its behalf make one attempt.
    pub owned: bool,
    /// The attempt's trace id.
    pub trace: Option<TraceId>,
}

impl Inbound {
    /// Nothing came along: no deadline, and nobody above who retries.
    pub const NONE: Self = Self { deadline: Deadline::UNBOUNDED, previous_attempts: 0, owned: false, trace: None };

    /// What was read, from whatever wire, of a call that came in at `now`.
    #[must_use]
    pub fn new(now: Duration, remaining: Option<Duration>, previous: u32, owned: bool) -> Self {
        let deadline = remaining.map_or(Deadline::UNBOUNDED, |remaining| Deadline::after(now, remaining));
        // Who comes again is an owner, whether it says so or not.
        Self { deadline, previous_attempts: previous, owned: owned || previous > 0, trace: None }
    }
}

/// No time is left, so nothing may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no time is left for this attempt; nothing was sent")]
pub struct Expired;

/// A header that is not what it should be. Refuse the call: to guess a deadline would be to work for nobody, or for ever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the header {header} is malformed: {fault}")]
pub struct Malformed {
    /// Which header.
    pub header: &'static str,
    /// What is wrong with it.
    pub fault: MalformedFault,
}

/// What is wrong with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedFault {
    /// It has no value.
    #[error("it is empty")]
    Empty,
    /// It stands there more than once.
    #[error("it stands there more than once")]
    Repeated,
    /// It is no decimal number without sign, point and white space.
    #[error("it is no number")]
    NotANumber,
    /// It has more digits than it may have.
    #[error("it has too many digits")]
    TooLong,
    /// It has no unit, or one that there is not.
    #[error("it has no known unit")]
    Unit,
}

/// Digits and nothing else, at most `digits_max` of them.
pub(crate) fn number(text: &str, digits_max: usize) -> Result<u64, MalformedFault> {
    if text.is_empty() {
        return Err(MalformedFault::Empty);
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(MalformedFault::NotANumber);
    }
    if text.len() > digits_max {
        return Err(MalformedFault::TooLong);
    }
    text.parse().map_err(|_| MalformedFault::TooLong)
}

/// The one value of a header that may stand there once.
#[cfg(any(feature = "http", feature = "grpc"))]
pub(crate) fn single<'a, V>(
    header: &'static str,
    mut values: impl Iterator<Item = V>,
    text: impl FnOnce(V) -> Option<&'a str>,
) -> Result<Option<&'a str>, Malformed> {
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Malformed { header, fault: MalformedFault::Repeated });
    }
    text(value).map(Some).ok_or(Malformed { header, fault: MalformedFault::NotANumber })
}
