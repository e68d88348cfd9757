//! Counts values in buckets that are at most a sixteenth wide.

#[cfg(feature = "call")]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PARTS_BITS: u32 = 4;
const PARTS: u64 = 1 << PARTS_BITS;
/// Up to 2^40 microseconds, twelve days.
const OCTAVES: usize = 37;
const BUCKETS: usize = OCTAVES << PARTS_BITS;

/// How values are distributed. A bucket is at most a sixteenth of its value wide, so what is read is at most so much too
/// large and never too small.
#[derive(Clone, PartialEq, Eq)]
pub struct Distribution {
    counts: Box<[u64; BUCKETS]>,
    total: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), total: 0 }
    }
}

impl Distribution {
    /// Counts one.
    pub fn record(&mut self, value: u64) {
        self.counts[bucket(value)] += 1;
        self.total += 1;
    }

    /// How many were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.total
    }

    /// A value that `rank` of those that were counted did not exceed, counted from 1. `None` if there are not so many.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            *count > 0 && seen >= rank
        };
        self.counts.iter().position(reaches).map(upper)
    }

    /// The quantile, such as 0.99. `None` if nothing was counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        #[expect(clippy::cast_precision_loss, reason = "above 2^53 one more or less does not matter")]
        let rank = (self.total as f64 * quantile.clamp(0.0, 1.0)).ceil();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the total")]
        let rank = (rank as u64).max(1);
        self.at_rank(rank)
    }
}

impl std::fmt::Debug for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Distribution")
            .field("count", &self.total)
            .field("median", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .finish()
    }
}

/// How long things took: a [`Distribution`] of durations, in microseconds.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Histogram(Distribution);

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, duration: Duration) {
        self.0.record(micros(duration));
    }

    /// How many were counted.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.0.count()
    }

    /// A duration that `rank` of those that were counted did not exceed, counted from 1. `None` if there are not so many.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<Duration> {
        self.0.at_rank(rank).map(Duration::from_micros)
    }

    /// The quantile, such as 0.99. `None` if nothing was counted.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        self.0.quantile(quantile).map(Duration::from_micros)
    }
}

/// The same, counted by many threads at once.
#[cfg(feature = "call")]
pub(crate) struct SharedHistogram(Box<[AtomicU64]>);

#[cfg(feature = "call")]
impl Default for SharedHistogram {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(0)).collect())
    }
}

#[cfg(feature = "call")]
impl SharedHistogram {
    pub(crate) fn record(&self, duration: Duration) {
        self.0[bucket(micros(duration))].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted until now.
    pub(crate) fn read(&self) -> Histogram {
        let mut read = Distribution::default();
        for (count, shared) in read.counts.iter_mut().zip(&self.0) {
            *count = shared.load(Ordering::Relaxed);
            read.total += *count;
        }
        Histogram(read)
    }
}

#[cfg(feature = "call")]
impl std::fmt::Debug for SharedHistogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.read().fmt(f)
    }
}

/// Rounded up: a quantile must never be shorter than what was measured.
fn micros(duration: Duration) -> u64 {
    let more = u64::from(!duration.subsec_nanos().is_multiple_of(1000));
    duration.as_secs().saturating_mul(1_000_000).saturating_add(u64::from(duration.subsec_micros()) + more)
}

/// Small values have a bucket each; above, each doubling has sixteen.
fn bucket(micros: u64) -> usize {
    let octave = (u64::BITS - micros.leading_zeros()).saturating_sub(PARTS_BITS + 1);
    let part = (micros >> octave) + u64::from(octave) * PARTS;
    usize::try_from(part).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let octave = bucket / PARTS - 1;
    (((bucket % PARTS) + PARTS + 1) << octave) - 1
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("median", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=1000).for_each(|ms| histogram.record(Duration::from_millis(ms)));
        let near = |quantile, ms: u64| {
            let read = histogram.quantile(quantile).unwrap();
            assert!(Duration::from_millis(ms) <= read && read <= Duration::from_millis(ms + ms / 16 + 1), "{read:?}");
        };
        near(0.5, 500);
        near(0.99, 990);
        near(1.0, 1000);
        near(0.0, 1);
        assert_eq!(histogram.at_rank(1001), None);
    }

    #[test]
    fn the_shortest_and_the_longest_are_counted() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::ZERO);
        assert_eq!(histogram.quantile(1.0), Some(Duration::ZERO));
        histogram.record(Duration::MAX);
        assert!(histogram.quantile(1.0).unwrap() > Duration::from_secs(3600 * 24));
        assert_eq!(histogram.count(), 2);
    }

    proptest! {
        #[test]
        fn every_value_is_in_a_bucket_that_is_hardly_wider(micros in 0_u64..1 << 40) {
            let upper = upper(bucket(micros));
            prop_assert!(micros <= upper && upper <= micros + micros / PARTS + 1, "{} {}", micros, upper);
            prop_assert!(bucket(micros) <= bucket(micros + 1));
        }
    }
}
