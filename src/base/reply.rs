//! What an operation answers.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::invalid::Invalid;

/// The answer of an operation, stored in its receipt and replayed to the byte.
///
/// ```
/// use counterfoil::Reply;
///
/// let reply = Reply::new(201)?.resource_id("orders/7").header("location", "/orders/7")?.json(&["created"])?;
/// assert_eq!(reply.body(), br#"["created"]"#);
/// # Ok::<(), counterfoil::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) resource_id: Option<String>,
    pub(crate) content_type: Option<String>,
    #[serde(with = "super::byte_string")]
    pub(crate) body: Vec<u8>,
    /// How long it may be replayed. Taken out before the reply is stored: the receipt's deadline says it from then on.
    #[serde(skip)]
    pub(crate) allowed_for: Option<Duration>,
}

/// Headers that hand credentials to whoever reads them: a replay may be read by another session.
const HEADERS_FORBIDDEN: [&str; 6] =
    ["authorization", "cookie", "proxy-authorization", "set-cookie", "set-cookie2", "www-authenticate"];

impl Reply {
    /// An empty reply with a status of 100 to 999. The numbers of HTTP are the usual ones; the store gives them no
    /// meaning.
    ///
    /// # Errors
    ///
    /// [`Invalid::Status`].
    pub const fn new(status: u16) -> Result<Self, Invalid> {
        if status < 100 || status > 999 {
            return Err(Invalid::Status(status));
        }
        Ok(Self::with_status(status))
    }

    const fn with_status(status: u16) -> Self {
        Self { status, headers: Vec::new(), resource_id: None, content_type: None, body: Vec::new(), allowed_for: None }
    }

    /// Status 200.
    #[must_use]
    pub const fn ok() -> Self {
        Self::with_status(200)
    }

    /// Status 201.
    #[must_use]
    pub const fn created() -> Self {
        Self::with_status(201)
    }

    /// Status 202, the usual one of an operation that was accepted and finishes later.
    #[must_use]
    pub const fn accepted() -> Self {
        Self::with_status(202)
    }

    /// Status 409, the usual one of a business "no".
    #[must_use]
    pub const fn refused() -> Self {
        Self::with_status(409)
    }

    /// A body as JSON, with content type `application/json`.
    ///
    /// # Errors
    ///
    /// [`Invalid::ReplyBody`] if the value cannot be serialised.
    pub fn json<T: Serialize + ?Sized>(mut self, value: &T) -> Result<Self, Invalid> {
        self.body = serde_json::to_vec(value).map_err(|error| Invalid::ReplyBody(error.to_string()))?;
        self.content_type = Some("application/json".to_owned());
        Ok(self)
    }

    /// A body of bytes of a content type.
    #[must_use]
    pub fn bytes(mut self, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        self.content_type = Some(content_type.into());
        self.body = body.into();
        self
    }

    /// The durable id of what was made. It is kept after the reply is gone, so that a late retry can still be pointed
    /// at the result.
    #[must_use]
    pub fn resource_id(mut self, id: impl Into<String>) -> Self {
        self.resource_id = Some(id.into());
        self
    }

    /// How long this very reply may be replayed, where that is shorter than the replay window of its operation type: a
    /// signed link, a quote, a seat that is held. A retry after that is answered [`Error::Gone`](crate::Error::Gone), and
    /// the operation is never executed again while its key is known.
    #[must_use]
    pub const fn allowed_for(mut self, validity: Duration) -> Self {
        self.allowed_for = Some(validity);
        self
    }

