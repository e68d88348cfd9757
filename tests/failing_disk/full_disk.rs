//! A disk with room for so much and no more, at every size that the workload passes through.

use std::sync::Mutex;

use crate::crash::check::for_each;
use crate::crash::faults::Start;
use crate::crash::faults::plan::{Figures, Trouble};
use crate::crash::scale::percent;
use crate::table::Table;

/// Sizes in between differ in no call: what grows grows by pages or by whole segments.
const PAGE: u64 = 4096;

#[test]
fn at_whatever_size_the_disk_is_full_nothing_answered_is_lost_and_work_goes_on_when_there_is_room() {
    let mut table = Table::new(&[
        "begins at",
        "sizes",
        "answered",
        "not executed",
        "unknown",
        "open",
        "close",
        "stopped",
        "violations",
    ]);
    let (mut violations, mut refused) = (Vec::new(), 0);
    for start in [Start::creation(), Start::recovery()] {
        let (from, to) = start.bytes();
        let all = (to - from).div_ceil(PAGE);
        let every = (all / (all * percent().min(100) / 100).max(12)).max(1);
        let seen = Mutex::new((Figures::default(), Vec::new()));
        for_each(all / every, |number| {
            let tried = start.try_one(Trouble::Full(from + (number * every - 1) * PAGE));
            let (figures, violations) = &mut *seen.lock().unwrap();
            match tried {
                Ok(one) => figures.add(one),
                Err(violation) => violations.push(violation),
            }
        });
        let (figures, found) = seen.into_inner().unwrap();
        let Figures { tried, answered, not_executed, unknown, open, close, stopped, .. } = figures;
        let counts = [tried, answered, not_executed, unknown, open, close, stopped, found.len() as u64];
        table.row(&[start.name], &counts);
        assert!(open > 0 || !found.is_empty(), "no opening found the disk full\n{table}");
        refused += not_executed;
        violations.extend(found);
    }
    assert!(refused > 0 || !violations.is_empty(), "no operation found the disk full\n{table}");
    println!("\nRoom for so many bytes\n\n{table}");
    assert!(violations.is_empty(), "{}", violations.iter().map(|found| format!("\n{found}")).collect::<String>());
}
