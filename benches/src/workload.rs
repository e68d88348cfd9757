//! One operation, the same for every peer: an order is made, and four rows say so.

use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use serde::Serialize;

/// Bytes of the order and of the reply's body.
pub(crate) const VALUE_BYTES: usize = 200;
/// Bytes of the rows that peers store beside them, about those of this store's own rows.
const RECEIPT_BYTES: usize = 112;
const REPLY_BYTES: usize = VALUE_BYTES + 32;
const EXPIRY_BYTES: usize = 48;

/// In which order keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Keys {
    /// Each is larger than the one before, as UUIDv7 are.
    Ordered,
    /// Anywhere, as UUIDv4 are.
    Random,
}

impl Keys {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Random => "random",
        }
    }
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// From 1, without gaps.
    pub(crate) number: u64,
    pub(crate) key: [u8; 16],
    pub(crate) order: [u8; VALUE_BYTES],
    pub(crate) reply: [u8; VALUE_BYTES],
}

impl Op {
    /// What the receipt is known by: a scope that all clients share, and the key.
    pub(crate) fn slot(&self) -> [u8; 32] {
        let mut slot = [0x5c; 32];
        slot[16..].copy_from_slice(&self.key);
        slot
    }

    pub(crate) fn receipt_row(&self) -> [u8; RECEIPT_BYTES] {
        let mut row = [0x11; RECEIPT_BYTES];
        row[..32].copy_from_slice(&self.order[..32]);
        row
    }

    pub(crate) fn reply_row(&self) -> [u8; REPLY_BYTES] {
        let mut row = [0x22; REPLY_BYTES];
        row[..VALUE_BYTES].copy_from_slice(&self.reply);
        row
    }

    /// Deadline and number: deadlines come in order whatever the keys do.
    pub(crate) fn expiry_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&(self.number / 1000).to_be_bytes());
        key[8..].copy_from_slice(&self.number.to_be_bytes());
        key
    }

    pub(crate) fn expiry_row(&self) -> [u8; EXPIRY_BYTES] {
        let mut row = [0x33; EXPIRY_BYTES];
        row[..32].copy_from_slice(&self.slot());
        row
    }
}

/// The operations of one peer: each peer gets the same ones in the same order, as far as it comes.
#[derive(Debug)]
pub(crate) struct Workload {
    keys: Keys,
    seed: u64,
    last: AtomicU64,
}

impl Workload {
    pub(crate) const fn new(keys: Keys, seed: u64) -> Self {
        Self { keys, seed, last: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> Op {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut random = SplitMix(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut key = [0; 16];
        random.fill(&mut key);
        if self.keys == Keys::Ordered {
            key[..8].copy_from_slice(&number.to_be_bytes());
        }
        let (mut order, mut reply) = ([0; VALUE_BYTES], [0; VALUE_BYTES]);
        random.fill(&mut order);
        random.fill(&mut reply);
        Op { number, key, order, reply }
    }

    /// How many operations were handed out.
    pub(crate) fn count(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }
}

/// The generator of Steele, Lea and Flood: small, and the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            chunk.copy_from_slice(&z.to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_keys_grow_and_random_ones_do_not() {
        let keys = |keys| {
            let workload = Workload::new(keys, 7);
            (0..100).map(|_| workload.next().key).collect::<Vec<_>>()
        };
        assert!(keys(Keys::Ordered).is_sorted());
        assert!(!keys(Keys::Random).is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        let [one, two, other] = [1, 1, 2].map(|seed| Workload::new(Keys::Random, seed).next());
        assert_eq!((one.key, one.order), (two.key, two.order));
        assert_ne!(one.key, other.key);
    }
}
