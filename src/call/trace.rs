//! Trace ids in the form of the W3C's `traceparent`: one trace for each logical operation, one span for each attempt.

use std::fmt;
use std::num::NonZeroU64;

/// The trace id of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId {
    /// The upper and the lower half, and not zero together.
    trace: [u64; 2],
    span: NonZeroU64,
}

impl TraceId {
    /// A trace, from chance.
    pub(crate) fn new(draws: [u64; 2]) -> Self {
        let trace = if draws == [0, 0] { [0, 1] } else { draws };
        Self { trace, span: not_zero(mix(draws[0] ^ draws[1])) }
    }

    /// Reads a `traceparent`. `None` for what is none; then a trace of one's own begins.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, len| text.len() == len && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let formed = hex(version, 2) && version != "ff" && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
        let ended = version != "00" || parts.next().is_none();
        if !formed || !ended {
            return None;
        }
        let number = |hex| u64::from_str_radix(hex, 16).ok();
        let (trace, span) = ([number(&trace[..16])?, number(&trace[16..])?], NonZeroU64::new(number(span)?)?);
        (trace != [0, 0]).then_some(Self { trace, span })
    }

    /// The span of attempt `number` of this operation. It follows from the operation's, so that the report of a call can
    /// name the attempts without having kept them.
    pub(crate) fn attempt(self, number: u32) -> Self {
        let step = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { span: not_zero(mix(self.span.get().wrapping_add(step))), ..self }
    }
}

const fn not_zero(bits: u64) -> NonZeroU64 {
    match NonZeroU64::new(bits) {
        Some(bits) => bits,
        None => NonZeroU64::MIN,
    }
}

/// The finisher of splitmix64.
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// As a `traceparent`.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:016x}{:016x}-{:016x}-01", self.trace[0], self.trace[1], self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_it_was_written() {
        let id = TraceId::new([1, 2]);
        assert_eq!(TraceId::parse(&id.to_string()), Some(id));
        assert_eq!(id.to_string().len(), 55);
    }

    #[test]
    fn attempts_share_the_trace_and_have_spans_of_their_own() {
        let id = TraceId::new([7, 9]);
        assert_eq!(id.attempt(1).trace, id.attempt(2).trace);
        assert_ne!(id.attempt(1).span, id.attempt(2).span);
        assert_eq!(id.attempt(1), id.attempt(1));
    }

    #[test]
    fn what_is_no_traceparent_is_none() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(TraceId::parse(good).is_some());
        assert!(TraceId::parse(&format!("01{}-more", &good[2..])).is_some(), "a later version may have more parts");
        for bad in [
            "",
            "00",
            &good[1..],
            &good.to_uppercase(),
            &format!("{good}-more"),
            &format!("ff{}", &good[2..]),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319+-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceId::parse(bad), None, "{bad}");
        }
    }
}
