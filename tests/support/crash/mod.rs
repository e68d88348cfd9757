//! What the crash and fault suites share: a workload on a simulated disk under the log and the state file together, what
//! the outside world was told, and what must hold whenever the store is opened again.

pub(crate) mod chance;
pub(crate) mod check;
pub(crate) mod damage;
pub(crate) mod doubt;
pub(crate) mod faults;
pub(crate) mod harness;
pub(crate) mod hunt;
pub(crate) mod lives;
pub(crate) mod model;
pub(crate) mod names;
pub(crate) mod ordeal;
pub(crate) mod phase;
pub(crate) mod scale;
pub(crate) mod scenarios;
pub(crate) mod script;
pub(crate) mod threads;
