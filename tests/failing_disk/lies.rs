//! A disk that reports syncs it did not make. No store can do anything about that (GUARANTEES N2), but these suites must
//! notice: if they did not, a store that forgets to sync would pass them as well.

use std::sync::Mutex;

use counterfoil::testing::{CallKind, Fault, FaultError, Survival};

use crate::crash::check::for_each;
use crate::crash::faults::Start;
use crate::crash::scale::percent;
use crate::table::Table;

/// The Nth sync of files with this name lies, and maybe all later ones; then power is lost. How many of `tried` lies
/// were noticed, and the first thing that gave one away.
fn noticed(start: &Start, on: CallKind, name: &str, permanent: bool) -> (u64, u64, u64, Option<String>) {
    let fault = |nth| Fault { on, nth, name_contains: Some(name.to_owned()), error: FaultError::SyncLies, permanent };
    let calls = start.calls_of(fault(u64::MAX));
    let found = Mutex::new((0, 0, None));
    for_each(calls, |nth| {
        // Below the full size the first one that is noticed is enough.
        if percent() < 100 && found.lock().expect("no trial panics").1 > 0 {
            return;
        }
        let survivals = [Survival::Nothing, Survival::Random(nth), Survival::Random(nth + 1000)];
        let given_away = survivals.iter().find_map(|survival| start.lie(fault(nth), survival));
        let (tried, noticed, first) = &mut *found.lock().expect("no trial panics");
        *tried += 1;
        *noticed += u64::from(given_away.is_some());
        if first.is_none() {
            *first = given_away.map(|fault| format!("lie {nth}: {}", fault.lines().next().unwrap_or_default()));
        }
    });
    let (tried, noticed, first) = found.into_inner().expect("no trial panics");
    (calls, tried, noticed, first)
}

#[test]
fn a_disk_that_lies_about_its_syncs_is_seen_by_the_checker_wherever_the_lie_is() {
    let mut table = Table::new(&["sync of", "lies", "calls", "tried", "noticed"]);
    let mut unnoticed = Vec::new();
    let mut first_signs = String::new();
    for (on, name) in
        [(CallKind::Sync, "log/"), (CallKind::Sync, "state.redb"), (CallKind::SyncDir, "log"), (CallKind::SyncDir, "")]
    {
        for permanent in [false, true] {
            let start = Start::creation();
            let (calls, tried, noticed, first) = noticed(&start, on, name, permanent);
            let what = match (on, name) {
                (CallKind::Sync, name) => name.to_owned(),
                (_, "") => "any directory".to_owned(),
                (_, name) => format!("the directory {name}"),
            };
            let lasting = if permanent { "for ever" } else { "once" };
            table.row(&[&what, lasting], &[calls, tried, noticed]);
            first_signs += &format!("\n{what}, {lasting}: {}", first.unwrap_or_default());
            if noticed == 0 {
                unnoticed.push(format!("{what}, {lasting}"));
            }
        }
    }
    println!("\nSyncs that report success and do nothing, then a loss of power\n\n{table}\nGiven away by{first_signs}");
    assert!(unnoticed.is_empty(), "no lie was noticed about: {unnoticed:?}");
}
