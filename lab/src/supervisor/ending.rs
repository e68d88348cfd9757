//! How a lab ends: everybody gone, and that is checked.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::durable::Durable;
use super::error::LabError;
use super::lab::{Lab, lock};
use super::member::Life;
use crate::history::HistoryEvent;
use crate::process::spawn::Child;
use crate::process::sys::{ProcessIdentity, Signal};

/// How long children may take to close their disks, and then to be killed.
const CLOSE_WITHIN: Duration = Duration::from_millis(1_500);
const KILL_WITHIN: Duration = Duration::from_millis(500);

/// What a lab says at its end. Every number in it was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Farewell {
    /// The run.
    pub run: String,
    /// How many processes were started, the supervisor aside.
    pub started: usize,
    /// How many of them are gone.
    pub gone: usize,
    /// Who is not.
    pub left: Vec<ProcessIdentity>,
    /// How much was removed.
    pub removed_bytes: Option<u64>,
    /// The directory, if it was kept.
    pub kept: Option<PathBuf>,
}

/// A run that has ended, with everything that a judge needs.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// What it says at its end.
    pub farewell: Farewell,
    /// What was durable.
    pub durable: Durable,
    /// Its whole history.
    pub history: Vec<u8>,
}

impl Farewell {
    /// Whether nothing is left that should not be.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.left.is_empty() && self.started == self.gone
    }
}

impl fmt::Display for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.started == 1 { "process" } else { "processes" };
        write!(f, "{} {plural} started, {} gone", self.started, self.gone)?;
        for left in &self.left {
            write!(f, "; {left} is STILL THERE")?;
        }
        match (self.removed_bytes, &self.kept) {
            (Some(bytes), _) => write!(f, "; {} MB removed", bytes.div_ceil(1_000_000)),
            (None, Some(path)) => write!(f, "; kept: {}", path.display()),
            (None, None) => Ok(()),
        }
    }
}

impl Lab {
    /// Ends every process, removes the directory, and checks both. It takes two seconds at most. Stopping again says
    /// the same about processes.
    ///
    /// # Errors
    ///
    /// If the directory cannot be removed. The processes are ended all the same.
    pub async fn stop(&self) -> Result<Farewell, LabError> {
        self.end_processes().await;
        self.bid_farewell()
    }

    /// As [`Lab::stop`], and reads what is durable in between, when nobody writes any more.
    ///
    /// # Errors
    ///
    /// [`LabError::Disk`] if a disk cannot be read. Nothing is left all the same.
    pub async fn stop_and_collect(&self) -> Result<Stopped, LabError> {
        self.end_processes().await;
        let read = self.collect().await;
        self.inner.recorder.note(HistoryEvent::RunEnded);
        let history = self.inner.path(|dir| dir.history()).and_then(|path| Ok(std::fs::read(path)?));
        let farewell = self.bid_farewell()?;
        Ok(Stopped { farewell, durable: read?, history: history? })
    }

    /// For whoever cannot wait: kills everybody and removes the directory. Nothing is checked.
    pub fn end_at_once(&self) {
        self.inner.end_at_once();
    }

    /// Ends every process but this one. Who can closes its disk; who is paused or does not go in time is killed.
    pub async fn end_processes(&self) {
        self.inner.ending.store(true, Ordering::SeqCst);
        let (children, watcher) = {
            let mut state = lock(&self.inner.state);
            for member in state.members.values_mut().filter(|member| member.life.is_alive()) {
                let paused = member.life == Life::Paused;
                member.life = Life::Killed;
                // Who is gone already cannot be killed.
                if paused {
                    drop(member.child.signal(Signal::Kill));
                }
            }
            let watcher = state.watcher.clone();
            let others = state.started.iter().filter(|child| child.identity() != watcher.child().identity());
            (others.cloned().collect::<Vec<_>>(), watcher)
        };
        children.iter().for_each(Child::ask_to_end);
        if !self.gone_within(&children, CLOSE_WITHIN).await {
            for child in children.iter().filter(|child| !child.has_ended()) {
                drop(child.signal(Signal::Kill));
            }
            self.gone_within(&children, KILL_WITHIN).await;
        }
        watcher.dismiss();
        let watcher = [watcher.child().clone()];
        if !self.gone_within(&watcher, KILL_WITHIN).await {
            drop(watcher[0].signal(Signal::Kill));
            self.gone_within(&watcher, KILL_WITHIN).await;
        }
    }

    async fn gone_within(&self, children: &[Child], within: Duration) -> bool {
        let gone = || children.iter().all(Child::has_ended);
        let waiting = async {
            while !gone() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(within, waiting).await.is_ok()
    }

    fn bid_farewell(&self) -> Result<Farewell, LabError> {
        let started = self.processes();
        let left: Vec<_> = started.iter().copied().filter(|process| process.is_running()).collect();
        self.inner.recorder.note(HistoryEvent::RunEnded);
        let path = self.directory();
        let removed = match lock(&self.inner.dir).take() {
            Some(dir) => dir.remove()?,
            None => None,
        };
        Ok(Farewell {
            run: self.inner.run.clone(),
            started: started.len(),
            gone: started.len() - left.len(),
            left,
            removed_bytes: removed,
            kept: if removed.is_none() { path } else { None },
        })
    }
}
