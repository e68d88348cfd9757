//! The handle that lessons and tests use, with real processes.

#![cfg(unix)]

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use counterfoil_lab::client::send::{Client, Intent, Policy};
use counterfoil_lab::process::report::ReportLine;
use counterfoil_lab::process::run_dir::Runs;
use counterfoil_lab::process::spawn::{Child, ChildReport, ChildSpec};
use counterfoil_lab::process::sys::{ProcessIdentity, Signal};
use counterfoil_lab::process::tether::Order;
use counterfoil_lab::replica::start::ReplicaArguments;
use counterfoil_lab::rules::barrier::Barrier;
use counterfoil_lab::rules::classify;
use counterfoil_lab::rules::fault::FaultRule;
use counterfoil_lab::rules::ids::{Amount, Attempt, Endpoint, IntentId, Millis, ReplicaId, SealedIntent};
use counterfoil_lab::rules::knobs::{Identity, Knobs, Placement};
use counterfoil_lab::rules::majority::Members;
use counterfoil_lab::rules::outcome::OutcomeKind;
use counterfoil_lab::rules::plan::barriers;
use counterfoil_lab::rules::record::{Request, Standing};
use counterfoil_lab::supervisor::error::LabError;
use counterfoil_lab::supervisor::lab::{Lab, LabOptions};
use counterfoil_lab::supervisor::member::Life;
use counterfoil_lab::wire::replica::{Hold, ReplicaClient};

const A: ReplicaId = ReplicaId::FIRST;
const WITHIN: Duration = Duration::from_secs(20);

fn options(data: &Path, replicas: u8, placement: Placement) -> LabOptions {
    LabOptions {
        program: PathBuf::from(support::PROGRAM),
        runs: Runs::new(Some(data.to_owned())),
        ..LabOptions::new(replicas, Knobs::placed(placement)).expect("1 to 9 replicas")
    }
}

fn client(lab: &Lab, targets: &[ReplicaId], attempts: u32) -> Client<Lab, Lab> {
    let mut policy = Policy::new(lab.members(), Identity::PerIntent);
    policy.targets = targets.to_vec();
    policy.attempts = attempts;
    policy.attempt_ms = 20_000;
    Client { cluster: lab.clone(), policy, sink: lab.clone() }
}

