//! HTTP has no header for the time that is left, so these are ours: whole milliseconds, rounded down.

use std::time::Duration;

use super::{Expired, MalformedFault, number};

/// The milliseconds that are left.
pub const REMAINING_MS: &str = "x-deadline-remaining-ms";
/// Attempts before this one. Not sent with the first.
pub const PREVIOUS_ATTEMPTS: &str = "x-previous-attempts";
/// Present, with the value `1`, if failures are retried by whoever sends it or above.
pub const OWNER: &str = "x-retry-owner";

/// More digits than these are centuries.
const DIGITS_MAX: usize = 13;
const MS_MAX: u128 = 9_999_999_999_999;

/// Writes the time that is left.
///
/// # Errors
///
/// [`Expired`] for less than a millisecond: fail here instead of sending zero.
pub fn write_remaining(remaining: Duration) -> Result<String, Expired> {
    match remaining.as_millis().min(MS_MAX) {
        0 => Err(Expired),
        ms => Ok(ms.to_string()),
    }
}

/// Reads the time that is left. Zero is read as nothing left, though none may be sent.
///
/// # Errors
///
/// [`MalformedFault`] for anything but one to thirteen digits.
pub fn read_remaining(text: &str) -> Result<Duration, MalformedFault> {
    number(text, DIGITS_MAX).map(Duration::from_millis)
}

/// Reads the number of attempts before this one.
///
/// # Errors
///
/// [`MalformedFault`] for anything but a number.
pub fn read_previous_attempts(text: &str) -> Result<u32, MalformedFault> {
    u32::try_from(number(text, 10)?).map_err(|_| MalformedFault::TooLong)
}

#[cfg(feature = "http")]
pub use with_http::{inbound, write};

#[cfg(feature = "http")]
mod with_http {
    use http::{HeaderMap, HeaderValue};

    use super::super::{Inbound, Malformed, Onward, single};
    use super::*;
    use crate::call::trace::TraceId;

    const TRACEPARENT: &str = "traceparent";

    /// Writes what travels into a request's headers.
    ///
    /// # Errors
    ///
    /// [`Expired`] if no time is left; nothing was written, and nothing may be sent.
    pub fn write(onward: &Onward, headers: &mut HeaderMap) -> Result<(), Expired> {
        let ascii = |text: String| HeaderValue::try_from(text).expect("ASCII");
        let remaining = onward.remaining.map(write_remaining).transpose()?;
        // What came in must not go out again beside what is said here.
        for header in [REMAINING_MS, PREVIOUS_ATTEMPTS, OWNER, TRACEPARENT] {
            headers.remove(header);
        }
        if let Some(remaining) = remaining {
            headers.insert(REMAINING_MS, ascii(remaining));
        }
        if onward.previous_attempts > 0 {
            headers.insert(PREVIOUS_ATTEMPTS, HeaderValue::from(onward.previous_attempts));
        }
        if onward.owned {
            headers.insert(OWNER, HeaderValue::from_static("1"));
        }
        headers.insert(TRACEPARENT, ascii(onward.trace.to_string()));
        Ok(())
    }

    /// Reads what came along with a call that came in at `now`, on the monotonic clock.
    ///
    /// # Errors
    ///
    /// [`Malformed`] names the header. Answer with 400.
    pub fn inbound(headers: &HeaderMap, now: Duration) -> Result<Inbound, Malformed> {
        let text = |header| single(header, headers.get_all(header).iter(), |value| value.to_str().ok());
        let faulty = |header| move |fault| Malformed { header, fault };
        let remaining = text(REMAINING_MS)?.map(read_remaining).transpose().map_err(faulty(REMAINING_MS))?;
        let previous = text(PREVIOUS_ATTEMPTS)?.map(read_previous_attempts).transpose();
        let previous = previous.map_err(faulty(PREVIOUS_ATTEMPTS))?.unwrap_or(0);
        let trace = text(TRACEPARENT).ok().flatten().and_then(TraceId::parse);
        Ok(Inbound { trace, ..Inbound::new(now, remaining, previous, text(OWNER)? == Some("1")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_in_whole_milliseconds_rounded_down_and_never_as_zero() {
        assert_eq!(write_remaining(Duration::from_micros(210_999)).unwrap(), "210");
        assert_eq!(write_remaining(Duration::from_micros(999)), Err(Expired));
        assert_eq!(write_remaining(Duration::MAX).unwrap(), "9999999999999");
    }

    #[test]
    fn every_malformed_time_is_named() {
        assert_eq!(read_remaining("210"), Ok(Duration::from_millis(210)));
        assert_eq!(read_remaining("9999999999999"), Ok(Duration::from_millis(9_999_999_999_999)));
        for (text, fault) in [
            ("", MalformedFault::Empty),
            ("-5", MalformedFault::NotANumber),
            ("+3", MalformedFault::NotANumber),
            ("1.5", MalformedFault::NotANumber),
            (" 1", MalformedFault::NotANumber),
            ("1,2", MalformedFault::NotANumber),
            ("10000000000000", MalformedFault::TooLong),
        ] {
            assert_eq!(read_remaining(text), Err(fault), "{text:?}");
        }
    }

    #[test]
    fn previous_attempts_are_a_number_and_nothing_else() {
        assert_eq!(read_previous_attempts("3"), Ok(3));
        assert!(read_previous_attempts("-3").is_err() && read_previous_attempts("4294967296").is_err());
    }
}
