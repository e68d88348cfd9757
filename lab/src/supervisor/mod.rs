//! The supervisor: it starts the processes of a run, does to them what scripts and people want, measures them, and
//! leaves nothing behind.
//!
//! [`lab::Lab`] is the handle for everything: the lessons and the tests use it in their own process, and `up` puts a
//! server in front of it for other terminals. In reading order: [`lab`] (what can be done), `children` (how they are started
//! and heard), [`member`] (one child),
//! [`acts`] (what can be done to it), [`faults`] (rules and holds inside the replicas), [`lamps`] (what is measured),
//! [`durable`] (what is on the disks), [`ending`] (how it ends), [`up`] (the server in front).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use counterfoil_lab::rules::{barrier::Barrier, ids::ReplicaId, knobs::{Knobs, Placement}};
//! use counterfoil_lab::supervisor::lab::{Lab, LabOptions};
//! use counterfoil_lab::wire::replica::Hold;
//!
//! let lab = Lab::start(LabOptions::new(3, Knobs::placed(Placement::Local))?).await?;
//! // Kill -9 the executor when the effect is on its disk and the record is not.
//! let hold = lab.hold(Hold { barrier: Barrier::AfterEffect, key: None, attempt: None }).await?;
//! // .. a client sends from another task, to lab.replica(ReplicaId::FIRST) ..
//! let reached = lab.wait_reached(hold, std::time::Duration::from_secs(5)).await?;
//! lab.kill(reached.by).await?;
//! lab.release(hold).await?;
//! lab.restart(reached.by).await?;
//! let stopped = lab.stop_and_collect().await?;
//! let report = counterfoil_lab::judge::check(stopped.history.as_slice(), &stopped.durable.into())?;
//! println!("{}; {}", report.verdict, stopped.farewell);
//! # Ok(())
//! # }
//! ```

pub mod acts;
mod children;
pub mod durable;
pub mod ending;
pub mod error;
pub mod faults;
pub mod lab;
pub mod lamps;
pub mod member;
pub mod recorder;
pub mod up;
