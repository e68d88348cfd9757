//! Years of steady load: the directory reaches a plateau, and a compaction brings it close to what is living.

use std::time::Duration;

use crate::support::*;
use counterfoil::testing::TestBed;
use counterfoil::{Limits, OperationType, Reply, Retention, StoreBuilder};

/// Replayed for ten minutes, refused for ten more: one window.
const WINDOW: Duration = Duration::from_secs(20 * 60);
const CHURN: OperationType = OperationType::new("churn")
    .retention(Retention { replay: Duration::from_secs(600), refuse: Duration::from_secs(600) });

/// Operations in a window.
const OPERATIONS: u32 = 2_000;
/// Bytes of each reply.
const REPLY_BYTES: usize = 1_000;

fn steady() -> StoreBuilder {
    let mut limits = Limits::default();
    limits.fold_bytes = 256 * 1024;
    limits.checkpoint_log_bytes = 512 * 1024;
    limits.keep_log_bytes = 0;
    limits.segment_bytes_max = 256 * 1024;
    builder().operation(&CHURN).limits(limits)
}

fn directory_bytes(bed: &TestBed) -> u64 {
    bed.disk().files().values().map(|bytes| bytes.len() as u64).sum()
}

/// What the living receipts and their replies take, and an eighth more: names, digests, deadlines and the pages' own.
fn live_bytes(bed: &TestBed) -> u64 {
    let usage = bed.store().view().usage().expect("readable");
    let per_receipt = 400;
    usage.iter().map(|tenant| tenant.bytes + tenant.receipts * per_receipt).sum()
}

fn one_window(bed: &TestBed, window: u32) {
    for number in 0..OPERATIONS {
        let reply = |_: &counterfoil::Tx<'_>| Ok(Reply::ok().bytes("text/plain", vec![b'x'; REPLY_BYTES]));
        let done = bed.store().execute(op(&CHURN, "acme", format!("{window}-{number}")), reply);
        drop(done.expect("it executes"));
        bed.clock().advance(WINDOW / OPERATIONS);
        if number.is_multiple_of(50) {
            settle(bed.store());
        }
    }
    settle(bed.store());
}

#[test]
fn churn_of_ten_windows_stays_within_three_times_the_live_bytes_and_compacts_to_one_and_a_half() {
    let bed = bed_of(steady);
    let mut sizes = Vec::new();
    for window in 0..10 {
        one_window(&bed, window);
        sizes.push((directory_bytes(&bed), live_bytes(&bed)));
    }
    // After the first windows there is no growth left.
    for (window, (directory, live)) in (1..).zip(&sizes).skip(2) {
        assert!(*directory <= 3 * live, "after window {window}: {directory} bytes for {live} living; all: {sizes:?}");
    }
    let (fifth, last) = (sizes[4].0, sizes[9].0);
    assert!(last <= fifth + fifth / 4, "it still grows: {sizes:?}");
    // The compaction is a checkpoint as well, after which old segments go.
    bed.store().compact(|_, _| ()).unwrap();
    settle(bed.store());
    let (directory, live) = (directory_bytes(&bed), live_bytes(&bed));
    assert!(2 * directory <= 3 * live, "{directory} bytes for {live} living");
    bed.store().assert_sound();
}
