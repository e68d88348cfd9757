//! The real binary, from the first command to the last.

#![cfg(unix)]

mod support;

use counterfoil_lab::client::load::LoadReport;
use counterfoil_lab::client::send::SendReport;
use counterfoil_lab::judge::Report;
use counterfoil_lab::rules::lamps::Lamp;
use counterfoil_lab::rules::outcome::{Outcome, OutcomeKind};
use counterfoil_lab::rules::verdict::Verdict;
use counterfoil_lab::supervisor::durable::WhereReport;
use support::{Up, command};

fn counts(up: &Up) -> Vec<u8> {
    up.status().summary.counts.iter().map(|counted| counted.count).collect()
}

#[test]
fn start_send_kill_retry_verdict_down_and_nothing_is_left() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &[]);
    assert_eq!(counts(&up), [3, 3, 3, 3]);

    // The reply to the first attempt is lost; the second finds the receipt.
    up.says(&["drop-reply", "a"]);
    let sent: SendReport = up.json(&["send", "--key", "k-1", "--amount", "50", "--attempt-ms", "700"]);
    let kinds: Vec<OutcomeKind> = sent.attempts.iter().map(|attempt| attempt.outcome.kind()).collect();
    assert_eq!(kinds, [OutcomeKind::Unknown, OutcomeKind::Done]);
    assert!(matches!(sent.outcome, Outcome::Done { replayed: true, .. }), "{:?}", sent.outcome);

    // The owner dies. Two of three are up, a majority, and it helps nobody who needs the owner.
    up.says(&["kill", "a"]);
    assert_eq!(counts(&up), [2, 2, 2, 2]);
    let line = up.command(&["send", "--key", "k-2", "--attempts", "2"]);
    assert_eq!(line.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&line.stdout).contains("refused"));

    // Its disk is as it left it.
    up.says(&["restart", "a"]);
    let again: SendReport = up.json(&["send", "--key", "k-1", "--intent", "intent-k-1", "--to", "c"]);
    assert!(matches!(again.outcome, Outcome::Done { replayed: true, .. }), "{:?}", again.outcome);
    let done: SendReport = up.json(&["send", "--key", "k-2", "--intent", "intent-k-2"]);
    assert!(matches!(done.outcome, Outcome::Done { replayed: false, .. }), "{:?}", done.outcome);

    let place: WhereReport = up.json(&["where", "k-1"]);
    assert_eq!(place.effects(), 1);
    let verdict = up.says(&["check", "--expect", "1"]);
    assert!(verdict.contains("2 intents, 2 executions") && verdict.contains("AS EXPECTED"), "{verdict}");
    up.down_and_gone();
    let (code, line) = fails(data.path(), &["status"]);
    assert!(code == Some(1) && line.contains("start one with `counterfoil-lab up`"), "{line}");
}

