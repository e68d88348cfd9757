//! Names: tenant, actor, operation and key, each parsed once at the door.

use std::fmt;
use std::sync::Arc;

use super::invalid::Invalid;
use super::limits::{ACTOR_BYTES_MAX, KEY_BYTES_MAX, OPERATION_BYTES_MAX, TENANT_BYTES_MAX};

/// Why a name is refused, or `None`. Blank means nothing but white space or control characters: an empty header that
/// was padded on the way must not become a key that everybody shares.
fn name_fault(what: &'static str, text: &str, bytes_max: usize) -> Option<Invalid> {
    if text.is_empty() {
        Some(Invalid::Empty { what })
    } else if text.len() > bytes_max {
        Some(Invalid::TooLong { what, bytes: text.len(), bytes_max })
    } else if text.chars().all(|c| c.is_whitespace() || c.is_control()) {
        Some(Invalid::Blank { what })
    } else {
        None
    }
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $bytes_max:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Parses a name.
            ///
            /// # Errors
            ///
            /// [`Invalid`] if it is empty, blank or too long. Nothing was executed.
            pub fn new(text: impl AsRef<str>) -> Result<Self, Invalid> {
                let text = text.as_ref();
                name_fault($what, text, $bytes_max).map_or_else(|| Ok(Self(text.into())), Err)
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

text_name! {
    /// The tenant on whose behalf an operation runs: 1 to 128 bytes.
    Tenant, "tenant", TENANT_BYTES_MAX
}
text_name! {
    /// The authenticated principal who asks for an operation: 1 to 256 bytes.
    Actor, "actor", ACTOR_BYTES_MAX
}
text_name! {
    /// The name of an operation type: 1 to 64 bytes.
    OperationName, "operation name", OPERATION_BYTES_MAX
}

/// The idempotency key of one logical operation: 1 to 255 bytes, not blank, otherwise as the caller gave it.
///
/// A key is minted once per logical operation, before the first attempt, and is the same for every attempt.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// Parses a key.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it is empty, blank or longer than 255 bytes. Nothing was executed.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, Invalid> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() {
            return Err(Invalid::Empty { what: "key" });
        }
        if bytes.len() > KEY_BYTES_MAX {
            return Err(Invalid::TooLong { what: "key", bytes: bytes.len(), bytes_max: KEY_BYTES_MAX });
        }
        let blank_text =
            std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(|c| c.is_whitespace() || c.is_control()));
        if blank_text {
            return Err(Invalid::Blank { what: "key" });
        }
        Ok(Self(bytes.into()))
    }

    /// The key as it was given.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// What one logical operation is known by: tenant, actor, operation name and key.
///
/// Never the operation's version, since a deploy between two attempts must not execute twice; never the key alone,
/// since two callers may choose the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// On whose behalf.
    pub tenant: Tenant,
    /// By whom.
    pub actor: Actor,
    /// Which operation.
    pub operation: OperationName,
    /// Which one of them.
    pub key: Key,
}

impl Slot {
    /// Parses all four parts.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for the first part that is empty, blank or too long.
    pub fn new(
        tenant: impl AsRef<str>,
        actor: impl AsRef<str>,
        operation: impl AsRef<str>,
        key: impl AsRef<[u8]>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            tenant: Tenant::new(tenant)?,
            actor: Actor::new(actor)?,
            operation: OperationName::new(operation)?,
            key: Key::new(key)?,
        })
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.tenant, self.actor, self.operation, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_255_bytes_and_is_not_blank() {
        assert_eq!(Key::new(""), Err(Invalid::Empty { what: "key" }));
        assert_eq!(Key::new(" \t\u{a0}\n"), Err(Invalid::Blank { what: "key" }));
        assert!(Key::new([0_u8, 1, 255]).is_ok(), "bytes that are not text are a key");
        assert!(Key::new([b'k'; 255]).is_ok());
        assert_eq!(Key::new([b'k'; 256]), Err(Invalid::TooLong { what: "key", bytes: 256, bytes_max: 255 }));
    }

    #[test]
    fn scope_parts_are_not_empty_blank_or_too_long() {
        assert_eq!(Tenant::new(""), Err(Invalid::Empty { what: "tenant" }));
        assert_eq!(Actor::new("  "), Err(Invalid::Blank { what: "actor" }));
        assert!(OperationName::new("x".repeat(64)).is_ok());
        assert!(matches!(OperationName::new("x".repeat(65)), Err(Invalid::TooLong { .. })));
    }

    #[test]
    fn a_key_shows_bytes_that_are_not_text_escaped() {
        assert_eq!(Key::new([b'a', 0, 0xff]).unwrap().to_string(), "a\\x00\\xff");
    }
}
