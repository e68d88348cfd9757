//! A whole store of format 1, written once and kept in `tests/fixtures/store-v1`: every later version opens it and finds
//! what it held. `cargo test --all-features --test golden_store -- --ignored` writes it, if it is not there.
#![cfg(feature = "testing")]

use std::path::{Path, PathBuf};

use counterfoil::testing::{VirtualClock, WALL_AT_START};
use counterfoil::{Decision, EntryKind, LogStart, OperationType, Reply, Store, StoreBuilder, Table, Tx};

const ADD: OperationType = OperationType::new("add");
const TOTALS: Table<String, u64> = Table::new("totals");
const NOTES: Table<(u32, String), Vec<u8>> = Table::raw("notes");
const PAIRS: Table<u64, (u8, String)> = Table::new("pairs").bincode();
const FILES: [&str; 2] = ["IDENTITY", "state.redb"];

fn builder() -> StoreBuilder {
    Store::builder().operation(&ADD).table(&TOTALS).table(&NOTES).table(&PAIRS).identity_seed(1)
}

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1")
}

fn operation(key: &str) -> counterfoil::Operation {
    ADD.request("acme", "alice", key).expect("a slot").json(&("add", key)).expect("a request")
}

fn run(key: &'static str) -> impl FnOnce(&Tx<'_>) -> Result<Decision, counterfoil::Failure> + Send + 'static {
    move |tx| {
        if key == "no" {
            return Ok(Decision::Reject(Reply::refused().json("not today")?));
        }
        tx.table(&TOTALS)?.put(key, &7)?;
        tx.table(&NOTES)?.put((1, key.to_owned()), &vec![0, 1, 255])?;
        tx.table(&PAIRS)?.put(9, &(3, key.to_owned()))?;
        Ok(Reply::created().resource_id(key).header("etag", "v1")?.json(&[key])?.into())
    }
}

#[test]
#[ignore = "writes a fixture"]
fn write_the_store() {
    assert!(!fixture().join("IDENTITY").exists(), "a store that was released stays as it is");
    let clock = VirtualClock::new(WALL_AT_START);
    let store = builder().clock(clock).manual().open(fixture()).expect("it opens");
    for key in ["one", "two", "no"] {
        drop(store.execute(operation(key), run(key)).expect("it runs"));
    }
    store.close().expect("it closes");
    for left in ["LOCK", "HOLDER"] {
        std::fs::remove_file(fixture().join(left)).expect("it was there");
    }
}

fn copy(to: &Path) {
    std::fs::create_dir(to.join("log")).expect("a directory");
    for file in FILES {
        std::fs::copy(fixture().join(file), to.join(file)).expect(file);
    }
    for segment in std::fs::read_dir(fixture().join("log")).expect("the log") {
        let segment = segment.expect("a segment");
        std::fs::copy(segment.path(), to.join("log").join(segment.file_name())).expect("a segment");
    }
}

#[test]
fn a_store_of_format_1_is_opened_and_everything_in_it_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    copy(directory.path());
    let clock = VirtualClock::new(WALL_AT_START);
    let store = builder().clock(clock).manual().must_exist().open(directory.path()).expect("it opens");
    store.assert_sound();
    for key in ["one", "two", "no"] {
        let receipt = store.execute(operation(key), |_| -> Result<Reply, _> { panic!("ran again") }).expect(key);
        assert!(receipt.is_replayed() && receipt.position().epoch == 1);
        assert_eq!(receipt.is_rejected(), key == "no");
        if key != "no" {
            assert_eq!((receipt.reply().status(), receipt.reply().resource()), (201, Some(key)));
            assert_eq!(receipt.reply().body_json::<[String; 1]>().expect("a body"), [key]);
            assert_eq!(receipt.reply().headers().collect::<Vec<_>>(), [("etag", "v1")]);
        }
    }
    store.read(|view| {
        assert_eq!(view.table(&TOTALS).unwrap().get("two").unwrap(), Some(7));
        assert_eq!(view.table(&NOTES).unwrap().get((1, "one".to_owned())).unwrap(), Some(vec![0, 1, 255]));
        assert_eq!(view.table(&PAIRS).unwrap().get(9).unwrap(), Some((3, "two".to_owned())));
    });
    let mut log = store.log(LogStart::Oldest).expect("the log");
    let mut operations = 0;
    while let Some(entry) = log.try_next().expect("an entry") {
        operations += u32::from(matches!(entry.kind, EntryKind::Operation { .. }));
    }
    assert_eq!(operations, 3);
    drop(store.execute(operation("new"), run("new")).expect("it takes new work"));
    store.close().expect("it closes");
}
