//! A caller around a tower service.
//!
//! The service that comes of it is always ready and never fails: whether the inner one is ready is asked inside each
//! attempt, where the wait counts against the deadline and an error is an attempt that sent nothing. Its response is a
//! [`Finished`].

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use super::attempt::{Answer, Attempt, AttemptError};
use super::caller::Caller;
use super::outcome::Finished;
use super::propagate::Expired;
use super::purpose::Call;
use super::verdict::{Kind, Verdict};

/// How requests of a protocol are called.
pub trait Policy<Request>: Send + Sync + 'static {
    /// Whether it reads or changes something: see [`Call`].
    type Purpose;
    /// What the inner service takes.
    type Inner: Send;
    /// What the inner service answers.
    type Response: Send;
    /// What the inner service fails with.
    type Error: Send;
    /// What an answer is turned into.
    type Value: Send;
    /// What a failure is turned into.
    type Failure: Send;

    /// The logical operation that a request is. Its identity is minted here, once.
    fn call(&self, request: &Request) -> Call<Self::Purpose>;

    /// The request of one attempt: with its identity, and with what travels along.
    ///
    /// # Errors
    ///
    /// [`Expired`] if no time is left.
    fn rebuild(&self, request: &Request, attempt: &Attempt) -> Result<Self::Inner, Expired>;

    /// What the inner service's answer amounts to. It may read the body: the attempt's limits still hold.
    fn judge(
        &self,
        attempt: &Attempt,
        result: Result<Self::Response, Self::Error>,
    ) -> impl Future<Output = Result<Answer<Self::Value>, AttemptError<Self::Failure>>> + Send;
}

/// What failed in an attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServiceError<E, F> {
    /// The inner service said that it will not be ready. Nothing was sent.
    NotReady(E),
    /// No time was left when the request was to be written. Nothing was sent.
    Expired,
    /// As the policy judged it.
    Failed(F),
}

/// Puts a caller around services.
#[derive(Debug)]
pub struct CallerLayer<P> {
    caller: Caller,
    policy: Arc<P>,
}

impl<P> CallerLayer<P> {
    /// Calls go through this caller, by this policy.
    pub fn new(caller: Caller, policy: P) -> Self {
        Self { caller, policy: Arc::new(policy) }
    }
}

impl<P> Clone for CallerLayer<P> {
    fn clone(&self) -> Self {
        Self { caller: self.caller.clone(), policy: Arc::clone(&self.policy) }
    }
}

impl<S, P> Layer<S> for CallerLayer<P> {
    type Service = CallerService<S, P>;

    fn layer(&self, inner: S) -> Self::Service {
        CallerService { inner, layer: self.clone() }
    }
}

/// A service that makes one logical operation of each request.
#[derive(Debug)]
pub struct CallerService<S, P> {
    inner: S,
    layer: CallerLayer<P>,
}

impl<S: Clone, P> Clone for CallerService<S, P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

/// What comes of a request.
pub type FinishedBy<P, Request> = Finished<
    <P as Policy<Request>>::Value,
    ServiceError<<P as Policy<Request>>::Error, <P as Policy<Request>>::Failure>,
>;

impl<S, P, Request> Service<Request> for CallerService<S, P>
where
    P: Policy<Request>,
    P::Purpose: 'static,
    Request: Send + Sync + 'static,
    S: Service<P::Inner, Response = P::Response, Error = P::Error> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = FinishedBy<P, Request>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (inner, layer) = (self.inner.clone(), self.layer.clone());
        Box::pin(async move {
            let call = layer.policy.call(&request);
            let (request, policy) = (&request, &*layer.policy);
            Ok(layer.caller.call(call, move |attempt| attempt_by(inner.clone(), policy, request, attempt)).await)
        })
    }
}

async fn attempt_by<S, P, Request>(
    mut inner: S,
    policy: &P,
    request: &Request,
    attempt: Attempt,
) -> Result<Answer<P::Value>, AttemptError<ServiceError<P::Error, P::Failure>>>
where
    P: Policy<Request>,
    S: Service<P::Inner, Response = P::Response, Error = P::Error>,
{
    attempt.connecting();
    let before = attempt.remaining();
    let ready = poll_fn(|cx| inner.poll_ready(cx)).await;
    attempt.waited_until_ready(before.saturating_sub(attempt.remaining()));
    ready.map_err(|error| AttemptError::new(Verdict::not_sent(Kind::Transient), ServiceError::NotReady(error)))?;
    let expired = |Expired| AttemptError::new(Verdict::not_sent(Kind::Timeout), ServiceError::Expired);
    let request = policy.rebuild(request, &attempt).map_err(expired)?;
    attempt.sending();
    let result = inner.call(request).await;
    let judged = policy.judge(&attempt, result).await;
    judged.map_err(|failed| failed.map(ServiceError::Failed))
}