fn intent(name: &str) -> Intent {
    Intent::new(IntentId(format!("intent-{name}")), name.parse().expect("a key"), Amount(50))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_killed_at_any_point_of_a_call_is_never_taken_for_a_refusal() {
    let data = tempfile::tempdir().unwrap();
    let lab = Lab::start(options(data.path(), 1, Placement::Local)).await.unwrap();
    let points = barriers(&Knobs::placed(Placement::Local), A);
    assert_eq!(points.len(), 4, "{points:?}");
    for barrier in points {
        let hold = lab.hold(Hold { barrier, key: None, attempt: None }).await.unwrap();
        let sending = tokio::spawn({
            let client = client(&lab, &[A], 1);
            async move { client.send(intent(barrier.word()), |_| {}).await }
        });
        let reached = lab.wait_reached(hold, WITHIN).await.unwrap();
        assert_eq!((reached.by, reached.at.barrier), (A, barrier));
        let port = lab.addresses().ports[&Endpoint::Replica(A)];
        lab.kill(A).await.unwrap();
        let sent = sending.await.unwrap();
        assert_eq!(sent.outcome.kind(), OutcomeKind::Unknown, "killed at {barrier}: {sent:?}");
        // On a connection that is yet to be made it is a refusal: nothing was sent. On the old one, which has just
        // broken, tonic says `Cancelled` without a cause, and that proves nothing.
        let request = Request {
            key: "k-dead".parse().unwrap(),
            minted_at: Millis(1),
            amount: Amount(1),
            attempt: Attempt::FIRST,
            intent: SealedIntent::seal(&IntentId("nobody's".to_owned())),
        };
        let error = ReplicaClient::new(port, lab.run()).execute(A, &request, WITHIN).await.unwrap_err();
        assert_eq!(classify::outcome(error.code, error.sign).kind(), OutcomeKind::Refused, "{error:?}");
        lab.release(hold).await.unwrap();
        lab.restart(A).await.unwrap();
    }
    let (farewell, durable) = lab.stop_and_collect().await.unwrap();
    assert!(farewell.is_clean(), "{farewell}");
    let [disk] = durable.disks.as_slice() else { panic!("{durable:?}") };
    // Killed before the effect, it did not happen; killed behind it, it did.
    assert_eq!(disk.contents.effects.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_the_executor_behind_the_effect_gives_two_under_local_and_one_under_atomic() {
    for (placement, expected) in [(Placement::Local, 2), (Placement::Atomic, 1)] {
        let data = tempfile::tempdir().unwrap();
        let lab = Lab::start(options(data.path(), 3, placement)).await.unwrap();
        let knobs = Knobs::placed(placement);
        let barrier = counterfoil_lab::rules::plan::nearest(&knobs, A, Barrier::AfterEffect);
        let hold = lab.hold(Hold { barrier, key: None, attempt: Some(Attempt::FIRST) }).await.unwrap();
        let sending = tokio::spawn({
            let client = client(&lab, &[A], 3);
            async move { client.send(intent("k"), |_| {}).await }
        });
        let reached = lab.wait_reached(hold, WITHIN).await.unwrap();
        lab.kill(reached.by).await.unwrap();
        lab.restart(reached.by).await.unwrap();
        let sent = sending.await.unwrap();
        assert_eq!(sent.outcome.kind(), OutcomeKind::Done, "{placement}: {sent:?}");
        let (_, durable) = lab.stop_and_collect().await.unwrap();
        let effects: usize = durable.disks.iter().map(|disk| disk.contents.effects.len()).sum();
        assert_eq!(effects, expected, "{placement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_for_one_reply_of_anybody_loses_one_reply_and_no_other() {
    let data = tempfile::tempdir().unwrap();
    let lab = Lab::start(options(data.path(), 3, Placement::Atomic)).await.unwrap();
    let rule = lab.arm(FaultRule::next_reply(None)).await.unwrap();
    let mut client = client(&lab, &[A, ReplicaId::new(2).unwrap(), ReplicaId::new(3).unwrap()], 3);
    client.policy.attempt_ms = 1_500;
    let sent = client.send(intent("k"), |_| {}).await;
    let kinds: Vec<OutcomeKind> = sent.attempts.iter().map(|attempt| attempt.outcome.kind()).collect();
    assert_eq!(kinds, [OutcomeKind::Unknown, OutcomeKind::Done], "{sent:?}");
    assert_eq!((lab.hits(rule), lab.disarm(rule).await.unwrap()), (Some(1), 1));
    // Taken away, it is gone; and taking it away again is one clear line.
    let error = lab.disarm(rule).await.unwrap_err();
    assert!(error.to_string().starts_with("there is no fault number "), "{error}");
    assert!(lab.stop().await.unwrap().is_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_fails_at_its_start_is_named_with_its_last_words_and_nothing_is_left() {
    let data = tempfile::tempdir().unwrap();
    let lab = Lab::prepare(options(data.path(), 3, Placement::Atomic)).unwrap();
    let directory = lab.directory().unwrap();
    // Something that is no store is where B's disk should be.
    std::fs::create_dir(directory.join("disk-b")).unwrap();
    std::fs::write(directory.join("disk-b/state.redb"), "no store").unwrap();
    let error = lab.bring_up().await.unwrap_err();
    assert!(
        matches!(&error, LabError::NotStarted { name, why } if name == "b" && why.contains("its last words:")),
        "{error}"
    );
    let started = lab.processes();
    let farewell = lab.stop().await.unwrap();
    assert!(farewell.is_clean() && farewell.started == started.len(), "{farewell}");
    assert!(!directory.exists() && started.iter().all(|process| !process.is_running()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lab_that_is_dropped_leaves_nothing_either() {
    let data = tempfile::tempdir().unwrap();
    let lab = Lab::start(options(data.path(), 2, Placement::Atomic)).await.unwrap();
    lab.pause(A).await.unwrap();
    let (processes, directory) = (lab.processes(), lab.directory().unwrap());
    drop(lab);
    support::all_gone(&processes, support::PATIENCE);
    assert!(!directory.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_killed_by_somebody_else_has_crashed_and_who_is_killed_by_the_lab_has_not() {
    let data = tempfile::tempdir().unwrap();
    let lab = Lab::start(options(data.path(), 2, Placement::Atomic)).await.unwrap();
    let pid = lab.measure().await.replicas[0].pid;
    ProcessIdentity::of(pid).unwrap().signal(Signal::Kill).unwrap();
    support::wait_until("A has crashed", support::PATIENCE, || lab.life(A).unwrap() == Life::Crashed);
    let b = ReplicaId::new(2).unwrap();
    lab.kill(b).await.unwrap();
    assert_eq!(lab.life(b).unwrap(), Life::Killed);
    // Both come back the same way.
    lab.restart(A).await.unwrap();
    lab.restart(b).await.unwrap();
    assert!(lab.measure().await.summary.counts.iter().all(|counted| counted.count == 2));
    assert!(lab.stop().await.unwrap().is_clean());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_answers_health_and_describes_itself() {
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };

    let data = tempfile::tempdir().unwrap();
    let up = support::Up::new(data.path(), &["--replicas", "1"]);
    let supervisor = std::fs::read(up.directory().join("run.json")).unwrap();
    let supervisor: counterfoil_lab::process::run_dir::RunDescription = serde_json::from_slice(&supervisor).unwrap();
    let ports = &up.described.ports;
    for (port, service) in [
        (ports[&Endpoint::Replica(A)], "counterfoil.lab.v1.Replica"),
        (ports[&Endpoint::Provider], "counterfoil.lab.v1.Provider"),
        (supervisor.port, "counterfoil.lab.v1.Supervisor"),
    ] {
        let endpoint = tonic::transport::Endpoint::from_shared(format!("http://127.0.0.1:{port}")).unwrap();
        let channel = endpoint.connect().await.unwrap();
        let mut health = HealthClient::new(channel.clone());
        let answer = health.check(HealthCheckRequest { service: service.to_owned() }).await.unwrap().into_inner();
        assert_eq!(answer.status, 1, "{service} serves");
        let mut reflection = ServerReflectionClient::new(channel);
        let ask =
            |message_request| ServerReflectionRequest { host: String::new(), message_request: Some(message_request) };
        let asked = [
            ask(MessageRequest::ListServices(String::new())),
            ask(MessageRequest::FileContainingSymbol(service.to_owned())),
        ];
        let mut answers = reflection.server_reflection_info(tokio_stream::iter(asked)).await.unwrap().into_inner();
        let list = answers.message().await.unwrap().unwrap().message_response.unwrap();
        let MessageResponse::ListServicesResponse(list) = list else { panic!("{list:?}") };
        assert!(list.service.iter().any(|listed| listed.name == service), "{list:?}");
        let described = answers.message().await.unwrap().unwrap().message_response.unwrap();
        assert!(matches!(described, MessageResponse::FileDescriptorResponse(_)), "{described:?}");
    }
    up.down_and_gone();
}

/// What Windows does instead of SIGSTOP, on a system that can check it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_by_order_stops_every_answer_while_the_port_accepts() {
    let data = tempfile::tempdir().unwrap();
    let arguments = ReplicaArguments {
        run: "order".to_owned(),
        parent: ProcessIdentity::own().unwrap(),
        id: A,
        members: Members::new(1).unwrap(),
        knobs: Knobs::default(),
        patience_ms: (1_000, 500),
        disk: data.path().join("disk"),
        standing_if_new: Standing::Founding,
        traces: false,
    };
    let (sender, reports) = std::sync::mpsc::channel();
    let spec = ChildSpec {
        name: "a".to_owned(),
        program: PathBuf::from(support::PROGRAM),
        arguments: vec!["replica".into(), serde_json::to_string(&arguments).unwrap().into()],
        log: data.path().join("log"),
    };
    let child = Child::spawn(spec, move |report| drop(sender.send(report))).unwrap();
    let ChildReport::Line(line) = reports.recv_timeout(WITHIN).unwrap() else { panic!("{}", child.last_words()) };
    let Ok(ReportLine::Ready { port, .. }) = ReportLine::read(&line) else { panic!("{line}") };
    let replica = ReplicaClient::new(port, "order");
    let ping = |within| replica.ping(Endpoint::Supervisor, A, within);
    ping(WITHIN).await.unwrap();

    child.tell(Order::Pause.line()).unwrap();
    support::wait_until("nothing answers", support::PATIENCE, || {
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(ping(Duration::from_millis(100))).is_err()
        })
    });
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    child.tell(Order::Resume.line()).unwrap();
    ping(WITHIN).await.unwrap();

    child.ask_to_end();
    support::all_gone(&[child.identity()], support::PATIENCE);
    // Another run is turned away; nobody is there any more to do it, and that is told apart.
    assert!(matches!(reports.recv_timeout(WITHIN), Ok(ChildReport::Ended(_))));
}
