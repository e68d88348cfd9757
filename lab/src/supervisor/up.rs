//! The server in front of a lab: what other terminals can ask.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};

use super::ending::Farewell;
use super::error::LabError;
use super::lab::Lab;
use crate::history::{HistoryEvent, Line};
use crate::process::clock;
use crate::rules::fault::{Direction, Fault, FaultRule, RuleId};
use crate::rules::ids::{Endpoint, Key, ReplicaId};
use crate::rules::message::MessageKind;
use crate::wire::replica::Hold;
use crate::wire::supervisor::{Description, Handler, serve};

/// How often the lamps are measured when nobody asks.
const MEASURE_EVERY: Duration = Duration::from_millis(1_000);

/// After a longer time without a measurement nobody can say what was up: the machine slept, or had no time.
const STARVED_MS: u64 = 15_000;

/// How long an open call may delay the end.
const DRAIN_WITHIN: Duration = Duration::from_millis(500);

/// What another terminal wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// `kill -9`.
    Kill(ReplicaId),
    /// `kill -STOP`.
    Pause(ReplicaId),
    /// `kill -CONT`.
    Resume(ReplicaId),
    /// A new process on the same disk.
    Restart(ReplicaId),
    /// An empty disk at the next start.
    Wipe(ReplicaId),
    /// No message between two ends.
    Cut(Endpoint, Endpoint),
    /// No fault any more.
    Heal,
    /// Every message from one end to another takes longer, and every answer back.
    Slow {
        /// Who asks.
        from: Endpoint,
        /// Who is asked.
        to: Endpoint,
        /// By how much.
        milliseconds: u64,
    },
    /// Lose the next replies to clients.
    DropReply {
        /// Of whom; of whoever answers, if nobody is named.
        of: Option<ReplicaId>,
        /// How many.
        count: u32,
    },
    /// Execute from now on (atomic-fenced).
    TakeOver(ReplicaId),
    /// Stop requests at a named point.
    Hold(Hold),
    /// Let go of them.
    Release(u64),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActReport {
    /// For people.
    pub says: String,
    /// The number of a fault or hold, if one was armed.
    pub number: Option<u64>,
}

impl Lab {
    /// Does what somebody wants.
    ///
    /// # Errors
    ///
    /// [`LabError`] with one clear line.
    pub async fn act(&self, act: Act) -> Result<ActReport, LabError> {
        let mut number = None;
        let says = match act {
            Act::Kill(id) => {
                self.kill(id).await?;
                self.fell("kill", Endpoint::Replica(id));
                format!(
                    "killed {id} with kill -9. Its disk is as it left it; `restart {id}` starts a new process on it."
                )
            }
            Act::Pause(id) => {
                self.pause(id).await?;
                self.fell("pause", Endpoint::Replica(id));
                format!("paused {id}. It is not dead: its process exists and its port accepts. Look at `status`.")
            }
            Act::Resume(id) => {
                self.resume(id).await?;
                format!("resumed {id}. It goes on where it was, and knows nothing of the time between.")
            }
            Act::Restart(id) => {
                self.restart(id).await?;
                format!("restarted {id}.")
            }
            Act::Wipe(id) => {
                self.wipe(id).await?;
                format!("wiped {id}. The old disk is evidence now; `restart {id}` starts on an empty one.")
            }
            Act::Cut(one, other) => {
                self.known(&[one, other])?;
                self.cut(one, other).await?;
                format!("cut the link between {one} and {other}, both ways. `heal` mends it.")
            }
            Act::Heal => match self.heal().await? {
                0 => "nothing was to be healed.".to_owned(),
                count => format!("healed: {count} fault rules are gone."),
            },
            Act::Slow { from, to, milliseconds } => {
                self.known(&[from, to])?;
                let what = Fault::Delay { milliseconds };
                let rule = FaultRule { from: Some(from), to: Some(to), ..FaultRule::everything(what) };
                number = Some(self.arm(rule).await?.0);
                format!("every message from {from} to {to} takes {milliseconds} ms longer, and so does its answer.")
            }
            Act::DropReply { of, count } => {
                let to = of.map(Endpoint::Replica);
                self.known(&to.into_iter().collect::<Vec<_>>())?;
                let rule = FaultRule {
                    from: Some(Endpoint::Client),
                    to,
                    direction: Some(Direction::Reply),
                    kind: Some(MessageKind::Request),
                    count: Some(count),
                    ..FaultRule::everything(Fault::Drop)
                };
                number = Some(self.arm(rule).await?.0);
                let whose = of.map_or_else(|| "whoever answers".to_owned(), |of| of.to_string());
                let replies =
                    if count == 1 { "the next reply".to_owned() } else { format!("the next {count} replies") };
                format!("{whose} will lose {replies} to a client: the work is done, the answer never arrives.")
            }
            Act::TakeOver(id) => {
                let reply = self.take_over(id).await?;
                format!(
                    "{id} asked the keeper for the right to execute: {}",
                    serde_json::to_string(&reply).unwrap_or_default()
                )
            }
            Act::Hold(hold) => {
                let barrier = hold.barrier;
                let id = self.hold(hold).await?;
                number = Some(id.0);
                format!("whoever comes to {barrier} stops there ({}); `release {}` lets go.", barrier.meaning(), id.0)
            }
            Act::Release(id) => {
                self.release(super::faults::HoldId(id)).await?;
                format!("released hold {id}.")
            }
        };
        Ok(ActReport { says, number })
    }

