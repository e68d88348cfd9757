//! The history of a client in another process: lines travel to the supervisor while the client works.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::send::Sink;
use crate::history::Line;
use crate::wire::CallError;
use crate::wire::supervisor::SupervisorClient;

/// How many lines go at once.
const LINES_MAX: usize = 2_000;
const WITHIN: Duration = Duration::from_secs(20);

/// Where the client puts its lines.
#[derive(Debug, Clone)]
pub struct RemoteSink {
    lines: mpsc::UnboundedSender<Line>,
}

/// Who carries them.
#[derive(Debug)]
pub struct Carrier {
    task: JoinHandle<Result<(), CallError>>,
}

impl Sink for RemoteSink {
    fn tell(&self, line: Line) {
        // If the carrier has given up, `Carrier::arrive` says why.
        drop(self.lines.send(line));
    }
}

impl RemoteSink {
    /// To a supervisor.
    #[must_use]
    pub fn new(supervisor: SupervisorClient) -> (Self, Carrier) {
        let (lines, waiting) = mpsc::unbounded_channel();
        (Self { lines }, Carrier { task: tokio::spawn(carry(supervisor, waiting)) })
    }
}

impl Carrier {
    /// Waits until every line has arrived. All sinks must be dropped before.
    ///
    /// # Errors
    ///
    /// [`CallError`] if some did not: then the history is short, and the run cannot be judged.
    pub async fn arrive(self) -> Result<(), CallError> {
        match self.task.await {
            Ok(carried) => carried,
            Err(error) => Err(CallError::nobody(error.to_string())),
        }
    }
}

async fn carry(supervisor: SupervisorClient, mut waiting: mpsc::UnboundedReceiver<Line>) -> Result<(), CallError> {
    let mut lines = Vec::new();
    while waiting.recv_many(&mut lines, LINES_MAX).await > 0 {
        let texts = lines.drain(..).map(|line| serde_json::to_string(&line)).collect::<Result<Vec<_>, _>>();
        let texts = texts.map_err(|error| CallError::nobody(error.to_string()))?;
        supervisor.record(texts, WITHIN).await?;
    }
    Ok(())
}