fn fails(data: &std::path::Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(data, arguments);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_crash_between_effect_and_record_executes_twice_under_local_and_check_says_so() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &["--placement", "local", "--keep"]);
    up.says(&["hold", "after-effect", "--attempt", "1"]);
    let first = up.command(&["send", "--key", "k", "--to", "a", "--attempts", "1", "--attempt-ms", "400"]);
    assert_eq!(first.status.code(), Some(1), "it stands at the barrier, so nothing comes back");
    up.says(&["kill", "a"]);
    up.says(&["release", "1"]);
    up.says(&["restart", "a"]);
    // The same wish, the same key, the same replica: its disk holds the effect and no record of it.
    let again: SendReport = up.json(&["send", "--key", "k", "--to", "a"]);
    assert!(matches!(again.outcome, Outcome::Done { replayed: false, .. }), "{:?}", again.outcome);
    let place: WhereReport = up.json(&["where", "k"]);
    assert_eq!(place.effects(), 2);
    let line = up.command(&["check"]);
    assert_eq!(line.status.code(), Some(1), "{}", String::from_utf8_lossy(&line.stdout));
    assert!(String::from_utf8_lossy(&line.stdout).contains("VIOLATION"));
    let live: Report = up.json(&["check", "--expect", "2"]);
    assert_eq!((live.totals.executions, live.totals.duplicates), (2, 1));

    // The same numbers, from the stores alone, after the end.
    let directory = up.directory();
    up.says(&["down"]);
    up.last_line();
    let offline =
        command(&directory, &["--json", "check", "--expect", "2", directory.join("history.jsonl").to_str().unwrap()]);
    assert_eq!(offline.status.code(), Some(0), "{}", String::from_utf8_lossy(&offline.stderr));
    let offline: Report = serde_json::from_slice(&offline.stdout).unwrap();
    assert_eq!((offline.totals, offline.intents, offline.holdings), (live.totals, live.intents, live.holdings));

    std::fs::write(directory.join("history.jsonl"), "not a history\n").unwrap();
    let (code, line) = fails(&directory, &["check", directory.join("history.jsonl").to_str().unwrap()]);
    assert!(code == Some(2) && line.contains("line 1 is no event of a history"), "{line}");
}

#[test]
fn a_paused_replica_exists_and_accepts_and_is_not_up() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &[]);
    up.says(&["pause", "c"]);
    assert_eq!(counts(&up), [3, 3, 2, 2]);
    let text = up.says(&["status"]);
    assert!(text.contains("C paused") && text.contains("This is a count and nothing more"), "{text}");
    up.says(&["resume", "c"]);
    assert_eq!(counts(&up), [3, 3, 3, 3]);
    up.down_and_gone();
}

#[test]
fn a_wiped_replica_has_its_name_and_nothing_else_and_its_old_disk_is_still_counted() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &["--placement", "majority-read-one"]);
    let sent: SendReport = up.json(&["send", "--key", "k"]);
    assert_eq!(sent.outcome.kind(), OutcomeKind::Done);
    let before = up.status();
    up.says(&["kill", "a"]);
    up.says(&["wipe", "a"]);
    up.says(&["restart", "a"]);
    let after = up.status();
    let disk = |status: &counterfoil_lab::supervisor::lamps::ClusterStatus| status.replicas[0].measured.disk.clone();
    assert_ne!(disk(&before), disk(&after));
    let [empty] = after.summary.replaced.as_slice() else { panic!("{:?}", after.summary) };
    assert_eq!((empty.holds, empty.of), (0, 1));
    // The effect was on the disk that is gone: only the judge still sees it.
    let place: WhereReport = up.json(&["where", "k"]);
    assert_eq!(place.effects(), 1);
    assert!(place.places.iter().any(|place| place.state.contains("WIPED")), "{place:?}");
    up.down_and_gone();
}

#[test]
fn a_cut_is_seen_by_both_ends_and_healing_twice_changes_nothing() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &["--replicas", "4"]);
    up.says(&["cut", "a", "d"]);
    support::wait_until("A and D do not see each other", support::PATIENCE, || {
        up.status().summary.unseen.iter().map(|unseen| (unseen.from.letter(), unseen.to.letter())).collect::<Vec<_>>()
            == [('A', 'D'), ('D', 'A')]
    });
    assert!(up.says(&["heal"]).contains("healed"));
    assert!(up.says(&["heal"]).contains("nothing was to be healed"));
    support::wait_until("all see all", support::PATIENCE, || up.status().summary.unseen.is_empty());
    up.down_and_gone();
}

