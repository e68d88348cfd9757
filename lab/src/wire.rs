//! The wire: the only file, with the folder beside it, that names protobuf types.
//!
//! Everybody else speaks the types of the rules. Here they become messages and come back, servers are put together with
//! health and reflection, and what a failed call proves is read off the error.
//!
//! A call that failed proves "not executed" in three cases only: no connection was made, the stream was refused, or the
//! server shed it before it looked. Status codes alone prove nothing: a server killed in the middle of a call has been
//! seen as `Unavailable`, `Unknown`, `Cancelled` and `Internal`.

pub mod provider;
pub mod replica;
pub mod supervisor;

#[expect(
    unreachable_pub,
    unused_qualifications,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated from proto/, where it is documented"
)]
mod pb {
    tonic::include_proto!("counterfoil.lab.v1");
}

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataValue;
use tonic::service::{Interceptor, InterceptorLayer};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Status};

use crate::rules::classify::{Code, Sign};

/// Large enough for the contents of a disk after a load of some ten thousands of operations.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The run that a caller means. Ports are given out again, and two labs at once must not meet.
const RUN_HEADER: &str = "lab-run";

const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lab.descriptors"));

/// A call that brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// What tonic called it; it proves nothing.
    pub code: Code,
    /// What the chain of sources shows.
    pub sign: Sign,
    /// For people; it decides nothing.
    pub message: String,
}

impl CallError {
    fn timed_out(after: Duration) -> Self {
        let message = format!("no answer within {} ms", after.as_millis());
        Self { code: Code::Cancelled, sign: Sign::OwnDeadline, message }
    }

    /// There is nobody to call.
    #[must_use]
    pub fn nobody(message: String) -> Self {
        Self { code: Code::Unavailable, sign: Sign::NotConnected, message }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let message = status.message().to_owned();
        Self { code: code(status.code()), sign: sign(&status), message }
    }
}

/// Reads off the chain of sources what a failed call proves. Texts are never looked at.
fn sign(status: &Status) -> Sign {
    let mut source: Option<&(dyn StdError + 'static)> = status.source();
    while let Some(error) = source {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return Sign::NotConnected;
        }
        if error.downcast_ref::<h2::Error>().is_some_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM)) {
            return Sign::RefusedStream;
        }
        source = error.source();
    }
    Sign::None
}

const fn code(code: tonic::Code) -> Code {
    match code {
        tonic::Code::Ok => Code::Ok,
        tonic::Code::Cancelled => Code::Cancelled,
        tonic::Code::Unknown => Code::Unknown,
        tonic::Code::InvalidArgument => Code::InvalidArgument,
        tonic::Code::DeadlineExceeded => Code::DeadlineExceeded,
        tonic::Code::NotFound => Code::NotFound,
        tonic::Code::AlreadyExists => Code::AlreadyExists,
        tonic::Code::PermissionDenied => Code::PermissionDenied,
        tonic::Code::ResourceExhausted => Code::ResourceExhausted,
        tonic::Code::FailedPrecondition => Code::FailedPrecondition,
        tonic::Code::Aborted => Code::Aborted,
        tonic::Code::OutOfRange => Code::OutOfRange,
        tonic::Code::Unimplemented => Code::Unimplemented,
        tonic::Code::Internal => Code::Internal,
        tonic::Code::Unavailable => Code::Unavailable,
        tonic::Code::DataLoss => Code::DataLoss,
        tonic::Code::Unauthenticated => Code::Unauthenticated,
    }
}

/// A way to one process. It connects when it is used, and again when the connection broke.
#[derive(Debug, Clone)]
struct Way {
    channel: Channel,
    run: Option<MetadataValue<tonic::metadata::Ascii>>,
}

impl Way {
    /// To a port on 127.0.0.1, for one run.
    fn new(port: u16, run: &str) -> Self {
        let channel = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))
            .expect("a port makes a whole address")
            .connect_timeout(Duration::from_millis(500))
            // A paused process answers nothing, and its connection stays open for ever.
            .http2_keep_alive_interval(Duration::from_secs(2))
            .keep_alive_timeout(Duration::from_secs(3))
            .keep_alive_while_idle(true)
            .tcp_nodelay(true)
            .connect_lazy();
        Self { channel, run: run.parse().ok() }
    }

    /// One call with an outer deadline: connecting is bounded by it too.
    async fn call<T, F>(within: Duration, call: F) -> Result<T, CallError>
    where
        F: Future<Output = Result<tonic::Response<T>, Status>>,
    {
        if within.is_zero() {
            // Polled once, it could send something.
            return Err(CallError { sign: Sign::NothingSent, ..CallError::timed_out(within) });
        }
        match tokio::time::timeout(within, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(status.into()),
            Err(_) => Err(CallError::timed_out(within)),
        }
    }
}

/// Puts the run into each call.
impl Interceptor for Way {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(run) = &self.run {
            request.metadata_mut().insert(RUN_HEADER, run.clone());
        }
        Ok(request)
    }
}

/// Turns away who means another run. Who names none, such as grpcurl, is let in.
#[derive(Debug, Clone)]
struct OwnRun(String);

impl Interceptor for OwnRun {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        match request.metadata().get(RUN_HEADER) {
            Some(run) if run.as_bytes() != self.0.as_bytes() => {
                Err(Status::failed_precondition(format!("this is run {}, not the one you mean", self.0)))
            }
            Some(_) | None => Ok(request),
        }
    }
}

/// Serves one service with health and reflection until `stop` ends, and then at most until what is open is done.
async fn serve<S>(listener: TcpListener, run: &str, service: S, stop: impl Future<Output = ()>) -> io::Result<()>
where
    S: tonic::codegen::Service<
            tonic::codegen::http::Request<tonic::body::Body>,
            Response = tonic::codegen::http::Response<tonic::body::Body>,
            Error = std::convert::Infallible,
        > + tonic::server::NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status(S::NAME, tonic_health::ServingStatus::Serving).await;
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let newer = reflection().build_v1().map_err(io::Error::other)?;
    let older = reflection().build_v1alpha().map_err(io::Error::other)?;
    Server::builder()
        .tcp_nodelay(true)
        // A process that comes back from a pause finds the resets of all who gave up meanwhile, and that is no attack.
        .http2_max_pending_accept_reset_streams(Some(100_000))
        .layer(InterceptorLayer::new(OwnRun(run.to_owned())))
        .add_service(service)
        .add_service(health)
        .add_service(newer)
        .add_service(older)
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop)
        .await
        .map_err(io::Error::other)
}

fn to_json<T: Serialize>(value: &T) -> Result<String, Status> {
    serde_json::to_string(value).map_err(|error| Status::internal(error.to_string()))
}

/// What does not read is told to whoever sent it.
fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Status> {
    serde_json::from_str(text).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Status> {
    text.parse().map_err(|error: T::Err| Status::invalid_argument(error.to_string()))
}
