//! Power is lost again while the store is being opened, and once more after that; processes die and come back.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil::testing::{SimDisk, Survival};

use crate::crash::check::{Workload, for_each};
use crate::crash::harness::{Process, Told};
use crate::crash::script::script;

/// Every so many operations of the workload. A prime, so that it meets operations of all kinds.
const EVERY: u64 = 83;

/// The workload until a power loss: the dead disk and what was told.
fn interrupted(workload: &Workload, cut: u64) -> (SimDisk, Told) {
    let disk = SimDisk::new();
    disk.power_cut_at(cut);
    let mut process = Process::new(disk.clone());
    drop(process.run(&workload.script));
    (disk, process.told)
}

fn operations(workload: &Workload) -> u64 {
    let disk = SimDisk::new();
    Process::new(disk.clone()).run(&workload.script).expect("nothing fails");
    disk.operations()
}

/// Opens until the power goes.
fn open_until(disk: &SimDisk, cut: u64) {
    disk.power_cut_at(cut);
    let mut process = Process::new(disk.clone());
    drop(process.open());
    process.abandon();
}

#[test]
fn a_second_and_a_third_power_loss_during_recovery_lose_nothing() {
    let workload = Workload::new(script());
    let seen = Mutex::new(HashSet::new());
    let (points, distinct) = (AtomicU64::new(0), AtomicU64::new(0));
    let check = |disk: &SimDisk, told: &Told, context: &dyn Fn() -> String| {
        if seen.lock().unwrap().insert((disk.image_hash(), told.receipts.len(), told.writes.len())) {
            distinct.fetch_add(1, Ordering::Relaxed);
            workload.check(disk, told).unwrap_or_else(|fault| panic!("{}: {fault}", context()));
        }
    };
    for_each(operations(&workload) / EVERY, |number| {
        let first = number * EVERY;
        let (dead, told) = interrupted(&workload, first);
        for survival in [Survival::Everything, Survival::Random(first)] {
            let whole = dead.crash(&survival);
            Process::new(whole.clone()).open().unwrap();
            for second in 1..=whole.operations() {
                points.fetch_add(1, Ordering::Relaxed);
                let disk = dead.crash(&survival);
                open_until(&disk, second);
                for again in [Survival::Nothing, Survival::Everything, Survival::Random(second)] {
                    let context = || format!("cut at {first}, {survival:?}, again at {second}, {again:?}");
                    check(&disk.crash(&again), &told, &context);
                    if second % 7 == 0 {
                        let third = disk.crash(&again);
                        open_until(&third, 1 + second / 2);
                        let context = || format!("{}, and at {}", context(), 1 + second / 2);
                        check(&third.crash(&Survival::Random(first + second)), &told, &context);
                    }
                }
            }
        }
    });
    println!("{points:?} second crash points, {distinct:?} distinct images checked");
}

#[test]
fn what_a_reopened_store_answers_from_the_cache_survives_a_later_power_loss() {
    let workload = Workload::new(script());
    let operations = operations(&workload);
    for_each(operations / 7, |number| {
        let cut = number * 7;
        let disk = SimDisk::new();
        disk.power_cut_at(cut);
        let mut process = Process::new(disk);
        drop(process.run(&workload.script));
        let answered = process.told.receipts.len();
        process.kill_and_open().unwrap_or_else(|error| panic!("killed at {cut}: {error}"));
        process.hear_replays(&workload.operations);
        assert!(process.told.receipts.len() >= answered, "killed at {cut}");
        let crashed = process.disk.crash(&Survival::Nothing);
        if let Err(fault) = workload.check(&crashed, &process.told) {
            panic!("killed at {cut} of {operations}, reopened, answered, power lost: {fault}");
        }
    });
}

#[test]
fn openings_without_work_change_no_position() {
    let workload = Workload::new(script());
    let mut process = Process::new(SimDisk::new());
    process.run(&workload.script).unwrap();
    for _ in 0..3 {
        process.open().unwrap();
        workload.check_state(process.store(), &process.told).unwrap();
        process.close().unwrap();
        process.open().unwrap();
        process.kill_and_open().unwrap();
        workload.check_state(process.store(), &process.told).unwrap();
        process.close().unwrap();
    }
}

#[test]
fn a_creation_that_was_interrupted_anywhere_is_finished_by_the_next_open() {
    let workload = Workload::new(Vec::new());
    let whole = SimDisk::new();
    Process::new(whole.clone()).open().unwrap();
    for cut in 1..=whole.operations() {
        let disk = SimDisk::new();
        open_until(&disk, cut);
        let chances = (0..4).map(Survival::Random).chain((0..2).map(Survival::Torn));
        for survival in chances.chain([Survival::Nothing, Survival::Everything, Survival::OnlyLast]) {
            let crashed = disk.crash(&survival);
            // The next creation is interrupted as well.
            open_until(&crashed, 1 + cut / 2);
            for disk in [disk.crash(&survival), crashed.crash(&survival)] {
                let checked = workload.check(&disk, &Told::default());
                checked.unwrap_or_else(|fault| panic!("interrupted at {cut}, {survival:?}: {fault}"));
            }
        }
    }
}
