//! The payment provider's service and its client.

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::net::TcpListener;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request as Call, Response, Status};

use super::pb::{self, provider_server::ProviderServer};
use super::{CallError, MESSAGE_BYTES_MAX, Way, from_json, parse, to_json};
use crate::rules::ids::{Amount, Attempt, SealedIntent};
use crate::rules::message::{ProviderCall, ProviderReply};
use crate::rules::record::{Charge, EffectRow, Slot};

/// What the provider does about a call.
pub trait Handler: Clone + Send + Sync + 'static {
    /// Charge, or say what became of an identity.
    fn answer(&self, call: ProviderCall) -> impl Future<Output = ProviderReply> + Send;
    /// Every charge, in order.
    fn ledger(&self) -> impl Future<Output = Result<Vec<Charge>, String>> + Send;
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
    let server = ProviderServer::new(Adapter { run: run.to_owned(), handler });
    super::serve(listener, run, server, stop).await
}

struct Adapter<H> {
    run: String,
    handler: H,
}

#[tonic::async_trait]
impl<H: Handler> pb::provider_server::Provider for Adapter<H> {
    async fn pay(&self, call: Call<pb::PayRequest>) -> Result<Response<pb::PayReply>, Status> {
        let asked = call.into_inner();
        let row = EffectRow {
            intent: SealedIntent::from_wire(asked.sealed_intent),
            key: parse(&asked.key)?,
            amount: Amount(asked.amount),
            attempt: Attempt(asked.attempt),
            by: parse(&asked.by)?,
        };
        let identity = asked.identity.map(Slot);
        let (compares_amounts, deduplicate) = (asked.compares_amounts, asked.deduplicate);
        let reply = self.handler.answer(ProviderCall::Pay { row, identity, compares_amounts, deduplicate }).await;
        Ok(Response::new(pb::PayReply { reply: to_json(&reply)? }))
    }

    async fn look_up(&self, call: Call<pb::LookUpRequest>) -> Result<Response<pb::PayReply>, Status> {
        let identity = Slot(call.into_inner().identity);
        let reply = self.handler.answer(ProviderCall::LookUp { identity }).await;
        Ok(Response::new(pb::PayReply { reply: to_json(&reply)? }))
    }

    async fn ledger(&self, _: Call<pb::LedgerRequest>) -> Result<Response<pb::LedgerReply>, Status> {
        let charges = self.handler.ledger().await.map_err(Status::internal)?;
        Ok(Response::new(pb::LedgerReply { charges: to_json(&charges)? }))
    }

    async fn alive(&self, _: Call<pb::AliveRequest>) -> Result<Response<pb::AliveReply>, Status> {
        Ok(Response::new(pb::AliveReply { run: self.run.clone() }))
    }
}

/// A client of the provider. Clones share the connection.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    inner: pb::provider_client::ProviderClient<InterceptedService<Channel, Way>>,
}

impl ProviderClient {
    /// To a port on 127.0.0.1, for one run. It connects when it is used.
    #[must_use]
    pub fn new(port: u16, run: &str) -> Self {
        let way = Way::new(port, run);
        let service = InterceptedService::new(way.channel.clone(), way);
        let inner = pb::provider_client::ProviderClient::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { inner }
    }

    /// One call.
    ///
    /// # Errors
    ///
    /// [`CallError`], which says what it proves.
    pub async fn call(&self, call: &ProviderCall, within: Duration) -> Result<ProviderReply, CallError> {
        let mut client = self.inner.clone();
        let reply = match call {
            ProviderCall::Pay { row, identity, compares_amounts, deduplicate } => {
                let asked = pb::PayRequest {
                    key: row.key.to_string(),
                    amount: row.amount.0,
                    attempt: row.attempt.0,
                    by: row.by.to_string(),
                    sealed_intent: row.intent.to_wire().to_owned(),
                    identity: identity.as_ref().map(|slot| slot.0.clone()),
                    compares_amounts: *compares_amounts,
                    deduplicate: *deduplicate,
                };
                Way::call(within, client.pay(asked)).await?
            }
            ProviderCall::LookUp { identity } => {
                Way::call(within, client.look_up(pb::LookUpRequest { identity: identity.0.clone() })).await?
            }
        };
        Ok(from_json(&reply.reply)?)
    }

    /// Every charge, in order.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it says nothing in time.
    pub async fn ledger(&self, within: Duration) -> Result<Vec<Charge>, CallError> {
        Ok(from_json(&Way::call(within, self.inner.clone().ledger(pb::LedgerRequest {})).await?.charges)?)
    }

    /// Whether it answers.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it does not.
    pub async fn alive(&self, within: Duration) -> Result<(), CallError> {
        Way::call(within, self.inner.clone().alive(pb::AliveRequest {})).await.map(drop)
    }
}
