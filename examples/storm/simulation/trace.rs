//! What is counted.

use std::time::Duration;

use super::scenario::{BEGINS, ENDS, HEALTHY};
use super::seconds;

/// Slices of a run, four a second.
pub(crate) const SLICE: Duration = Duration::from_millis(250);

/// What came of the operations that began in one slice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) begun: u32,
    /// Answered while somebody still waited.
    pub(crate) useful: u32,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) slices: Vec<Slice>,
    pub(crate) operations: u64,
    pub(crate) useful: u64,
    pub(crate) attempts: u64,
    /// Time that workers spent, and how much of it on what nobody waited for any more.
    pub(crate) worked: Duration,
    pub(crate) abandoned: Duration,
}

fn slice_at(at: Duration) -> usize {
    usize::try_from(at.as_millis() / SLICE.as_millis()).expect("a short run")
}

impl Trace {
    pub(crate) fn new() -> Self {
        let slices = vec![Slice::default(); slice_at(ENDS) + 1];
        let (worked, abandoned) = (Duration::ZERO, Duration::ZERO);
        Self { slices, operations: 0, useful: 0, attempts: 0, worked, abandoned }
    }

    pub(crate) fn begun(&mut self, at: Duration) {
        self.operations += 1;
        self.slices[slice_at(at)].begun += 1;
    }

    /// An operation that began at `begun` was answered in time.
    pub(crate) fn useful(&mut self, begun: Duration) {
        self.useful += 1;
        self.slices[slice_at(begun)].useful += 1;
    }

    /// The part of the operations begun in a stretch of time that were answered in time.
    pub(crate) fn goodput(&self, from: Duration, to: Duration) -> f64 {
        let slices = &self.slices[slice_at(from)..slice_at(to)];
        let begun: u32 = slices.iter().map(|slice| slice.begun).sum();
        let useful: u32 = slices.iter().map(|slice| slice.useful).sum();
        f64::from(useful) / f64::from(begun.max(1))
    }

    /// Before the trouble; the first seconds do not count.
    pub(crate) fn goodput_before(&self) -> f64 {
        self.goodput(seconds(5), BEGINS - seconds(1))
    }

    /// Thirty seconds after the dependency is healthy again.
    pub(crate) fn goodput_late(&self) -> f64 {
        self.goodput(HEALTHY + seconds(28), HEALTHY + seconds(32))
    }

    /// How long after that it took until for two seconds 95 % of what it was before were answered in time again.
    pub(crate) fn recovered_after(&self) -> Option<Duration> {
        let wanted = self.goodput_before() * 0.95;
        let starts =
            (slice_at(HEALTHY)..slice_at(ENDS - seconds(3))).map(|slice| SLICE * u32::try_from(slice).expect("few"));
        starts.into_iter().find(|from| self.goodput(*from, *from + seconds(2)) >= wanted).map(|from| from - HEALTHY)
    }

    /// Physical attempts for each logical operation.
    pub(crate) fn amplification(&self) -> f64 {
        ratio(self.attempts, self.operations)
    }

    /// The part of the work that was done for nobody.
    pub(crate) fn abandoned_part(&self) -> f64 {
        self.abandoned.as_secs_f64() / self.worked.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

fn ratio(part: u64, of: u64) -> f64 {
    f64::from(u32::try_from(part).expect("a short run")) / f64::from(u32::try_from(of.max(1)).expect("a short run"))
}
