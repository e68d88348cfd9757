//! The caller.

use std::future::Future;
use std::sync::Arc;

use crate::base::name::Tenant;

use super::attempt::{Answer, Attempt, AttemptError};
use super::blocking;
use super::breaker::BreakerState;
use super::breaker_registry::Population;
use super::budget::Budget;
use super::builder::CallerBuilder;
use super::bulkhead::Pool;
use super::core::Core;
use super::driver;
use super::flow::Flow;
use super::hedge;
use super::identity::Identity;
use super::outcome::{Finished, Outcome};
use super::purpose::{Call, Read, Spec};

/// Calls one dependency. Clones share everything: the budget, the pool, the breakers.
///
/// Each method makes one logical operation out of as many attempts as the rules allow. The closure is called once for each
/// attempt; it builds the request anew from its context ([`Attempt`]): the time that is left, the number, the identity.
#[derive(Clone, Debug)]
pub struct Caller(pub(crate) Arc<Core>);

impl Caller {
    /// Begins a caller for this dependency. There is none without a budget for retries, and none for which nobody thought
    /// about how many attempts may be under way.
    #[must_use = "nothing is built yet"]
    pub fn builder(dependency: impl Into<Arc<str>>, budget: Budget, pool: Pool) -> CallerBuilder {
        CallerBuilder::new(dependency.into(), budget, pool)
    }

    /// A new identity for one logical operation. Mint it once, before the first attempt; write it down if the operation
    /// must survive this process.
    #[must_use]
    pub fn mint(&self) -> Identity {
        Identity::mint(self.0.clock.wall(), [self.0.random.draw(), self.0.random.draw()])
    }

    /// Begins an operation that the program drives itself: see [`Flow`].
    #[must_use]
    pub fn begin<P>(&self, call: Call<P>) -> Flow {
        let flow = self.begin_spec(call.spec);
        flow.announce();
        flow
    }

    /// As [`Caller::begin`], and not announced yet.
    pub(crate) fn begin_spec(&self, spec: Spec) -> Flow {
        let draws = [self.0.random.draw(), self.0.random.draw()];
        Flow::begin(Arc::clone(&self.0), spec, self.0.clock.monotonic(), draws)
    }

    /// Makes one logical operation. Dropping the future cancels it; what may have been done stays uncertain.
    pub fn call<P, T, E, F, Fut>(&self, call: Call<P>, make: F) -> impl Future<Output = Finished<T, E>>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<T>, AttemptError<E>>>,
    {
        driver::drive(self, call.spec, make)
    }

    /// Makes exactly one attempt, and leaves the retries to whoever is called: everything else is as in [`Caller::call`].
    pub async fn call_once<P, T, E, F, Fut>(&self, call: Call<P>, make: F) -> Finished<T, E>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<T>, AttemptError<E>>>,
    {
        driver::drive(self, call.once().spec, make).await
    }

    /// Makes one logical operation on this thread. The closure is not interrupted: it must keep
    /// [`Attempt::connect_timeout`] and [`Attempt::io_timeout`] itself. An answer that comes after the deadline is
    /// a success that says so.
    pub fn call_blocking<P, T, E>(
        &self,
        call: Call<P>,
        make: impl FnMut(Attempt) -> Result<Answer<T>, AttemptError<E>>,
    ) -> Finished<T, E> {
        blocking::drive(self.begin(call), make)
    }

    /// [`Caller::call_once`] on this thread.
    pub fn call_once_blocking<P, T, E>(
        &self,
        call: Call<P>,
        make: impl FnMut(Attempt) -> Result<Answer<T>, AttemptError<E>>,
    ) -> Finished<T, E> {
        blocking::drive(self.begin(call.once()), make)
    }

