//! A replica's service and its client.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request as Call, Response, Status};

use super::pb::{self, control_request::What, execute_reply::Result as Told, replica_server::ReplicaServer};
use super::{CallError, MESSAGE_BYTES_MAX, Way, from_json, parse, to_json};
use crate::rules::barrier::Barrier;
use crate::rules::fault::{FaultRule, RuleId};
use crate::rules::ids::{Amount, Attempt, Endpoint, IncarnationId, Key, Millis, ReplicaId, SealedIntent};
use crate::rules::message::{Message, Reply};
use crate::rules::outcome::Outcome;
use crate::rules::record::{DiskIdentity, Receipt, Request};

/// What a replica says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// Who.
    pub replica: ReplicaId,
    /// Its process.
    pub pid: u32,
    /// Its disk.
    pub disk: DiskIdentity,
    /// Records on the disk.
    pub records: u64,
    /// Effects on the disk.
    pub effects: u64,
    /// Requests in hand.
    pub open_requests: u64,
    /// Which others answered it, and when it last knew.
    pub sees: BTreeMap<ReplicaId, (bool, Millis)>,
}

/// Where everybody listens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addresses {
    /// A higher one replaces a lower one.
    pub version: u64,
    /// Ports on 127.0.0.1.
    pub ports: BTreeMap<Endpoint, u16>,
}

/// A wish to stop at a named point.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Hold {
    /// Where.
    pub barrier: Barrier,
    /// With which key; any, if none is named.
    pub key: Option<Key>,
    /// In which attempt; any, if none is named.
    pub attempt: Option<Attempt>,
}

/// What a supervisor tells a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Where everybody listens.
    Addresses(Addresses),
    /// Arm a fault.
    ArmFault(RuleId, FaultRule),
    /// Take a fault away.
    DisarmFault(RuleId),
    /// Stop at a point.
    ArmHold(u64, Hold),
    /// Let go of all who stand there, and stop nobody else.
    ReleaseHold(u64),
    /// Execute from now on.
    TakeOver,
    /// A cut is gone.
    Healed,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controlled {
    /// How often a fault had hit, or how many stood at a hold.
    pub count: u32,
    /// To a take-over.
    pub reply: Option<Reply>,
}

/// What a replica does about a call. `Err` is text for whoever asked.
pub trait Handler: Clone + Send + Sync + 'static {
    /// A client asks.
    fn execute(&self, to: Option<ReplicaId>, request: Request) -> impl Future<Output = Result<Outcome, String>> + Send;
    /// A replica asks.
    fn peer(
        &self,
        from: ReplicaId,
        to: ReplicaId,
        message: Message,
    ) -> impl Future<Output = Result<Reply, String>> + Send;
    /// Who this is, and which addresses it knows.
    fn ping(&self) -> (String, ReplicaId, u64);
    /// One durable write.
    fn probe(&self) -> impl Future<Output = Result<String, String>> + Send;
    /// What it says about itself.
    fn status(&self) -> impl Future<Output = Result<ReplicaStatus, String>> + Send;
    /// What it holds for a key, as JSON.
    fn where_is(&self, key: Key) -> impl Future<Output = Result<String, String>> + Send;
    /// Everything durable, as JSON.
    fn contents(&self) -> impl Future<Output = Result<String, String>> + Send;
    /// The supervisor tells it something.
    fn control(&self, control: Control) -> impl Future<Output = Result<Controlled, String>> + Send;
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
    let server = ReplicaServer::new(Adapter(handler)).max_decoding_message_size(MESSAGE_BYTES_MAX);
    super::serve(listener, run, server, stop).await
}

struct Adapter<H>(H);

