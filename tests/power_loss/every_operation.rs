//! Power is lost at every operation of the disk, and many things survive of what was not synced.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil::testing::{SimDisk, Survival};

use crate::crash::check::{Workload, for_each};
use crate::crash::harness::Process;
use crate::crash::script::script;

/// Every kind of survival, with other seeds and places at every crash point. All places and many seeds at each of them
/// take minutes: `COUNTERFOIL_CRASH_SEEDS=8 cargo test --all-features --test crash`.
fn some(cut: u64, unsynced: usize) -> Vec<Survival> {
    if let Some(seeds) = std::env::var("COUNTERFOIL_CRASH_SEEDS").ok().and_then(|seeds| seeds.parse().ok()) {
        return Survival::selection(unsynced, seeds);
    }
    let mut some = vec![Survival::Nothing, Survival::Everything];
    if unsynced > 1 {
        let place = (cut / 5) as usize % unsynced;
        some.push(match cut % 5 {
            0 => Survival::Prefix(place.max(1)),
            1 => Survival::AllButOne(place),
            2 => Survival::OnlyLast,
            3 => Survival::Torn(cut),
            _ => Survival::Random(cut),
        });
    }
    some
}

#[test]
fn a_workload_repeats_to_the_byte() {
    let run = || {
        let disk = SimDisk::new();
        disk.start_trace();
        Process::new(disk.clone()).run(&script()).unwrap();
        (disk.trace(), disk.image_hash())
    };
    let (first, second) = (run(), run());
    assert_eq!(first.0, second.0);
    assert_eq!(first.1, second.1);
}

#[test]
fn whatever_survives_a_power_loss_at_any_operation_what_was_answered_is_there_and_nothing_is_doubled() {
    let workload = Workload::new(script());
    let whole = SimDisk::new();
    Process::new(whole.clone()).run(&workload.script).unwrap();
    let operations = whole.operations();
    let (images, distinct) = (AtomicU64::new(0), AtomicU64::new(0));
    let seen = Mutex::new(HashSet::new());
    for_each(operations + 1, |cut| {
        let disk = SimDisk::new();
        disk.power_cut_at(cut);
        let mut process = Process::new(disk.clone());
        let ended = process.run(&workload.script);
        assert_eq!(ended.is_ok(), cut > operations, "{ended:?}");
        for survival in some(cut, disk.unsynced()) {
            let crashed = disk.crash(&survival);
            images.fetch_add(1, Ordering::Relaxed);
            let told = (process.told.receipts.len(), process.told.writes.len(), process.told.not_executed.len());
            if !seen.lock().unwrap().insert((crashed.image_hash(), told)) {
                continue;
            }
            distinct.fetch_add(1, Ordering::Relaxed);
            if let Err(fault) = workload.check(&crashed, &process.told) {
                panic!("power lost at operation {cut} of {operations}, {survival:?}: {fault}");
            }
        }
        // The same process was killed and not the power lost: the next one answers from the cache, and then it is.
        if let Err(error) = process.kill_and_open() {
            panic!("killed at operation {cut} of {operations}: {error}");
        }
        process.hear_replays(&workload.operations);
        if let Err(fault) = workload.check(&process.disk.crash(&Survival::Nothing), &process.told) {
            panic!("killed at operation {cut} of {operations}, answered, then power lost: {fault}");
        }
    });
    println!("{operations} crash points, {images:?} images, {distinct:?} of them distinct and checked");
}
