//! A fast hash of short names, where chance or a bound keeps collisions from doing harm.

use std::hash::{BuildHasher, Hasher};

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashers that begin with a seed of their own, so that nobody outside knows which names collide.
#[derive(Clone, Debug)]
pub(crate) struct Folding(u64);

impl Default for Folding {
    fn default() -> Self {
        Self(fastrand::u64(..))
    }
}

impl BuildHasher for Folding {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Folds eight bytes at a time by one multiplication.
#[derive(Debug)]
pub(crate) struct Folded(u64);

/// The hash under no seed: the same in every process.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut folded = Folded(FACTOR);
    folded.write(bytes);
    folded.finish()
}

impl Folded {
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    const fn fold(&mut self, bits: u64) {
        let product = ((self.0 ^ bits) as u128) * (FACTOR as u128);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.fold(u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
        }
        let rest = chunks.remainder().iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte));
        // With the length, so that a name and the same name after zeros are told apart.
        self.fold(rest ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, byte: u8) {
        self.fold(byte.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_that_differ_in_one_place_rarely_collide() {
        let names: Vec<String> = (0..10_000).map(|number| format!("operation {number}")).collect();
        let whole: HashSet<u64> = names.iter().map(|name| hash(name.as_bytes())).collect();
        assert_eq!(whole.len(), names.len());
        let low: HashSet<u64> = names.iter().map(|name| hash(name.as_bytes()) & 0xfff).collect();
        assert!(low.len() > 3_500, "{} of 4096 buckets are used", low.len());
    }

    #[test]
    fn each_table_has_a_seed_of_its_own() {
        assert_ne!(Folding::default().hash_one("a"), Folding::default().hash_one("a"));
        assert_ne!(hash(b""), hash(b"\0"));
    }
}
