//! Golden bytes of every record of format 1, one file for each shape, in `tests/fixtures/records`.
//!
//! A file that was released stays for ever. Only a shape that is new may write one:
//! `COUNTERFOIL_WRITE_FIXTURES=1 cargo test --lib record_tests` writes those that are missing, and with the value
//! `overwrite` all of them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::record::{Body, Record, WriteRecord};

mod numbers;
mod shapes;

use numbers::Numbers;
use shapes::{WALL_MS, shapes};

/// Where the number of the body stands: behind `wall_ms`, a mark byte and eight more.
const BODY_AT: usize = 9;

fn record(body: Body) -> Record {
    Record { wall_ms: WALL_MS, body }
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records").join(format!("{name}.bin"))
}

/// Writes fixtures if, and only if, the environment asks for it.
fn write_fixtures_if_asked() {
    let Ok(how) = std::env::var("COUNTERFOIL_WRITE_FIXTURES") else { return };
    for (name, body) in shapes() {
        let path = fixture(name);
        if how == "overwrite" || !path.exists() {
            std::fs::write(path, record(body).to_bytes().expect("encoded")).expect("written");
        }
    }
}

#[test]
fn every_record_is_written_and_read_as_format_1_has_it() {
    write_fixtures_if_asked();
    for (name, body) in shapes() {
        let golden = std::fs::read(fixture(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let record = record(body);
        assert_eq!(Record::from_bytes(&golden).expect(name), record, "{name} reads back");
        assert_eq!(record.to_bytes().expect(name), golden, "{name} has changed: format 1 has no room for that");
    }
}

#[test]
fn every_fixture_is_of_a_shape_that_is_still_read() {
    write_fixtures_if_asked();
    let known: BTreeSet<PathBuf> = shapes().into_iter().map(|(name, _)| fixture(name)).collect();
    let directory = fixture("x");
    let directory = directory.parent().expect("it is in a directory");
    for entry in std::fs::read_dir(directory).expect("the fixtures are there") {
        let path = entry.expect("readable").path();
        assert!(known.contains(&path), "{} is read by no test", path.display());
    }
}

#[test]
fn a_record_that_is_cut_or_extended_is_an_error() {
    for (name, body) in shapes() {
        let bytes = record(body).to_bytes().expect("encoded");
        for len in 0..bytes.len() {
            assert!(Record::from_bytes(&bytes[..len]).is_err(), "{name} cut to {len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Record::from_bytes(&longer).is_err(), "{name} with a byte more");
    }
}

#[test]
fn a_record_of_an_unknown_number_is_an_error() {
    let mut bytes = record(Body::Write(WriteRecord { changes: Vec::new() })).to_bytes().expect("encoded");
    bytes[BODY_AT] = 250;
    assert!(Record::from_bytes(&bytes).is_err());
}

#[test]
fn no_flipped_bit_makes_decoding_panic_or_ask_for_the_moon() {
    for (_, body) in shapes() {
        let bytes = record(body).to_bytes().expect("encoded");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            drop(Record::from_bytes(&flipped));
        }
    }
}

/// The lines of the document's table of numbers: an enum, a number, a variant.
fn listed_numbers(document: &str) -> BTreeSet<String> {
    let number_line = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ");
        let (of, number, variant) = (cells.next()?, cells.next()?, cells.next()?);
        number.parse::<u8>().ok().map(|number| format!("| `{of} | {number} | {variant} |"))
    };
    document.lines().filter_map(number_line).collect()
}

#[test]
fn the_numbers_of_variants_are_those_that_the_format_document_lists() {
    let mut numbers = Numbers::default();
    shapes().iter().for_each(|(_, body)| numbers.note_body(body));
    assert_eq!(numbers.0, listed_numbers(include_str!("../../docs/format.md")));
}
