//! The service as the parent sees it: a child process that is started, asked and killed.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::habits::Habit;
use crate::protocol::{FromService, ToService};

/// How to start the service; the same before and after a kill.
#[derive(Debug)]
pub(crate) struct Launcher {
    pub(crate) habit: Habit,
    pub(crate) store: PathBuf,
    pub(crate) stock: Vec<(String, u64)>,
}

/// A service that has said that it is ready.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
    /// From before the process was started until it was ready.
    pub(crate) ready_after: Duration,
    /// As much of it as the store took to open, says the service.
    pub(crate) open_ms: f64,
}

impl Launcher {
    pub(crate) fn start(&self) -> Result<Service, Box<dyn Error>> {
        let stock: Vec<_> = self.stock.iter().map(|(item, count)| format!("{item}={count}")).collect();
        let started = Instant::now();
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--serve", self.habit.name()])
            .arg(&self.store)
            .arg(stock.join(","))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the service has no standard input")?;
        let mut output = BufReader::new(child.stdout.take().ok_or("the service has no standard output")?);
        let process = Process(child);
        let message = read_message(&mut output)?;
        let FromService::Ready { open_ms } = message else { return Err(unexpected(message)) };
        Ok(Service { process, input, output, ready_after: started.elapsed(), open_ms })
    }
}

impl Service {
    /// Which of these intents have an order. Nobody else talks to the service at that time.
    pub(crate) fn find_orders(&mut self, intents: Vec<u64>) -> Result<Vec<u64>, Box<dyn Error>> {
        write_message(&mut self.input, &ToService::FindOrders { intents })?;
        let message = read_message(&mut self.output)?;
        let FromService::FoundOrders { mut intents } = message else { return Err(unexpected(message)) };
        intents.sort_unstable();
        intents.dedup();
        Ok(intents)
    }
}

fn unexpected(message: FromService) -> Box<dyn Error> {
    if let FromService::Failed { message } = message {
        return format!("the service failed: {message}").into();
    }
    format!("the service said something unexpected: {message:?}").into()
}

pub(crate) fn write_message(input: &mut ChildStdin, message: &ToService) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    input.write_all(&line)
}

fn read_message(output: &mut BufReader<ChildStdout>) -> Result<FromService, Box<dyn Error>> {
    let mut line = String::new();
    if output.read_line(&mut line)? == 0 {
        return Err("the service ended by itself".into());
    }
    Ok(serde_json::from_str(&line)?)
}

/// A child that is not left behind, whatever happens here.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// SIGKILL: no handler runs, nothing is flushed, nothing is said.
    pub(crate) fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }

    /// Waits for a service whose input has ended.
    pub(crate) fn wait(&mut self) -> Result<(), Box<dyn Error>> {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the service ended with {status}").into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // Nothing to do about an error here: the end of its input ends the child as well.
            drop(self.kill());
        }
    }
}
