//! What is called for: reads, mutations, and questions of authorisation are different types, so that what must not be done
//! with one of them does not compile.

use std::marker::PhantomData;
use std::time::Duration;

use crate::base::name::Tenant;

use super::attempt::Attempt;
use super::cancel::Cancel;
use super::decide::OperationClass;
use super::identity::Identity;
use super::propagate::Inbound;
use super::trace::TraceId;

/// A call that changes nothing.
#[derive(Clone, Copy, Debug)]
pub enum Read {}
/// A call that changes something.
#[derive(Clone, Copy, Debug)]
pub enum Mutation {}
/// A call that asks whether somebody may do something. It reads, and no answer of one's own may stand in for its answer.
#[derive(Clone, Copy, Debug)]
pub enum Authorisation {}

/// What a logical operation is, before it is begun.
///
/// ```
/// use std::time::Duration;
/// use counterfoil::call::{Call, Identity};
///
/// let identity = Identity::from_key("order-7f3a")?;
/// let create = Call::mutation("create_order", identity).within(Duration::from_millis(600));
/// let read = Call::read("get_order");
/// # let _ = (create, read);
/// # Ok::<(), counterfoil::Invalid>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a call does nothing until it is given to a caller"]
pub struct Call<P> {
    pub(crate) spec: Spec,
    purpose: PhantomData<fn() -> P>,
}

/// A call without its purpose.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) operation: &'static str,
    pub(crate) class: OperationClass,
    pub(crate) identity: Option<Identity>,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) within: Option<Duration>,
    /// Rarely there, and large.
    pub(crate) inherited: Option<Box<Inbound>>,
    pub(crate) trace: Option<TraceId>,
    pub(crate) cancel: Option<Cancel>,
    /// The retries are somebody else's: one attempt, and no claim to own any.
    pub(crate) once: bool,
    /// Something else answers if this does not.
    pub(crate) fallback: bool,
}

impl<P> Call<P> {
    const fn new(operation: &'static str, class: OperationClass, identity: Option<Identity>) -> Self {
        let spec = Spec {
            operation,
            class,
            identity,
            tenant: None,
            within: None,
            inherited: None,
            trace: None,
            cancel: None,
            once: false,
            fallback: false,
        };
        Self { spec, purpose: PhantomData }
    }

    /// So much time for the whole operation instead of what the caller's policy says. Zero sends nothing.
    pub fn within(mut self, total: Duration) -> Self {
        self.spec.within = Some(total);
        self
    }

    /// For this tenant: its failures are counted apart. It never appears in metrics.
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.spec.tenant = Some(tenant);
        self
    }

    /// On behalf of a call that came in: its deadline is kept, its trace is continued, and if somebody above owns the
    /// retries, one attempt is made here.
    pub fn inherit(mut self, inbound: &Inbound) -> Self {
        self.spec.trace = inbound.trace.or(self.spec.trace);
        self.spec.inherited = Some(Box::new(inbound.clone()));
        self
    }

    /// Inside an attempt of another caller in this process: the same as [`Call::inherit`] without a wire between them.
    pub fn nested(self, outer: &Attempt) -> Self {
        self.inherit(&outer.as_inbound())
    }

    /// As a part of this trace.
    pub fn trace(mut self, trace: TraceId) -> Self {
        self.spec.trace = Some(trace);
        self
    }

    /// Can be cancelled by this.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.spec.cancel = Some(cancel.clone());
        self
    }

    pub(crate) fn once(mut self) -> Self {
        self.spec.once = true;
        self
    }
}

impl Call<Read> {
    pub(crate) fn with_fallback(mut self) -> Self {
        self.spec.fallback = true;
        self
    }

    /// A call that changes nothing and may be made any number of times.
    pub const fn read(operation: &'static str) -> Self {
        Self::new(operation, OperationClass::Read, None)
    }
}

impl Call<Authorisation> {
    /// A question whether somebody may do something. It is retried like a read, and has no fallback.
    pub const fn authorisation(operation: &'static str) -> Self {
        Self::new(operation, OperationClass::Read, None)
    }
}

impl Call<Mutation> {
    /// A mutation that the other side does once for each identity. Mint one with
    /// [`Caller::mint`](crate::call::Caller::mint), once for each logical operation.
    pub const fn mutation(operation: &'static str, identity: Identity) -> Self {
        Self::new(operation, OperationClass::Keyed, Some(identity))
    }

    /// A mutation that the other side would do again. It is never repeated once it may have been done.
    pub const fn unkeyed(operation: &'static str) -> Self {
        Self::new(operation, OperationClass::Unkeyed, None)
    }
}
