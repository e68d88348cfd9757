//! Verdicts for what libraries return. When in doubt they say that it may have been done.

pub mod grpc;
pub mod http;
pub mod io;
#[cfg(feature = "store")]
pub mod store;

/// What a service promises about its refusals, beyond what its protocol does.
///
/// Without a promise "unavailable" proves nothing: a proxy in between says it too, about a connection that broke after the
/// request had gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contract {
    /// "Unavailable" (503, `Unavailable`, `ResourceExhausted`) is said before anything is executed, and by nobody else.
    pub unavailable_is_not_executed: bool,
    /// "Gone" (410) says that the operation with this key was done and its answer is no longer kept.
    pub gone_is_executed: bool,
    /// "Conflict" with a Retry-After (409) says that an attempt with this key is in progress.
    pub conflict_may_be_in_progress: bool,
}

impl Contract {
    /// Nothing is promised.
    pub const NONE: Self =
        Self { unavailable_is_not_executed: false, gone_is_executed: false, conflict_may_be_in_progress: false };
    /// What a service on counterfoil's store answers, if it gives each outcome the status that `examples/http_orders`
    /// gives it, and no proxy in between answers for it.
    pub const RECEIPTS: Self =
        Self { unavailable_is_not_executed: true, gone_is_executed: true, conflict_may_be_in_progress: true };
}