    /// Whether all these ends are of this lab.
    fn known(&self, ends: &[Endpoint]) -> Result<(), LabError> {
        for end in ends {
            if let Endpoint::Replica(id) = end
                && !self.members().contains(*id)
            {
                return Err(self.unknown(*id));
            }
        }
        Ok(())
    }

    /// Takes one fault away by its number.
    ///
    /// # Errors
    ///
    /// [`LabError::UnknownNumber`].
    pub async fn disarm_number(&self, number: u64) -> Result<u32, LabError> {
        self.disarm(RuleId(number)).await
    }
}

/// The server of a lab in the foreground.
#[derive(Debug, Clone)]
struct Front {
    lab: Lab,
    /// True when somebody wants the end.
    ending: watch::Sender<bool>,
    /// Only one ends it; the others hear the same.
    farewell: Arc<Mutex<Option<Farewell>>>,
}

impl Front {
    async fn end(&self) -> Result<Farewell, LabError> {
        let mut farewell = self.farewell.lock().await;
        if farewell.is_none() {
            *farewell = Some(self.lab.stop().await?);
        }
        self.ending.send_replace(true);
        farewell.clone().ok_or(LabError::Ending)
    }
}

fn json<T: Serialize>(result: Result<T, LabError>) -> Result<String, String> {
    let value = result.map_err(|error| error.to_string())?;
    serde_json::to_string(&value).map_err(|error| error.to_string())
}

impl Handler for Front {
    fn describe(&self) -> Description {
        self.lab.describe()
    }

    async fn status(&self) -> Result<String, String> {
        json(Ok(self.lab.measure().await))
    }

    async fn act(&self, act: String) -> Result<String, String> {
        let act: Act = serde_json::from_str(&act).map_err(|error| format!("not an act: {error}"))?;
        let lab = self.lab.clone();
        // It goes on when whoever asked goes away: nothing stays half done.
        let done = tokio::spawn(async move { lab.act(act).await }).await;
        json(done.map_err(|error| error.to_string())?)
    }

    async fn where_is(&self, key: Key) -> Result<String, String> {
        json(self.lab.where_is(&key).await)
    }

    async fn record(&self, events: Vec<String>) -> Result<(), String> {
        for event in &events {
            let line: Line = serde_json::from_str(event).map_err(|error| format!("no line of a history: {error}"))?;
            // A client says nothing about processes, faults or the run.
            let of_a_client = matches!(
                line.event,
                HistoryEvent::IntentStarted { .. }
                    | HistoryEvent::AttemptStarted { .. }
                    | HistoryEvent::AttemptEnded { .. }
                    | HistoryEvent::IntentEnded { .. }
                    | HistoryEvent::Predicted { .. }
            );
            if line.by != Endpoint::Client || !of_a_client {
                return Err("only what a client saw is recorded for it".to_owned());
            }
            self.lab.recorder().write(&line);
        }
        Ok(())
    }

    async fn collect(&self) -> Result<String, String> {
        json(self.lab.collect().await)
    }

    async fn down(&self) -> Result<String, String> {
        let front = self.clone();
        let done = tokio::spawn(async move { front.end().await }).await;
        json(done.map_err(|error| error.to_string())?)
    }
}

/// Serves a lab until another terminal ends it or `interrupted` ends; then the lab is stopped.
///
/// # Errors
///
/// If it cannot listen, or not everything could be removed.
pub async fn serve_until_ended(
    lab: Lab,
    listener: TcpListener,
    interrupted: impl Future<Output = ()>,
) -> Result<Farewell, LabError> {
    let (ending, mut ended) = watch::channel(false);
    let front = Front { lab: lab.clone(), ending, farewell: Arc::default() };
    let run = lab.run().to_owned();
    let server = tokio::spawn({
        let (front, mut ended) = (front.clone(), ended.clone());
        async move {
            let stop = async move { drop(ended.wait_for(|ended| *ended).await) };
            serve(listener, &run, front, stop).await
        }
    });
    let measuring = tokio::spawn({
        let lab = lab.clone();
        async move {
            let mut every = tokio::time::interval(MEASURE_EVERY);
            every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut last = clock::now();
            loop {
                every.tick().await;
                lab.measure().await;
                let gap_ms = clock::now().since(last);
                last = clock::now();
                if gap_ms > STARVED_MS {
                    lab.recorder().note(HistoryEvent::Starved { gap_ms });
                }
            }
        }
    });
    tokio::select! {
        () = interrupted => {}
        _ = ended.wait_for(|ended| *ended) => {}
    }
    measuring.abort();
    let farewell = front.end().await?;
    // Whoever asked for the end hears the answer; whoever keeps a call open does not delay it for long.
    drop(tokio::time::timeout(DRAIN_WITHIN, server).await);
    Ok(farewell)
}
