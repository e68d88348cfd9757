//! Bytes as damage to the log of a store: it opens or it does not, and forgets nothing that it does not report.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use counterfoil::testing::{SECTOR_BYTES, SimDisk, Survival, VirtualClock, WALL_AT_START};
use counterfoil::{Limits, Operation, OperationType, Reply, Store, Table, Tx};

use super::input::Input;

const ADD: OperationType = OperationType::new("add");
const RUNS: Table<u64, u64> = Table::new("runs");

/// Keys of the store before it is damaged. The last two stand in one batch.
const KEYS: u64 = 24;
const PROVEN: u64 = KEYS - 2;
const EDITS_MAX: usize = 5;

fn operation(key: u64) -> Operation {
    ADD.request("acme", "alice", format!("key-{key}")).expect("a valid slot").json(&key).expect("a valid request")
}

fn closure(key: u64) -> impl FnOnce(&Tx<'_>) -> Result<Reply, counterfoil::Failure> + Send {
    move |tx| {
        tx.table(&RUNS)?.insert_new(key, &key)?;
        // Some are so large that several segments are needed.
        Ok(if key % 7 == 3 { Reply::ok().bytes("a/b", vec![1; 90 * 1024]) } else { Reply::ok().json(&key)? })
    }
}

fn open(disk: &SimDisk) -> Result<Store, counterfoil::OpenError> {
    let mut limits = Limits::default();
    limits.fold_bytes = 4096;
    let builder = Store::builder().operation(&ADD).table(&RUNS).limits(limits).manual().identity_seed(1);
    builder.clock(VirtualClock::new(WALL_AT_START)).open_in(disk)
}

/// A store of three openings that was never closed in good order, after the loss of power.
fn whole() -> SimDisk {
    static WHOLE: OnceLock<SimDisk> = OnceLock::new();
    let whole = WHOLE.get_or_init(|| {
        let mut disk = SimDisk::new();
        for opening in 0..3 {
            let store = open(&disk).expect("it opens");
            let keys = opening * KEYS / 3..(opening + 1) * KEYS / 3;
            let (last, first): (Vec<_>, Vec<_>) = keys.partition(|key| *key >= PROVEN);
            for key in first {
                drop(store.execute(operation(key), closure(key)).expect("it is executed"));
            }
            let tickets: Vec<_> =
                last.iter().map(|key| store.submit(operation(*key), closure(*key)).expect("there is room")).collect();
            while store.step().expect("it is open") {}
            tickets.into_iter().for_each(|ticket| drop(ticket.wait().expect("it is executed")));
            disk = disk.crash(&Survival::Nothing);
        }
        disk
    });
    whole.kill()
}

/// Damages the log as the bytes say and opens what is left.
pub(crate) fn damage(input: &[u8]) {
    let mut input = Input(input);
    let disk = whole();
    for _ in 0..EDITS_MAX {
        if input.is_done() {
            break;
        }
        edit(&disk, &mut input);
    }
    let before = without_locks(&disk);
    let store = match open(&disk) {
        Ok(store) => store,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert!(before == without_locks(&disk), "a store that did not open was changed: {error}");
            return;
        }
    };
    let report = store.verify().expect("it can be checked");
    let present = |key: u64| store.receipt(operation(key).slot()).expect("receipts can be read").is_some();
    if report.is_clean() {
        // Whoever cuts the end off takes along what proves it; but nothing is missing in between.
        let end = (0..KEYS).take_while(|key| present(*key)).count() as u64;
        assert!(!(end..KEYS).any(present), "key {end} is forgotten, and nothing is reported");
    }
    for key in 0..KEYS {
        let there = present(key);
        let again = store.execute(operation(key), closure(key)).expect("it answers");
        assert_eq!(again.is_replayed(), there, "key {key}");
    }
    store.close().expect("it closes");
}

fn without_locks(disk: &SimDisk) -> BTreeMap<String, Vec<u8>> {
    let mut files = disk.files();
    files.retain(|name, _| name != "LOCK" && name != "HOLDER");
    files
}

/// One edit of one file of the log.
fn edit(disk: &SimDisk, input: &mut Input<'_>) {
    let names: Vec<String> = disk.files().into_keys().filter(|name| name.starts_with("log/")).collect();
    let Some(count) = Some(names.len()).filter(|count| *count > 0) else { return };
    let name = &names[usize::from(input.byte()) % count];
    let other = &names[usize::from(input.byte()) % count];
    let mut content = disk.read_file(name).expect("it was listed");
    let len = content.len().max(1);
    match input.small(8) {
        0 => {
            let (at, bytes) = (input.below(len), usize::from(input.byte() % 32));
            let bytes = input.bytes(bytes);
            content.resize(content.len().max(at + bytes.len()), 0);
            content[at..at + bytes.len()].copy_from_slice(&bytes);
            disk.write_file(name, content);
        }
        1 => drop(disk.truncate_file(name, input.below(len))),
        2 => {
            let sector = input.below(len.div_ceil(SECTOR_BYTES)) * SECTOR_BYTES;
            let end = (sector + SECTOR_BYTES).min(content.len());
            content[sector.min(end)..end].fill(0);
            disk.write_file(name, content);
        }
        3 => drop(disk.remove_file(name)),
        4 => {
            let from = disk.read_file(other).expect("it was listed");
            let (at, source) = (8 * input.below(len.div_ceil(8)), 8 * input.below(from.len().div_ceil(8).max(1)));
            let piece = &from[source.min(from.len())..];
            let piece = &piece[..input.below(4096).min(piece.len())];
            content.resize(content.len().max(at + piece.len()), 0);
            content[at..at + piece.len()].copy_from_slice(piece);
            disk.write_file(name, content);
        }
        5 => drop(disk.rename_file(name, other)),
        6 => {
            let at = input.below(len);
            if let Some(byte) = content.get_mut(at) {
                *byte ^= 1 << (input.byte() % 8);
            }
            disk.write_file(name, content);
        }
        _ => disk.write_file(name, input.rest()),
    }
}
