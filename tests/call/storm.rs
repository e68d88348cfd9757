//! The simulation of `examples/storm`, asserted. It drives the same caller as production on a virtual clock.

#[expect(dead_code, reason = "the example shows more than is asserted")]
#[path = "../../examples/storm/simulation/mod.rs"]
mod simulation;

use simulation::policy::Policy;
use simulation::scenario::Scenario;
use simulation::{Scale, run, seconds};

/// Smaller than what the example runs, so that eighty runs of each policy take seconds in a debug build.
const SCALE: Scale = Scale { capacity: 200 };

fn each(check: impl Fn(Scenario, u64)) {
    for scenario in Scenario::ALL {
        (1..=20).for_each(|seed| check(scenario, seed));
    }
}

#[test]
fn retries_without_a_budget_keep_a_dependency_down_that_is_healthy_again() {
    each(|scenario, seed| {
        for policy in [Policy::ThreeLayers, Policy::Jittered] {
            let trace = run(scenario, policy, seed, SCALE);
            let (before, late) = (trace.goodput_before(), trace.goodput_late());
            assert!(before > 0.95, "{scenario:?} {policy:?} {seed}: {before}");
            assert!(late < before / 2.0, "{scenario:?} {policy:?} {seed}: {late} of {before}");
        }
    });
}

#[test]
fn with_a_budget_and_a_deadline_that_travels_it_is_back_within_ten_seconds() {
    each(|scenario, seed| {
        let trace = run(scenario, Policy::Counterfoil, seed, SCALE);
        let recovered = trace.recovered_after();
        assert!(recovered.is_some_and(|after| after <= seconds(10)), "{scenario:?} {seed}: {recovered:?}");
        let (before, late) = (trace.goodput_before(), trace.goodput_late());
        assert!(before > 0.95 && late > before * 0.95, "{scenario:?} {seed}: {late} of {before}");
        assert!(trace.amplification() < 1.15, "{scenario:?} {seed}: {}", trace.amplification());
    });
}

#[test]
fn a_seed_decides_the_whole_run() {
    let slices = |seed| format!("{:?}", run(Scenario::SlowDown, Policy::Counterfoil, seed, SCALE));
    assert_eq!(slices(3), slices(3));
    assert_ne!(slices(3), slices(4));
}
