//! Two counters over a sliding window of time, in eleven slots of a tenth each.

use std::time::Duration;

const SLOTS: usize = 11;
const PARTS: u32 = 10;

/// Two counts. What they count is the owner's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) one: u64,
    pub(crate) two: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Which tenth of a window since the clock began, counted from 1; 0 is never.
    tenth: u64,
    counts: Counts,
}

/// The slot that something was counted in, so that it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted(u64);

/// Five hundred years and more are the end of the clock.
const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

#[derive(Clone, Debug)]
pub(crate) struct Window {
    tenth_nanos: u64,
    slots: [Slot; SLOTS],
}

impl Window {
    /// `window` is not zero.
    pub(crate) fn new(window: Duration) -> Self {
        Self { tenth_nanos: nanos(window / PARTS).max(1), slots: [Slot::default(); SLOTS] }
    }

    const fn tenth_at(&self, now: Duration) -> u64 {
        (nanos(now) / self.tenth_nanos).saturating_add(1)
    }

    fn slot(tenth: u64) -> usize {
        usize::try_from(tenth % SLOTS as u64).expect("below the number of slots")
    }

    /// Counts. A thread that read its clock before another one may come after it: then its count goes to the newer slot.
    pub(crate) fn add(&mut self, now: Duration, counts: Counts) -> Counted {
        let tenth = self.tenth_at(now);
        let slot = &mut self.slots[Self::slot(tenth)];
        if slot.tenth < tenth {
            *slot = Slot { tenth, counts: Counts::default() };
        }
        slot.counts.one = slot.counts.one.saturating_add(counts.one);
        slot.counts.two = slot.counts.two.saturating_add(counts.two);
        Counted(slot.tenth)
    }

    /// Takes back one of the second kind, if its slot is still counted.
    pub(crate) fn take_back_two(&mut self, counted: Counted) {
        let slot = &mut self.slots[Self::slot(counted.0)];
        if slot.tenth == counted.0 {
            slot.counts.two = slot.counts.two.saturating_sub(1);
        }
    }

    /// What was counted. A window is rarely over at the border of a slot: of the first kind no more than a window is
    /// counted, of the second no less.
    pub(crate) fn sum(&self, now: Duration) -> Counts {
        let newest = self.tenth_at(now);
        let mut sum = Counts::default();
        for slot in self.slots.iter().filter(|slot| slot.tenth > 0) {
            let age = newest.saturating_sub(slot.tenth);
            if age < u64::from(PARTS) {
                sum.one = sum.one.saturating_add(slot.counts.one);
            }
            if age <= u64::from(PARTS) {
                sum.two = sum.two.saturating_add(slot.counts.two);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    const BOTH: Counts = Counts { one: 1, two: 1 };

    #[test]
    fn the_first_kind_is_counted_for_a_window_at_most_and_the_second_for_one_at_least() {
        for at in [0, 1, 99, 100, 950, 999] {
            let mut window = Window::new(ms(1000));
            window.add(ms(at), BOTH);
            assert_eq!(window.sum(ms(at)), BOTH);
            assert_eq!(window.sum(ms(at + 1000)).one, 0, "{at}");
            assert_eq!(window.sum(ms(at + 1000)).two, 1, "{at}");
            assert_eq!(window.sum(ms(at + 1100)), Counts::default(), "{at}");
            assert_eq!(window.sum(ms(at + 100_000)), Counts::default(), "{at}");
        }
    }

    #[test]
    fn what_was_counted_can_be_taken_back_until_its_slot_is_used_again() {
        let mut window = Window::new(ms(1000));
        let old = window.add(ms(50), BOTH);
        window.take_back_two(old);
        assert_eq!(window.sum(ms(50)), Counts { one: 1, two: 0 });
        window.add(ms(1150), BOTH);
        window.take_back_two(old);
        assert_eq!(window.sum(ms(1150)).two, 1);
    }

    #[test]
    fn a_thread_that_comes_late_with_an_old_clock_counts_in_the_newer_slot() {
        let mut window = Window::new(ms(1000));
        window.add(ms(1150), BOTH);
        window.add(ms(50), BOTH);
        assert_eq!(window.sum(ms(1150)), Counts { one: 2, two: 2 });
    }

    #[test]
    fn the_longest_window_and_the_end_of_the_clock_are_counted_without_overflow() {
        let mut window = Window::new(Duration::MAX);
        window.add(Duration::MAX, BOTH);
        assert_eq!(window.sum(Duration::MAX), BOTH);
        let mut window = Window::new(Duration::from_nanos(1));
        window.add(Duration::MAX, BOTH);
        assert_eq!(window.sum(Duration::MAX), BOTH);
    }
}
