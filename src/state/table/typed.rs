//! Between typed rows and rows of bytes; shared by the handles for reading and for writing.

use std::ops::Bound;

use super::key::{self, AsKey};
use super::key_range::Bounds;
use super::{Table, TableKey};
use crate::state::envelope::{self, ENVELOPE_BYTES, open_sealed};
use crate::state::error::TableError;
use crate::state::row_key::KeyText;
use crate::state::{Bytes, RowKey, RowRange, Rows, TableId, TableLimits};

/// A table with its id.
pub(super) struct Typed<'a, K, V> {
    pub(super) table: &'a Table<K, V>,
    pub(super) id: TableId,
}

impl<K, V> Clone for Typed<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Typed<'_, K, V> {}

impl<K: TableKey, V> Typed<'_, K, V> {
    pub(super) fn get(&self, rows: &impl Rows, key: &[u8]) -> Result<Option<V>, TableError> {
        match self.get_bytes(rows, key)? {
            Some(bytes) => self.decode_value(key, &bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Whether the row is there, without looking at its value.
    pub(super) fn contains(&self, rows: &impl Rows, key: &[u8]) -> Result<bool, TableError> {
        Ok(self.get_bytes(rows, key)?.is_some())
    }

    pub(super) fn range(&self, rows: &impl Rows, bounds: &Bounds) -> Result<RowRange, TableError> {
        let bounds = (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice));
        rows.range(self.id, bounds).map_err(|error| TableError::storage(self.table.name, error))
    }

    pub(super) fn len(&self, rows: &impl Rows) -> Result<u64, TableError> {
        rows.len(self.id).map_err(|error| TableError::storage(self.table.name, error))
    }

    pub(super) fn is_empty(&self, rows: &impl Rows) -> Result<bool, TableError> {
        let first = self.range(rows, &(Bound::Unbounded, Bound::Unbounded))?.next();
        Ok(first.transpose().map_err(|error| TableError::storage(self.table.name, error))?.is_none())
    }

    pub(super) fn decode_row(&self, key: &RowKey, value: &Bytes) -> Result<(K, V), TableError> {
        let bytes = key.key();
        // The value first: its checksum also says whether these are the bytes that were written as its key.
        let value = self.decode_value(bytes, value)?;
        let key = key::decode(bytes).map_err(|error| TableError::decode(self.table.name, bytes, error.to_string()))?;
        Ok((key, value))
    }

    /// Encodes a key that is to be written.
    pub(super) fn encode_key(&self, key: impl AsKey<K>, limits: &TableLimits) -> Result<Vec<u8>, TableError> {
        let bytes = key::encode::<K>(&key);
        if bytes.len() <= limits.key_bytes_max {
            return Ok(bytes);
        }
        Err(TableError::KeyTooLong {
            table: self.table.name.to_owned(),
            key: KeyText::new(&bytes).to_string(),
            bytes: bytes.len(),
            bytes_max: limits.key_bytes_max,
        })
    }

    /// Encodes and seals a value.
    ///
    /// Debug builds read it back: serde attributes that a codec does not support would otherwise show only when the row
    /// is read.
    pub(super) fn encode_value(&self, key: &[u8], value: &V, limits: &TableLimits) -> Result<Vec<u8>, TableError> {
        let not_encoded = |reason| TableError::Encode {
            table: self.table.name.to_owned(),
            key: KeyText::new(key).to_string(),
            reason,
        };
        let mut bytes = envelope::begin(self.table.codec, self.table.version, 0);
        (self.table.encode)(value, &mut bytes).map_err(not_encoded)?;
        let payload = &bytes[ENVELOPE_BYTES..];
        if payload.len() > limits.value_bytes_max {
            return Err(TableError::ValueTooLarge {
                table: self.table.name.to_owned(),
                key: KeyText::new(key).to_string(),
                bytes: payload.len(),
                bytes_max: limits.value_bytes_max,
            });
        }
        if cfg!(debug_assertions)
            && let Err(reason) = (self.table.decode)(payload)
        {
            return Err(not_encoded(format!("it could not be read back: {reason}")));
        }
        envelope::finish(self.table.name, key, &mut bytes);
        Ok(bytes)
    }

    fn get_bytes(&self, rows: &impl Rows, key: &[u8]) -> Result<Option<Bytes>, TableError> {
        rows.get(self.id, key).map_err(|error| TableError::storage(self.table.name, error))
    }

    fn decode_value(&self, key: &[u8], bytes: &[u8]) -> Result<V, TableError> {
        let sealed = open_sealed(self.table.name, key, bytes)?;
        if sealed.codec != self.table.codec {
            let reason = format!("it is in {}, the table in {}", sealed.codec, self.table.codec);
            return Err(TableError::decode(self.table.name, key, reason));
        }
        self.table
            .read(sealed.version, sealed.payload)
            .map_err(|reason| TableError::decode(self.table.name, key, reason))
    }
}
