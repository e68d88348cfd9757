//! One dependency, a population of callers, and virtual time: nothing here waits, and a seed decides everything.
//!
//! In reading order: [`scenario`] is what happens to the dependency, [`server`] the dependency, [`policy`] what callers do
//! about it, [`naive`] and [`world`] how they do it, [`trace`] what is counted.

pub(crate) mod naive;
pub(crate) mod policy;
pub(crate) mod scenario;
pub(crate) mod server;
pub(crate) mod trace;
pub(crate) mod world;

use std::time::Duration;

use policy::Policy;
use scenario::Scenario;
use trace::Trace;

/// How large the population is: requests a second that the dependency can serve when it is well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) capacity: u32,
}

/// Runs one policy through one scenario.
pub(crate) fn run(scenario: Scenario, policy: Policy, seed: u64, scale: Scale) -> Trace {
    world::World::new(scenario, policy, seed, scale).run()
}

/// Seconds as a duration.
pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
