//! Driving the real binary. Waiting is polling with a deadline, never a sleep that hopes.

#![expect(dead_code, reason = "each test binary uses its part of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use counterfoil_lab::process::sys::{ProcessIdentity, Signal};
use counterfoil_lab::supervisor::lamps::ClusterStatus;
use counterfoil_lab::wire::supervisor::Description;
use serde::de::DeserializeOwned;

/// The binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_counterfoil-lab");

/// Longer than anything takes on a machine that does other things too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A lab in the foreground of another process, below a parent directory of its own or of another test's lab.
pub(crate) struct Up {
    pub(crate) supervisor: Child,
    pub(crate) identity: ProcessIdentity,
    pub(crate) described: Description,
    data: PathBuf,
    output: BufReader<std::process::ChildStdout>,
}

/// Starts `up` without waiting for anything.
pub(crate) fn start(data: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(PROGRAM);
    command.args(["up", "--json", "--data"]).arg(data).args(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap()
}

impl Up {
    /// Starts a lab and waits until it is up.
    pub(crate) fn new(data: &Path, arguments: &[&str]) -> Self {
        let mut supervisor = start(data, arguments);
        let identity = ProcessIdentity::of(supervisor.id()).unwrap();
        let mut output = BufReader::new(supervisor.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        if line.is_empty() {
            let output = supervisor.wait_with_output().unwrap();
            panic!("up ended: {}", String::from_utf8_lossy(&output.stderr));
        }
        let described = serde_json::from_str(&line).unwrap();
        Self { supervisor, identity, described, data: data.to_owned(), output }
    }

    /// A command in another terminal, for this very run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Output {
        let mut all = vec!["--run", &self.described.run];
        all.extend(arguments);
        command(&self.data, &all)
    }

    /// One that succeeds, and what it printed.
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// One that succeeds, read as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> T {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let text = self.says(&all);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// One that fails with the exit code, and its line.
    pub(crate) fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.command(arguments);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {line}{}",
            String::from_utf8_lossy(&output.stdout)
        );
        line
    }

    pub(crate) fn status(&self) -> ClusterStatus {
        self.json(&["status"])
    }

    pub(crate) fn directory(&self) -> PathBuf {
        PathBuf::from(&self.described.directory)
    }

    /// Every process of the lab, the supervisor's too.
    pub(crate) fn processes(&self) -> Vec<ProcessIdentity> {
        let mut all = self.status().processes;
        all.push(self.identity);
        all
    }

    /// Sends the supervisor SIGKILL and waits for it.
    pub(crate) fn kill_supervisor(&mut self) {
        self.supervisor.kill().unwrap();
        self.supervisor.wait().unwrap();
    }

    /// Waits for the end, and gives the last line.
    pub(crate) fn last_line(mut self) -> String {
        let lines: Vec<String> = self.output.by_ref().lines().map_while(Result::ok).collect();
        let status = self.supervisor.wait().unwrap();
        assert!(status.success(), "{status}: {lines:?}");
        lines.last().cloned().unwrap_or_default()
    }

    /// Ends it, and sees that nothing is left.
    pub(crate) fn down_and_gone(self) {
        let processes = self.processes();
        let (directory, ports) = (self.directory(), self.ports());
        self.says(&["down"]);
        self.last_line();
        all_gone(&processes, PATIENCE);
        assert!(!directory.exists(), "{} is left", directory.display());
        ports_free(&ports);
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        let described: Description =
            serde_json::from_str(&self.says(&["ps", "--json"])).map(|mut all: Vec<_>| all.remove(0)).unwrap();
        described.ports.into_values().collect()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // A test that failed leaves nothing either: the children end with the supervisor.
        drop(self.supervisor.kill());
        drop(self.supervisor.wait());
    }
}

/// A command in another terminal.
pub(crate) fn command(data: &Path, arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("--data").arg(data).args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, within: Duration, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until all these processes are gone.
pub(crate) fn all_gone(processes: &[ProcessIdentity], within: Duration) {
    let mut left = processes.to_vec();
    let began = Instant::now();
    while began.elapsed() < within {
        left.retain(|process| process.is_running());
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("still there after {within:?}: {left:?}");
}

/// Nobody listens on these ports any more.
pub(crate) fn ports_free(ports: &[u16]) {
    for port in ports {
        TcpListener::bind(("127.0.0.1", *port)).unwrap_or_else(|error| panic!("port {port}: {error}"));
    }
}

/// A process that has nothing to do with any lab.
pub(crate) struct Foreign {
    pub(crate) child: Child,
    pub(crate) identity: ProcessIdentity,
}

impl Foreign {
    pub(crate) fn new() -> Self {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let identity = ProcessIdentity::of(child.id()).unwrap();
        Self { child, identity }
    }

    /// Whether it runs, and is not merely a dead child that nobody waited for.
    pub(crate) fn is_running(&self) -> bool {
        self.identity.is_running()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.identity.signal(signal).unwrap();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
