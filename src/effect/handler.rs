//! What a handler gets and what it answers.

use std::fmt;
use std::time::Duration;

use crate::base::limits::{INTENT_BYTES_MAX, REFERENCE_BYTES_MAX};
use crate::store::{CallEnd, EffectId, Lease};

/// Performs the effects of one provider. It is called from several threads.
pub trait EffectHandler: Send + Sync + 'static {
    /// Sends an effect, under its identity, within its time. A panic counts as [`Verdict::Unknown`], and so does a call
    /// that has not returned in time; what it returns later is compared with what is known by then.
    fn send(&self, attempt: &Attempt) -> Verdict;

    /// Asks the provider what became of an effect. Called only where the provider was declared with
    /// [`Provider::look_up`](super::Provider::look_up).
    fn look_up(&self, attempt: &Attempt) -> LookUpAnswer {
        let _ = attempt;
        LookUpAnswer::Failed
    }
}

/// One call that a handler is to make.
#[derive(Clone)]
pub struct Attempt {
    pub(super) lease: Lease,
    pub(super) time: Duration,
}

impl Attempt {
    /// The effect's identity, the same for every attempt: the provider's idempotency key.
    #[must_use]
    pub const fn id(&self) -> EffectId {
        self.lease.id
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.lease.provider
    }

    /// What the operation planned.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.lease.payload
    }

    /// The content type of the payload.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.lease.content_type.as_deref()
    }

    /// The provider's reference, from the intent or an earlier report.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.lease.reference.as_deref()
    }

    /// Which sending it is, from 1; in a look-up, how often it was sent.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.lease.attempt
    }

    /// How long the call may take. No request of it may leave later.
    #[must_use]
    pub const fn time(&self) -> Duration {
        self.time
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("id", &self.lease.id)
            .field("provider", &self.lease.provider)
            .field("number", &self.lease.attempt)
            .field("payload_bytes", &self.lease.payload.len())
            .finish_non_exhaustive()
    }
}

/// What a provider said beside yes or no.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Answer {
    reference: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The provider's reference, under which its callbacks may come. Above 256 bytes it is left out.
    #[must_use]
    pub fn reference(mut self, reference: impl Into<String>) -> Self {
        self.reference = Some(reference.into()).filter(|reference| reference.len() <= REFERENCE_BYTES_MAX);
        self
    }

    /// What the continuation is to know. Above 64 KiB it is left out whole.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        self.body = if body.len() <= INTENT_BYTES_MAX { body } else { Vec::new() };
        self
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("reference", &self.reference)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// How a sending ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The provider says that it happened.
    Applied(Answer),
    /// The provider says that this identity did not and will not happen: a definite no that no repetition changes.
    Refused(Answer),
    /// **Certainly** nothing happened by this call, and another may succeed: nothing left, or the provider was too busy and
    /// says so.
    NotApplied,
    /// It may have happened: a time-out, a broken connection, an answer that cannot be understood. When in doubt, this.
    Unknown,
}

/// What a provider answers when it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookUpAnswer {
    /// It happened.
    Applied(Answer),
    /// It did not and will not happen.
    Refused(Answer),
    /// It is known and not decided.
    Pending,
    /// It is not known. What that means was declared with [`Provider::look_up`](super::Provider::look_up).
    NotFound,
    /// The provider could not be asked.
    Failed,
}

impl From<Verdict> for CallEnd {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Applied(Answer { reference, body }) => Self::Applied { reference, body },
            Verdict::Refused(Answer { reference, body }) => Self::Refused { reference, body },
            Verdict::NotApplied => Self::NotApplied,
            Verdict::Unknown => Self::Unknown,
        }
    }
}

impl From<LookUpAnswer> for CallEnd {
    fn from(answer: LookUpAnswer) -> Self {
        match answer {
            LookUpAnswer::Applied(Answer { reference, body }) => Self::Applied { reference, body },
            LookUpAnswer::Refused(Answer { reference, body }) => Self::Refused { reference, body },
            LookUpAnswer::Pending | LookUpAnswer::Failed => Self::Unknown,
            LookUpAnswer::NotFound => Self::NotFound,
        }
    }
}

/// How a handler is called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerLimits {
    /// Most calls at the same time. Default 16.
    pub concurrency: usize,
    /// How long one call may take. Default 30 s. A call that takes longer is left alone and counts as unknown.
    pub time: Duration,
    /// The first and the longest pause before the next step of an effect; pauses are drawn evenly from an envelope that
    /// doubles (full jitter). Default 200 ms.
    pub backoff_first: Duration,
    /// Default 60 s.
    pub backoff_cap: Duration,
    /// Most calls that were left alone and have not returned. At this number the provider's effects wait. Default 32.
    pub abandoned_max: usize,
}

impl Default for HandlerLimits {
    fn default() -> Self {
        Self {
            concurrency: 16,
            time: Duration::from_secs(30),
            backoff_first: Duration::from_millis(200),
            backoff_cap: Duration::from_secs(60),
            abandoned_max: 32,
        }
    }
}
