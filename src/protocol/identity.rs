//! Keyed hashes: of a scope, of a request, and of an effect. One secret, separate contexts.

use std::fmt;

use crate::base::name::Slot;
use crate::base::operation::{ContentKind, Operation};

/// The version of how a request is hashed. A new one would be a new number here and an accepted old one beside it.
const DIGEST_VERSION: u64 = 1;

/// The digest of a request: 256 bits of keyed BLAKE3.
///
/// Keyed, because a plain hash of a low-entropy field could be guessed offline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest(pub(crate) [u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest(..)")
    }
}

/// A scope (tenant, actor, operation) as it stands in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopeHash(pub(crate) [u8; 16]);

/// The keys derived from a store's secret, one for each purpose.
pub(crate) struct HashKeys {
    scope: [u8; 32],
    digest: [u8; 32],
    effect: [u8; 32],
}

impl fmt::Debug for HashKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKeys(..)")
    }
}

impl HashKeys {
    pub(crate) fn derive(secret: &[u8; 32]) -> Self {
        Self {
            scope: blake3::derive_key("counterfoil 2026 scope of a slot v1", secret),
            digest: blake3::derive_key("counterfoil 2026 digest of a request v1", secret),
            effect: blake3::derive_key("counterfoil 2026 identity of an effect v1", secret),
        }
    }

    pub(crate) fn scope(&self, slot: &Slot) -> ScopeHash {
        let mut hasher = blake3::Hasher::new_keyed(&self.scope);
        for part in [slot.tenant.as_str(), slot.actor.as_str(), slot.operation.as_str()] {
            update_with_length(&mut hasher, part.as_bytes());
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        ScopeHash(hash)
    }

    /// The digest of a request under every version that its operation type accepts, the current one first.
    pub(crate) fn digests(&self, operation: &Operation) -> Vec<(u32, Digest)> {
        operation.operation_type.versions().map(|version| (version, self.digest(operation, version))).collect()
    }

    /// The identity of an effect. Nothing goes in that a restore would use again: no sequence, no epoch, no time.
    pub(crate) fn effect(
        &self,
        store_id: &[u8; 16],
        scope: &[u8; 16],
        key: &[u8],
        digest: &[u8; 32],
        ordinal: u32,
    ) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.effect);
        for part in [&store_id[..], scope, key, digest, &ordinal.to_le_bytes()] {
            update_with_length(&mut hasher, part);
        }
        *hasher.finalize().as_bytes()
    }

    fn digest(&self, operation: &Operation, version: u32) -> Digest {
        let kind: &[u8] = match operation.kind {
            ContentKind::Json => b"json",
            ContentKind::Bytes => b"bytes",
        };
        let mut hasher = blake3::Hasher::new_keyed(&self.digest);
        update_with_length(&mut hasher, &DIGEST_VERSION.to_le_bytes());
        update_with_length(&mut hasher, kind);
        update_with_length(&mut hasher, operation.slot.operation.as_str().as_bytes());
        update_with_length(&mut hasher, &version.to_le_bytes());
        update_with_length(&mut hasher, &operation.content);
        Digest(*hasher.finalize().as_bytes())
    }
}

/// Each part is preceded by its length, so that no two lists of parts hash the same bytes.
fn update_with_length(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher.update(&(part.len() as u64).to_le_bytes());
    hasher.update(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::operation::OperationType;

    const TYPE: OperationType = OperationType::new("pay").version(2).accepts(&[1]);

    fn operation(kind: ContentKind, content: &[u8]) -> Operation {
        Operation::new(TYPE.request("t", "a", "k").unwrap(), kind, content.to_vec())
    }

    fn keys(secret: u8) -> HashKeys {
        HashKeys::derive(&[secret; 32])
    }

    #[test]
    fn parts_that_join_to_the_same_text_are_different_scopes() {
        let a = Slot::new("ab", "c", "op", "k").unwrap();
        let b = Slot::new("a", "bc", "op", "k").unwrap();
        assert_ne!(keys(1).scope(&a), keys(1).scope(&b));
    }

    #[test]
    fn the_key_is_not_part_of_the_scope() {
        let a = Slot::new("t", "a", "op", "k1").unwrap();
        let b = Slot::new("t", "a", "op", "k2").unwrap();
        assert_eq!(keys(1).scope(&a), keys(1).scope(&b));
    }

    #[test]
    fn an_effect_depends_on_store_slot_request_and_ordinal_and_on_nothing_else() {
        let of = |secret, store, scope, key: &[u8], digest, ordinal| {
            keys(secret).effect(&[store; 16], &[scope; 16], key, &[digest; 32], ordinal)
        };
        let base = of(1, 1, 1, b"k", 1, 0);
        assert_eq!(base, of(1, 1, 1, b"k", 1, 0));
        let others = [
            of(2, 1, 1, b"k", 1, 0),
            of(1, 2, 1, b"k", 1, 0),
            of(1, 1, 2, b"k", 1, 0),
            of(1, 1, 1, b"l", 1, 0),
            of(1, 1, 1, b"k", 2, 0),
            of(1, 1, 1, b"k", 1, 1),
        ];
        assert!(others.iter().all(|other| *other != base));
    }

    #[test]
    fn a_digest_depends_on_secret_kind_version_and_content() {
        let base = keys(1).digests(&operation(ContentKind::Json, b"1"));
        assert_eq!(base.iter().map(|(version, _)| *version).collect::<Vec<_>>(), [2, 1]);
        assert_ne!(base[0].1, base[1].1, "version");
        assert_ne!(base[0].1, keys(2).digests(&operation(ContentKind::Json, b"1"))[0].1, "secret");
        assert_ne!(base[0].1, keys(1).digests(&operation(ContentKind::Bytes, b"1"))[0].1, "kind");
        assert_ne!(base[0].1, keys(1).digests(&operation(ContentKind::Json, b"2"))[0].1, "content");
        assert_eq!(base[0].1, keys(1).digests(&operation(ContentKind::Json, b"1"))[0].1);
    }
}
