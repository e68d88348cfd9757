//! The caller: one logical operation out of several attempts.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, header};
use counterfoil::call::classify::{Contract, http};
use counterfoil::call::{
    Answer, Attempt, AttemptError, Budget, BudgetConfig, Call, Caller, ConfigError, DeadlinePolicy, Finished, Identity,
    Kind, Pool, Verdict, propagate,
};
use counterfoil::{Clock, SystemClock};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::service::{KEY, RECEIPT, REPLAYED};

/// Orders from one service.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    address: SocketAddr,
    caller: Caller,
    client: Client<HttpConnector, Full<Bytes>>,
    clock: SystemClock,
}

impl Orders {
    pub(crate) fn new(address: SocketAddr) -> Result<Self, ConfigError> {
        // This network loses every third reply: a budget for weather like this, not for a usual day.
        let budget = Budget::new(BudgetConfig::default().ratio(1.0).reserve_per_second(10))?;
        let deadline = DeadlinePolicy::within(Duration::from_secs(5))
            .attempt(Duration::from_millis(500))
            .margin(Duration::from_millis(20));
        let caller = Caller::builder("orders", budget, Pool::bounded(8, 64)?)
            .deadline(deadline)
            .attempts(8)
            .backoff(Duration::from_millis(5), Duration::from_millis(100))
            .build()?;
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        Ok(Self { address, caller, client, clock: SystemClock::default() })
    }

    /// A new identity. Whoever wants the order to survive this process writes it down now.
    pub(crate) fn mint(&self) -> Identity {
        self.caller.mint()
    }

    /// Makes an order. The answer is its location.
    pub(crate) async fn create(&self, identity: Identity, order: &str) -> Finished<String, String> {
        let call = Call::mutation("create_order", identity);
        self.caller.call(call, |attempt| self.attempt(attempt, order.to_owned())).await
    }

    async fn attempt(&self, attempt: Attempt, order: String) -> Result<Answer<String>, AttemptError<String>> {
        let failed = |verdict, error: &dyn std::fmt::Display| AttemptError::new(verdict, error.to_string());
        let lost = Verdict::maybe_applied(Kind::Transient);
        let request =
            self.request(&attempt, order).map_err(|error| failed(Verdict::not_sent(Kind::Timeout), &error))?;
        let response = self.client.request(request).await.map_err(|error| {
            // Only a connection that was never made proves anything.
            failed(if error.is_connect() { Verdict::not_sent(Kind::Transient) } else { lost }, &error)
        })?;
        attempt.received();
        let (parts, body) = response.into_parts();
        let header = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let body = body.collect().await.map_err(|error| failed(lost, &error))?.to_bytes();
        let verdict = http::status(parts.status, &parts.headers, self.clock.wall(), Contract::RECEIPTS);
        match (verdict, header(&RECEIPT)) {
            // A stored "no" is an answer to the operation, whichever attempt hears it.
            (Some(_), Some("rejected")) => Err(failed(Verdict::rejected(), &String::from_utf8_lossy(&body))),
            (Some(verdict), _) => Err(failed(verdict, &parts.status)),
            (None, _) => {
                let location = header(&header::LOCATION).unwrap_or_default().to_owned();
                Ok(Answer::new(location).replayed(header(&REPLAYED) == Some("true")))
            }
        }
    }

    fn request(&self, attempt: &Attempt, order: String) -> Result<Request<Full<Bytes>>, propagate::Expired> {
        let uri = format!("http://{}/orders", self.address);
        let mut request = Request::post(uri).body(Full::new(order.into())).expect("an address makes a URI");
        let identity = attempt.identity().expect("a mutation has one");
        let headers = request.headers_mut();
        headers.insert(KEY, identity.key().to_string().try_into().expect("a UUID fits into a header"));
        propagate::http::write(&attempt.onward()?, headers)?;
        Ok(request)
    }

    /// How many orders there are.
    pub(crate) async fn count(&self) -> Result<u64, crate::Failed> {
        let uri = format!("http://{}/orders", self.address);
        let request = Request::get(uri).body(Full::default())?;
        let body = self.client.request(request).await?.into_body().collect().await?.to_bytes();
        Ok(std::str::from_utf8(&body)?.parse()?)
    }
}
