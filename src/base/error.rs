//! What a submission can end in beside a receipt, grouped by what the caller should do.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::invalid::Invalid;
use super::position::{Position, TimestampMs};

/// Whether the operation was executed. Every [`Error`] answers this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execution {
    /// It was executed, now or by an earlier submission.
    Executed,
    /// **This submission** executed nothing. It says nothing about earlier submissions of the slot.
    NotExecuted,
    /// It may have been executed. Ask again with the same key: after the store is reopened the answer is certain.
    Unknown,
}

impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Executed => "executed",
            Self::NotExecuted => "not executed",
            Self::Unknown => "unknown",
        })
    }
}

/// The operation was done, and its reply is no longer kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gone {
    /// The durable id of what was made.
    pub resource_id: Option<String>,
    /// When it completed, by the store's time.
    pub completed_at: TimestampMs,
    /// Where it stands in the log.
    pub position: Position,
}

/// Why a submission ended without a receipt.
///
/// [`Error::execution`] says what may be assumed; the table in the README says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key was used before with another request. *Not executed.* Use a new key for a new operation. Nothing of the
    /// earlier request is shown.
    #[error(
        "the key was used before with another request{}; not executed, use a new key for a new operation",
        stored_version.map_or_else(String::new, |version| format!(", made under version {version} of the operation, which is no longer accepted"))
    )]
    Conflict {
        /// Set when the stored receipt was made under a version that the operation type no longer accepts.
        stored_version: Option<u32>,
    },
    /// The operation was done, and its reply is no longer kept. *Executed*, by an earlier submission. Look the
    /// resource up; do not use a new key.
    #[error(
        "the operation was done at {}{} and its reply is no longer kept; look the result up, do not repeat it under a new key",
        .0.completed_at,
        .0.resource_id.as_ref().map_or_else(String::new, |id| format!(" (resource {id})"))
    )]
    Gone(Gone),
    /// The key was minted longer ago than retries are answered. *Not executed*, nothing stored. Find out what became of
    /// the operation before you start a new one.
    #[error("the key is older than the retry horizon (the store's time is {store_time}); not executed")]
    Expired {
        /// The store's time, so that a client with a bad clock can tell.
        store_time: TimestampMs,
    },
    /// The key says that it was minted in the future. *Not executed*, nothing stored. Look at the clock of the machine
    /// that minted it, and at this one's.
    #[error(
        "the key was minted at {minted_at}, ahead of the store's time {store_time} by more than clocks may disagree; not executed"
    )]
    FromTheFuture {
        /// What the key says.
        minted_at: TimestampMs,
        /// The store's time, so that a client with a bad clock can tell.
        store_time: TimestampMs,
    },
    /// The tenant has as many receipts, or bytes of them, as its quota allows. *Not executed*; the key stays free. There is
    /// room when older receipts have expired; no living one is evicted for a new one.
    #[error(
        "the tenant's receipts have {actual} {what}, and its quota is {limit}; not executed, wait until older ones expire"
    )]
    QuotaExceeded {
        /// "receipts" or "bytes".
        what: &'static str,
        /// What they would come to.
        actual: u64,
        /// The quota.
        limit: u64,
    },
    /// Another submission holds a claim on the slot. *Not executed* by this one. Ask again with the same key after the
    /// given time.
    #[error("the operation is in progress elsewhere; ask again with the same key after {} ms", retry_after.as_millis())]
    InProgress {
        /// When to ask again; within the lease.
        retry_after: Duration,
    },
    /// A claim on the slot ended without an answer. *Unknown.* Somebody has to find out what its holder did.
    #[error("a claim on the operation ended without an answer; its effect is unknown and must be reconciled")]
    NeedsReconciliation,
    /// The holder of a claim comes back after its lease has ended, or another holds the claim by now. *Not executed* by this
    /// submission. What it reported is kept in the log; whoever decides about the claim should look at it.
    #[error("the lease on the claim has ended or another holds it; not executed, the evidence is kept")]
    LeaseLost,
    /// The replay guard said no. *Not executed* by this submission; whether there is a receipt is not told.
    #[error("access to this operation is denied; not executed")]
    Denied,

    /// The closure failed with its own error. *Not executed*; the key stays free, so the same key may be tried again.
    #[error("the operation failed: {0}; not executed, the key is free")]
    Failed(#[source] Failure),
    /// The closure panicked. *Not executed*; the key stays free. The same input probably panics again.
    #[error("the operation panicked: {message}; not executed, the key is free")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// The closure ignored an error of a table handle and went on. *Not executed*; the key stays free.
    #[error("a table refused a call inside the operation: {0}; not executed, the key is free")]
    Table(String),
    /// An intent was refused, and the closure went on; or the operation was accepted without one. *Not executed*; the key
    /// stays free.
    #[error("{0}; not executed, the key is free")]
    Intent(#[from] IntentError),
    /// The operation's outcome is above a limit. *Not executed*; the key stays free. The same input does it again.
    #[error("{what} has {actual}, above the limit of {limit}; not executed, the key is free")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        actual: usize,
        /// The limit.
        limit: usize,
    },
    /// Input that is refused at the door. *Not executed*, and the same input never will be.
    #[error("{0}; not executed")]
    Invalid(#[from] Invalid),
    /// The operation type, or a header of the reply, was not declared when the store was opened. *Not executed.*
    #[error("{what} {name:?} was not declared when the store was opened: declare it on the builder; not executed")]
    Undeclared {
        /// "operation type" or "reply header".
        what: &'static str,
        /// Its name.
        name: String,
    },

    /// The queue, or this tenant's share of it, is full. *Not executed.* Wait, then try again with the same key.
    #[error("the store is overloaded; not executed, wait and try again with the same key")]
    Overloaded,
    /// The deadline passed before the operation was started. *Not executed.*
    #[error("the deadline passed before the operation was started; not executed")]
    DeadlineExceeded,
    /// The ticket was cancelled while it was queued. *Not executed.*
    #[error("the submission was cancelled while it was queued; not executed")]
    Cancelled,
    /// There is no room on the disk for the next log segment. *Not executed*; the store goes on as soon as there is.
    #[error("the disk is full ({0}); not executed, free some space and try again with the same key")]
    DiskFull(String),
    /// The next log segment cannot be prepared for another reason than a full disk. *Not executed*; the store goes on as
    /// soon as it can be.
    #[error(
        "the next log segment cannot be prepared ({0}); not executed, look at the disk and its rights, then try again with the same key"
    )]
    Segment(String),
    /// The store is closed or closing. *Not executed.*
    #[error("the store is closed; not executed")]
    Closed,
    /// The store stopped after a failure of the disk and this submission was not part of it. *Not executed.* Reopen the
    /// store, then try again with the same key.
    #[error("the store stopped after a failure ({0}); not executed, reopen the store and try again with the same key")]
    Poisoned(String),
    /// A blocking call from within a closure, guard, hook or waker of the same store, which could never end.
    /// *Not executed.*
    #[error("a blocking call of the store from inside one of its own closures, guards or wakers; not executed")]
    Reentrant,

    /// It may have been executed. *Unknown.* Reopen the store if it stopped, and ask again with the same key.
    #[error("the outcome is unknown ({0}); ask again with the same key")]
    Unknown(String),

    /// Stored data could not be read. *Not executed* by this submission.
    #[error("stored data cannot be read: {0}; not executed, run verify")]
    Corrupt(String),
}

