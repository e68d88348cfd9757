//! The supervisor's service for other terminals, and its client.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request as Call, Response, Status};

use super::pb::{self, supervisor_server::SupervisorServer};
use super::{CallError, MESSAGE_BYTES_MAX, Way, from_json, parse, to_json};
use crate::rules::ids::{Endpoint, Key};
use crate::rules::knobs::Knobs;

/// Which run this is, and where everybody is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Description {
    /// The run.
    pub run: String,
    /// The supervisor's process.
    pub pid: u32,
    /// Where it keeps its files.
    pub directory: String,
    /// The seed of its loads.
    pub seed: u64,
    /// Its switches.
    pub knobs: Knobs,
    /// How many replicas are configured.
    pub configured: u8,
    /// Ports of those who live.
    pub ports: BTreeMap<Endpoint, u16>,
}

/// What a supervisor does about a call. Reports are JSON; `Err` is a line for people.
pub trait Handler: Clone + Send + Sync + 'static {
    /// Which run this is.
    fn describe(&self) -> Description;
    /// The lamps, measured now.
    fn status(&self) -> impl Future<Output = Result<String, String>> + Send;
    /// Does something to the cluster.
    fn act(&self, act: String) -> impl Future<Output = Result<String, String>> + Send;
    /// Where the record of a key is.
    fn where_is(&self, key: Key) -> impl Future<Output = Result<String, String>> + Send;
    /// Events of clients.
    fn record(&self, events: Vec<String>) -> impl Future<Output = Result<(), String>> + Send;
    /// Everything durable.
    fn collect(&self) -> impl Future<Output = Result<String, String>> + Send;
    /// Ends the run. It answers when everybody is gone.
    fn down(&self) -> impl Future<Output = Result<String, String>> + Send;
}

/// Serves until `stop` ends.
///
/// # Errors
///
/// If the listener fails.
pub async fn serve(
    listener: TcpListener,
    run: &str,
    handler: impl Handler,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let server = SupervisorServer::new(Adapter(handler)).max_decoding_message_size(MESSAGE_BYTES_MAX);
    super::serve(listener, run, server, stop).await
}

struct Adapter<H>(H);

type Reported = Result<Response<pb::Report>, Status>;

fn report(result: Result<String, String>) -> Reported {
    result.map(|json| Response::new(pb::Report { json })).map_err(Status::failed_precondition)
}

#[tonic::async_trait]
impl<H: Handler> pb::supervisor_server::Supervisor for Adapter<H> {
    async fn describe(&self, _: Call<pb::DescribeRequest>) -> Result<Response<pb::DescribeReply>, Status> {
        let described = self.0.describe();
        Ok(Response::new(pb::DescribeReply {
            run: described.run,
            pid: described.pid,
            directory: described.directory,
            seed: described.seed,
            knobs: to_json(&described.knobs)?,
            ports: described.ports.into_iter().map(|(who, port)| (who.to_string(), u32::from(port))).collect(),
            configured: u32::from(described.configured),
        }))
    }

    async fn status(&self, _: Call<pb::ClusterStatusRequest>) -> Reported {
        report(self.0.status().await)
    }

    async fn act(&self, call: Call<pb::ActRequest>) -> Reported {
        report(self.0.act(call.into_inner().act).await)
    }

    async fn r#where(&self, call: Call<pb::WhereIsRequest>) -> Reported {
        report(self.0.where_is(parse(&call.into_inner().key)?).await)
    }

    async fn record(&self, call: Call<pb::RecordRequest>) -> Result<Response<pb::RecordReply>, Status> {
        let recorded = self.0.record(call.into_inner().events).await;
        recorded.map(|()| Response::new(pb::RecordReply {})).map_err(Status::invalid_argument)
    }

    async fn collect(&self, _: Call<pb::CollectRequest>) -> Reported {
        report(self.0.collect().await)
    }

    async fn down(&self, _: Call<pb::DownRequest>) -> Reported {
        report(self.0.down().await)
    }
}

/// A client of a supervisor.
#[derive(Debug, Clone)]
pub struct SupervisorClient {
    inner: pb::supervisor_client::SupervisorClient<InterceptedService<Channel, Way>>,
}

impl SupervisorClient {
    /// To a port on 127.0.0.1, for one run: another run there turns it away.
    #[must_use]
    pub fn new(port: u16, run: &str) -> Self {
        let way = Way::new(port, run);
        let service = InterceptedService::new(way.channel.clone(), way);
        let inner = pb::supervisor_client::SupervisorClient::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { inner }
    }

    /// Which run this is.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it does not say so in time, or is another one.
    pub async fn describe(&self, within: Duration) -> Result<Description, CallError> {
        let told = Way::call(within, self.inner.clone().describe(pb::DescribeRequest {})).await?;
        let port = |(who, port): (String, u32)| {
            let port = u16::try_from(port).map_err(|_| Status::internal("no port"))?;
            Ok::<_, Status>((parse(&who)?, port))
        };
        Ok(Description {
            run: told.run,
            pid: told.pid,
            directory: told.directory,
            seed: told.seed,
            knobs: from_json(&told.knobs)?,
            configured: u8::try_from(told.configured).map_err(|_| Status::internal("too many"))?,
            ports: told.ports.into_iter().map(port).collect::<Result<_, _>>()?,
        })
    }

    /// The lamps, measured now.
    ///
    /// # Errors
    ///
    /// [`CallError`] with the supervisor's line.
    pub async fn status<T: DeserializeOwned>(&self, within: Duration) -> Result<T, CallError> {
        Ok(from_json(&Way::call(within, self.inner.clone().status(pb::ClusterStatusRequest {})).await?.json)?)
    }

    /// Does something to the cluster.
    ///
    /// # Errors
    ///
    /// [`CallError`] with the supervisor's line.
    pub async fn act<T: DeserializeOwned>(
        &self,
        act: &impl serde::Serialize,
        within: Duration,
    ) -> Result<T, CallError> {
        let asked = pb::ActRequest { act: to_json(act)? };
        Ok(from_json(&Way::call(within, self.inner.clone().act(asked)).await?.json)?)
    }

    /// Where the record of a key is.
    ///
    /// # Errors
    ///
    /// [`CallError`] with the supervisor's line.
    pub async fn where_is<T: DeserializeOwned>(&self, key: &Key, within: Duration) -> Result<T, CallError> {
        let asked = pb::WhereIsRequest { key: key.to_string() };
        Ok(from_json(&Way::call(within, self.inner.clone().r#where(asked)).await?.json)?)
    }

    /// Puts events of a client into the history.
    ///
    /// # Errors
    ///
    /// [`CallError`] if they are not there.
    pub async fn record(&self, events: Vec<String>, within: Duration) -> Result<(), CallError> {
        Way::call(within, self.inner.clone().record(pb::RecordRequest { events })).await.map(drop)
    }

    /// Everything durable, for the judge.
    ///
    /// # Errors
    ///
    /// [`CallError`] with the supervisor's line.
    pub async fn collect<T: DeserializeOwned>(&self, within: Duration) -> Result<T, CallError> {
        Ok(from_json(&Way::call(within, self.inner.clone().collect(pb::CollectRequest {})).await?.json)?)
    }

    /// Ends the run; the answer comes when everybody is gone.
    ///
    /// # Errors
    ///
    /// [`CallError`] with the supervisor's line.
    pub async fn down<T: DeserializeOwned>(&self, within: Duration) -> Result<T, CallError> {
        Ok(from_json(&Way::call(within, self.inner.clone().down(pb::DownRequest {})).await?.json)?)
    }
}
