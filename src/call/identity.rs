//! The identity of one logical operation: minted once, before its first attempt, and the same for every attempt.

use std::fmt;

use crate::base::invalid::Invalid;
use crate::base::name::Key;
use crate::base::position::TimestampMs;

use super::fold;

/// What a logical operation is known by on the other side: its key, and what its request amounts to.
///
/// Write the key down before the first attempt if the operation must survive this process:
/// [`Identity::from_key`] takes it up again.
///
/// ```
/// use counterfoil::call::Identity;
///
/// let identity = Identity::from_key("order-7f3a")?;
/// assert_eq!(identity.key().to_string(), "order-7f3a");
/// # Ok::<(), counterfoil::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    key: Key,
    /// Most have none, and an identity is in every report and every attempt: so a thin pointer.
    fingerprint: Option<Box<Fingerprint>>,
}

#[derive(Clone, PartialEq, Eq)]
struct Fingerprint(Vec<u8>);

impl Identity {
    /// A new identity, as a UUID of version 7: keys that were minted together stand together in an index.
    pub(crate) fn mint(wall: TimestampMs, draws: [u64; 2]) -> Self {
        let time = u128::from(wall.0 & 0xffff_ffff_ffff) << 80;
        let high = u128::from(draws[0] & 0x0fff) << 64;
        let low = u128::from(draws[1] & 0x3fff_ffff_ffff_ffff);
        let uuid = time | (7 << 76) | high | (0b10 << 62) | low;
        let hex = format!("{uuid:032x}");
        let text = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        Self { key: Key::new(text).expect("a UUID is a key"), fingerprint: None }
    }

    /// An identity that was minted before.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for a key that is empty, blank or longer than 255 bytes.
    pub fn from_key(key: impl AsRef<[u8]>) -> Result<Self, Invalid> {
        Key::new(key).map(Self::from)
    }

    /// The same with what identifies the request's content, for instance a digest of it: with that
    /// [`Identity::compare`] can tell this operation from another one under the same key.
    #[must_use]
    pub fn fingerprint(self, fingerprint: impl Into<Vec<u8>>) -> Self {
        Self { fingerprint: Some(Box::new(Fingerprint(fingerprint.into()))), ..self }
    }

    /// The key, to be sent with every attempt.
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// Whether what exists on the other side is this operation.
    #[must_use]
    pub fn compare(&self, key: &[u8], fingerprint: Option<&[u8]>) -> Ownership {
        if self.key.as_bytes() != key {
            return Ownership::Other;
        }
        match (self.fingerprint.as_deref(), fingerprint) {
            (Some(Fingerprint(own)), Some(found)) if own == found => Ownership::Ours,
            (Some(_), Some(_)) => Ownership::Other,
            (None, _) | (_, None) => Ownership::Unknown,
        }
    }

    /// What stands for the key where keys must not appear, as in logs. It is the same in every process.
    #[must_use]
    pub fn hash(&self) -> u64 {
        // Keys are random: nothing can be concluded from their hash.
        fold::hash(self.key.as_bytes())
    }
}

impl From<Key> for Identity {
    fn from(key: Key) -> Self {
        Self { key, fingerprint: None }
    }
}

/// The hash only.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:016x})", self.hash())
    }
}

/// Whose it is that exists on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ownership {
    /// This operation's: same key, same content. It was done by an earlier attempt; answer it as a replay.
    Ours,
    /// Somebody else's. This operation was not done.
    Other,
    /// The same key, and not known with which content.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_is_a_uuid_of_version_7_and_sorts_by_time() {
        let mint = |ms| Identity::mint(TimestampMs(ms), [u64::MAX, u64::MAX]).key().to_string();
        assert_eq!(mint(0x0123_4567_89ab), "01234567-89ab-7fff-bfff-ffffffffffff");
        assert!(mint(1_000) < mint(1_001));
        assert_eq!(Identity::mint(TimestampMs(0), [0, 0]).key().to_string(), "00000000-0000-7000-8000-000000000000");
    }

    #[test]
    fn what_exists_is_ours_with_the_same_key_and_the_same_content_only() {
        let ours = Identity::from_key("k").unwrap().fingerprint(*b"digest");
        assert_eq!(ours.compare(b"k", Some(b"digest")), Ownership::Ours);
        assert_eq!(ours.compare(b"k", Some(b"other")), Ownership::Other);
        assert_eq!(ours.compare(b"another", Some(b"digest")), Ownership::Other);
        assert_eq!(ours.compare(b"k", None), Ownership::Unknown);
        assert_eq!(Identity::from_key("k").unwrap().compare(b"k", Some(b"digest")), Ownership::Unknown);
    }

    #[test]
    fn the_key_does_not_appear_where_the_identity_is_printed() {
        let identity = Identity::from_key("secret-key").unwrap();
        assert!(!format!("{identity:?}").contains("secret"));
        assert_ne!(identity.hash(), Identity::from_key("secret-kez").unwrap().hash());
    }
}
