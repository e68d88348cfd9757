//! `cargo bench -p counterfoil-benches --bench call`: what a call that succeeds at once costs, bare, in tower's layers, and
//! in this crate's caller with everything on.
//!
//! Each round runs all of them, one after the other, so that a machine that is busy for a while is busy for all. Shown is
//! the median of the rounds, and the fastest.

use std::convert::Infallible;
use std::future::Ready;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil::call::{
    Answer, AttemptError, BreakerConfig, Budget, BudgetConfig, Call, Caller, ConfigError, DeadlinePolicy, Identity,
    Measures, Pool,
};
use tower::retry::Policy;
use tower::retry::budget::{Budget as _, TpsBudget};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

const ROUNDS: usize = 60;
const CALLS: u32 = 5_000;
/// Deadline of an operation, and of one attempt.
const WHOLE: Duration = Duration::from_secs(1);
const ATTEMPT: Duration = Duration::from_millis(500);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ConfigError> {
    let mut names_and_times = [
        "bare",
        "tower: retry, timeout, limit",
        "tower: with budget and deadline",
        "counterfoil: the same",
        "counterfoil: and breaker",
        "counterfoil: all, mutation, measured",
    ]
    .map(|name| (name, Vec::new()));
    let (least, plain, observed) = (caller(false, false)?, caller(true, false)?, caller(true, true)?);
    let identity = plain.mint();
    for _ in 0..ROUNDS {
        let times = [
            bare().await,
            in_tower().await,
            in_tower_with_budget_and_deadline().await,
            reads(&least).await,
            reads(&plain).await,
            mutations(&observed, &identity).await,
        ];
        for ((_, all), time) in names_and_times.iter_mut().zip(times) {
            all.push(time);
        }
    }
    println!("{:<38}{:>12}{:>12}", "a call that succeeds at once", "median", "fastest");
    for (name, mut times) in names_and_times {
        times.sort_unstable();
        println!("{name:<38}{:>9} ns{:>9} ns", times[times.len() / 2].as_nanos(), times[0].as_nanos());
    }
    Ok(())
}

async fn service(number: u64) -> Result<u64, Infallible> {
    Ok(black_box(number))
}

fn each(started: Instant) -> Duration {
    started.elapsed() / CALLS
}

async fn bare() -> Duration {
    let started = Instant::now();
    for number in 0..u64::from(CALLS) {
        black_box(service(number).await.ok());
    }
    each(started)
}

/// Retries as often as its budget allows. Nothing fails, so it is asked, and pays in, and retries nothing.
#[derive(Clone)]
struct Retries {
    left: u32,
    budget: Option<Arc<TpsBudget>>,
}

impl Policy<u64, u64, BoxError> for Retries {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, BoxError>) -> Option<Ready<()>> {
        if result.is_ok() {
            if let Some(budget) = &self.budget {
                budget.deposit();
            }
            return None;
        }
        let allowed = self.left > 0 && self.budget.as_ref().is_none_or(|budget| budget.withdraw());
        allowed.then(|| {
            self.left -= 1;
            std::future::ready(())
        })
    }

    fn clone_request(&mut self, number: &u64) -> Option<u64> {
        Some(*number)
    }
}

/// Retry, a timeout for the attempt, and a limit of concurrency: no budget, no deadline of the whole.
async fn in_tower() -> Duration {
    let retries = Retries { left: 2, budget: None };
    let layers = ServiceBuilder::new().retry(retries).timeout(ATTEMPT).concurrency_limit(64);
    through(layers.service_fn(service)).await
}

/// The same with tower's budget for retries, and a timeout for all attempts together: what a caller of this crate cannot
/// be built without.
async fn in_tower_with_budget_and_deadline() -> Duration {
    let retries = Retries { left: 2, budget: Some(Arc::new(TpsBudget::default())) };
    let layers = ServiceBuilder::new().timeout(WHOLE).retry(retries).timeout(ATTEMPT).concurrency_limit(64);
    through(layers.service_fn(service)).await
}

async fn through(mut tower: impl Service<u64, Response = u64>) -> Duration {
    let started = Instant::now();
    for number in 0..u64::from(CALLS) {
        let ready = tower.ready().await;
        if let Ok(ready) = ready {
            black_box(ready.call(number).await.ok());
        }
    }
    each(started)
}

/// Deadline, attempt timeout, retries with budget, pool; if asked for, a breaker and measures.
fn caller(breaker: bool, measured: bool) -> Result<Caller, ConfigError> {
    let budget = Budget::new(BudgetConfig::default())?;
    let mut builder = Caller::builder("bench", budget, Pool::bounded(64, 64)?)
        .deadline(DeadlinePolicy::within(WHOLE).attempt(ATTEMPT));
    if breaker {
        builder = builder.breaker(BreakerConfig::new(20, 0.5));
    }
    if measured {
        builder = builder.observer(Arc::new(Measures::default()));
    }
    builder.build()
}

async fn attempt(number: u64) -> Result<Answer<u64>, AttemptError<Infallible>> {
    match service(number).await {
        Ok(number) => Ok(Answer::new(number)),
        Err(never) => match never {},
    }
}

async fn reads(caller: &Caller) -> Duration {
    let started = Instant::now();
    for number in 0..u64::from(CALLS) {
        black_box(caller.call(Call::read("get"), |_| attempt(number)).await.success());
    }
    each(started)
}

async fn mutations(caller: &Caller, identity: &Identity) -> Duration {
    let started = Instant::now();
    for number in 0..u64::from(CALLS) {
        let call = Call::mutation("create", identity.clone());
        black_box(caller.call(call, |_| attempt(number)).await.success());
    }
    each(started)
}
