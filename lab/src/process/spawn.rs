//! Starting children, and holding on to them.
//!
//! Every child is started by one thread that lives as long as this process: on Linux the wish to die with the parent
//! is about the *thread* that started the child.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;

use super::sys::{ProcessIdentity, Signal, pauses_by_system};
use super::tether::Order;

/// What to start.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    /// A name for messages and threads.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where its standard error goes; its last lines are shown when it fails.
    pub log: PathBuf,
}

/// What a child tells, in order. The last one is always `Ended`.
#[derive(Debug)]
pub enum ChildReport {
    /// A line of its standard output.
    Line(String),
    /// It is gone and was waited for.
    Ended(Option<ExitStatus>),
}

/// A child of this process. Signals go to it only while it was not waited for, so its pid cannot be another's.
#[derive(Debug, Clone)]
pub struct Child {
    name: String,
    identity: ProcessIdentity,
    log: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    process: std::process::Child,
    orders: Option<ChildStdin>,
    ended: bool,
}

type Job = Box<dyn FnOnce() + Send>;

/// Runs on the one thread that starts children.
fn on_parent_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    static PARENT: OnceLock<Mutex<mpsc::Sender<Job>>> = OnceLock::new();
    let parent = PARENT.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        let started =
            thread::Builder::new().name("lab-parent".to_owned()).spawn(move || jobs.iter().for_each(|job| job()));
        if started.is_err() {
            eprintln!("counterfoil-lab: the thread that starts children could not be started");
        }
        Mutex::new(sender)
    });
    let (answer, result) = mpsc::channel();
    let job = Box::new(move || drop(answer.send(work())));
    lock(parent).send(job).map_err(|_| io::Error::other("no thread to start children from"))?;
    result.recv().map_err(|_| io::Error::other("starting a child panicked"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is changed by single assignments, so it is whole whatever panicked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Child {
    /// Starts a child. `report` is called on a thread of its own: for each line, and once when the child is gone.
    ///
    /// # Errors
    ///
    /// If the program or its log cannot be opened.
    pub fn spawn(spec: ChildSpec, report: impl FnMut(ChildReport) + Send + 'static) -> io::Result<Self> {
        let ChildSpec { name, program, arguments, log } = spec;
        let errors = File::options().create(true).append(true).open(&log)?;
        let mut process = on_parent_thread(move || {
            let mut command = Command::new(&program);
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::from(errors));
            leave_the_terminals_group(&mut command);
            command.spawn().map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", program.display())))
        })??;
        let orders = process.stdin.take();
        let output = process.stdout.take();
        let Some(identity) = ProcessIdentity::of(process.id()) else {
            let status = process.wait()?;
            return Err(io::Error::other(format!("{name} ended at once ({status}){}", last_words(&log))));
        };
        let inner = Arc::new(Mutex::new(Inner { process, orders, ended: false }));
        let child = Self { name, identity, log, inner };
        let listener = child.clone();
        thread::Builder::new().name(format!("lab-{}", child.name)).spawn(move || listener.listen(output, report))?;
        Ok(child)
    }

    fn listen(self, output: Option<std::process::ChildStdout>, mut report: impl FnMut(ChildReport)) {
        if let Some(output) = output {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                report(ChildReport::Line(line));
            }
        }
        // Its output ended, so it is ending: the wait is short, and nobody signals it meanwhile.
        let status = {
            let mut inner = lock(&self.inner);
            let status = inner.process.wait().ok();
            inner.ended = true;
            inner.orders = None;
            status
        };
        report(ChildReport::Ended(status));
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who it is.
    #[must_use]
    pub const fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    /// Whether it was waited for.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        lock(&self.inner).ended
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if it is gone.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        if inner.ended || inner.process.try_wait()?.is_some() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{} is gone", self.name)));
        }
        match signal {
            Signal::Kill => inner.process.kill(),
            Signal::Pause if !pauses_by_system() => inner.order(Order::Pause),
            Signal::Resume if !pauses_by_system() => inner.order(Order::Resume),
            Signal::Pause | Signal::Resume => self.identity.signal(signal),
        }
    }

    /// Writes a line to its standard input.
    ///
    /// # Errors
    ///
    /// If it is gone.
    pub fn tell(&self, line: &str) -> io::Result<()> {
        lock(&self.inner).tell(line)
    }

    /// Ends its standard input: a child that is not paused closes its store and exits.
    pub fn ask_to_end(&self) {
        lock(&self.inner).orders = None;
    }

    /// What it said last on its standard error, for a message; empty if it said nothing.
    #[must_use]
    pub fn last_words(&self) -> String {
        last_words(&self.log)
    }
}

impl Inner {
    fn order(&mut self, order: Order) -> io::Result<()> {
        self.tell(order.line())
    }

    fn tell(&mut self, line: &str) -> io::Result<()> {
        let orders = self.orders.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        writeln!(orders, "{line}")?;
        orders.flush()
    }
}

/// Ctrl-C in the supervisor's terminal is for the supervisor, which ends its children in order.
fn leave_the_terminals_group(command: &mut Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(windows)]
    {
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
        std::os::windows::process::CommandExt::creation_flags(command, CREATE_NEW_PROCESS_GROUP);
    }
}

/// The last lines of a log, each on a line of its own and indented.
fn last_words(log: &Path) -> String {
    const LINES: usize = 8;
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    if last.is_empty() { String::new() } else { format!("; its last words:\n  {}", last.join("\n  ")) }
}