    /// A header to store and replay; names are kept in lower case. The store accepts the names on its allow-list
    /// ([`crate::StoreBuilder::allow_header`]) and refuses others when the operation is about to commit.
    ///
    /// # Errors
    ///
    /// [`Invalid::HeaderForbidden`] for cookies and credentials, [`Invalid::Header`] for a name or value with
    /// characters that RFC 9110 does not allow.
    pub fn header(mut self, name: impl AsRef<str>, value: impl Into<String>) -> Result<Self, Invalid> {
        let (name, value) = (name.as_ref().to_ascii_lowercase(), value.into());
        if let Some(fault) = header_fault(&name, &value) {
            return Err(fault);
        }
        self.headers.push((name, value));
        Ok(self)
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The body read as JSON.
    ///
    /// # Errors
    ///
    /// serde_json's, if the body is not JSON of this type.
    pub fn body_json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The headers in the order they were given, names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The durable id of what was made.
    #[must_use]
    pub fn resource(&self) -> Option<&str> {
        self.resource_id.as_deref()
    }

    /// The content type.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// What a constructor would have refused. A reply can also come out of serde, past all of them.
    pub(crate) fn fault(&self) -> Option<Invalid> {
        if !(100..=999).contains(&self.status) {
            return Some(Invalid::Status(self.status));
        }
        self.headers.iter().find_map(|(name, value)| header_fault(name, value))
    }

    /// What counts against the reply limit, in bytes.
    pub(crate) fn counted_bytes(&self) -> usize {
        self.body.len()
            + self.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
            + self.resource_id.as_ref().map_or(0, String::len)
            + self.content_type.as_ref().map_or(0, String::len)
    }

    /// The same reply without what an oversize policy drops.
    pub(crate) fn without_body(mut self) -> Self {
        self.body = Vec::new();
        self.headers = Vec::new();
        self.content_type = None;
        self
    }
}

fn header_fault(name: &str, value: &str) -> Option<Invalid> {
    if is_forbidden(name) {
        return Some(Invalid::HeaderForbidden(name.to_owned()));
    }
    let valid = is_token(name) && !value.chars().any(|c| c.is_control() && c != '\t');
    (!valid).then(|| Invalid::Header(name.to_owned()))
}

/// A header that carries credentials, in whatever case.
pub(crate) fn is_forbidden(name: &str) -> bool {
    HEADERS_FORBIDDEN.iter().any(|forbidden| forbidden.eq_ignore_ascii_case(name))
}

/// A header name: RFC 9110, section 5.6.2.
pub(crate) fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("resource_id", &self.resource_id)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// What a closure decides.
///
/// A [`Reply`] converts into the first variant, so `Ok(Reply::ok())` is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Keep the mutation and store the reply.
    Reply(Reply),
    /// A business "no": drop the mutation and store the reply, so that a retry hears the same "no".
    Reject(Reply),
    /// Keep the mutation and answer that the operation was accepted: it goes on with its intents. When all its effects are
    /// final, the continuation of its type ([`StoreBuilder::continuation`](crate::StoreBuilder::continuation)) finishes
    /// it, and from then on a retry gets the finished reply. Until then the receipt does not expire.
    Accept(Reply),
}

impl From<Reply> for Decision {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_stored_in_a_reply() {
        for name in ["Set-Cookie", "authorization", "COOKIE", "proxy-authorization"] {
            assert!(matches!(Reply::ok().header(name, "x"), Err(Invalid::HeaderForbidden(_))), "{name}");
        }
    }

    #[test]
    fn a_header_with_a_line_break_is_refused() {
        assert!(Reply::ok().header("x-a", "one\r\nx-b: two").is_err());
        assert!(Reply::ok().header("x a", "v").is_err());
        assert!(Reply::ok().header("", "v").is_err());
    }

    #[test]
    fn a_status_has_three_digits() {
        assert_eq!(Reply::new(99), Err(Invalid::Status(99)));
        assert_eq!(Reply::new(1000), Err(Invalid::Status(1000)));
        assert!(Reply::new(999).is_ok());
    }

    #[test]
    fn debug_shows_no_body() {
        let text = format!("{:?}", Reply::ok().bytes("text/plain", "secret"));
        assert!(!text.contains("secret"), "{text}");
    }
}
