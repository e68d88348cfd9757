//! The tower adapter: in virtual time, around tonic's channel, and around an HTTP client.

use std::convert::Infallible;
use std::future::{Future, IntoFuture, Ready, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use counterfoil::call::classify::{Contract, grpc, http as http_status};
use counterfoil::call::propagate::{self, Expired};
use counterfoil::call::tower::{CallerLayer, Policy, ServiceError};
use counterfoil::call::{
    Answer, Attempt, AttemptError, Budget, BudgetConfig, Call, Caller, DeadlinePolicy, Identity, Kind, Measures,
    Mutation, Outcome, Phase, Pool, StopReason, Verdict,
};
use counterfoil::{Clock, SystemClock};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tower::{Layer, Service, ServiceExt};

use super::support::{World, ms};

/// Is ready after a while, or never will be, and answers with the number of the attempt.
#[derive(Clone)]
struct Slow {
    world: Arc<World>,
    ready_after: u64,
    broken: bool,
    wait: Arc<Mutex<Option<counterfoil::call::Sleep>>>,
}

impl Service<u32> for Slow {
    type Response = u32;
    type Error = &'static str;
    type Future = Ready<Result<u32, &'static str>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        let mut wait = self.wait.lock().unwrap();
        let wait = wait.get_or_insert_with(|| self.world.sleep(ms(self.ready_after)));
        let broken = self.broken;
        wait.as_mut().poll(cx).map(|()| if broken { Err("broken") } else { Ok(()) })
    }

    fn call(&mut self, number: u32) -> Self::Future {
        ready(Ok(number))
    }
}

struct Numbers;

impl Policy<()> for Numbers {
    type Purpose = Mutation;
    type Inner = u32;
    type Response = u32;
    type Error = &'static str;
    type Value = u32;
    type Failure = &'static str;

    fn call(&self, (): &()) -> Call<Mutation> {
        Call::unkeyed("number")
    }

    fn rebuild(&self, (): &(), attempt: &Attempt) -> Result<u32, Expired> {
        attempt.onward().map(|_| attempt.number())
    }

    async fn judge(
        &self,
        _: &Attempt,
        result: Result<u32, &'static str>,
    ) -> Result<Answer<u32>, AttemptError<&'static str>> {
        result.map(Answer::new).map_err(|error| AttemptError::new(Verdict::maybe_applied(Kind::Transient), error))
    }
}

type Numbered = Outcome<u32, ServiceError<&'static str, &'static str>>;

fn slow(ready_after: u64, broken: bool) -> (Arc<Measures>, Numbered) {
    let world = World::new();
    let measures = Arc::new(Measures::default());
    let policy = DeadlinePolicy::within(ms(100));
    let caller = world.builder().deadline(policy).attempts(1).observer(measures.clone()).build().unwrap();
    let inner = Slow { world: world.clone(), ready_after, broken, wait: Arc::default() };
    let mut service = CallerLayer::new(caller, Numbers).layer(inner);
    let finished = world.run(async {
        let ready: Result<_, Infallible> = ServiceExt::<()>::ready(&mut service).await;
        ready.unwrap().call(()).await.unwrap()
    });
    (measures, finished.outcome)
}

#[test]
fn readiness_is_waited_for_inside_the_attempt_and_counted() {
    let (measures, outcome) = slow(30, false);
    assert!(matches!(outcome, Outcome::Success { value: 1, .. }));
    assert_eq!(measures.of("number").waited["readiness"], ms(30));
}

#[test]
fn a_service_that_is_not_ready_in_time_was_sent_nothing() {
    let (_, outcome) = slow(500, false);
    assert!(matches!(outcome, Outcome::DeadlineExceeded { phase: Phase::Attempt, .. }), "not uncertain: {outcome:?}");
}

#[test]
fn an_error_of_readiness_is_an_attempt_that_sent_nothing_and_no_error_of_the_service() {
    let (_, outcome) = slow(0, true);
    let Outcome::Exhausted { reason: StopReason::Attempts, error, .. } = outcome else { panic!("{outcome:?}") };
    assert!(matches!(error, Some(ServiceError::NotReady("broken"))));
}

fn caller() -> Caller {
    let budget = Budget::new(BudgetConfig::default()).unwrap();
    let caller = Caller::builder("server", budget, Pool::bounded(4, 4).unwrap()).backoff(ms(1), ms(1));
    caller.deadline(DeadlinePolicy::within(ms(20_000))).build().unwrap()
}

/// What the server saw of each attempt.
type SeenHeaders = Arc<Mutex<Vec<HeaderMap>>>;

