//! The operator's tool, as somebody types it: on a store that nobody has open, and on one that a service has.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use counterfoil::{OperationType, Reply, Store, StoreBuilder, Table, Tx};
use serde_json::Value;
use tempfile::TempDir;

const CREATE: OperationType = OperationType::new("create_order");
const ORDERS: Table<String, u32> = Table::new("orders");

fn builder() -> StoreBuilder {
    Store::builder().operation(&CREATE).table(&ORDERS)
}

/// A store in which three orders were made, one asked for again and one in conflict.
fn shop() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("shop");
    let store = builder().open(&path).expect("it opens");
    for (key, count) in [("order-1", 1), ("order-2", 2), ("order-3", 3), ("order-1", 1)] {
        create(&store, key, count).expect("an answer");
    }
    assert!(create(&store, "order-2", 99).is_err(), "a conflict");
    store.close().expect("it closes");
    (directory, path)
}

fn create(store: &Store, key: &str, count: u32) -> Result<(), counterfoil::Error> {
    let operation = CREATE.request("acme", "alice", key)?.json(&count)?.attempt(2);
    let name = key.to_owned();
    let made = move |tx: &Tx<'_>| {
        tx.table(&ORDERS)?.put(name.as_str(), &count)?;
        Ok(Reply::created().resource_id(name).json(&count)?)
    };
    store.execute(operation, made).map(drop)
}

fn tool(store: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
    command.arg("--store").arg(store).args(arguments).env("NO_COLOR", "1");
    command.output().expect("the tool runs")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// What it prints when all is well.
fn told(store: &Path, arguments: &[&str]) -> String {
    let output = tool(store, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text(&output)
}

fn lines(store: &Path, arguments: &[&str]) -> Vec<Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    told(store, &arguments).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

/// Every command that looks at something, with a word that its answer has.
const LOOKS: [(&[&str], &str); 11] = [
    (&["stat"], "state bytes"),
    (&["verify"], "clean: nothing is wrong"),
    (&["log"], "create_order key order-1"),
    (&["receipts"], "a retry is"),
    (&["explain", "order-1"], "a retry of the same request gets the stored reply"),
    (&["tables"], "key type"),
    (&["get", "orders", "order-2"], "value"),
    (&["scan", "orders"], "3 rows"),
    (&["usage"], "receipts"),
    (&["erasures"], "nothing"),
    (&["export", "tables"], "\"table\":\"orders\""),
];

#[test]
fn every_command_that_looks_works_on_a_store_that_nobody_has_open() {
    let (_keep, store) = shop();
    for (arguments, word) in LOOKS {
        let shown = told(&store, arguments);
        assert!(shown.contains(word), "{arguments:?} shows\n{shown}");
        let is_empty = lines(&store, arguments).is_empty();
        assert_eq!(is_empty, arguments == ["erasures"], "{arguments:?}");
    }
}

#[test]
fn a_key_is_explained_with_its_execution_its_replays_and_its_conflicts() {
    let (_keep, store) = shop();
    let told = lines(&store, &["explain", "order-1"]);
    assert_eq!(told[0]["activity"]["replays_at_least"], 1);
    assert_eq!(told[0]["events"][0]["attempt"], 2);
    assert_eq!(lines(&store, &["explain", "order-2"])[0]["activity"]["conflicts_at_least"], 1);
    let unknown = tool(&store, &["explain", "order-9"]);
    assert_eq!(code(&unknown), 1);
    assert!(text(&unknown).contains("would execute"), "{}", text(&unknown));
}

#[test]
fn tables_line_up() {
    let (_keep, store) = shop();
    let shown = told(&store, &["receipts"]);
    let mut rows = shown.lines();
    let header = rows.next().expect("a header");
    let rule = rows.next().expect("a rule");
    for column in ["actor", "operation", "key", "outcome", "position"] {
        let place = header.find(&format!(" {column}")).expect("a column") + 1;
        assert_eq!(&rule[place..=place], "-", "{shown}");
        assert_eq!(&rule[place - 1..place], " ", "{shown}");
    }
    assert!(shown.ends_with("3 receipts\n"), "{shown}");
}

#[test]
fn what_is_erased_and_purged_is_gone_from_every_file() {
    let (_keep, store) = shop();
    let erased = lines(&store, &["erase", "--tenant", "acme", "--reason", "they left", "--by", "ann"]);
    assert_eq!((&erased[0]["receipts"], &erased[0]["log_entries"]), (&3.into(), &3.into()));
    let shown = told(&store, &["receipts"]);
    assert_eq!(shown.matches("gone (erased)").count(), 3, "{shown}");
    assert!(told(&store, &["erasures"]).contains("they left"));
    let purged = lines(&store, &["purge"]);
    assert!(purged[0]["bytes_after"].is_u64());
    assert!(told(&store, &["verify"]).contains("clean"));
    let incomplete = tool(&store, &["erase", "--tenant", "acme", "--operation", "create_order", "--reason", "x"]);
    assert_eq!(code(&incomplete), 2);
}

#[test]
fn the_commands_that_change_something_say_what_they_did() {
    let (_keep, store) = shop();
    assert!(told(&store, &["sweep"]).contains("rows"));
    assert!(told(&store, &["compact"]).contains("bytes after"));
    assert!(told(&store, &["clock", "accept", "--reason", "looked at it"]).contains("store time"));
    let log = lines(&store, &["log"]);
    assert!(log.iter().any(|line| line["kind"] == "clock accepted" && line["reason"] == "looked at it"));
    let position = log[1]["position"].as_str().expect("a position");
    assert_eq!(lines(&store, &["log", "--from", position]).len(), log.len() - 2);
    assert_eq!(lines(&store, &["log", "-n", "2"]).len(), 2);
}

#[test]
fn a_store_is_made_once_and_a_missing_one_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("new");
    assert!(told(&store, &["init"]).contains("made an empty store"));
    let again = tool(&store, &["init"]);
    assert_eq!(code(&again), 2);
    assert!(String::from_utf8_lossy(&again.stderr).contains("already"));
    let missing = tool(&directory.path().join("nothing"), &["stat"]);
    assert_eq!(code(&missing), 2);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no store"), "{missing:?}");
    let wrong = tool(&store, &["get", "orders", "k"]);
    assert_eq!(code(&wrong), 2);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("there is no table"), "{wrong:?}");
}

