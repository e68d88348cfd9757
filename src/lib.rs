//! Counterfoil is the stub that stays in the book when a cheque is torn out: an embedded, durable operation log that
//! commits a business mutation and the receipt of the operation that made it **in one write**.
//!
//! A caller that never heard the answer asks again with the same key, and gets the same answer instead of a second
//! mutation. That holds through lost replies, retries, `kill -9` and loss of power, for everything the store answered.
//!
#![cfg_attr(feature = "store", doc = "```")]
#![cfg_attr(not(feature = "store"), doc = "```ignore")]
//! use counterfoil::{OperationType, Reply, Store, Table, Tx};
//!
//! const RESERVE: OperationType = OperationType::new("reserve_seat");
//! const SEATS: Table<u32, String> = Table::new("seats");
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("theatre");
//! let store = Store::builder().operation(&RESERVE).table(&SEATS).open(path)?;
//! let operation = RESERVE.request("odeon", "alice", "key-7f3a")?.json(&("seat", 12))?;
//! let receipt = store.execute(operation, |tx: &Tx<'_>| {
//!     tx.table(&SEATS)?.insert_new(12, &"alice".to_owned())?;
//!     Ok(Reply::created().resource_id("seats/12"))
//! })?;
//! assert_eq!(receipt.reply().status(), 201);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it is not
//!
//! Not a consensus system and not a distributed database: one process owns one store. It cannot make an effect outside
//! the store, such as a payment, happen exactly once. It does not protect against a disk that lies about syncs.
//! `GUARANTEES.md` lists what is promised, what is not, and what is assumed.
//!
//! # Where to start
//!
//! [`Store::builder`] opens a store; [`OperationType`] declares what can be asked for; [`Store::execute`] runs it;
//! [`Error`] says what may be assumed when there is no receipt.
//!
//! # Features
//!
//! * `store` (default): the embedded store. Without it, only names, positions, times and the clock remain.
//! * `testing`: `testing::TestBed`, a store on a simulated disk that can lose power and a clock that moves when told to.
//! * `uuid`: `uuid::Uuid` as a key of tables.
//! * `admin`: [`Store`]'s `serve_admin`, which answers the operator's tool while a service has the store open; `cli`: that
//!   tool, the binary `counterfoil`.
//! * `call` (default): the caller's side, the module of that name, which needs no store. `tokio`, `tower`, `http`, `grpc`, `metrics`
//!   and `tracing` join it to the libraries of these names.

#[cfg(feature = "admin")]
pub mod admin;
mod base;
#[cfg(feature = "call")]
pub mod call;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
pub mod effect;
#[cfg(feature = "store")]
mod log;
#[cfg(any(feature = "call", feature = "store"))]
mod protocol;
#[cfg(feature = "store")]
mod state;
#[cfg(feature = "store")]
mod store;
#[cfg(any(all(test, feature = "store"), feature = "testing"))]
pub mod testing;

pub use base::clock::{Clock, SystemClock};
pub use base::histogram::{Distribution, Histogram};
pub use base::invalid::Invalid;
pub use base::limits::{
    ACTOR_BYTES_MAX, CONTENT_TYPE_BYTES_MAX, INTENT_BYTES_MAX, INTENTS_MAX, KEY_BYTES_MAX, OPERATION_BYTES_MAX,
    OPERATION_VERSIONS_MAX, RECORD_BYTES_CEILING, REFERENCE_BYTES_MAX, REPLY_HEADERS_MAX, RESOURCE_ID_BYTES_MAX,
    TENANT_BYTES_MAX, TRACE_ID_BYTES_MAX,
};
pub use base::name::{Actor, Key, OperationName, Slot, Tenant};
pub use base::position::{NotAPosition, Position, TimestampMs};

#[cfg(feature = "store")]
pub use base::{
    error::{Error, Execution, Failure, Gone, IntentError},
    limits::Limits,
    operation::{KeyForm, LeaseEnd, Operation, OperationType, Oversize, Request, Retention},
    receipt::{Outcome, Receipt, ReceiptMeta},
    reply::{Decision, Reply},
};
#[cfg(feature = "store")]
pub use protocol::{admission::Access, canonical::error::CanonicalError, retention::ClockState};
#[cfg(feature = "store")]
pub use state::{
    AsKey, Codec, KeyError, KeyPrefix, KeyRange, KeyReader, KeyWriter, Table, TableDeclaration, TableError, TableKey,
    TableMut, TableOpenError, TableRange, TableView,
};
#[cfg(feature = "store")]
pub use store::{
    Backup, BackupError, Change, Claim, ClaimAnswer, ClaimDecision, ClaimStatus, ClockAccepted, Compacted, DetachedLog,
    Entry, EntryKind, Erase, Erased, Erasure, Explanation, ExportError, Exported, Holder, KeyActivity, KeyEvent,
    KeyEventKind, LateRetries, ListedReceipt, LogFollower, LogReadError, LogStart, NextAnswer, OpenError,
    PositionState, Problem, Quota, RawRow, RawRows, ReadView, ReceiptFilter, Receipts, RestoreOptions, Restored, Stats,
    Store, StoreBuilder, Swept, TableInfo, TenantUsage, Ticket, Tx, VerifyReport, Written,
};
