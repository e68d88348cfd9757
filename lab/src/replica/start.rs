//! From nothing to serving.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::disk::Disk;
use super::drive::{Drive, Inbox, Input};
use super::link::Link;
use super::serve::Server;
use crate::process::clock;
use crate::process::report::ReportLine;
use crate::process::sys::ProcessIdentity;
use crate::process::tether::{self, Gate};
use crate::rules::ids::ReplicaId;
use crate::rules::knobs::Knobs;
use crate::rules::majority::Members;
use crate::rules::record::Standing;
use crate::rules::replica::{Patience, Replica};
use crate::wire;

/// The hidden command that runs a replica. It takes one argument: [`ReplicaArguments`] as JSON.
pub const COMMAND: &str = "replica";

/// What a replica has to know.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct ReplicaArguments {
    /// The run.
    pub run: String,
    /// Who starts it.
    pub parent: ProcessIdentity,
    /// Which member it is.
    pub id: ReplicaId,
    /// How many are configured.
    pub members: Members,
    /// The switches.
    pub knobs: Knobs,
    /// How long it waits for others, in milliseconds: for an answer, and between attempts to catch up.
    pub patience_ms: (u64, u64),
    /// Its disk.
    pub disk: PathBuf,
    /// What a new disk is.
    pub standing_if_new: Standing,
    /// Whether each message is told to the history.
    pub traces: bool,
}

static GATE: std::sync::OnceLock<Gate> = std::sync::OnceLock::new();

/// Runs a replica until its supervisor ends it or is gone.
///
/// # Errors
///
/// If it cannot start. What went wrong is for its standard error.
pub fn run(arguments: ReplicaArguments) -> Result<(), Box<dyn Error>> {
    let gate = GATE.get_or_init(Gate::default);
    let (inbox, inputs) = Inbox::new();
    let disk = Disk::open(&arguments.disk, arguments.standing_if_new, clock::now())?;
    let (closing, waking) = (disk.clone(), inbox.clone());
    tether::tie(
        arguments.parent,
        gate,
        move || waking.send(Input::Wake),
        move || {
            let closed = closing.close().inspect_err(|error| eprintln!("closing the disk: {error}"));
            std::process::exit(i32::from(closed.is_err()));
        },
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(64).build()?;
    runtime.block_on(serve(arguments, disk, inbox, inputs, gate))
}

async fn serve(
    arguments: ReplicaArguments,
    disk: Disk,
    inbox: Inbox,
    inputs: tokio::sync::mpsc::UnboundedReceiver<Input>,
    gate: &'static Gate,
) -> Result<(), Box<dyn Error>> {
    let ReplicaArguments { run, id, members, knobs, patience_ms: (answer_ms, catch_up_ms), traces, .. } = arguments;
    let patience = Patience { answer_ms, catch_up_ms };
    let link = Arc::new(Link::new(id, run.clone(), traces));
    let replica = Replica::new(id, members, knobs, patience);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let ready = ReportLine::Ready {
        run: run.clone(),
        identity: ProcessIdentity::own()?,
        port: listener.local_addr()?.port(),
        disk: Some(disk.identity()),
    };
    let drive =
        Drive { replica, disk: disk.clone(), link: Arc::clone(&link), patience, inbox: inbox.clone(), inputs, gate };
    tokio::spawn(drive.run());
    let pinging = Arc::clone(&link);
    let others = members.others(id).collect();
    tokio::spawn(async move { pinging.ping_for_ever(others).await });
    // The listener accepts from here on; who connects before the server runs waits a moment.
    ready.tell();
    wire::replica::serve(listener, &run, Server { link, inbox, disk }, std::future::pending()).await?;
    Ok(())
}
