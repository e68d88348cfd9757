//! Claims: whether somebody still holds one.

use crate::base::position::TimestampMs;

/// What a holder is told that comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    Held,
    /// It is still its claim, and the lease has ended.
    Ended,
    /// The claim is gone, or another's.
    Lost,
}

/// Whether a holder with `fence` holds the stored claim (fence, end of lease). A lease that ends exactly now has ended.
pub(crate) fn held(stored: Option<(u64, TimestampMs)>, fence: u64, now: TimestampMs) -> Beat {
    match stored {
        Some((of, until)) if of == fence && now < until => Beat::Held,
        Some((of, _)) if of == fence => Beat::Ended,
        Some(_) | None => Beat::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_held_under_its_fence_until_the_very_end_of_its_lease() {
        let now = TimestampMs(1_000);
        for (stored, expected) in [
            (None, Beat::Lost),
            (Some((7, TimestampMs(1_001))), Beat::Held),
            (Some((7, TimestampMs(1_000))), Beat::Ended),
            (Some((7, TimestampMs(999))), Beat::Ended),
            (Some((6, TimestampMs(1_001))), Beat::Lost),
            (Some((8, TimestampMs(1_001))), Beat::Lost),
            (Some((8, TimestampMs(999))), Beat::Lost),
        ] {
            assert_eq!(held(stored, 7, now), expected, "{stored:?}");
        }
    }
}
