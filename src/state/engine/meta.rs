//! The row that says whose tree this is and how far it got. Written in the same transaction as the data.

use serde::{Deserialize, Serialize};

use super::error::EngineError;
use crate::base::encoding;
use crate::state::envelope;
use crate::state::table::Codec;

/// The format of the tree: tables, envelopes, this row.
pub(crate) const STATE_FORMAT: u32 = 1;

/// The table and key of the metadata. It is the engine's own and in no catalog.
pub(super) const META_TABLE: &str = "_counterfoil/meta";
pub(super) const META_KEY: &[u8] = b"meta";

/// What a commit says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) store_id: u128,
    /// The epoch of the opening that folded.
    pub(crate) epoch: u64,
    /// The epoch of the frame at `applied_sequence`; 0 before the first.
    pub(crate) applied_epoch: u64,
    /// The last sequence whose frame is part of this state.
    pub(crate) applied_sequence: u64,
    /// The store's clock when that frame was written.
    pub(crate) clock_mark_ms: u64,
    /// The store's clock when it was last beyond doubt.
    pub(crate) clock_trusted_ms: u64,
    /// The smallest sequence that the log must hold: what was removed on purpose lies below it.
    pub(crate) log_floor: u64,
}

/// The stored form: only ever appended to.
#[derive(Serialize, Deserialize)]
enum StoredMeta {
    V1 {
        store_id: u128,
        epoch: u64,
        applied_epoch: u64,
        applied_sequence: u64,
        clock_mark_ms: u64,
        clock_trusted_ms: u64,
        log_floor: u64,
    },
}

impl Meta {
    pub(super) fn encode(&self) -> Result<Vec<u8>, EngineError> {
        let Self { store_id, epoch, applied_epoch, applied_sequence, clock_mark_ms, clock_trusted_ms, log_floor } =
            *self;
        let payload = encoding::encode(&StoredMeta::V1 {
            store_id,
            epoch,
            applied_epoch,
            applied_sequence,
            clock_mark_ms,
            clock_trusted_ms,
            log_floor,
        })
        .map_err(|error| EngineError::DamagedMeta(error.to_string()))?;
        Ok(envelope::seal(META_TABLE, META_KEY, Codec::Bincode, STATE_FORMAT, &payload))
    }

    /// The format is the version in the envelope, so that a later one can be told from damage without being read.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, EngineError> {
        let sealed = envelope::open_sealed(META_TABLE, META_KEY, bytes)
            .map_err(|error| EngineError::DamagedMeta(error.to_string()))?;
        if sealed.version != STATE_FORMAT {
            return Err(EngineError::Format { found: sealed.version, supported: STATE_FORMAT });
        }
        let StoredMeta::V1 {
            store_id,
            epoch,
            applied_epoch,
            applied_sequence,
            clock_mark_ms,
            clock_trusted_ms,
            log_floor,
        } = encoding::decode(sealed.payload).map_err(|error| EngineError::DamagedMeta(error.to_string()))?;
        Ok(Self { store_id, epoch, applied_epoch, applied_sequence, clock_mark_ms, clock_trusted_ms, log_floor })
    }

    /// Where a state stands in the order of all states of a store.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.epoch, self.applied_sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const META: Meta = Meta {
        store_id: 7,
        epoch: 3,
        applied_epoch: 2,
        applied_sequence: 1 << 40,
        clock_mark_ms: 1_700_000_000_000,
        clock_trusted_ms: 1_600_000_000_000,
        log_floor: 1,
    };

    #[test]
    fn metadata_comes_back_as_written() {
        assert_eq!(Meta::decode(&META.encode().unwrap()).unwrap(), META);
    }

    #[test]
    fn a_later_format_is_told_from_damage() {
        let later = envelope::seal(META_TABLE, META_KEY, Codec::Bincode, STATE_FORMAT + 1, b"whatever");
        assert!(matches!(Meta::decode(&later), Err(EngineError::Format { found: 2, supported: 1 })));
        assert!(matches!(Meta::decode(b"whatever"), Err(EngineError::DamagedMeta(_))));
        let long = envelope::seal(META_TABLE, META_KEY, Codec::Bincode, STATE_FORMAT, &[0; 40]);
        assert!(matches!(Meta::decode(&long), Err(EngineError::DamagedMeta(_))));
    }
}