impl Error {
    /// What may be assumed about the operation.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        match self {
            Self::Gone(_) => Execution::Executed,
            Self::Unknown(_) | Self::NeedsReconciliation => Execution::Unknown,
            Self::Conflict { .. }
            | Self::Expired { .. }
            | Self::FromTheFuture { .. }
            | Self::QuotaExceeded { .. }
            | Self::InProgress { .. }
            | Self::Denied
            | Self::Failed(_)
            | Self::Panicked { .. }
            | Self::Table(_)
            | Self::Limit { .. }
            | Self::Invalid(_)
            | Self::Undeclared { .. }
            | Self::Overloaded
            | Self::Intent(_)
            | Self::LeaseLost
            | Self::DeadlineExceeded
            | Self::Cancelled
            | Self::DiskFull(_)
            | Self::Segment(_)
            | Self::Closed
            | Self::Poisoned(_)
            | Self::Reentrant
            | Self::Corrupt(_) => Execution::NotExecuted,
        }
    }

    /// The same request under the same key may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::InProgress { .. }
            | Self::QuotaExceeded { .. }
            | Self::Failed(_)
            | Self::Overloaded
            | Self::DeadlineExceeded
            | Self::Cancelled
            | Self::DiskFull(_)
            | Self::Segment(_)
            | Self::Closed
            | Self::Poisoned(_)
            | Self::Unknown(_) => true,
            Self::Gone(_)
            | Self::NeedsReconciliation
            | Self::Conflict { .. }
            | Self::Expired { .. }
            | Self::FromTheFuture { .. }
            | Self::Denied
            | Self::Panicked { .. }
            | Self::Table(_)
            | Self::Intent(_)
            | Self::LeaseLost
            | Self::Limit { .. }
            | Self::Invalid(_)
            | Self::Undeclared { .. }
            | Self::Reentrant
            | Self::Corrupt(_) => false,
        }
    }
}

/// Why an intent was refused. Sticky: the operation fails, whatever its closure returns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntentError {
    /// The provider was not declared when the store was opened.
    #[error("provider {0:?} was not declared when the store was opened")]
    UnknownProvider(String),
    /// The payload or a name is above its limit.
    #[error("{what} of an intent has {bytes} bytes, above the limit of {bytes_max}")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// One operation plans more than [`INTENTS_MAX`](crate::INTENTS_MAX).
    #[error("an operation plans more than {0} intents")]
    TooMany(usize),
    /// A plain write has no receipt to which an intent could belong.
    #[error("an intent needs an operation: a plain write has no identity")]
    OutsideOperation,
    /// The operation was accepted and plans nothing, so that nothing would ever finish it.
    #[error("the operation was accepted without an intent that could finish it")]
    AcceptedWithoutIntent,
    /// The operation was accepted and its type has no continuation, so that nothing would ever finish it.
    #[error("the operation was accepted and its type has no continuation")]
    NoContinuation,
    /// An effect of an earlier operation under the same key and with the same request is not settled yet. That operation's
    /// receipt was forgotten meanwhile.
    #[error("an earlier effect of the same identity is not settled yet")]
    StillOpen,
}

/// A closure's own error, whatever its type. Made by `?` or `into()` from any error.
pub struct Failure(Box<dyn StdError + Send + Sync>);

impl Failure {
    /// A failure with a message of its own.
    pub fn message(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }

    /// The error, if it is of this type.
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    /// The error itself.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn StdError + Send + Sync> {
        self.0
    }
}

/// So that the failure is the source of [`Error::Failed`].
impl std::ops::Deref for Failure {
    type Target = dyn StdError + Send + Sync + 'static;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

// `Failure` is not an `Error` itself: that is what lets every error convert into it.
impl<E: StdError + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
