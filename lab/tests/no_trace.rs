//! A lab leaves nothing behind, however it ends.

#![cfg(unix)]

mod support;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use counterfoil_lab::process::run_dir::{RunDescription, Runs};
use counterfoil_lab::process::sys::{ProcessIdentity, Signal};
use counterfoil_lab::supervisor::ending::Farewell;
use support::{Foreign, PATIENCE, PROGRAM, Up, all_gone, command, ports_free, start, wait_until};

/// What is promised: all gone within two seconds.
const TWO_SECONDS: Duration = Duration::from_secs(2);

#[test]
fn when_the_supervisor_is_killed_with_a_paused_child_all_are_gone_within_two_seconds_and_ports_are_free() {
    let data = tempfile::tempdir().unwrap();
    let mut up = Up::new(data.path(), &["--replicas", "5"]);
    up.says(&["pause", "b"]);
    let (processes, ports, directory) = (up.processes(), up.ports(), up.directory());
    assert_eq!(processes.len(), 8, "5 replicas, provider, watcher, supervisor");
    up.kill_supervisor();
    all_gone(&processes, TWO_SECONDS);
    ports_free(&ports);

    // A crash leaves its directory, and the next start sweeps it.
    assert!(directory.exists());
    let next = Up::new(data.path(), &["--replicas", "1"]);
    assert!(!directory.exists());
    next.down_and_gone();
}

#[test]
fn the_watcher_alone_ends_a_paused_child_and_leaves_a_foreign_process_with_an_old_pid_alone() {
    // Neither of them holds a pipe or asked to die with anybody: only the watcher can end them.
    let (child, foreign) = (Foreign::new(), Foreign::new());
    let mut watcher = Command::new(PROGRAM).arg("watcher").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.signal(Signal::Pause);
    let mut orders = watcher.stdin.take().unwrap();
    writeln!(orders, "+ {} {}", child.identity.pid, child.identity.started).unwrap();
    writeln!(orders, "+ {} {}", foreign.identity.pid, foreign.identity.started - 1).unwrap();
    // The supervisor is gone, however that came: its end of the pipe closes.
    drop(orders);
    all_gone(&[child.identity], TWO_SECONDS);
    assert!(watcher.wait().unwrap().success());
    assert!(foreign.is_running());
}

#[test]
fn a_watcher_that_was_killed_is_replaced() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &["--replicas", "1"]);
    let watcher = up.status().processes.into_iter().find(|process| is_watcher(*process)).unwrap();
    watcher.signal(Signal::Kill).unwrap();
    wait_until("another watcher", PATIENCE, || {
        up.status().processes.into_iter().any(|process| process != watcher && is_watcher(process))
    });
    up.down_and_gone();
}

fn is_watcher(process: ProcessIdentity) -> bool {
    let line = Command::new("ps").args(["-o", "args=", "-p", &process.pid.to_string()]).output().expect("ps runs");
    String::from_utf8_lossy(&line.stdout).trim_end().ends_with("watcher")
}

#[test]
fn ctrl_c_during_the_start_leaves_no_orphans_and_no_directory() {
    let data = tempfile::tempdir().unwrap();
    let mut supervisor = start(data.path(), &["--replicas", "5"]);
    let identity = ProcessIdentity::of(supervisor.id()).unwrap();
    // The first child has been started when its log is there, and none can be ready yet.
    let run = || fs::read_dir(data.path()).unwrap().filter_map(Result::ok).find(|entry| entry.path().is_dir());
    wait_until("a child is starting", PATIENCE, || run().is_some_and(|run| run.path().join("logs/a.log").exists()));
    let children = children_of(identity);
    assert!(!children.is_empty());
    interrupt(identity);
    let status = supervisor.wait().unwrap();
    assert!(matches!(status.code(), Some(130 | 0)), "{status}");
    all_gone(&children, TWO_SECONDS);
    wait_until("no other child", TWO_SECONDS, || children_of(identity).is_empty());
    assert!(run().is_none(), "the directory is left");
}

