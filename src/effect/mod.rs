//! Effects outside the store: payments, messages, calls of other systems.
//!
//! Committing an order and its receipt together does not move money. An operation plans an [`Intent`] in the same write
//! ([`Tx::intend`](crate::Tx::intend)); a [`Dispatcher`] performs it afterwards, with a handler of yours, under an identity
//! of its own that never changes. Before a handler is called it is durably recorded that it will be, so that after a crash
//! it is known what may have happened. What may have happened is then **asked, sent again under the same identity where the
//! provider deduplicates, or parked for a person**; a second blind call is never made.
//!
//! No store can make an effect outside of it happen exactly once. What is promised, by what the provider can do:
//!
//! | the provider | at most |
//! |---|---|
//! | deduplicates by key, within the declared window | one, as far as it keeps its word |
//! | can be asked, with a bound for requests on their way, or bars what it was asked for | one |
//! | can be asked, and "not found" means nothing | one; what stays open is parked |
//! | none of these | one; whatever is uncertain is parked |
//!
//! An **outbox** is the simple case: an operation answers at once and plans a message; the handler publishes it with the
//! effect's identity as message id and answers [`Verdict::Applied`] when the broker has confirmed. The message goes out **at
//! least once** under one identity if its provider is declared as deduplicating, and receivers tell repetitions by it.
//!
//! ```
//! use std::time::Duration;
//! use counterfoil::effect::{Answer, Attempt, Dispatcher, EffectHandler, HandlerLimits, Intent, Provider, Settled, Verdict};
//! use counterfoil::{Decision, OperationType, Reply, Store, Tx};
//!
//! const PAY: OperationType = OperationType::new("pay");
//!
//! struct Payments;
//!
//! impl EffectHandler for Payments {
//!     fn send(&self, attempt: &Attempt) -> Verdict {
//!         // Here the provider is called, with attempt.id() as its idempotency key.
//!         Verdict::Applied(Answer::new().reference(format!("charge-{}", attempt.id())))
//!     }
//! }
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("shop");
//! let store = Store::builder()
//!     .operation(&PAY)
//!     .provider(Provider::new("payments").deduplicates(Duration::from_secs(24 * 3600)))
//!     .continuation(&PAY, |_: &Tx<'_>, settled: &Settled| {
//!         let paid = settled.effects.iter().all(|effect| effect.applied);
//!         Ok(if paid { Reply::ok() } else { Reply::new(402)? })
//!     })
//!     .open(path)?;
//! let pay = || {
//!     let operation = PAY.request("acme", "alice", "key-1")?.json(&1200)?;
//!     store.execute(operation, |tx: &Tx<'_>| {
//!         tx.intend(Intent::new("payments", "1200 cents"))?;
//!         Ok(Decision::Accept(Reply::accepted()))
//!     })
//! };
//! assert!(pay()?.is_accepted());
//!
//! let dispatcher = Dispatcher::new(&store).handler("payments", Payments, HandlerLimits::default())?.start()?;
//! while pay()?.is_accepted() {
//!     std::thread::yield_now();
//! }
//! assert_eq!(pay()?.reply().status(), 200);
//! dispatcher.stop();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod dispatcher;
mod handler;

pub use crate::base::error::IntentError;
pub use crate::store::{
    EffectDecision, EffectId, EffectPhase, EffectStatus, Intent, LookUpMeaning, Provider, Report, ReportAnswer,
    Settled, SettledEffect,
};
pub use dispatcher::{DispatchError, Dispatcher, DispatcherStats, RunningDispatcher};
pub use handler::{Answer, Attempt, EffectHandler, HandlerLimits, LookUpAnswer, Verdict};