#[tonic::async_trait]
impl<H: Handler> pb::replica_server::Replica for Adapter<H> {
    async fn execute(&self, call: Call<pb::ExecuteRequest>) -> Result<Response<pb::ExecuteReply>, Status> {
        let asked = call.into_inner();
        let to = if asked.to.is_empty() { None } else { Some(parse(&asked.to)?) };
        let request = Request {
            key: parse(&asked.key)?,
            minted_at: Millis(asked.minted_at_ms),
            amount: Amount(asked.amount),
            attempt: Attempt(asked.attempt),
            intent: SealedIntent::from_wire(asked.sealed_intent),
        };
        let outcome = self.0.execute(to, request).await.map_err(Status::unavailable)?;
        Ok(Response::new(tell(&outcome)?))
    }

    async fn peer(&self, call: Call<pb::PeerRequest>) -> Result<Response<pb::PeerReply>, Status> {
        let asked = call.into_inner();
        let (from, to) = (parse(&asked.from)?, parse(&asked.to)?);
        let reply = self.0.peer(from, to, from_json(&asked.message)?).await.map_err(Status::unavailable)?;
        Ok(Response::new(pb::PeerReply { reply: to_json(&reply)? }))
    }

    async fn ping(&self, _: Call<pb::PingRequest>) -> Result<Response<pb::PingReply>, Status> {
        let (run, replica, addresses_version) = self.0.ping();
        Ok(Response::new(pb::PingReply { run, replica: replica.to_string(), addresses_version }))
    }

    async fn probe(&self, _: Call<pb::ProbeRequest>) -> Result<Response<pb::ProbeReply>, Status> {
        let position = self.0.probe().await.map_err(Status::internal)?;
        Ok(Response::new(pb::ProbeReply { position }))
    }

    async fn status(&self, _: Call<pb::StatusRequest>) -> Result<Response<pb::StatusReply>, Status> {
        let status = self.0.status().await.map_err(Status::internal)?;
        let seen = |(replica, (answers, at)): (&ReplicaId, &(bool, Millis))| pb::Seen {
            replica: replica.to_string(),
            answers: *answers,
            measured_at_ms: at.0,
        };
        Ok(Response::new(pb::StatusReply {
            run: self.0.ping().0,
            replica: status.replica.to_string(),
            pid: status.pid,
            incarnation: status.disk.incarnation.0,
            born_at_ms: status.disk.born_at.0,
            standing: to_json(&status.disk.standing)?,
            records: status.records,
            effects: status.effects,
            open_requests: status.open_requests,
            sees: status.sees.iter().map(seen).collect(),
        }))
    }

    async fn r#where(&self, call: Call<pb::WhereRequest>) -> Result<Response<pb::WhereReply>, Status> {
        let found = self.0.where_is(parse(&call.into_inner().key)?).await.map_err(Status::internal)?;
        Ok(Response::new(pb::WhereReply { found }))
    }

    async fn contents(&self, _: Call<pb::ContentsRequest>) -> Result<Response<pb::ContentsReply>, Status> {
        let contents = self.0.contents().await.map_err(Status::internal)?;
        Ok(Response::new(pb::ContentsReply { contents }))
    }

    async fn control(&self, call: Call<pb::ControlRequest>) -> Result<Response<pb::ControlReply>, Status> {
        let what = call.into_inner().what.ok_or_else(|| Status::invalid_argument("nothing to do"))?;
        let done = self.0.control(read_control(what)?).await.map_err(Status::unavailable)?;
        let reply = done.reply.as_ref().map(to_json).transpose()?.unwrap_or_default();
        Ok(Response::new(pb::ControlReply { count: done.count, reply }))
    }
}

fn read_control(what: What) -> Result<Control, Status> {
    Ok(match what {
        What::Addresses(told) => {
            let port = |(name, port): (String, u32)| {
                let port = u16::try_from(port).map_err(|_| Status::invalid_argument("no port"))?;
                Ok::<_, Status>((parse(&name)?, port))
            };
            let ports = told.ports.into_iter().map(port).collect::<Result<_, _>>()?;
            Control::Addresses(Addresses { version: told.version, ports })
        }
        What::ArmFault(fault) => Control::ArmFault(RuleId(fault.id), from_json(&fault.rule)?),
        What::DisarmFault(id) => Control::DisarmFault(RuleId(id)),
        What::ArmHold(hold) => {
            let key = if hold.key.is_empty() { None } else { Some(parse(&hold.key)?) };
            let attempt = (hold.attempt != 0).then_some(Attempt(hold.attempt));
            Control::ArmHold(hold.id, Hold { barrier: parse(&hold.barrier)?, key, attempt })
        }
        What::ReleaseHold(id) => Control::ReleaseHold(id),
        What::TakeOver(_) => Control::TakeOver,
        What::Healed(_) => Control::Healed,
    })
}