#[test]
fn a_bench_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let measured = lines(directory.path(), &["bench", "--seconds", "1", "--clients", "2"]);
    assert!(measured[0]["operations"].as_u64().is_some_and(|operations| operations > 0), "{measured:?}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn every_command_works_through_a_service_that_answers_the_tool() {
    let (_keep, path) = shop();
    let store = builder().open(&path).unwrap();
    let served = store.serve_admin().unwrap();
    let socket = std::fs::metadata(path.join("ADMIN")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&socket.permissions()) & 0o777, 0o600);
    for (arguments, word) in LOOKS {
        let shown = told(&path, arguments);
        assert!(shown.contains(word), "{arguments:?} shows\n{shown}");
    }
    assert!(told(&path, &["sweep"]).contains("rows"));
    assert!(told(&path, &["compact"]).contains("bytes after"));
    let erased = lines(&path, &["erase", "--tenant", "acme", "--reason", "they left"]);
    assert_eq!(erased[0]["receipts"], 3);
    assert!(told(&path, &["purge"]).contains("bytes after"));
    assert!(matches!(create(&store, "order-1", 1), Err(counterfoil::Error::Gone(_))), "the service sees it at once");
    drop(served);
    let held = tool(&path, &["stat"]);
    assert_eq!(code(&held), 2);
    let message = String::from_utf8_lossy(&held.stderr).into_owned();
    assert!(message.contains("held by process") && message.contains("serve_admin"), "{message}");
    assert!(!path.join("ADMIN").exists());
    store.close().unwrap();
    assert!(told(&path, &["verify"]).contains("clean"));
}

#[cfg(unix)]
#[test]
fn a_follower_through_the_socket_sees_what_is_committed_while_it_waits() {
    use std::io::{BufRead, BufReader};

    let (_keep, path) = shop();
    let store = builder().open(&path).unwrap();
    let _served = store.serve_admin().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_counterfoil"))
        .args(["--store", path.to_str().expect("UTF-8"), "log", "--follow", "--json"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(child.stdout.take().expect("piped")).lines();
    while !seen.next().unwrap().unwrap().contains("order-3") {}
    create(&store, "order-4", 4).unwrap();
    while !seen.next().unwrap().unwrap().contains("order-4") {}
    child.kill().unwrap();
    child.wait().unwrap();
}
