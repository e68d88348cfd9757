//! The hunt itself: a method that could not find anything would prove nothing.

use crate::crash::hunt::{Effort, hunt};
use crate::crash::scenarios;

#[test]
fn a_disk_that_lies_about_syncs_is_found_out_and_the_violation_repeats() {
    let scenario = scenarios::lying_disk();
    let found = hunt(&scenario, Effort::percent(100)).expect_err("what was answered was never durable");
    assert!(found.path.contains("SyncLies"), "{found}");
    let again = hunt(&scenario, Effort::only(found.point)).expect_err("a crash point repeats");
    assert_eq!((again.path, again.fault), (found.path, found.fault));
}
