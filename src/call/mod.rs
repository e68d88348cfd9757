//! The caller's side: one logical operation out of several attempts, inside one deadline, and at the end what is known.
//!
//! A retry helps when what is called is well and one attempt was unlucky. When what is called is overloaded, retries are
//! what keeps it so. A [`Caller`] therefore has four things that are one only together:
//!
//! * **One deadline** for the operation. Every wait counts against it: for a breaker, a place in a pool, a connection, the
//!   next attempt. When too little is left for a useful attempt, nothing is sent.
//! * **One owner** of the retries. An attempt says onward that somebody above retries, and a caller that hears so makes one
//!   attempt: three layers of three attempts are 3 calls at the bottom, not 27.
//! * **A budget**, without which no caller can be built: retries are a fraction of first attempts.
//! * **Three outcomes**, not two: it was done, it was not done, and **it may have been done**. The third is
//!   [`Outcome::Uncertain`]; it carries the identity with which to ask again. A service on the embedded store answers
//!   that with the receipt.
//!
//! ```
//! use std::time::Duration;
//! use counterfoil::call::{Answer, AttemptError, Budget, BudgetConfig, Call, Caller, DeadlinePolicy, Kind, Outcome, Pool, Verdict};
//!
//! let ms = Duration::from_millis;
//! let budget = Budget::new(BudgetConfig::default())?;
//! let caller = Caller::builder("orders", budget, Pool::bounded(8, 16)?)
//!     .deadline(DeadlinePolicy::within(ms(600)).admission(ms(80)).margin(ms(40)))
//!     .build()?;
//!
//! // Minted once; every attempt sends it.
//! let call = Call::mutation("create_order", caller.mint());
//! let finished = caller.call_blocking(call, |attempt| {
//!     # fn send(_: &str, _: Option<Duration>) -> Result<&'static str, std::io::Error> {
//!     #     Ok("order 7")
//!     # }
//!     let key = attempt.identity().expect("it has one").key().to_string();
//!     match send(&key, attempt.io_timeout()) {
//!         Ok(order) => Ok(Answer::new(order)),
//!         Err(error) => Err(AttemptError::new(Verdict::maybe_applied(Kind::Transient), error)),
//!     }
//! });
//! match finished.outcome {
//!     Outcome::Success { value, .. } => println!("{value}"),
//!     Outcome::Uncertain { identity, .. } => println!("ask again later with {identity:?}"),
//!     other => println!("not done: {other:?}"),
//! }
//! # Ok::<(), counterfoil::call::ConfigError>(())
//! ```
//!
//! # In reading order
//!
//! [`Verdict`] says what one attempt came to; [`decide`] is the whole table of when another may be made; [`Flow`] is one
//! operation as a machine without I/O, clock or chance, which [`Caller::call`], [`Caller::call_blocking`] and simulations
//! drive alike; [`Outcome`] is how it ends. [`classify`] makes verdicts of what libraries return, [`propagate`] carries
//! deadlines and attempts over a wire.

mod attempt;
mod blocking;
mod breaker;
mod breaker_registry;
mod budget;
mod builder;
mod bulkhead;
mod caller;
mod cancel;
pub mod classify;
mod config_error;
mod core;
mod deadline;
mod decide;
mod driver;
mod flow;
mod fold;
mod hedge;
mod identity;
mod knowledge;
mod limits;
mod measures;
mod measures_table;
#[cfg(feature = "metrics")]
mod metrics;
mod observer;
mod outcome;
pub mod propagate;
mod purpose;
mod random;
mod span;
mod timer;
#[cfg(feature = "tower")]
pub mod tower;
mod trace;
mod verdict;
mod window;

pub use crate::base::histogram::Histogram;
pub use crate::protocol::backoff::{Backoff, DELAY_MIN};

#[cfg(feature = "metrics")]
pub use self::metrics::MetricsObserver;
#[cfg(feature = "tokio")]
pub use self::timer::TokioTimer;
pub use self::{
    attempt::{Answer, Answered, Attempt, AttemptError, Connection},
    breaker::{BreakerConfig, BreakerState},
    breaker_registry::BREAKERS_MAX,
    budget::{Budget, BudgetConfig},
    builder::CallerBuilder,
    bulkhead::{Bulkhead, POOL_MAX, Pool},
    caller::Caller,
    cancel::Cancel,
    config_error::ConfigError,
    deadline::{Deadline, DeadlinePolicy},
    decide::{OperationClass, Situation, StopReason, decide},
    flow::{Flow, Step},
    hedge::HedgePolicy,
    identity::{Identity, Ownership},
    limits::{AttemptLimits, Limit, Stage},
    measures::{ClassMeasures, Measures, NoSuggestion},
    observer::{Event, Labels, Observer, WaitSource},
    outcome::{Cause, Ending, Finished, Outcome, OverloadSource, Phase, Report},
    purpose::{Authorisation, Call, Mutation, Read},
    random::{Randomness, SeededRandom, SystemRandom},
    timer::{Park, Sleep, ThreadPark, ThreadTimer, Timer},
    trace::TraceId,
    verdict::{EffectState, Health, Hint, Kind, Verdict},
};
