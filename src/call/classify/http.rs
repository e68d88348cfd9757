//! HTTP's statuses, and `Retry-After`.

use super::super::verdict::{Hint, Kind, Verdict};
use super::Contract;

/// The verdict on a status. `None`: it is an answer (2xx).
#[must_use]
pub fn code(status: u16, hint: Hint, contract: Contract) -> Option<Verdict> {
    let unavailable = |kind| {
        if contract.unavailable_is_not_executed { Verdict::not_applied(kind) } else { Verdict::maybe_applied(kind) }
    };
    let verdict = match status {
        200..=299 => return None,
        // The other side gave up waiting for the request, or somebody in between did.
        408 => Verdict::maybe_applied(Kind::Timeout),
        409 if contract.conflict_may_be_in_progress && hint != Hint::None => Verdict::in_progress(),
        409 | 412 => Verdict::not_applied(Kind::Conflict),
        410 if contract.gone_is_executed => Verdict::applied(Kind::Permanent),
        425 => Verdict::not_applied(Kind::Transient),
        429 => Verdict::not_applied(Kind::Throttled),
        501 | 505 => Verdict::not_applied(Kind::Permanent),
        // Who says when to come again wants one to come; who does not says to stop.
        503 if hint == Hint::None => unavailable(Kind::Overloaded),
        503 => unavailable(Kind::Throttled),
        504 => Verdict::maybe_applied(Kind::Timeout),
        500..=599 => Verdict::maybe_applied(Kind::Transient),
        // Refusals, and redirections that nobody followed.
        300..=499 => Verdict::not_applied(Kind::Permanent),
        // Nothing that HTTP knows as the end of an answer.
        _ => Verdict::maybe_applied(Kind::Transient),
    };
    Some(verdict.hint(hint))
}

#[cfg(feature = "http")]
pub use with_http::{retry_after, status};

#[cfg(feature = "http")]
mod with_http {
    use std::time::{Duration, SystemTime};

    use http::header::RETRY_AFTER;
    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::base::position::TimestampMs;

    /// The verdict on an answer that came at `wall`. `None`: it is an answer (2xx).
    #[must_use]
    pub fn status(status: StatusCode, headers: &HeaderMap, wall: TimestampMs, contract: Contract) -> Option<Verdict> {
        let mut values = headers.get_all(RETRY_AFTER).iter();
        let hint = match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
            (Some(text), None) => retry_after(text, wall),
            (Some(_) | None, _) => Hint::None,
        };
        code(status.as_u16(), hint, contract)
    }

    /// Reads a `Retry-After`: whole seconds, or a date. A date in the past means now, and the least delay comes on top;
    /// anything else is ignored. What is far away stays so: whether that is too long is not decided here.
    #[must_use]
    pub fn retry_after(text: &str, wall: TimestampMs) -> Hint {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Hint::After(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
        }
        let Ok(date) = httpdate::parse_http_date(text) else { return Hint::None };
        let wall = SystemTime::UNIX_EPOCH + Duration::from_millis(wall.0);
        Hint::After(date.duration_since(wall).unwrap_or(Duration::ZERO))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// 1994-11-06T08:49:37Z.
        const WALL: TimestampMs = TimestampMs(784_111_777_000);

        fn after(seconds: u64) -> Hint {
            Hint::After(Duration::from_secs(seconds))
        }

        #[test]
        fn retry_after_is_whole_seconds_or_a_date_and_anything_else_is_ignored() {
            assert_eq!(retry_after("0", WALL), after(0));
            assert_eq!(retry_after("120", WALL), after(120));
            assert_eq!(retry_after("100000000", WALL), after(100_000_000));
            assert_eq!(retry_after("99999999999999999999999", WALL), after(u64::MAX));
            assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", WALL), after(60));
            for ignored in ["", "-5", "+3", "1.5", " 5", "5 ", "soon", "1,000", "5s", "06 Nov 1994"] {
                assert_eq!(retry_after(ignored, WALL), Hint::None, "{ignored:?}");
            }
        }

        #[test]
        fn a_date_in_the_past_means_now() {
            assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", WALL), after(0));
            assert_eq!(retry_after("Thu, 01 Jan 1970 00:00:00 GMT", WALL), after(0));
        }

        #[test]
        fn a_header_that_stands_there_twice_is_ignored() {
            let mut headers = HeaderMap::new();
            headers.append(RETRY_AFTER, http::HeaderValue::from_static("5"));
            let throttled = Verdict::not_applied(Kind::Throttled);
            let verdict = |headers: &HeaderMap| status(StatusCode::TOO_MANY_REQUESTS, headers, WALL, Contract::NONE);
            assert_eq!(verdict(&headers), Some(throttled.hint(after(5))));
            headers.append(RETRY_AFTER, http::HeaderValue::from_static("7"));
            assert_eq!(verdict(&headers), Some(throttled));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::verdict::EffectState;
    use super::*;

    const SOON: Hint = Hint::After(Duration::from_secs(1));

    fn plain(status: u16) -> Verdict {
        code(status, Hint::None, Contract::NONE).unwrap()
    }

    #[test]
    fn two_hundreds_are_answers() {
        assert!((200..300).all(|status| code(status, Hint::None, Contract::NONE).is_none()));
    }

    #[test]
    fn refusals_of_the_request_did_nothing_and_are_permanent() {
        for status in [301, 400, 401, 403, 404, 405, 410, 413, 415, 422, 501] {
            assert_eq!(plain(status), Verdict::not_applied(Kind::Permanent), "{status}");
        }
        assert_eq!(plain(409), Verdict::not_applied(Kind::Conflict));
    }

    #[test]
    fn errors_of_the_server_and_of_what_is_in_between_may_have_done_it() {
        for status in [500, 502, 503, 504, 507, 599, 408, 100, 600] {
            assert_eq!(plain(status).effect, EffectState::MaybeApplied, "{status}");
        }
        assert_eq!(plain(504).kind, Kind::Timeout);
        assert_eq!(plain(503).kind, Kind::Overloaded);
    }

    #[test]
    fn who_says_when_to_come_again_is_come_to_again() {
        assert_eq!(code(503, SOON, Contract::NONE), Some(Verdict::maybe_applied(Kind::Throttled).hint(SOON)));
        assert_eq!(code(429, SOON, Contract::NONE), Some(Verdict::not_applied(Kind::Throttled).hint(SOON)));
    }

    #[test]
    fn a_service_on_receipts_says_more() {
        let verdict = |status, hint| code(status, hint, Contract::RECEIPTS).unwrap();
        assert_eq!(verdict(409, SOON), Verdict::in_progress().hint(SOON));
        assert_eq!(verdict(409, Hint::None), Verdict::not_applied(Kind::Conflict));
        assert_eq!(verdict(410, Hint::None), Verdict::applied(Kind::Permanent));
        assert_eq!(verdict(503, Hint::None), Verdict::not_applied(Kind::Overloaded));
        assert_eq!(verdict(504, Hint::None), Verdict::maybe_applied(Kind::Timeout));
    }
}
