//! The fuzz targets as a plain test: every input of the committed corpus, and so many seeded mutations of each. The
//! fuzzer itself is in tests/fuzz; what it finds becomes a file of the corpus.

#![cfg(feature = "testing")]

#[path = "support/fuzz/mod.rs"]
mod fuzz;
#[path = "support/crash/scale.rs"]
mod scale;

use std::path::Path;

use counterfoil::testing::fuzz as layers;

type Target = fn(&[u8]);

/// Mutations of each input at full size: many of what costs microseconds, fewer of what opens stores.
const TARGETS: [(&str, Target, u64); 6] = [
    ("frame", layers::frame, 100_000),
    ("record", layers::record, 5_000),
    ("canonical", layers::canonical, 50_000),
    ("segments", layers::segments, 3_000),
    ("damage", fuzz::damage::damage, 300),
    ("operations", fuzz::operations::operations, 50),
];

/// Inputs grow by mutation, but not without end.
const INPUT_BYTES_MAX: usize = 4096;

/// All together, so that a corpus stays something to read.
const CORPUS_BYTES_MAX: u64 = 200 * 1024;

fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("readable").path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("readable")))
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no corpus for {target}");
    inputs
}

/// splitmix64
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// A few changes: flipped bits, other bytes, pieces removed, repeated, taken from another input, or added.
    fn mutate(&mut self, input: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(7) {
                0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, self.byte()][self.below(6)],
                3 => bytes.truncate(at),
                4 => {
                    let end = (at + 1 + self.below(16)).min(bytes.len());
                    bytes.drain(at.min(end)..end);
                }
                5 => {
                    let from = self.below(other.len());
                    let piece = &other[from..(from + 1 + self.below(48)).min(other.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
                _ => bytes.insert(at, self.byte()),
            }
        }
        bytes.truncate(INPUT_BYTES_MAX);
        bytes
    }
}

/// Says which input it was, in a form that goes into a file of the corpus.
fn run(target: Target, name: &str, what: &str, input: &[u8]) {
    if std::panic::catch_unwind(|| target(input)).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("{name}, {what}: {hex}");
    }
}

#[test]
fn every_input_of_the_corpus_and_its_mutations_hold_in_every_target() {
    for (name, target, mutations) in TARGETS {
        let inputs = corpus(name);
        let mutations = scale::scaled(mutations);
        let mut rng = Rng(1);
        for (file, input) in &inputs {
            run(target, name, file, input);
            for number in 0..mutations {
                let other = &inputs[rng.below(inputs.len())].1;
                let mutant = rng.mutate(input, other);
                run(target, name, &format!("mutation {number} of {file}"), &mutant);
            }
        }
        println!("{name}: {} inputs, {} mutations, 0 violations", inputs.len(), inputs.len() as u64 * mutations);
    }
}

#[test]
fn the_corpus_is_small() {
    let inputs = TARGETS.iter().flat_map(|(name, ..)| corpus(name));
    let bytes: u64 = inputs.map(|(_, input)| input.len() as u64).sum();
    assert!(bytes <= CORPUS_BYTES_MAX, "{bytes} bytes of corpus");
}
