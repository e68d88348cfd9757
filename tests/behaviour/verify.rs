//! The checker finds what is damaged and changes nothing.

use std::path::{Path, PathBuf};

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival, TestBed};
use counterfoil::{Decision, Error, Limits, Reply, Store, Tx};

fn busy(bed: &TestBed) {
    let store = bed.store();
    for number in 0..60 {
        let name = format!("n{}", number % 7);
        match number % 4 {
            0 => drop(store.write(move |tx| Ok(tx.table(&TOTALS)?.put(name.as_str(), &number)?)).expect("written")),
            1 => drop(store.execute(op(&name), |_: &Tx<'_>| Ok(Decision::Reject(Reply::refused()))).expect("answered")),
            _ => drop(store.execute(op(&format!("k{number}")), add(&name)).expect("executed")),
        }
        store.step().expect("open");
    }
}

#[test]
fn a_sound_store_is_clean_and_checking_it_changes_nothing() {
    let mut bed = bed_of(|| {
        let mut limits = Limits::default();
        limits.fold_bytes = 3000;
        limits.checkpoint_log_bytes = 4000;
        builder().limits(limits)
    });
    for round in 0..3 {
        busy(&bed);
        settle(bed.store());
        let before = (bed.disk().operations(), bed.store().stats().position);
        let report = bed.store().verify().unwrap();
        assert!(report.is_clean(), "round {round}: {:#?}", report.problems);
        assert!(report.receipts > 30 && report.rows > 6 && report.segments > 0, "{report:?}");
        assert_eq!(report.entries, bed.store().stats().position.sequence, "round {round}");
        assert_eq!(before, (bed.disk().operations(), bed.store().stats().position), "round {round}: it wrote");
        bed.store().assert_sound();
        bed.crash_and_reopen(&Survival::Nothing).unwrap();
    }
}

#[test]
fn a_store_can_be_checked_while_it_is_at_work() {
    let store = threaded(&SimDisk::new());
    let writing = std::thread::spawn({
        let store = store.clone();
        move || (0..300).for_each(|n| drop(store.execute(op(&n.to_string()), add("n")).expect("executed")))
    });
    while !writing.is_finished() {
        let report = store.verify().unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
    }
    writing.join().unwrap();
    store.close().unwrap();
}

/// The rows that are checked are in the state file, which was closed with the store.
#[test]
fn a_store_that_is_closed_with_its_rows_in_the_state_file_is_closed_and_not_damaged() {
    let bed = bed_of(|| {
        let mut limits = Limits::default();
        limits.fold_bytes = 1;
        limits.cache_bytes = 64 * 1024;
        builder().limits(limits)
    });
    for number in 0..300 {
        drop(bed.store().execute(op(&format!("{number:05}")), add("n")).unwrap());
        settle(bed.store());
    }
    let other = bed.store().clone();
    bed.store().clone().close().unwrap();
    let answer = other.verify();
    assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");
}

#[test]
fn a_closed_store_cannot_be_checked_and_says_so() {
    let manual = bed();
    for store in [manual.store().clone(), threaded(&SimDisk::new())] {
        let other = store.clone();
        store.close().unwrap();
        let (send, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(other.verify()).expect("the test waits"));
        let answer = answer.recv_timeout(std::time::Duration::from_secs(20)).expect("it never ends");
        assert!(matches!(answer, Err(Error::Closed)), "{answer:?}");
    }
}

/// A closed store in a real directory whose files a test may damage.
struct OnDisk {
    directory: tempfile::TempDir,
}

impl OnDisk {
    fn new() -> Self {
        let this = Self { directory: tempfile::tempdir().expect("a directory") };
        for opening in 0..3 {
            let store = this.open().expect("it opens");
            for number in 0..5 {
                let key = format!("{opening}-{number}");
                let body = format!("body of {key}");
                drop(store.execute(op(&key), move |_: &Tx<'_>| Ok(Reply::ok().json(&body)?)).expect("executed"));
            }
            store.close().expect("it closes");
        }
        this
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn open(&self) -> Result<Store, counterfoil::OpenError> {
        builder().manual().open(self.path())
    }

    fn segments(&self) -> Vec<PathBuf> {
        let mut files: Vec<_> = std::fs::read_dir(self.path().join("log"))
            .expect("listed")
            .map(|entry| entry.expect("read").path())
            .collect();
        files.sort();
        files
    }
}

fn flip(file: &Path, at: usize) {
    let mut bytes = std::fs::read(file).expect("read");
    bytes[at] ^= 0x10;
    std::fs::write(file, bytes).expect("written");
}

fn find(file: &Path, text: &[u8]) -> usize {
    let bytes = std::fs::read(file).expect("read");
    bytes.windows(text.len()).position(|window| window == text).expect("the text is there")
}

#[test]
fn a_flipped_bit_in_an_old_segment_is_reported_with_its_place_and_nothing_is_deleted() {
    let this = OnDisk::new();
    let first = this.segments()[0].clone();
    flip(&first, find(&first, b"body of 0-3"));
    let damaged = std::fs::read(&first).unwrap();
    let store = this.open().unwrap();
    let report = store.verify().unwrap();
    let name = first.file_name().unwrap().to_str().unwrap();
    assert!(problems(&report).contains(name), "{}", problems(&report));
    // All others are intact and answered, the damaged one from its receipt.
    for opening in 0..3 {
        for number in 0..5 {
            assert!(store.execute(op(&format!("{opening}-{number}")), never).unwrap().is_replayed());
        }
    }
    store.close().unwrap();
    assert_eq!(std::fs::read(&first).unwrap(), damaged, "the evidence stays");
}

#[test]
fn a_reply_that_was_damaged_in_the_state_file_is_an_error_and_never_an_answer() {
    let this = OnDisk::new();
    let state = this.path().join("state.redb");
    let bytes = std::fs::read(&state).unwrap();
    let text = b"body of 1-2";
    let places: Vec<_> = (0..bytes.len() - text.len()).filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| flip(&state, at));
    let store = this.open().expect("values are checked when they are read");
    let report = store.verify().unwrap();
    assert!(problems(&report).contains("replies"), "{}", problems(&report));
    let error = store.execute(op("1-2"), never).unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error:?}");
    assert!(matches!(store.receipt(op("1-2").slot()), Err(Error::Corrupt(_))));
    for number in [0, 1, 3, 4] {
        assert!(store.execute(op(&format!("1-{number}")), never).is_ok_and(|receipt| receipt.is_replayed()));
    }
    assert!(!store.execute(op("new"), add("n")).unwrap().is_replayed(), "the others go on");
}
