//! One child of the lab: a replica or the provider.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::process::report::ReportLine;
use crate::process::spawn::{Child, ChildReport};
use crate::rules::fault::RuleId;
use crate::rules::record::{DiskIdentity, Standing};
use crate::wire::replica::ReplicaClient;

use super::error::LabError;

/// How long a child may take to come up. It takes a tenth of it on a loaded machine.
pub(super) const START_WITHIN: Duration = Duration::from_secs(20);

/// What the supervisor did to a process last. What the process itself is like, the lamps say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// Started, and not stopped since.
    Running,
    /// Paused.
    Paused,
    /// Ended by the lab.
    Killed,
    /// Ended by itself, or by somebody else.
    Crashed,
}

impl Life {
    /// Whether there is a process.
    #[must_use]
    pub const fn is_alive(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "PAUSED",
            Self::Killed => "KILLED",
            Self::Crashed => "CRASHED",
        }
    }
}

/// A replica's place: the process that has it now, or had it last.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) child: Child,
    pub(super) client: ReplicaClient,
    pub(super) port: u16,
    pub(super) disk: DiskIdentity,
    pub(super) life: Life,
    /// What a disk is that is made at the next start.
    pub(super) standing_if_new: Standing,
    /// Rules and holds that this process knows of.
    pub(super) rules: BTreeSet<RuleId>,
    pub(super) holds: BTreeSet<u64>,
    /// How many disks of it were wiped.
    pub(super) wiped: u32,
}

/// What a child said when it was ready.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) port: u16,
    pub(super) disk: Option<DiskIdentity>,
}

/// The two halves of waiting for a child: what its reports go to, and what comes out.
pub(super) struct Coming {
    sender: Option<oneshot::Sender<Ready>>,
    run: String,
}

impl Coming {
    pub(super) fn new(run: &str) -> (Self, oneshot::Receiver<Ready>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender: Some(sender), run: run.to_owned() }, receiver)
    }

    /// Looks at a report; gives it back unless it was the word that the child is ready.
    pub(super) fn look(&mut self, report: ChildReport) -> Option<Said> {
        match report {
            ChildReport::Line(line) => match ReportLine::read(&line) {
                Ok(ReportLine::Ready { run, port, disk, .. }) if run == self.run => {
                    if let Some(sender) = self.sender.take() {
                        // Whoever waited may have given up.
                        drop(sender.send(Ready { port, disk }));
                    }
                    None
                }
                Ok(said) => Some(Said::Line(said)),
                Err(_) => None,
            },
            ChildReport::Ended(status) => {
                self.sender = None;
                Some(Said::Ended(status.map_or_else(|| "an unknown status".to_owned(), |status| status.to_string())))
            }
        }
    }
}

/// What a child said beside that it was ready.
pub(super) enum Said {
    /// A report.
    Line(ReportLine),
    /// It is gone.
    Ended(String),
}

/// Waits until a child is ready.
pub(super) async fn ready(child: &Child, coming: oneshot::Receiver<Ready>) -> Result<Ready, LabError> {
    let failed =
        |why: &str| LabError::NotStarted { name: child.name().to_owned(), why: format!("{why}{}", child.last_words()) };
    match tokio::time::timeout(START_WITHIN, coming).await {
        Ok(Ok(ready)) => Ok(ready),
        Ok(Err(_)) => Err(failed("it ended at once")),
        Err(_) => Err(failed("it said nothing in time")),
    }
}
