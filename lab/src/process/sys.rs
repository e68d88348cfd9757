//! What the systems have to be asked for: who a process is, and the signals.
//!
//! A pid alone is no identity: it is given out again. Here a process is its pid **and** the time at which it started,
//! and no signal is sent before both were compared.

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// A process that was running once: its pid and when it started, in units of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The number that the system gave it, and gives out again later.
    pub pid: u32,
    /// Linux: clock ticks since boot. Elsewhere: seconds since 1970.
    pub started: u64,
}

impl fmt::Display for ProcessIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pid {}", self.pid)
    }
}

/// A state that somebody asked a process to be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ended at once; it is not asked. SIGKILL.
    Kill,
    /// Not scheduled any more, whatever it was doing. SIGSTOP.
    Pause,
    /// Scheduled again. SIGCONT.
    Resume,
}

impl ProcessIdentity {
    /// This process.
    ///
    /// # Errors
    ///
    /// If the system does not say when it started.
    pub fn own() -> io::Result<Self> {
        let pid = std::process::id();
        Self::of(pid)
            .ok_or_else(|| io::Error::other(format!("the system does not know process {pid}, which is this one")))
    }

    /// The process that has this pid now, if it is running. A dead child that was not waited for does not run.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        system::started(pid).map(|started| Self { pid, started })
    }

    /// Whether this very process, and not a later one with its pid, is still there.
    #[must_use]
    pub fn is_running(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends the signal, if this very process is still there.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if it is gone, also if another process has its pid: that one is left alone.
    /// [`io::ErrorKind::Unsupported`] where the system cannot do it.
    pub fn signal(self, signal: Signal) -> io::Result<()> {
        if !self.is_running() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{self} is gone")));
        }
        system::signal(self.pid, signal)
    }
}

/// Asks the system to end this process when its parent is gone, however that ends and also while this one is paused.
///
/// Where the system offers nothing of the kind, the pipe and the watcher remain.
///
/// # Errors
///
/// If the system refuses, or the parent is gone already.
pub fn die_with_parent(parent: ProcessIdentity) -> io::Result<()> {
    system::arm_death_with_parent()?;
    // It may have died before the line above: then no signal will come.
    if parent.is_running() { Ok(()) } else { Err(io::Error::other(format!("the parent, {parent}, is gone"))) }
}

/// Does what has to be done once in a supervisor before its first child: on Windows, a job object that ends with it.
///
/// # Errors
///
/// If the system refuses.
pub fn become_parent() -> io::Result<()> {
    system::become_parent()
}

/// Whether a pause is made by the system. If not, the child is asked to block its own threads; see `tether`.
#[must_use]
pub const fn pauses_by_system() -> bool {
    cfg!(unix)
}

#[cfg(unix)]
mod system {
    use std::io;

    use super::Signal;

    pub(super) fn signal(pid: u32, signal: Signal) -> io::Result<()> {
        let raw = i32::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let pid = rustix::process::Pid::from_raw(raw).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let signal = match signal {
            Signal::Kill => rustix::process::Signal::KILL,
            Signal::Pause => rustix::process::Signal::STOP,
            Signal::Resume => rustix::process::Signal::CONT,
        };
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    #[cfg(target_os = "linux")]
    pub(super) fn arm_death_with_parent() -> io::Result<()> {
        Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn arm_death_with_parent() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn become_parent() -> io::Result<()> {
        Ok(())
    }

    /// Field 22 of /proc/PID/stat. The name of the program, field 2, may hold blanks and brackets: its end is the last
    /// bracket.
    #[cfg(target_os = "linux")]
    pub(super) fn started(pid: u32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        if matches!(state, "Z" | "X" | "x") {
            return None;
        }
        fields.nth(18)?.parse().ok()
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) use super::portable::started;
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::sync::OnceLock;

    use super::Signal;

    /// Kept open until this process ends: then the system closes it and ends every process in the job.
    static JOB: OnceLock<win32job::Job> = OnceLock::new();

    pub(super) fn signal(pid: u32, signal: Signal) -> io::Result<()> {
        match signal {
            Signal::Kill => super::portable::kill(pid),
            Signal::Pause | Signal::Resume => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    pub(super) fn arm_death_with_parent() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn become_parent() -> io::Result<()> {
        if JOB.get().is_some() {
            return Ok(());
        }
        let mut limits = win32job::ExtendedLimitInfo::new();
        limits.limit_kill_on_job_close();
        let job = win32job::Job::create_with_limit_info(&limits).map_err(io::Error::other)?;
        job.assign_current_process().map_err(io::Error::other)?;
        // Somebody else was quicker: one job is enough, and closing this one would end this very process.
        if let Err(second) = JOB.set(job) {
            let _kept_open = second.into_handle();
        }
        Ok(())
    }

    pub(super) use super::portable::started;
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};

    fn with_process<T>(pid: u32, read: impl FnOnce(&sysinfo::Process) -> Option<T>) -> Option<T> {
        let pid = Pid::from_u32(pid);
        let mut system = System::new();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, ProcessRefreshKind::nothing());
        system.process(pid).and_then(read)
    }

    pub(super) fn started(pid: u32) -> Option<u64> {
        with_process(pid, |process| {
            let runs = !matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
            runs.then(|| process.start_time())
        })
    }

    #[cfg(windows)]
    pub(super) fn kill(pid: u32) -> std::io::Result<()> {
        match with_process(pid, |process| Some(process.kill())) {
            Some(true) => Ok(()),
            Some(false) => Err(std::io::Error::other(format!("process {pid} could not be ended"))),
            None => Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_running_and_a_later_one_with_its_pid_would_not_be_it() {
        let own = ProcessIdentity::own().unwrap();
        assert!(own.is_running());
        let earlier = ProcessIdentity { started: own.started - 1, ..own };
        assert!(!earlier.is_running());
        // A signal that would end this test, were it sent.
        assert_eq!(earlier.signal(Signal::Kill).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_pid_that_nobody_has_is_nobody() {
        assert_eq!(ProcessIdentity::of(u32::MAX - 1), None);
    }
}
