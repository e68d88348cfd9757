//! Processes of the operating system: who one is, how it is started, paused and ended, and how nothing of a run is left
//! behind.
//!
//! In reading order: [`sys`] is the only file that asks the system about other processes; [`spawn`] starts children;
//! [`tether`] is the child's side of it; [`watcher`] ends children whose supervisor is gone; [`run_dir`] is where a run
//! keeps its files, and how other terminals find it.
//!
//! # How a child ends with its supervisor
//!
//! 1. It holds the read end of a pipe from the supervisor as its standard input, and exits when that ends.
//! 2. On Linux it asks the kernel at its start to be killed when its parent is gone, also while it is paused. On Windows
//!    a job object does the same.
//! 3. The watcher, which nobody pauses, kills what is left. It is what remains on systems that have neither.

pub mod clock;
pub mod join;
pub mod report;
pub mod run_dir;
pub mod spawn;
pub mod sys;
pub mod tether;
pub mod watcher;
