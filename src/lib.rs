//! Counterfoil.
#![allow(missing_docs, dead_code, unused, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
mod base;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
mod log;
mod protocol;
#[cfg(feature = "store")]
mod state;
#[cfg(feature = "store")]
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use base::clock::{Clock, SystemClock};
pub use base::error::{Error, Execution, Failure, Gone};
pub use base::invalid::Invalid;
pub use base::limits::{
    ACTOR_BYTES_MAX, CONTENT_TYPE_BYTES_MAX, KEY_BYTES_MAX, Limits, OPERATION_BYTES_MAX, OPERATION_VERSIONS_MAX,
    RECORD_BYTES_CEILING, REPLY_HEADERS_MAX, RESOURCE_ID_BYTES_MAX, TENANT_BYTES_MAX, TRACE_ID_BYTES_MAX,
};
pub use base::name::{Actor, Key, OperationName, Slot, Tenant};
pub use base::operation::{LeaseEnd, Operation, OperationType, Oversize, Request, Retention};
pub use base::position::{NotAPosition, Position, TimestampMs};
pub use base::receipt::{Outcome, Receipt, ReceiptMeta};
pub use base::reply::{Decision, Reply};
pub use protocol::canonical::error::CanonicalError;
#[cfg(feature = "store")]
pub use protocol::{admission::Access, retention::ClockState};
#[cfg(feature = "store")]
pub use state::{
    AsKey, Codec, KeyError, KeyPrefix, KeyRange, KeyReader, KeyWriter, Table, TableDeclaration, TableError, TableKey,
    TableMut, TableOpenError, TableRange, TableView,
};
#[cfg(feature = "store")]
pub use store::{
    Change, Entry, EntryKind, LogFollower, LogReadError, LogStart, OpenError, Problem, ReadView, Stats, Store,
    StoreBuilder, Ticket, Tx, VerifyReport, Written,
};