fn assert_attempts_share_their_key_and_say_who_retries(seen: &SeenHeaders, timeout: &str, previous: &str, owner: &str) {
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|headers| headers["idempotency-key"] == "key-1" && headers[owner] == "1"));
    assert!(seen.iter().all(|headers| headers.contains_key(timeout)));
    let previous: Vec<_> =
        seen.iter().map(|headers| headers.get(previous).map(|value| value.to_str().unwrap().to_owned())).collect();
    assert_eq!(previous, [None, Some("1".to_owned()), Some("2".to_owned())]);
    let traces: std::collections::BTreeSet<_> =
        seen.iter().map(|headers| headers["traceparent"].to_str().unwrap().to_owned()).collect();
    assert_eq!(traces.len(), 3);
}

/// A unary gRPC call without generated code: the message goes as it is.
struct Grpc;

impl Policy<Vec<u8>> for Grpc {
    type Purpose = Mutation;
    type Inner = Request<Body>;
    type Response = Response<Body>;
    type Error = tonic::transport::Error;
    type Value = Vec<u8>;
    type Failure = tonic::Status;

    fn call(&self, _: &Vec<u8>) -> Call<Mutation> {
        Call::mutation("create", Identity::from_key("key-1").unwrap())
    }

    fn rebuild(&self, message: &Vec<u8>, attempt: &Attempt) -> Result<Request<Body>, Expired> {
        let mut metadata = MetadataMap::new();
        propagate::grpc::write(&attempt.onward()?, &mut metadata)?;
        let body = Body::new(Full::new(message.clone().into()));
        let mut request = Request::post("/orders.Orders/Create").body(body).unwrap();
        *request.headers_mut() = metadata.into_headers();
        let key = attempt.identity().unwrap().key().to_string();
        request.headers_mut().insert("idempotency-key", key.try_into().unwrap());
        request.headers_mut().insert("content-type", "application/grpc".try_into().unwrap());
        request.headers_mut().insert("te", "trailers".try_into().unwrap());
        Ok(request)
    }

    async fn judge(
        &self,
        attempt: &Attempt,
        result: Result<Response<Body>, tonic::transport::Error>,
    ) -> Result<Answer<Vec<u8>>, AttemptError<tonic::Status>> {
        let judged = |status: tonic::Status| {
            let verdict = grpc::status(&status, Contract::NONE).expect("it is no answer");
            AttemptError::new(verdict, status)
        };
        let response = result.map_err(|error| judged(tonic::Status::from_error(Box::new(error))))?;
        if let Some(status) = tonic::Status::from_header_map(response.headers()) {
            return Err(judged(status));
        }
        attempt.received();
        let body = response.into_body().collect().await.map_err(judged)?;
        let status = body.trailers().and_then(tonic::Status::from_header_map);
        match status.filter(|status| status.code() == tonic::Code::Ok) {
            Some(_) => Ok(Answer::new(body.to_bytes().to_vec())),
            None => Err(judged(tonic::Status::unknown("no status"))),
        }
    }
}

/// Says "unavailable" twice, then answers.
#[derive(Clone)]
struct Orders {
    seen: SeenHeaders,
}

impl tonic::server::NamedService for Orders {
    const NAME: &'static str = "orders.Orders";
}

impl Service<Request<Body>> for Orders {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut seen = self.seen.lock().unwrap();
        seen.push(request.headers().clone());
        if seen.len() < 3 {
            return ready(Ok(tonic::Status::unavailable("come again").into_http()));
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", "0".try_into().unwrap());
        let answered = async move { Some(Ok::<_, Infallible>(trailers)) };
        let body = Full::new(b"created".to_vec().into()).with_trailers(answered);
        let response = Response::builder().header("content-type", "application/grpc");
        ready(Ok(response.body(Body::new(body)).unwrap()))
    }
}

async fn listen() -> (tokio::net::TcpListener, SocketAddr) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn around_a_channel_of_tonic() {
    let (listener, address) = listen().await;
    let seen = SeenHeaders::default();
    let server = tonic::transport::Server::builder().add_service(Orders { seen: Arc::clone(&seen) });
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(server.serve_with_incoming(incoming));

    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let service = CallerLayer::new(caller(), Grpc).layer(channel);
    let finished = service.oneshot(b"order".to_vec()).await.unwrap();
    assert_eq!(finished.report.attempts, 3);
    let Outcome::Success { value, .. } = finished.outcome else { panic!("{finished:?}") };
    assert_eq!(value, b"created");
    assert_attempts_share_their_key_and_say_who_retries(
        &seen,
        "grpc-timeout",
        "grpc-previous-rpc-attempts",
        "counterfoil-retry-owner",
    );
}

