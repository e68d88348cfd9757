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
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

const ROUNDS: usize = 60;
const CALLS: u32 = 5_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ConfigError> {
    let mut names_and_times =
        ["bare", "tower", "counterfoil, read", "counterfoil, mutation, observed"].map(|name| (name, Vec::new()));
    let (plain, observed) = (caller(false)?, caller(true)?);
    let identity = plain.mint();
    for _ in 0..ROUNDS {
        let times = [bare().await, in_tower().await, reads(&plain).await, mutations(&observed, &identity).await];
        for ((_, all), time) in names_and_times.iter_mut().zip(times) {
            all.push(time);
        }
    }
    println!("{:<34}{:>12}{:>12}", "a call that succeeds at once", "median", "fastest");
    for (name, mut times) in names_and_times {
        times.sort_unstable();
        println!("{name:<34}{:>9} ns{:>9} ns", times[times.len() / 2].as_nanos(), times[0].as_nanos());
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

/// Retries nothing, because nothing fails; asked all the same.
#[derive(Clone)]
struct ThreeAttempts(u32);

impl Policy<u64, u64, BoxError> for ThreeAttempts {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, BoxError>) -> Option<Ready<()>> {
        (result.is_err() && self.0 > 0).then(|| {
            self.0 -= 1;
            std::future::ready(())
        })
    }

    fn clone_request(&mut self, number: &u64) -> Option<u64> {
        Some(*number)
    }
}

async fn in_tower() -> Duration {
    let layers = ServiceBuilder::new().retry(ThreeAttempts(2)).timeout(Duration::from_secs(1)).concurrency_limit(64);
    let mut tower = layers.service_fn(service);
    let started = Instant::now();
    for number in 0..u64::from(CALLS) {
        let ready = tower.ready().await;
        if let Ok(ready) = ready {
            black_box(ready.call(number).await.ok());
        }
    }
    each(started)
}

/// Deadline, attempt timeout, retries with budget, breaker, pool; and, if `observed`, measures.
fn caller(observed: bool) -> Result<Caller, ConfigError> {
    let budget = Budget::new(BudgetConfig::default())?;
    let builder = Caller::builder("bench", budget, Pool::bounded(64, 64)?)
        .deadline(DeadlinePolicy::within(Duration::from_secs(1)).attempt(Duration::from_millis(500)))
        .breaker(BreakerConfig::new(20, 0.5));
    if observed { builder.observer(Arc::new(Measures::default())).build() } else { builder.build() }
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
