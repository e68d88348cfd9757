//! The gaps that GUARANTEES.md names, shown: what damage may do that nothing finds at open, and that it is no more.

use counterfoil::testing::SimDisk;
use counterfoil::{LogStart, OpenError, Store};

use crate::crash::harness::builder;
use crate::crash::model::Tables;
use crate::judge::{Verdict, judge};
use crate::specimen::{Specimen, closed, frames, killed};

/// The segment that was being written when the process died.
const LAST: &str = "log/0000000000000002-00000000.seg";
const STATE: &str = "state.redb";

fn flipped(specimen: &Specimen, file: &str, at: usize) -> SimDisk {
    let disk = specimen.disk();
    let mut content = disk.read_file(file).expect("the file is there");
    content[at] ^= 0x04;
    disk.write_file(file, content);
    disk
}

fn open_fully(specimen: &Specimen, disk: &SimDisk) -> Result<Store, OpenError> {
    builder(&specimen.process(disk).clock, specimen.limits.clone()).full_check().open_in(disk)
}

/// The last batch has two frames. Each byte of it may be lost with the batch, and no byte before it.
#[test]
fn damage_to_the_last_batch_before_an_unclean_stop_looks_like_a_torn_write_and_to_no_other() {
    let specimen = killed(1);
    let places = frames(&specimen.files()[LAST]);
    let (before, last) = places.split_at(places.len() - 2);
    for frame in last {
        for at in [frame.start, frame.start + 13, frame.start + 48, frame.end - 9] {
            let verdict = judge(&specimen, &flipped(&specimen, LAST, at), LAST, false);
            assert_eq!(verdict, Ok(Verdict::TornTail), "byte {at}");
        }
    }
    // What is left of it is asked for again and executed, once.
    let mut process = specimen.process(&flipped(&specimen, LAST, last[0].start));
    process.open().unwrap();
    assert_eq!(Specimen::entries_at(process.store().stats().position.sequence), specimen.proven);
    let told = process.told.clone();
    specimen.workload.retry_everything(&mut process, &told, specimen.proven).unwrap();
    process.store().assert_sound();
    for frame in before {
        let verdict = judge(&specimen, &flipped(&specimen, LAST, frame.start), LAST, false);
        assert_eq!(verdict, Ok(Verdict::Refused), "the frame at {}", frame.start);
    }
}

/// A mark proves all before it, so nothing of that can be damaged unseen; but a file that ends with one is complete.
#[test]
fn a_segment_cut_off_exactly_behind_a_mark_looks_like_one_that_was_closed_there_and_at_no_other_length() {
    let specimen = killed(1);
    let content = specimen.files()[LAST].clone();
    let marks: Vec<usize> =
        frames(&content).into_iter().filter(|frame| frame.len() == 48).map(|frame| frame.end).collect();
    assert_eq!(marks.len(), 3, "recovery's and those of two idle moments");
    for mark in marks {
        for len in [mark - 8, mark - 1, mark, mark + 1, mark + 8, mark + 47] {
            let disk = specimen.disk();
            disk.truncate_file(LAST, len);
            let expected = if len == mark { Verdict::CutBehindMark } else { Verdict::Refused };
            assert_eq!(judge(&specimen, &disk, LAST, len == mark), Ok(expected), "mark at {mark}, length {len}");
        }
    }
}

/// Keys and pointers in inner pages carry no checksum that a read checks. A flipped bit in them passes a plain open;
/// `verify` and the full check find it.
#[test]
fn damage_to_pages_of_the_state_file_passes_a_plain_open_and_is_found_by_verify_and_by_the_full_check() {
    let specimen = closed(1);
    let content = specimen.files()[STATE].clone();
    let key = b"order-0008";
    let places: Vec<usize> = (0..content.len() - key.len()).filter(|at| content[*at..].starts_with(key)).collect();
    let mut passed = 0;
    for at in places {
        let disk = flipped(&specimen, STATE, at + 6);
        assert!(open_fully(&specimen, &specimen.disk()).is_ok(), "the specimen itself is sound");
        match open_fully(&specimen, &disk) {
            // A page that is not in use, or the key in a value.
            Ok(store) => store.assert_sound(),
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. } | OpenError::State(_)), "{error}");
                let mut process = specimen.process(&disk);
                process.open().expect("a plain open trusts the pages");
                let report = process.store().verify().unwrap();
                assert!(report.problems.iter().any(|problem| problem.check == "state file"), "{report:?}");
                let tables = process.store().read(Tables::of);
                let written = specimen.workload.model.after(specimen.entries());
                assert!(tables.as_ref().is_ok_and(|found| found == written) || tables.is_err(), "{tables:?}");
                // The log has everything, whatever the state file lost.
                let mut log = process.store().log(LogStart::Oldest).unwrap();
                let entries = std::iter::from_fn(|| log.try_next().unwrap()).count();
                assert_eq!(entries, specimen.log.len());
                passed += 1;
            }
        }
    }
    assert!(passed > 0, "no page in use holds the key");
}
