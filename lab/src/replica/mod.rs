//! A replica: a process with one event loop around the pure decision function, and a counterfoil store as its disk.
//!
//! In reading order: [`disk`] is what is durable; [`drive`] is the event loop; `link` is every way out of the process, with
//! the faults on it; `serve` is every way in; [`start`] brings it up.

pub mod disk;
pub mod drive;
mod link;
mod serve;
pub mod start;
