//! Operation types and the one operation that a caller asks for.

use std::fmt;
use std::time::Duration;

use super::invalid::Invalid;
use super::limits::TRACE_ID_BYTES_MAX;
use super::name::Slot;

/// How long a receipt answers retries, counted from the completion of the operation.
///
/// First the reply can be replayed; then the key is still known, and a retry is answered
/// [`Error::Gone`](crate::Error::Gone); after both the key may become a **new** operation. Keep `replay + refuse`
/// longer than any client goes on retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How long the reply can be replayed. Default 7 days: a client that was offline over a long weekend still gets
    /// its answer.
    pub replay: Duration,
    /// How long, after that, a retry is refused as already done. Default 30 days: a dead-letter queue that is replayed
    /// after a month executes nothing twice, for the price of a few dozen bytes.
    pub refuse: Duration,
}

impl Retention {
    /// The defaults, 7 and 30 days.
    pub const DEFAULT: Self =
        Self { replay: Duration::from_secs(7 * 24 * 3600), refuse: Duration::from_secs(30 * 24 * 3600) };
}

impl Default for Retention {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens to a reply whose body is above the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oversize {
    /// The operation fails before it is committed.
    #[default]
    Refuse,
    /// The operation commits and its receipt keeps the resource id; the body and headers are dropped, the first
    /// answer included, and a replay says so.
    DropBody,
}

/// What a retry may do once the lease of an unfinished claim has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseEnd {
    /// Nothing, until somebody has found out what the holder did.
    #[default]
    Reconcile,
    /// Execute: the work is safe to do again.
    Execute,
}

/// What the keys of an operation type look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyForm {
    /// Any bytes. What a key was used for is known for as long as its receipt is, and no longer.
    #[default]
    Opaque,
    /// UUIDs of version 7 (RFC 9562, section 5.7): as text with hyphens, as 32 hexadecimal digits, or as 16 bytes.
    Uuid7,
    /// ULIDs: 26 characters of Crockford's base 32, or 16 bytes.
    Ulid,
}

#[cfg(feature = "store")]
impl KeyForm {
    /// What such a key is called, if it is not any key.
    pub(crate) const fn name(self) -> Option<&'static str> {
        match self {
            Self::Opaque => None,
            Self::Uuid7 => Some("UUID of version 7"),
            Self::Ulid => Some("ULID"),
        }
    }
}

/// A kind of operation, declared once with the store and named by every request.
///
/// ```
/// use counterfoil::OperationType;
///
/// const CREATE_ORDER: OperationType = OperationType::new("create_order").version(2).accepts(&[1]);
/// assert_eq!(CREATE_ORDER.name(), "create_order");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationType {
    pub(crate) name: &'static str,
    pub(crate) version: u32,
    pub(crate) accepted: &'static [u32],
    pub(crate) retention: Retention,
    pub(crate) oversize: Oversize,
    pub(crate) lease_end: LeaseEnd,
    pub(crate) key_form: KeyForm,
    /// How old a key that tells its age may be.
    pub(crate) key_horizon: Duration,
}

