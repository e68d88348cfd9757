//! What a child tells its supervisor: lines of JSON on its standard output.
//!
//! A pipe keeps what was written when the child is killed, and keeps the order. So what a replica reported before a
//! `kill -9` arrives, and nothing after it does.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::clock;
use super::sys::ProcessIdentity;
use crate::history::HistoryEvent;
use crate::rules::barrier::At;
use crate::rules::fault::RuleId;
use crate::rules::ids::{Millis, OpId};
use crate::rules::record::DiskIdentity;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportLine {
    /// The process serves.
    Ready {
        /// The run that it belongs to.
        run: String,
        /// Who it is.
        identity: ProcessIdentity,
        /// Where it listens, on 127.0.0.1.
        port: u16,
        /// The disk, of a replica.
        disk: Option<DiskIdentity>,
    },
    /// A request stands at a barrier and stays there.
    Reached {
        /// Which hold keeps it.
        hold: u64,
        /// Which operation of this replica.
        op: OpId,
        /// Where, with what.
        at: At,
        /// When.
        time: Millis,
    },
    /// A fault has hit a message.
    Hit {
        /// Which one.
        rule: RuleId,
        /// When.
        time: Millis,
    },
    /// Something for the history, as it happened.
    Event {
        /// What.
        event: HistoryEvent,
        /// When.
        time: Millis,
    },
}

impl ReportLine {
    /// Tells the supervisor what has just happened, for the history.
    pub fn tell_event(event: HistoryEvent) {
        Self::Event { event, time: clock::now() }.tell();
    }

    /// Tells the supervisor. If there is nobody to tell, this process is about to end anyway.
    pub fn tell(&self) {
        if let Ok(mut line) = serde_json::to_vec(self) {
            line.push(b'\n');
            let mut output = io::stdout().lock();
            drop(output.write_all(&line).and_then(|()| output.flush()));
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    ///
    /// If it is none: somebody else writes to that pipe.
    pub fn read(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }
}