#[test]
fn bad_input_is_one_clear_line_and_nothing_is_done() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &["--replicas", "2"]);
    for (code, arguments, says) in [
        (1, vec!["kill", "c"], "there is no replica C: this lab has A and B"),
        (2, vec!["kill", "z"], "\"z\" is no replica"),
        (1, vec!["wipe", "a"], "replica A is alive: kill it first"),
        (1, vec!["restart", "a"], "replica A is alive: kill it first"),
        (1, vec!["resume", "a"], "replica A is not paused"),
        (1, vec!["cut", "a", "a"], "A has no link to itself"),
        (1, vec!["cut", "a", "c"], "there is no replica C"),
        (1, vec!["slow", "client", "i", "5"], "there is no replica I"),
        (1, vec!["drop-reply", "c"], "there is no replica C"),
        (1, vec!["send", "--to", "c"], "there is no replica C"),
        (1, vec!["release", "77"], "there is no hold number 77"),
        (2, vec!["send", "--key", "two words"], "is no key"),
        (2, vec!["hold", "somewhere"], "is no barrier"),
        (2, vec!["check", "history.jsonl", "--data", "nowhere-at-all"], "there is no such directory"),
    ] {
        let line = if arguments.contains(&"--data") {
            fails(std::path::Path::new("nowhere-at-all"), &arguments[..2]).1
        } else {
            up.fails(code, &arguments)
        };
        assert!(line.contains(says), "{arguments:?}: {line}");
        assert!(!line.contains("panicked"), "{line}");
    }
    assert_eq!(counts(&up), [2, 2, 2, 2]);
    // Of two to be killed, one is dead already: the other one is killed, and both are said.
    up.says(&["kill", "a"]);
    let output = up.command(&["kill", "a", "b"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("replica A is dead already"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("killed B"));
    up.down_and_gone();
}

#[test]
fn what_up_cannot_do_is_one_clear_line_and_leaves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, says) in [
        (vec!["up", "--port", port.as_str()], "cannot be had"),
        (vec!["up", "--replicas", "10"], "10 replicas cannot be: from 1 to 9"),
        (vec!["up", "--replicas", "0"], "0 replicas cannot be: from 1 to 9"),
        (vec!["up", "--replicas", "2", "--owner", "c"], "the owner, C, is not one of the 2 replicas"),
    ] {
        let (code, line) = fails(data.path(), &arguments);
        assert!(code == Some(1) && line.contains(says), "{arguments:?}: {line}");
    }
    assert!(!std::fs::read_dir(data.path()).unwrap().any(|entry| entry.unwrap().path().is_dir()));
    let (code, line) = fails(&data.path().join("missing"), &["ps"]);
    assert!(code == Some(1) && line.contains("there is no such directory"), "{line}");
}

#[test]
fn a_load_against_atomic_is_judged_from_the_stores_with_the_owner_killed_in_the_middle() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &[]);
    let load = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            up.json::<LoadReport>(&["send", "--clients", "8", "--operations", "300", "--seed", "7", "--attempts", "12"])
        });
        support::wait_until("the load has begun", support::PATIENCE, || {
            up.status().replicas[0].effects.is_some_and(|effects| effects > 20)
        });
        up.says(&["kill", "a"]);
        up.says(&["restart", "a"]);
        load.join().unwrap()
    });
    assert_eq!(load.operations, 300);
    assert!(load.attempts > 300, "the kill hit nothing: {load:?}");
    let check: Report = up.json(&["check"]);
    assert_eq!((check.totals.intents, check.totals.duplicates, check.totals.lost), (300, 0, 0));
    assert_eq!(check.verdict, Verdict::AsExpected);
    up.down_and_gone();
}

#[test]
fn an_even_number_and_a_single_replica_work_and_say_what_they_are_worth() {
    let data = tempfile::tempdir().unwrap();
    let up = Up::new(data.path(), &["--replicas", "4"]);
    up.says(&["kill", "a", "b"]);
    let status = up.status();
    let write = status.summary.counts.iter().find(|counted| counted.lamp == Lamp::Writes).unwrap();
    assert_eq!((write.count, write.majority), (2, false), "2 of 4 are no majority");
    up.down_and_gone();
    let one = Up::new(data.path(), &["--replicas", "1"]);
    assert!(one.says(&["send"]).contains("done"));
    one.down_and_gone();
}
