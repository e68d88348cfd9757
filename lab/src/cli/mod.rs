//! The command line.
//!
//! One file for each group of commands. Whatever is wrong is one clear line on the standard error, and nothing is half
//! done. Exit codes: 0 as wanted, 1 not, 2 for a command line that makes no sense; `check` has its own three.

mod act;
mod check;
mod down;
mod find;
mod lesson;
mod lesson_ask;
mod send;
mod status;
mod storm;
mod up;
mod whereis;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use crate::process::watcher;
use crate::provider;
use crate::replica::start;
use crate::screen::Style;

/// A failed command: the line, and the exit code.
#[derive(Debug)]
struct Failed {
    line: String,
    code: u8,
}

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

impl Failed {
    fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), code: 1 }
    }
}

type Outcome = Result<ExitCode, Failed>;

#[derive(Debug, Parser)]
#[command(
    name = "counterfoil-lab",
    version,
    about = "The reliability lab: replicas as real processes, a counted majority, and the question where the durable record is.",
    long_about = "The reliability lab: replicas as real processes, a counted majority, and one question: where is the durable record of \
                  this operation right now?\n\nA teaching model, not a way to make the store distributed. A majority that is up is not a \
                  transaction, not consensus and not exactly-once execution; the lab is here to show that.",
    after_help = "Start with `counterfoil-lab up` in one terminal. In another one:\n  counterfoil-lab status\n  counterfoil-lab send --amount 50\n  \
                  counterfoil-lab kill a\n  counterfoil-lab where KEY\n  counterfoil-lab down"
)]
struct CommandLine {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// The directory below which labs keep their files [default: counterfoil-lab in the system's directory for
    /// temporary files]
    #[arg(long, global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Which lab, if there are several; `ps` lists them
    #[arg(long, global = true, value_name = "ID")]
    run: Option<String>,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a lab in the foreground; Ctrl-C ends it and leaves nothing
    Up(up::UpArguments),
    /// The four lamps of each replica, measured now, and what they add up to
    Status,
    /// Send one request with visible attempts, or a load
    Send(send::SendArguments),
    /// Kill replicas with kill -9
    #[command(after_help = "Example: counterfoil-lab kill a b")]
    Kill(act::Replicas),
    /// Pause replicas with kill -STOP: not dead, and no use to anybody
    #[command(after_help = "Example: counterfoil-lab pause b")]
    Pause(act::Replicas),
    /// Resume paused replicas: they go on where they were
    #[command(after_help = "Example: counterfoil-lab resume b")]
    Resume(act::Replicas),
    /// Start dead replicas again on their disks
    #[command(after_help = "Example: counterfoil-lab restart a")]
    Restart(act::Replicas),
    /// Take the disks of dead replicas away: the same names, empty disks
    #[command(after_help = "Example: counterfoil-lab kill b && counterfoil-lab wipe b && counterfoil-lab restart b")]
    Wipe(act::Replicas),
    /// Cut the link between two ends: replicas, `client` or `provider`
    #[command(after_help = "Examples: counterfoil-lab cut a b\n          counterfoil-lab cut client c")]
    Cut(act::Link),
    /// Take every cut, delay and lost reply away
    Heal,
    /// Make a link slow in one direction
    #[command(after_help = "Example: counterfoil-lab slow a b 300")]
    Slow(act::SlowLink),
    /// Lose the next reply to a client: the work is done, the answer never arrives
    #[command(after_help = "Example: counterfoil-lab drop-reply a && counterfoil-lab send --to a --to b")]
    DropReply(act::DropReplyArguments),
    /// Have a replica ask the keeper for the right to execute (placement atomic-fenced)
    TakeOver(act::OneReplica),
    /// Have requests stop at a named point between two steps
    #[command(after_help = act::barriers_help())]
    Hold(act::HoldArguments),
    /// Let go of all who stand at a hold
    Release(act::Number),
    /// Where the durable record of a key is right now
    #[command(after_help = "Example: counterfoil-lab where k-3f9a01")]
    Where(whereis::WhereArguments),
    /// Count executions for each intent from the durable stores, and judge
    Check(check::CheckArguments),
    /// Run a load while replicas are killed, paused and restarted, in a lab of its own, and judge it
    Storm(storm::StormArguments),
    /// A lesson: predict, watch it go wrong, answer the question, watch it go right
    Lesson(lesson::LessonArguments),
    /// List the labs that are running
    Ps,
    /// End a lab from another terminal, and leave nothing
    Down,
    #[command(hide = true)]
    Replica { arguments: String },
    #[command(hide = true)]
    Provider { arguments: String },
    #[command(hide = true)]
    Watcher,
}

