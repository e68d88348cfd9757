//! Two counters over a sliding window of time, in eleven slots of a tenth each.
//!
//! Counting in a slot that is under way takes no lock. A slot is begun anew under a lock of the owner's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SLOTS: usize = 11;
const PARTS: u32 = 10;

/// Two counts. What they count is the owner's business.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) one: u64,
    pub(crate) two: u64,
}

#[derive(Debug, Default)]
struct Slot {
    /// Which tenth of a window since the clock began, counted from 1; 0 is never.
    tenth: AtomicU64,
    one: AtomicU64,
    two: AtomicU64,
}

impl Slot {
    fn count(&self, counts: Counts) {
        // A counter that is never added to is not written either: a write is what other processors wait for.
        for (counter, more) in [(&self.one, counts.one), (&self.two, counts.two)] {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        }
    }
}

/// The slot that something was counted in, so that it can be taken back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted(u64);

/// Five hundred years and more are the end of the clock.
const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

#[derive(Debug)]
pub(crate) struct Window {
    tenth_nanos: u64,
    /// The newest tenth that was begun: who counts in it need not divide.
    newest: AtomicU64,
    slots: [Slot; SLOTS],
}

impl Window {
    /// `window` is not zero.
    pub(crate) fn new(window: Duration) -> Self {
        let tenth_nanos = nanos(window / PARTS).max(1);
        Self { tenth_nanos, newest: AtomicU64::new(0), slots: std::array::from_fn(|_| Slot::default()) }
    }

    const fn tenth_at(&self, now: Duration) -> u64 {
        (nanos(now) / self.tenth_nanos).saturating_add(1)
    }

    fn slot(&self, tenth: u64) -> &Slot {
        &self.slots[usize::try_from(tenth % SLOTS as u64).expect("below the number of slots")]
    }

    /// Counts, if `now` is in the newest tenth; takes no lock.
    ///
    /// A thread that is held up for a whole window in here counts in a newer slot, or nowhere. So what must never be
    /// lost is counted with [`Window::add`].
    pub(crate) fn add_if_current(&self, now: Duration, counts: Counts) -> bool {
        let newest = self.newest.load(Ordering::Acquire);
        let begin = newest.saturating_sub(1).saturating_mul(self.tenth_nanos);
        let current = newest > 0 && nanos(now).checked_sub(begin).is_some_and(|passed| passed < self.tenth_nanos);
        if current {
            self.slot(newest).count(counts);
        }
        current
    }

    /// Counts. The owner lets nobody else in here meanwhile. A thread that read its clock before another one may come
    /// after it: then its count goes to the newer slot.
    pub(crate) fn add(&self, now: Duration, counts: Counts) -> Counted {
        let tenth = self.tenth_at(now);
        let slot = self.slot(tenth);
        if slot.tenth.load(Ordering::Relaxed) < tenth {
            slot.one.store(0, Ordering::Relaxed);
            slot.two.store(0, Ordering::Relaxed);
            slot.tenth.store(tenth, Ordering::Relaxed);
            self.newest.fetch_max(tenth, Ordering::Release);
        }
        slot.count(counts);
        Counted(slot.tenth.load(Ordering::Relaxed))
    }

    /// Takes back one of the second kind, if its slot is still counted. Alone, as [`Window::add`].
    pub(crate) fn take_back_two(&self, counted: Counted) {
        let slot = self.slot(counted.0);
        if slot.tenth.load(Ordering::Relaxed) == counted.0 {
            let less = slot.two.load(Ordering::Relaxed).saturating_sub(1);
            slot.two.store(less, Ordering::Relaxed);
        }
    }

    /// Forgets all. Alone, as [`Window::add`].
    pub(crate) fn clear(&self) {
        self.newest.store(0, Ordering::Relaxed);
        for slot in &self.slots {
            for counter in [&slot.tenth, &slot.one, &slot.two] {
                counter.store(0, Ordering::Relaxed);
            }
        }
    }

    /// What was counted. A window is rarely over at the border of a slot: of the first kind no more than a window is
    /// counted, of the second no less.
    pub(crate) fn sum(&self, now: Duration) -> Counts {
        let newest = self.tenth_at(now);
        let mut sum = Counts::default();
        for slot in &self.slots {
            let tenth = slot.tenth.load(Ordering::Relaxed);
            if tenth == 0 {
                continue;
            }
            let age = newest.saturating_sub(tenth);
            if age < u64::from(PARTS) {
                sum.one = sum.one.saturating_add(slot.one.load(Ordering::Relaxed));
            }
            if age <= u64::from(PARTS) {
                sum.two = sum.two.saturating_add(slot.two.load(Ordering::Relaxed));
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
            let window = Window::new(ms(1000));
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
        let window = Window::new(ms(1000));
        let old = window.add(ms(50), BOTH);
        window.take_back_two(old);
        assert_eq!(window.sum(ms(50)), Counts { one: 1, two: 0 });
        window.add(ms(1150), BOTH);
        window.take_back_two(old);
        assert_eq!(window.sum(ms(1150)).two, 1);
    }

    #[test]
    fn a_thread_that_comes_late_with_an_old_clock_counts_in_the_newer_slot() {
        let window = Window::new(ms(1000));
        window.add(ms(1150), BOTH);
        window.add(ms(50), BOTH);
        assert_eq!(window.sum(ms(1150)), Counts { one: 2, two: 2 });
    }

    #[test]
    fn without_a_lock_it_is_counted_in_the_newest_slot_only_and_forgotten_like_all_else() {
        let window = Window::new(ms(1000));
        assert!(!window.add_if_current(ms(0), BOTH), "no slot was begun");
        window.add(ms(150), BOTH);
        assert!(window.add_if_current(ms(100), BOTH) && window.add_if_current(ms(199), BOTH));
        assert!(!window.add_if_current(ms(99), BOTH) && !window.add_if_current(ms(200), BOTH));
        assert_eq!(window.sum(ms(199)), Counts { one: 3, two: 3 });
        window.clear();
        assert_eq!((window.sum(ms(199)), window.add_if_current(ms(199), BOTH)), (Counts::default(), false));
    }

    #[test]
    fn the_longest_window_and_the_end_of_the_clock_are_counted_without_overflow() {
        let window = Window::new(Duration::MAX);
        window.add(Duration::MAX, BOTH);
        assert_eq!(window.sum(Duration::MAX), BOTH);
        let window = Window::new(Duration::from_nanos(1));
        window.add(Duration::MAX, BOTH);
        assert_eq!(window.sum(Duration::MAX), BOTH);
    }
}