fn write_control(control: Control) -> Result<What, Status> {
    Ok(match control {
        Control::Addresses(Addresses { version, ports }) => What::Addresses(pb::Addresses {
            version,
            ports: ports.into_iter().map(|(who, port)| (who.to_string(), u32::from(port))).collect(),
        }),
        Control::ArmFault(id, rule) => What::ArmFault(pb::ArmFault { id: id.0, rule: to_json(&rule)? }),
        Control::DisarmFault(id) => What::DisarmFault(id.0),
        Control::ArmHold(id, hold) => What::ArmHold(pb::ArmHold {
            id,
            barrier: hold.barrier.to_string(),
            key: hold.key.map(String::from).unwrap_or_default(),
            attempt: hold.attempt.map_or(0, |attempt| attempt.0),
        }),
        Control::ReleaseHold(id) => What::ReleaseHold(id),
        Control::TakeOver => What::TakeOver(pb::TakeOver {}),
        Control::Healed => What::Healed(pb::Healed {}),
    })
}

fn tell(outcome: &Outcome) -> Result<pb::ExecuteReply, Status> {
    let result = match outcome {
        Outcome::Done { receipt, replayed } => Told::Done(pb::Done {
            receipt: Some(pb::Receipt {
                key: receipt.key.to_string(),
                amount: receipt.amount.0,
                attempt: receipt.attempt.0,
                by: receipt.by.to_string(),
                position: receipt.position,
            }),
            replayed: *replayed,
        }),
        Outcome::Refused(why) => Told::Refused(pb::NotDone { why: to_json(why)? }),
        Outcome::Unknown(why) => Told::Unknown(pb::NotDone { why: to_json(why)? }),
        Outcome::Mismatch { held } => Told::Mismatch(pb::Mismatch { held: held.0 }),
    };
    Ok(pb::ExecuteReply { result: Some(result), what_next: outcome.what_next().to_owned() })
}

fn hear(reply: pb::ExecuteReply) -> Result<Outcome, Status> {
    let result = reply.result.ok_or_else(|| Status::internal("an answer without a result"))?;
    Ok(match result {
        Told::Done(done) => {
            let told = done.receipt.ok_or_else(|| Status::internal("done, without a receipt"))?;
            let receipt = Receipt {
                key: parse(&told.key)?,
                amount: Amount(told.amount),
                attempt: Attempt(told.attempt),
                by: parse(&told.by)?,
                position: told.position,
            };
            Outcome::Done { receipt, replayed: done.replayed }
        }
        Told::Refused(not) => Outcome::Refused(from_json(&not.why)?),
        Told::Unknown(not) => Outcome::Unknown(from_json(&not.why)?),
        Told::Mismatch(mismatch) => Outcome::Mismatch { held: Amount(mismatch.held) },
    })
}

/// A client of one replica. Clones share the connection.
#[derive(Debug, Clone)]
pub struct ReplicaClient {
    inner: pb::replica_client::ReplicaClient<InterceptedService<Channel, Way>>,
}

impl ReplicaClient {
    /// To a port on 127.0.0.1, for one run. It connects when it is used.
    #[must_use]
    pub fn new(port: u16, run: &str) -> Self {
        let way = Way::new(port, run);
        let service = InterceptedService::new(way.channel.clone(), way);
        let inner = pb::replica_client::ReplicaClient::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { inner }
    }

