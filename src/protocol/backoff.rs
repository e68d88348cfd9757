//! How long to wait before another attempt: full jitter below an envelope that doubles up to a cap.
//!
//! Jitter is drawn over the whole envelope, so many callers that failed together do not come back together, and the cap
//! holds after the jitter. The draw is handed in: the same draw gives the same delay.

use std::time::Duration;

/// The shortest delay: a draw of zero must not become a loop without a pause.
pub const DELAY_MIN: Duration = Duration::from_millis(1);

/// An envelope of delays.
///
/// ```
/// use std::time::Duration;
/// use counterfoil::call::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2)).unwrap();
/// assert_eq!(backoff.envelope(3), Duration::from_millis(200));
/// assert_eq!(backoff.envelope(u32::MAX), Duration::from_secs(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
}

impl Backoff {
    /// An envelope that starts at `first` and doubles up to `cap`. `None` if `first` is below [`DELAY_MIN`] or above
    /// `cap`.
    #[must_use]
    pub fn new(first: Duration, cap: Duration) -> Option<Self> {
        (DELAY_MIN <= first && first <= cap).then_some(Self { first, cap })
    }

    /// The longest delay before retry number `retry`, counted from 1.
    #[must_use]
    pub fn envelope(self, retry: u32) -> Duration {
        let doublings = 1_u32.checked_shl(retry.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doublings).min(self.cap)
    }

    /// The delay before retry number `retry`: `draw` is uniform over all of `u64`, the delay over the envelope.
    #[must_use]
    pub fn delay(self, retry: u32, draw: u64) -> Duration {
        // An envelope above 584 years counts as 584 years.
        let envelope = u64::try_from(self.envelope(retry).as_nanos()).unwrap_or(u64::MAX);
        let scaled = (u128::from(envelope) * u128::from(draw)) >> 64;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX)).max(DELAY_MIN)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_envelope_doubles_up_to_its_cap() {
        let backoff = Backoff::new(ms(50), ms(2000)).unwrap();
        let envelopes = [1, 2, 3, 6, 7, 31, 32, 33, 64, u32::MAX].map(|retry| backoff.envelope(retry));
        assert_eq!(envelopes, [50, 100, 200, 1600, 2000, 2000, 2000, 2000, 2000, 2000].map(ms));
    }

    #[test]
    fn a_draw_of_zero_still_waits_and_the_largest_stays_below_the_cap() {
        let backoff = Backoff::new(ms(50), ms(2000)).unwrap();
        assert_eq!(backoff.delay(64, 0), DELAY_MIN);
        assert!(backoff.delay(64, u64::MAX) < ms(2000) && backoff.delay(64, u64::MAX) > ms(1999));
        assert_eq!(backoff.delay(64, u64::MAX / 2), ms(1000) - Duration::from_nanos(1));
    }

    #[test]
    fn an_envelope_below_the_floor_or_upside_down_is_refused() {
        assert!(Backoff::new(Duration::ZERO, ms(1)).is_none());
        assert!(Backoff::new(Duration::from_micros(999), ms(1)).is_none());
        assert!(Backoff::new(ms(2), ms(1)).is_none());
        assert!(Backoff::new(ms(1), ms(1)).is_some());
    }

    #[test]
    fn delays_are_spread_over_the_whole_envelope() {
        let backoff = Backoff::new(ms(1000), ms(1000)).unwrap();
        let tenth = |tenth: u64| backoff.delay(1, u64::MAX / 10 * tenth).as_millis();
        assert_eq!((0..10).map(tenth).collect::<Vec<_>>(), [1, 99, 199, 299, 399, 499, 599, 699, 799, 899]);
    }

    proptest! {
        #[test]
        fn every_delay_is_between_the_floor_and_the_cap(
            first in 1_000_000_u64.., more in any::<u64>(), retry in any::<u32>(), draw in any::<u64>()
        ) {
            let first = Duration::from_nanos(first);
            let cap = first.saturating_add(Duration::from_nanos(more));
            let backoff = Backoff::new(first, cap).unwrap();
            let delay = backoff.delay(retry, draw);
            prop_assert!(DELAY_MIN <= delay && delay <= cap && delay <= backoff.envelope(retry));
            prop_assert!(backoff.envelope(retry) <= backoff.envelope(retry.saturating_add(1)));
        }

        #[test]
        fn a_larger_draw_never_waits_less(retry in any::<u32>(), low in any::<u64>(), high in any::<u64>()) {
            let backoff = Backoff::new(ms(50), ms(2000)).unwrap();
            prop_assert!(backoff.delay(retry, low.min(high)) <= backoff.delay(retry, low.max(high)));
        }

        #[test]
        fn durations_as_long_as_there_are_do_not_overflow(retry in any::<u32>(), draw in any::<u64>()) {
            let backoff = Backoff::new(Duration::MAX, Duration::MAX).unwrap();
            prop_assert!(backoff.delay(retry, draw) >= DELAY_MIN);
        }
    }
}