/// Runs the command of this process.
#[must_use]
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let CommandLine { global, command } = match CommandLine::try_parse_from(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            // A pipe that is closed is the reader's wish.
            drop(error.print());
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // Children make a runtime of their own, or need none.
    let outcome = if let Command::Replica { arguments } = &command {
        child(arguments, start::COMMAND, start::run)
    } else if let Command::Provider { arguments } = &command {
        child(arguments, provider::COMMAND, provider::run)
    } else if let Command::Watcher = &command {
        watcher::run().map(|()| ExitCode::SUCCESS).map_err(Failed::from)
    } else {
        with_runtime(global, command)
    };
    outcome.unwrap_or_else(|failed| {
        eprintln!("counterfoil-lab: {}", failed.line);
        ExitCode::from(failed.code)
    })
}

/// Runs a child of a supervisor. Its arguments are its supervisor's, not a person's.
fn child<A: serde::de::DeserializeOwned>(
    arguments: &str,
    name: &str,
    run: impl FnOnce(A) -> Result<(), Box<dyn std::error::Error>>,
) -> Outcome {
    let arguments = serde_json::from_str(arguments)
        .map_err(|_| Failed::new(format!("`{name}` is started by `counterfoil-lab up`, not by hand")))?;
    run(arguments).map_err(|error| Failed::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

fn with_runtime(global: Global, command: Command) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outcome = runtime.block_on(obey(global, command));
    // What still reads a disk does not hold the command up.
    runtime.shutdown_background();
    outcome
}

async fn obey(global: Global, command: Command) -> Outcome {
    match command {
        Command::Up(arguments) => up::run(global, arguments).await,
        Command::Status => status::run(global).await,
        Command::Send(arguments) => send::run(global, arguments).await,
        Command::Where(arguments) => whereis::run(global, arguments).await,
        Command::Check(arguments) => check::run(global, arguments).await,
        Command::Storm(arguments) => storm::run(global, arguments).await,
        Command::Lesson(arguments) => lesson::run(global, arguments).await,
        Command::Ps => find::ps(global).await,
        Command::Down => down::run(global).await,
        Command::Replica { .. } | Command::Provider { .. } | Command::Watcher => Err(Failed::new("not a command")),
        act @ (Command::Kill(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Restart(_)
        | Command::Wipe(_)
        | Command::Cut(_)
        | Command::Heal
        | Command::Slow(_)
        | Command::DropReply(_)
        | Command::TakeOver(_)
        | Command::Hold(_)
        | Command::Release(_)) => act::run(global, act).await,
    }
}

/// How it may look on this terminal.
fn style() -> Style {
    Style::of(|name| std::env::var(name).ok(), io::stdout().is_terminal())
}

/// A line for people. A pipe that is closed is the reader's wish.
fn say(text: impl AsRef<str>) {
    let mut output = io::stdout().lock();
    drop(writeln!(output, "{}", text.as_ref()).and_then(|()| output.flush()));
}

/// The same for programs.
fn say_json<T: Serialize>(value: &T) -> Result<(), Failed> {
    say(serde_json::to_string(value)?);
    Ok(())
}