    /// One attempt.
    ///
    /// # Errors
    ///
    /// [`CallError`], which says what it proves.
    pub async fn execute(&self, to: ReplicaId, request: &Request, within: Duration) -> Result<Outcome, CallError> {
        let asked = pb::ExecuteRequest {
            to: to.to_string(),
            key: request.key.to_string(),
            minted_at_ms: request.minted_at.0,
            amount: request.amount.0,
            attempt: request.attempt.0,
            sealed_intent: request.intent.to_wire().to_owned(),
        };
        let reply = Way::call(within, self.inner.clone().execute(asked)).await?;
        Ok(hear(reply)?)
    }

    /// What one replica asks another.
    ///
    /// # Errors
    ///
    /// [`CallError`], which says what it proves.
    pub async fn ask(
        &self,
        from: ReplicaId,
        to: ReplicaId,
        message: &Message,
        within: Duration,
    ) -> Result<Reply, CallError> {
        let asked = pb::PeerRequest {
            from: from.to_string(),
            to: to.to_string(),
            kind: message.kind().to_string(),
            message: to_json(message)?,
        };
        let reply = Way::call(within, self.inner.clone().peer(asked)).await?;
        Ok(from_json(&reply.reply)?)
    }

    /// A sign of life: which addresses it knows.
    ///
    /// # Errors
    ///
    /// [`CallError`], also if somebody else answers on this port.
    pub async fn ping(&self, from: Endpoint, to: ReplicaId, within: Duration) -> Result<u64, CallError> {
        let asked = pb::PingRequest { from: from.to_string() };
        let reply = Way::call(within, self.inner.clone().ping(asked)).await?;
        if reply.replica == to.to_string() {
            Ok(reply.addresses_version)
        } else {
            Err(Status::not_found(format!("{} answers, not {to}", reply.replica)).into())
        }
    }

    /// One durable write.
    ///
    /// # Errors
    ///
    /// [`CallError`] if none was reported in time.
    pub async fn probe(&self, within: Duration) -> Result<String, CallError> {
        Ok(Way::call(within, self.inner.clone().probe(pb::ProbeRequest {})).await?.position)
    }

    /// What it says about itself.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it says nothing in time.
    pub async fn status(&self, within: Duration) -> Result<ReplicaStatus, CallError> {
        let told = Way::call(within, self.inner.clone().status(pb::StatusRequest {})).await?;
        let seen = |seen: &pb::Seen| Ok((parse(&seen.replica)?, (seen.answers, Millis(seen.measured_at_ms))));
        Ok(ReplicaStatus {
            replica: parse(&told.replica)?,
            pid: told.pid,
            disk: DiskIdentity {
                incarnation: IncarnationId(told.incarnation),
                born_at: Millis(told.born_at_ms),
                standing: from_json(&told.standing)?,
            },
            records: told.records,
            effects: told.effects,
            open_requests: told.open_requests,
            sees: told.sees.iter().map(seen).collect::<Result<_, Status>>()?,
        })
    }

    /// What it holds for a key.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it says nothing in time.
    pub async fn where_is<T: serde::de::DeserializeOwned>(&self, key: &Key, within: Duration) -> Result<T, CallError> {
        let asked = pb::WhereRequest { key: key.to_string() };
        Ok(from_json(&Way::call(within, self.inner.clone().r#where(asked)).await?.found)?)
    }

    /// Everything durable there.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it says nothing in time.
    pub async fn contents<T: serde::de::DeserializeOwned>(&self, within: Duration) -> Result<T, CallError> {
        Ok(from_json(&Way::call(within, self.inner.clone().contents(pb::ContentsRequest {})).await?.contents)?)
    }

    /// Tells it something.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it does not confirm it in time.
    pub async fn control(&self, control: Control, within: Duration) -> Result<Controlled, CallError> {
        let asked = pb::ControlRequest { what: Some(write_control(control)?) };
        let done = Way::call(within, self.inner.clone().control(asked)).await?;
        let reply = if done.reply.is_empty() { None } else { Some(from_json(&done.reply)?) };
        Ok(Controlled { count: done.count, reply })
    }
}
