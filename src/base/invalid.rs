//! Input that is refused at the door.

/// Input that is refused: a request before anything is looked up, a reply before it is committed. Nothing was executed, and
/// the same input never will be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Invalid {
    /// A required part is empty.
    #[error("the {what} is empty: give at least one byte")]
    Empty {
        /// Which part.
        what: &'static str,
    },
    /// A part holds nothing but white space or control characters.
    #[error("the {what} is blank: white space alone does not name anything")]
    Blank {
        /// Which part.
        what: &'static str,
    },
    /// A part is too long.
    #[error("the {what} has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// Which part.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The operation type declares keys that say when they were minted, and this one does not.
    #[error("the key is not a {form}, as the operation type declares its keys to be")]
    KeyForm {
        /// What it should be.
        form: &'static str,
    },
    /// A lease is shorter than a millisecond.
    #[error("a lease must be at least one millisecond")]
    Lease,
    /// The request has no canonical form, so it has no digest.
    #[error("the request has no canonical form: {0}")]
    Request(String),
    /// The reply's status is not a three-digit number.
    #[error("the reply status {0} is not within 100 to 999")]
    Status(u16),
    /// The reply's body could not be serialised.
    #[error("the reply body cannot be written as JSON: {0}")]
    ReplyBody(String),
    /// A reply header's name or value has characters that a header cannot have.
    #[error("the reply header {0:?} is not a valid header (RFC 9110, section 5)")]
    Header(String),
    /// A header that must never be stored, since a replay would hand it to another session.
    #[error("the reply header {0:?} carries credentials and is never stored; leave it out of the reply")]
    HeaderForbidden(String),
}
