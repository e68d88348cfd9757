//! `up`: a lab in the foreground.

use std::process::ExitCode;

use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Failed, Global, Outcome, say, say_json};
use crate::process::run_dir::Runs;
use crate::rules::ids::ReplicaId;
use crate::rules::knobs::{
    EffectPlace, Identity, Knobs, Mismatch, NoMajority, Order, Placement, ProviderIdentity, Switch,
};
use crate::rules::majority::Members;
use crate::supervisor::ending::Farewell;
use crate::supervisor::lab::{Lab, LabOptions};
use crate::supervisor::up::serve_until_ended;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  counterfoil-lab up\n  counterfoil-lab up --replicas 5 --placement majority-check-then-act\n  \
                        counterfoil-lab up --placement atomic --owner b"
)]
pub(super) struct UpArguments {
    /// How many replicas, from 1 to 9
    #[arg(long, short = 'n', default_value_t = 3)]
    replicas: u8,
    /// The seed of what is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the supervisor listens on 127.0.0.1; 0 is any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Leave the files of the run at the end
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    knobs: KnobArguments,
}

/// The switches, as the command line has them.
#[derive(Debug, Args)]
struct KnobArguments {
    /// Where the record of an operation lives: none, memory, local, majority-read-one, majority-check-then-act, atomic,
    /// atomic-fenced, provider
    #[arg(long, default_value_t = Knobs::default().placement)]
    placement: Placement,
    /// Which of two writes comes first: effect-first, record-first
    #[arg(long, default_value_t = Knobs::default().order)]
    order: Order,
    /// What clients take as identity: per-intent, per-attempt
    #[arg(long, default_value_t = Knobs::default().identity)]
    identity: Identity,
    /// What a known key with another amount gets: ignore, old-answer, refuse
    #[arg(long, default_value_t = Knobs::default().mismatch)]
    mismatch: Mismatch,
    /// What is answered when the record did not reach a majority: failed, unknown
    #[arg(long, default_value_t = Knobs::default().no_majority)]
    no_majority: NoMajority,
    /// Whether disks are counted, as opposed to names: off, on
    #[arg(long, default_value_t = Knobs::default().incarnation)]
    incarnation: Switch,
    /// Whether a replica copies what it lacks when a cut is healed: off, on
    #[arg(long, default_value_t = Knobs::default().catch_up_on_heal)]
    catch_up_on_heal: Switch,
    /// What the provider recognises a repeated call by: none, key, look-up
    #[arg(long, default_value_t = Knobs::default().provider)]
    provider: ProviderIdentity,
    /// Where the effect happens: inside, outside
    #[arg(long, default_value_t = Knobs::default().effect)]
    effect: EffectPlace,
    /// The owner of atomic, or the keeper of atomic-fenced
    #[arg(long, default_value_t = Knobs::default().owner)]
    owner: ReplicaId,
}

impl KnobArguments {
    const fn knobs(&self) -> Knobs {
        Knobs {
            placement: self.placement,
            order: self.order,
            identity: self.identity,
            mismatch: self.mismatch,
            no_majority: self.no_majority,
            incarnation: self.incarnation,
            catch_up_on_heal: self.catch_up_on_heal,
            provider: self.provider,
            effect: self.effect,
            owner: self.owner,
        }
    }
}