impl OperationType {
    /// An operation type at version 1 with the default retention. The name is checked when the store is opened.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            version: 1,
            accepted: &[],
            retention: Retention::DEFAULT,
            oversize: Oversize::Refuse,
            lease_end: LeaseEnd::Reconcile,
            key_form: KeyForm::Opaque,
            key_horizon: Duration::MAX,
        }
    }

    /// The version of the meaning of a request. It goes into the digest, not into the slot.
    #[must_use]
    pub const fn version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Earlier versions whose receipts still answer the same request, at most 8. A receipt of a version that is not
    /// listed is a conflict that names the version.
    #[must_use]
    pub const fn accepts(self, versions: &'static [u32]) -> Self {
        Self { accepted: versions, ..self }
    }

    /// How long receipts of this type answer.
    #[must_use]
    pub const fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// What happens to a reply above the limit.
    #[must_use]
    pub const fn oversize(self, oversize: Oversize) -> Self {
        Self { oversize, ..self }
    }

    /// What a retry may do once the lease of an unfinished claim has ended.
    #[must_use]
    pub const fn lease_end(self, lease_end: LeaseEnd) -> Self {
        Self { lease_end, ..self }
    }

    /// Keys say when they were minted, and one that is older than `horizon` is refused: [`Error::Expired`], with nothing
    /// stored. So a retry that comes after its receipt was forgotten **never executes again**, which no retention can
    /// promise for keys that do not tell their age. One from the future, by more than
    /// [`StoreBuilder::clock_tolerance`](crate::StoreBuilder::clock_tolerance), is refused as well
    /// ([`Error::FromTheFuture`]), since it would stay young for too long; so is one of another form
    /// ([`Invalid::KeyForm`]).
    ///
    /// Choose as horizon how long clients go on retrying. A store that keeps receipts for less than that, plus the
    /// tolerance for clocks, is not opened.
    ///
    /// ```
    /// use std::time::Duration;
    /// use counterfoil::{KeyForm, OperationType};
    ///
    /// const PAY: OperationType =
    ///     OperationType::new("pay").time_ordered_keys(KeyForm::Uuid7, Duration::from_secs(7 * 24 * 3600));
    /// ```
    ///
    /// [`Error::Expired`]: crate::Error::Expired
    /// [`Error::FromTheFuture`]: crate::Error::FromTheFuture
    #[must_use]
    pub const fn time_ordered_keys(self, form: KeyForm, horizon: Duration) -> Self {
        Self { key_form: form, key_horizon: horizon, ..self }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Begins a request for one operation of this type: who asks, on whose behalf, under which key.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for a part that is empty, blank or too long. Nothing was executed.
    pub fn request(
        &self,
        tenant: impl AsRef<str>,
        actor: impl AsRef<str>,
        key: impl AsRef<[u8]>,
    ) -> Result<Request, Invalid> {
        Ok(Request { operation_type: *self, slot: Slot::new(tenant, actor, self.name, key)? })
    }

    /// The current version, then the accepted ones.
    pub(crate) fn versions(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::once(self.version).chain(self.accepted.iter().copied())
    }
}

/// A request that still lacks its content: see [`Request::json`], [`Request::json_text`] and [`Request::bytes`].
#[derive(Clone, Debug)]
#[must_use = "a request is executed by giving it its content and passing it to the store"]
pub struct Request {
    pub(crate) operation_type: OperationType,
    pub(crate) slot: Slot,
}

/// In which form the content of a request is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// Canonical JSON.
    Json,
    /// Bytes as they are.
    Bytes,
}

/// One submission of one logical operation: its slot, the content that identifies it, and how it travels.
#[derive(Clone)]
#[must_use = "an operation does nothing until it is passed to the store"]
pub struct Operation {
    pub(crate) operation_type: OperationType,
    pub(crate) slot: Slot,
    pub(crate) kind: ContentKind,
    pub(crate) content: Vec<u8>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) attempt: u32,
    pub(crate) trace_id: Option<String>,
}

impl Operation {
    pub(crate) fn new(request: Request, kind: ContentKind, content: Vec<u8>) -> Self {
        Self {
            operation_type: request.operation_type,
            slot: request.slot,
            kind,
            content,
            deadline: None,
            attempt: 1,
            trace_id: None,
        }
    }

    /// How much time is left for this submission, from the moment it is passed to the store. One that has passed while
    /// it waits is not started; one that is running is not interrupted.
    pub const fn deadline(mut self, remaining: Duration) -> Self {
        self.deadline = Some(remaining);
        self
    }

    /// Which attempt of the caller this is, from 1. The receipt keeps the number of the attempt that executed.
    pub const fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = attempt;
        self
    }

    /// The trace id of this attempt, for instance a W3C `traceparent`. The receipt keeps that of the attempt that
    /// executed.
    ///
    /// # Errors
    ///
    /// [`Invalid::TooLong`] above 128 bytes.
    pub fn trace_id(mut self, trace_id: impl Into<String>) -> Result<Self, Invalid> {
        let trace_id = trace_id.into();
        if trace_id.len() > TRACE_ID_BYTES_MAX {
            return Err(Invalid::TooLong { what: "trace id", bytes: trace_id.len(), bytes_max: TRACE_ID_BYTES_MAX });
        }
        self.trace_id = Some(trace_id);
        Ok(self)
    }

    /// The slot.
    #[must_use]
    pub const fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("slot", &self.slot)
            .field("version", &self.operation_type.version)
            .field("content_bytes", &self.content.len())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}