#[test]
fn ctrl_c_twice_ends_at_once_also_when_a_child_is_paused() {
    let data = tempfile::tempdir().unwrap();
    let mut up = Up::new(data.path(), &["--replicas", "2"]);
    up.says(&["pause", "a"]);
    let (processes, directory) = (up.processes(), up.directory());
    interrupt(up.identity);
    interrupt(up.identity);
    let status = up.supervisor.wait().unwrap();
    assert!(matches!(status.code(), Some(130 | 0)), "{status}");
    all_gone(&processes, TWO_SECONDS);
    assert!(!directory.exists());
}

#[test]
fn one_ctrl_c_ends_in_order_and_the_last_line_says_how_many_are_gone() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &[]);
    let (processes, directory) = (up.processes(), up.directory());
    interrupt(up.identity);
    let farewell: Farewell = serde_json::from_str(&up.last_line()).unwrap();
    assert_eq!((farewell.started, farewell.gone), (5, 5));
    assert!(farewell.to_string().starts_with("5 processes started, 5 gone; "), "{farewell}");
    assert!(farewell.to_string().ends_with(" MB removed"), "{farewell}");
    all_gone(&processes, TWO_SECONDS);
    assert!(!directory.exists());
}

#[test]
fn two_labs_at_once_do_not_meet_and_a_command_says_which_it_needs() {
    let data = tempfile::tempdir().unwrap();
    let first = Up::new(data.path(), &["--replicas", "1"]);
    let second = Up::new(data.path(), &["--replicas", "2"]);
    let output = command(data.path(), &["status"]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for run in [&first.described.run, &second.described.run] {
        assert!(line.contains(run.as_str()), "{line}");
    }
    assert!(line.contains("say which with --run ID"), "{line}");

    let list = String::from_utf8(command(data.path(), &["ps"]).stdout).unwrap();
    assert_eq!(list.lines().count(), 2, "{list}");
    assert_eq!(first.status().replicas.len(), 1);
    assert_eq!(second.status().replicas.len(), 2);

    let (processes, directory) = (first.processes(), first.directory());
    first.says(&["down"]);
    first.last_line();
    all_gone(&processes, TWO_SECONDS);
    assert!(!directory.exists());
    // Alone now, it needs no name.
    assert!(command(data.path(), &["send"]).status.success());
    second.down_and_gone();
}

#[test]
fn a_foreign_process_that_has_the_pid_of_a_dead_supervisor_is_never_signalled() {
    let data = tempfile::tempdir().unwrap();
    let foreign = Foreign::new();
    let runs = Runs::new(Some(data.path().to_owned()));
    let describe = |run: &str| RunDescription { run: run.to_owned(), supervisor: foreign.identity, port: 1 };
    // One is dead. The other one's lock is held, so it looks alive; but who answers there is not that run.
    let (dead, _) = runs.create("dead01", false).unwrap();
    dead.describe(&describe("dead01")).unwrap();
    let left = dead.path().to_owned();
    let (living, _) = runs.create("live01", false).unwrap();
    living.describe(&describe("live01")).unwrap();
    drop(dead);

    for run in ["dead01", "live01"] {
        let output = command(data.path(), &["--run", run, "down"]);
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.contains(&format!("no lab {run} is running")), "{line}");
        assert!(foreign.is_running());
    }
    let up = Up::new(data.path(), &["--replicas", "1"]);
    assert!(!left.exists() && living.path().exists(), "swept is what is dead");
    up.down_and_gone();
    assert!(foreign.is_running());
}

fn interrupt(process: ProcessIdentity) {
    let pid = process.pid.to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
}

fn children_of(parent: ProcessIdentity) -> Vec<ProcessIdentity> {
    let listed = Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output().expect("ps runs");
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let pairs = text.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace().filter_map(|number| number.parse::<u32>().ok());
        Some((numbers.next()?, numbers.next()?))
    });
    pairs.filter(|(_, of)| *of == parent.pid).filter_map(|(pid, _)| ProcessIdentity::of(pid)).collect()
}