pub(super) async fn run(global: Global, arguments: UpArguments) -> Outcome {
    // From here on Ctrl-C does not end this process at once.
    let mut interrupts = interrupts()?;
    let members = Members::new(arguments.replicas)?;
    let knobs = arguments.knobs.knobs();
    if !members.contains(knobs.owner) {
        return Err(Failed::new(format!(
            "the owner, {}, is not one of the {} replicas",
            knobs.owner, arguments.replicas
        )));
    }
    let listener = TcpListener::bind(("127.0.0.1", arguments.port)).await.map_err(|error| {
        Failed::new(format!(
            "port {} of 127.0.0.1 cannot be had: {error}; leave --port out for a free one",
            arguments.port
        ))
    })?;
    let options = LabOptions {
        runs: Runs::new(global.data.clone()),
        seed: arguments.seed,
        keep: arguments.keep,
        ..LabOptions::new(arguments.replicas, knobs)?
    };
    let lab = Lab::prepare(options)?;
    let ending = lab.clone();
    let mut second = interrupts.clone();
    tokio::spawn(async move {
        if second.wait_for(|count| *count >= 2).await.is_ok() {
            ending.end_at_once();
            eprintln!("counterfoil-lab: ended at once");
            std::process::exit(130);
        }
    });
    let brought_up = tokio::select! {
        brought_up = lab.bring_up() => brought_up,
        _ = interrupts.wait_for(|count| *count >= 1) => {
            let farewell = lab.stop().await?;
            show_farewell(&global, &farewell)?;
            return Ok(ExitCode::from(130));
        }
    };
    if let Err(error) = brought_up {
        let farewell = lab.stop().await?;
        return Err(Failed::new(format!("{error}\n{farewell}")));
    }
    lab.publish(listener.local_addr()?.port())?;
    if global.json {
        say_json(&lab.describe())?;
    } else {
        first_screen(&global, &lab, listener.local_addr()?.port()).await;
    }
    let interrupted = async move { drop(interrupts.wait_for(|count| *count >= 1).await) };
    let farewell = serve_until_ended(lab, listener, interrupted).await?;
    show_farewell(&global, &farewell)?;
    Ok(if farewell.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show_farewell(global: &Global, farewell: &Farewell) -> Result<(), Failed> {
    if global.json {
        return say_json(farewell);
    }
    say(farewell.to_string());
    Ok(())
}

async fn first_screen(global: &Global, lab: &Lab, port: u16) {
    let status = lab.measure().await;
    let described = lab.describe();
    say(format!(
        "The reliability lab, run {}. A teaching model, not a way to make the store distributed.\n",
        described.run
    ));
    for line in &status.replicas {
        let disk = line.measured.disk.as_ref().map_or_else(String::new, |disk| disk.incarnation.to_string());
        say(format!("  {:<10}  pid {:<8} 127.0.0.1:{:<6} disk {disk}", line.measured.replica, line.pid, line.port));
    }
    say(format!("  {:<10}  pid {:<8} 127.0.0.1:{port}", "supervisor", described.pid));
    say(format!("  files in {}", described.directory));
    if lab.swept().runs > 0 {
        let megabytes = lab.swept().bytes.div_ceil(1_000_000);
        say(format!("  swept: {} directories of labs that are dead, {megabytes} MB", lab.swept().runs));
    }
    say("");
    super::status::show(&status);
    for line in warnings(lab.members()) {
        say(line);
    }
    let knobs: Vec<String> = described.knobs.positions().iter().map(|(knob, at)| format!("{knob} {at}")).collect();
    say(format!("switches: {}\n", knobs.join(", ")));
    let data = global.data.as_ref().map_or_else(String::new, |data| format!(" --data {}", data.display()));
    say("Type next, in another terminal:");
    for next in ["status", "send --amount 50", "kill a", "send --amount 50", "restart a", "check"] {
        say(format!("  counterfoil-lab{data} {next}"));
    }
    say(format!("Every process answers grpcurl: grpcurl -plaintext 127.0.0.1:{port} list"));
    say("Ctrl-C here ends everything and leaves nothing.");
}

/// What a number of replicas is worth knowing about.
fn warnings(members: Members) -> Vec<String> {
    let (configured, majority) = (members.configured(), members.majority());
    match configured {
        1 => vec!["note: one replica is its own majority, and one failure leaves none.".to_owned()],
        even if even % 2 == 0 => vec![format!(
            "note: {even} is even. {} of {even} is not a majority ({majority} are), so it tolerates no more failures than {} would.",
            even / 2,
            even - 1
        )],
        _ => Vec::new(),
    }
}

/// Counts Ctrl-C and the other polite ways to ask a process to end.
fn interrupts() -> Result<watch::Receiver<u32>, Failed> {
    let (sender, receiver) = watch::channel(0);
    let count = move || {
        let sender = sender.clone();
        move || sender.send_modify(|count| *count += 1)
    };
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let (mut stream, interrupted) = (signal(kind)?, count());
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    interrupted();
                }
            });
        }
    }
    #[cfg(windows)]
    {
        let (mut stream, interrupted) = (tokio::signal::windows::ctrl_c()?, count());
        tokio::spawn(async move {
            while stream.recv().await.is_some() {
                interrupted();
            }
        });
    }
    Ok(receiver)
}
