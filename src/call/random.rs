//! Where chance comes from. It is handed in, so that a run can be repeated.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of numbers that are uniform over all of `u64`.
pub trait Randomness: Send + Sync + fmt::Debug + 'static {
    /// The next number.
    fn draw(&self) -> u64;
}

/// `fastrand`, seeded by the system for each thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Randomness for SystemRandom {
    fn draw(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// The same numbers for the same seed, for tests and simulations (splitmix64).
#[derive(Debug)]
pub struct SeededRandom(AtomicU64);

impl SeededRandom {
    /// A source whose whole sequence is decided by `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Randomness for SeededRandom {
    fn draw(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_whole_sequence() {
        let draw = |seed| {
            let random = SeededRandom::new(seed);
            [random.draw(), random.draw(), random.draw()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_ne!(SystemRandom.draw(), SystemRandom.draw());
    }
}
