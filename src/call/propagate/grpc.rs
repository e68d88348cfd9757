//! gRPC's own headers: `grpc-timeout`, `grpc-previous-rpc-attempts`, `grpc-retry-pushback-ms`. gRPC has none for who owns
//! the retries; that is one of ours.

use std::time::Duration;

use super::super::verdict::Hint;
use super::{Expired, MalformedFault, number};

/// The time that is left.
pub const TIMEOUT: &str = "grpc-timeout";
/// Attempts before this one. Not sent with the first.
pub const PREVIOUS_ATTEMPTS: &str = "grpc-previous-rpc-attempts";
/// When a server wants to be asked again.
pub const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Present, with the value `1`, if failures are retried by whoever sends it or above.
pub const OWNER: &str = "counterfoil-retry-owner";

/// The protocol allows eight digits.
const DIGITS_MAX: usize = 8;
const NUMBER_MAX: u128 = 99_999_999;

/// Units from fine to coarse, in nanoseconds.
const UNITS: [(u128, char); 6] =
    [(1, 'n'), (1_000, 'u'), (1_000_000, 'm'), (1_000_000_000, 'S'), (60_000_000_000, 'M'), (3_600_000_000_000, 'H')];

/// Writes a `grpc-timeout`: in the finest unit in which it fits, rounded down.
///
/// # Errors
///
/// [`Expired`] for nothing: fail here instead of sending it.
pub fn write_timeout(remaining: Duration) -> Result<String, Expired> {
    let nanos = remaining.as_nanos();
    if nanos == 0 {
        return Err(Expired);
    }
    let fitting = UNITS.iter().find(|(unit, _)| nanos / unit <= NUMBER_MAX);
    // More than eleven thousand years are eleven thousand years.
    Ok(fitting.map_or_else(|| format!("{NUMBER_MAX}H"), |(unit, name)| format!("{}{name}", nanos / unit)))
}

/// Reads a `grpc-timeout`. Zero is read as nothing left, as servers do, though none may be sent.
///
/// # Errors
///
/// [`MalformedFault`] for anything but one to eight digits and one unit.
pub fn read_timeout(text: &str) -> Result<Duration, MalformedFault> {
    let Some(last) = text.chars().next_back() else { return Err(MalformedFault::Empty) };
    let (nanos, _) = UNITS.iter().find(|(_, name)| *name == last).ok_or(MalformedFault::Unit)?;
    let count = number(&text[..text.len() - last.len_utf8()], DIGITS_MAX)?;
    let nanos = u128::from(count) * nanos;
    let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
    Ok(Duration::new(seconds, u32::try_from(nanos % 1_000_000_000).unwrap_or(0)))
}

/// Reads a `grpc-previous-rpc-attempts`.
///
/// # Errors
///
/// [`MalformedFault`] for anything but a number.
pub fn read_previous_attempts(text: &str) -> Result<u32, MalformedFault> {
    u32::try_from(number(text, 10)?).map_err(|_| MalformedFault::TooLong)
}

/// Reads a `grpc-retry-pushback-ms`: a negative or unreadable one means never.
#[must_use]
pub fn read_pushback(text: &str) -> Hint {
    match text.parse::<i32>() {
        Ok(ms) if !text.starts_with('+') => {
            u64::try_from(ms).map_or(Hint::Never, |ms| Hint::After(Duration::from_millis(ms)))
        }
        _ => Hint::Never,
    }
}

#[cfg(feature = "grpc")]
pub use with_tonic::{inbound, write};

#[cfg(feature = "grpc")]
mod with_tonic {
    use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

    use super::super::{Inbound, Malformed, Onward, single};
    use super::*;
    use crate::call::trace::TraceId;

    const TRACEPARENT: &str = "traceparent";

    /// Writes what travels into a request's metadata.
    ///
    /// # Errors
    ///
    /// [`Expired`] if no time is left; nothing was written, and nothing may be sent.
    pub fn write(onward: &Onward, metadata: &mut MetadataMap) -> Result<(), Expired> {
        let ascii = |text: String| MetadataValue::<Ascii>::try_from(text).expect("ASCII");
        let timeout = onward.remaining.map(write_timeout).transpose()?;
        // What came in must not go out again beside what is said here.
        for header in [TIMEOUT, PREVIOUS_ATTEMPTS, OWNER, TRACEPARENT] {
            metadata.remove(header);
        }
        if let Some(timeout) = timeout {
            metadata.insert(TIMEOUT, ascii(timeout));
        }
        if onward.previous_attempts > 0 {
            metadata.insert(PREVIOUS_ATTEMPTS, ascii(onward.previous_attempts.to_string()));
        }
        if onward.owned {
            metadata.insert(OWNER, MetadataValue::from_static("1"));
        }
        metadata.insert(TRACEPARENT, ascii(onward.trace.to_string()));
        Ok(())
    }

    /// Reads what came along with a call that came in at `now`, on the monotonic clock.
    ///
    /// # Errors
    ///
    /// [`Malformed`] names the header. Answer with `InvalidArgument`.
    pub fn inbound(metadata: &MetadataMap, now: Duration) -> Result<Inbound, Malformed> {
        let text = |header| single(header, metadata.get_all(header).iter(), |value| value.to_str().ok());
        let faulty = |header| move |fault| Malformed { header, fault };
        let remaining = text(TIMEOUT)?.map(read_timeout).transpose().map_err(faulty(TIMEOUT))?;
        let previous = text(PREVIOUS_ATTEMPTS)?.map(read_previous_attempts).transpose();
        let previous = previous.map_err(faulty(PREVIOUS_ATTEMPTS))?.unwrap_or(0);
        let trace = text(TRACEPARENT).ok().flatten().and_then(TraceId::parse);
        Ok(Inbound { trace, ..Inbound::new(now, remaining, previous, text(OWNER)? == Some("1")) })
    }
}

#[cfg(test)]
#[path = "grpc_tests.rs"]
mod tests;