    /// A read with a second attempt beside a slow first one; as [`Caller::call`] without a
    /// [hedge policy](CallerBuilder::hedge).
    ///
    /// A mutation cannot be hedged:
    ///
    /// ```compile_fail,E0308
    /// # use counterfoil::call::*;
    /// async fn hedged_write(caller: &Caller) {
    ///     let call = Call::mutation("create_order", caller.mint());
    ///     caller.hedged_read(call, |_| async { Ok::<_, AttemptError<()>>(Answer::new(())) }).await;
    /// }
    /// ```
    ///
    /// The same with a read compiles:
    ///
    /// ```
    /// # use counterfoil::call::*;
    /// async fn hedged_read(caller: &Caller) -> Option<()> {
    ///     let call = Call::read("get_order");
    ///     caller.hedged_read(call, |_| async { Ok::<_, AttemptError<()>>(Answer::new(())) }).await.success()
    /// }
    /// ```
    pub async fn hedged_read<T, E, F, Fut>(&self, call: Call<Read>, make: F) -> Finished<T, E>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<T>, AttemptError<E>>>,
    {
        hedge::drive(self.begin(call), make).await
    }

    /// A read that something else answers if it cannot be made: then it is [`Outcome::Degraded`], never a success. A
    /// refusal stays a refusal.
    ///
    /// A question of authorisation has no fallback, since nothing but its answer may grant access:
    ///
    /// ```compile_fail,E0308
    /// # use counterfoil::call::*;
    /// async fn may_read(caller: &Caller) {
    ///     let call = Call::authorisation("may_read");
    ///     caller.call_with_fallback(call, |_| async { Ok::<_, AttemptError<()>>(Answer::new(true)) }, || true).await;
    /// }
    /// ```
    ///
    /// The same with a recommendation compiles:
    ///
    /// ```
    /// # use counterfoil::call::*;
    /// async fn recommend(caller: &Caller) -> Option<bool> {
    ///     let call = Call::read("recommend");
    ///     let attempt = |_| async { Ok::<_, AttemptError<()>>(Answer::new(true)) };
    ///     caller.call_with_fallback(call, attempt, || true).await.success()
    /// }
    /// ```
    pub async fn call_with_fallback<T, E, F, Fut>(
        &self,
        call: Call<Read>,
        make: F,
        fallback: impl FnOnce() -> T,
    ) -> Finished<T, E>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<Answer<T>, AttemptError<E>>>,
    {
        driver::drive(self, call.with_fallback().spec, make).await.or_degraded(fallback)
    }

    /// [`Caller::call_with_fallback`] on this thread.
    pub fn call_with_fallback_blocking<T, E>(
        &self,
        call: Call<Read>,
        make: impl FnMut(Attempt) -> Result<Answer<T>, AttemptError<E>>,
        fallback: impl FnOnce() -> T,
    ) -> Finished<T, E> {
        blocking::drive(self.begin(call.with_fallback()), make).or_degraded(fallback)
    }

    /// How many retries the budget would allow at this moment.
    #[must_use]
    pub fn budget_balance(&self) -> u64 {
        self.0.budget.balance(self.0.clock.monotonic())
    }

    /// What the breaker of an operation does. `None`: there are no breakers, or nothing was called.
    #[must_use]
    pub fn breaker_state(&self, operation: &'static str, tenant: Option<&Tenant>) -> Option<BreakerState> {
        let population = Population { operation, tenant: tenant.cloned() };
        self.0.breakers.as_ref().and_then(|breakers| breakers.state(&population))
    }
}

impl<T, E> Finished<T, E> {
    fn or_degraded(self, fallback: impl FnOnce() -> T) -> Self {
        let Self { outcome, report } = self;
        let (ending, error) = match outcome {
            Outcome::Exhausted { reason, retry_after, error } => {
                (super::Ending::Exhausted { reason, retry_after }, error)
            }
            Outcome::Overloaded { source, retry_after, error } => {
                (super::Ending::Overloaded { source, retry_after }, error)
            }
            Outcome::DeadlineExceeded { phase, error } => (super::Ending::DeadlineExceeded { phase }, error),
            outcome @ (Outcome::Success { .. }
            | Outcome::Degraded { .. }
            | Outcome::Rejected { .. }
            | Outcome::Uncertain { .. }
            | Outcome::Cancelled { .. }) => return Self { outcome, report },
        };
        Self { outcome: Outcome::Degraded { value: fallback(), ending, error }, report }
    }
}