#[tokio::test]
async fn a_refused_connection_of_tonic_is_known_to_have_sent_nothing() {
    let (listener, address) = listen().await;
    drop(listener);
    let channel = tonic::transport::Channel::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let finished = CallerLayer::new(caller(), Grpc).layer(channel).oneshot(b"order".to_vec()).await.unwrap();
    assert_eq!(finished.report.attempts, 3);
    assert!(matches!(finished.outcome, Outcome::Exhausted { reason: StopReason::Attempts, .. }), "{finished:?}");
}

struct Http {
    address: SocketAddr,
    clock: SystemClock,
}

impl Policy<&'static str> for Http {
    type Purpose = Mutation;
    type Inner = Request<Full<axum::body::Bytes>>;
    type Response = Response<hyper::body::Incoming>;
    type Error = hyper_util::client::legacy::Error;
    type Value = String;
    type Failure = String;

    fn call(&self, _: &&'static str) -> Call<Mutation> {
        Call::mutation("create", Identity::from_key("key-1").unwrap())
    }

    fn rebuild(&self, body: &&'static str, attempt: &Attempt) -> Result<Self::Inner, Expired> {
        let request = Request::post(format!("http://{}/orders", self.address));
        let mut request = request.body(Full::new((*body).into())).unwrap();
        propagate::http::write(&attempt.onward()?, request.headers_mut())?;
        let key = attempt.identity().unwrap().key().to_string();
        request.headers_mut().insert("idempotency-key", key.try_into().unwrap());
        Ok(request)
    }

    async fn judge(
        &self,
        attempt: &Attempt,
        result: Result<Self::Response, Self::Error>,
    ) -> Result<Answer<String>, AttemptError<String>> {
        let unknown = Verdict::maybe_applied(Kind::Transient);
        let response = result.map_err(|error| {
            let verdict = if error.is_connect() { Verdict::not_sent(Kind::Transient) } else { unknown };
            AttemptError::new(verdict, error.to_string())
        })?;
        attempt.received();
        let (status, headers) = (response.status(), response.headers());
        if let Some(verdict) = http_status::status(status, headers, self.clock.wall(), Contract::NONE) {
            return Err(AttemptError::new(verdict, status.to_string()));
        }
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| AttemptError::new(unknown, error.to_string()))?.to_bytes();
        Ok(Answer::new(String::from_utf8_lossy(&body).into_owned()))
    }
}

#[tokio::test]
async fn around_an_http_client() {
    let (listener, address) = listen().await;
    let seen = SeenHeaders::default();
    let calls = Arc::new(AtomicU32::new(0));
    let handler = {
        let seen = Arc::clone(&seen);
        move |headers: HeaderMap| {
            seen.lock().unwrap().push(headers);
            let call = calls.fetch_add(1, Ordering::SeqCst);
            let answer = match call {
                0 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")], "busy"),
                1 => (StatusCode::BAD_GATEWAY, [("x-none", "")], "lost"),
                _ => (StatusCode::CREATED, [("x-none", "")], "created"),
            };
            async move { answer }
        }
    };
    let routes = axum::Router::new().route("/orders", axum::routing::post(handler));
    tokio::spawn(axum::serve(listener, routes).into_future());

    let client = Client::builder(TokioExecutor::new()).build_http();
    let policy = Http { address, clock: SystemClock::default() };
    let finished = CallerLayer::new(caller(), policy).layer(client).oneshot("order").await.unwrap();
    assert_eq!(finished.report.attempts, 3);
    let Outcome::Success { value, .. } = finished.outcome else { panic!("{finished:?}") };
    assert_eq!(value, "created");
    assert_attempts_share_their_key_and_say_who_retries(
        &seen,
        "x-deadline-remaining-ms",
        "x-previous-attempts",
        "x-retry-owner",
    );
}

/// So that the boxed future of the service stays what it is documented to be.
#[test]
fn the_service_and_its_future_can_be_sent() {
    fn sendable<T: Send>(_: &T) {}
    let inner = Slow { world: World::new(), ready_after: 0, broken: false, wait: Arc::default() };
    let mut service = CallerLayer::new(caller(), Numbers).layer(inner);
    let future: Pin<Box<dyn Future<Output = Result<_, Infallible>> + Send>> = service.call(());
    sendable(&service);
    drop(future);
}
