//! The example `http_orders`: a service on the store, and a caller that reaches it through a bad network.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The example's binary. `cargo test` has built it; `cargo test --test call` alone has not, or not lately.
fn example() -> &'static Path {
    static EXAMPLE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    EXAMPLE.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a path");
        let profile = test.parent().and_then(Path::parent).expect("tests are in target/<profile>/deps");
        let mut cargo = Command::new(env!("CARGO"));
        // The profile and the features of this test, so that nothing else need be built again.
        let name = if profile.ends_with("release") { "release" } else { "test" };
        cargo.args(["build", "--all-features", "--example", "http_orders", "--profile", name]);
        cargo.arg("--target-dir").arg(profile.parent().expect("profiles are in target"));
        let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo starts");
        assert!(status.success(), "the example does not build");
        profile.join("examples").join(format!("http_orders{}", std::env::consts::EXE_SUFFIX))
    })
}

#[test]
fn through_a_network_that_loses_replies_and_cuts_connections_every_order_is_made_once() {
    let output: Output = Command::new(example()).args(["demo", "120", "7", "0"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text} {output:?}");
    assert!(text.contains("108 orders in the store: 0 doubled, 0 missing"), "{text}");
    assert!(!text.contains("lost 0 replies") && !text.contains(" 0 of them answered from a receipt"), "{text}");
}

#[test]
fn a_service_that_is_killed_while_requests_are_open_makes_every_order_once_all_the_same() {
    let output: Output = Command::new(example()).args(["demo", "160", "11", "4"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text} {output:?}");
    assert!(text.contains("144 orders in the store: 0 doubled, 0 missing"), "{text}");
    assert!(text.contains("killed 4 times") && !text.contains("with 0 requests open"), "{text}");
}

struct Service {
    child: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Service {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(example());
        command.arg("serve").arg(directory.path().join("store")).args(["0", "--child"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        Self { child, address, _directory: directory }
    }

    /// The answer to an order with these headers, as text in lower case.
    fn order(&self, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let length = body.len();
        let head = format!(
            "POST /orders HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.to_ascii_lowercase()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

#[test]
fn each_outcome_has_its_status() {
    let service = Service::start();
    let socks = r#"{"item":"socks","count":2}"#;
    let is = |answer: &str, status: u16| {
        assert!(answer.starts_with(&format!("http/1.1 {status} ")), "not {status}: {answer}");
    };
    is(&service.order("", socks), 400);
    is(&service.order("idempotency-key: \r\n", socks), 400);
    is(&service.order("idempotency-key: k1\r\nx-deadline-remaining-ms: soon\r\n", socks), 400);
    is(&service.order("idempotency-key: k1\r\nx-deadline-remaining-ms: 0\r\n", socks), 503);

    let made = service.order("idempotency-key: k1\r\nx-deadline-remaining-ms: 5000\r\n", socks);
    is(&made, 201);
    assert!(made.contains("location: /orders/1\r\n") && !made.contains("idempotency-replayed"), "{made}");
    // The same members in another order are the same request.
    let again = service.order("idempotency-key: k1\r\n", r#"{"count":2,"item":"socks"}"#);
    is(&again, 201);
    assert!(again.contains("location: /orders/1\r\n") && again.contains("idempotency-replayed: true\r\n"), "{again}");
    is(&service.order("idempotency-key: k1\r\n", r#"{"item":"socks","count":3}"#), 422);

    let refused = service.order("idempotency-key: k2\r\n", r#"{"item":"socks","count":0}"#);
    is(&refused, 409);
    assert!(refused.contains("x-receipt: rejected\r\n") && !refused.contains("retry-after"), "{refused}");
}
