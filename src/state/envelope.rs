//! The envelope of a value: the same bytes in the frame, in the memory map and in redb.
//!
//! ```text
//! crc32 u32 LE | codec u8 | version u32 LE | payload
//! ```
//!
//! The checksum covers the table's name and the row's key too, so a value that a fault put under another key or into
//! another table is not a value there. redb does not verify checksums at reads; this is what finds damage then.

use super::row_key::KeyText;
use super::table::Codec;

/// Bytes in front of the payload.
pub(crate) const ENVELOPE_BYTES: usize = 9;

const CRC_BYTES: usize = 4;

/// Not zero, so that a page of zeros does not carry a matching checksum (codec 0 does not exist either).
const CRC_SEED: u32 = 0xC0_F0_11_5E;

/// What is in an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sealed<'a> {
    pub(crate) codec: Codec,
    pub(crate) version: u32,
    pub(crate) payload: &'a [u8],
}

/// A row that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {key} of table {table} is damaged: {damage}")]
pub(crate) struct RowError {
    pub(crate) table: String,
    pub(crate) key: KeyText,
    pub(crate) damage: RowDamage,
}

/// What is wrong with a damaged row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RowDamage {
    #[error("only {0} bytes, too few for an envelope")]
    TooShort(usize),
    #[error("its checksum is {found:08x}, its content has {computed:08x}")]
    Checksum { found: u32, computed: u32 },
    /// The checksum is right: written by a version of this crate that knows more codecs.
    #[error("codec {0} is unknown to this version")]
    UnknownCodec(u8),
}

/// Puts a payload into an envelope.
pub(crate) fn seal(table: &str, key: &[u8], codec: Codec, version: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = begin(codec, version, payload.len());
    bytes.extend_from_slice(payload);
    finish(table, key, &mut bytes);
    bytes
}

/// An envelope without its checksum, for an encoder that appends the payload itself.
pub(crate) fn begin(codec: Codec, version: u32, payload_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ENVELOPE_BYTES + payload_bytes);
    bytes.extend_from_slice(&[0; CRC_BYTES]);
    bytes.push(codec.id());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes
}

/// Closes an envelope from [`begin`], whose payload is complete.
pub(crate) fn finish(table: &str, key: &[u8], bytes: &mut [u8]) {
    let crc = checksum(table, key, &bytes[CRC_BYTES..]);
    bytes[..CRC_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// Takes a payload out of its envelope, which must have been sealed for this table and key.
pub(crate) fn open_sealed<'a>(table: &str, key: &[u8], bytes: &'a [u8]) -> Result<Sealed<'a>, RowError> {
    open(table, key, bytes).map_err(|damage| RowError { table: table.to_owned(), key: KeyText::new(key), damage })
}

fn open<'a>(table: &str, key: &[u8], bytes: &'a [u8]) -> Result<Sealed<'a>, RowDamage> {
    let Some(([c0, c1, c2, c3, codec, v0, v1, v2, v3], payload)) = bytes.split_first_chunk::<ENVELOPE_BYTES>() else {
        return Err(RowDamage::TooShort(bytes.len()));
    };
    let found = u32::from_le_bytes([*c0, *c1, *c2, *c3]);
    let computed = checksum(table, key, &bytes[CRC_BYTES..]);
    if found != computed {
        return Err(RowDamage::Checksum { found, computed });
    }
    let codec = Codec::from_id(*codec).ok_or(RowDamage::UnknownCodec(*codec))?;
    Ok(Sealed { codec, version: u32::from_le_bytes([*v0, *v1, *v2, *v3]), payload })
}

/// Lengths go in as well, so that no two triples of table, key and rest are one string of bytes.
fn checksum(table: &str, key: &[u8], rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(CRC_SEED);
    hasher.update(&(table.len() as u64).to_le_bytes());
    hasher.update(table.as_bytes());
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(rest);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        seal("orders", b"order-7", Codec::Json, 3, br#"{"total":12}"#)
    }

    #[test]
    fn what_was_sealed_comes_out() {
        let bytes = sealed();
        let opened = open_sealed("orders", b"order-7", &bytes).unwrap();
        assert_eq!(opened, Sealed { codec: Codec::Json, version: 3, payload: br#"{"total":12}"# });
        let empty = seal("t", b"", Codec::Raw, 0, b"");
        assert_eq!(open_sealed("t", b"", &empty).unwrap().payload, b"");
    }

    #[test]
    fn the_bytes_of_an_envelope_never_change() {
        let golden = [91, 214, 232, 131, 2, 4, 3, 2, 1, b'x', b'y'];
        assert_eq!(seal("orders", b"k", Codec::Bincode, 0x0102_0304, b"xy"), golden);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = sealed();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(open_sealed("orders", b"order-7", &bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_cut_and_every_extra_byte_is_found() {
        let good = sealed();
        for len in 0..good.len() {
            assert!(open_sealed("orders", b"order-7", &good[..len]).is_err(), "{len} bytes");
        }
        let mut longer = good;
        longer.push(0);
        assert!(open_sealed("orders", b"order-7", &longer).is_err());
    }

    #[test]
    fn a_value_under_another_key_or_in_another_table_is_damage() {
        let bytes = sealed();
        let error = open_sealed("orders", b"order-8", &bytes).unwrap_err();
        assert!(error.to_string().contains("\"order-8\" of table orders"), "{error}");
        assert!(open_sealed("order", b"order-7", &bytes).is_err());
        assert!(open_sealed("order", b"sorder-7", &bytes).is_err(), "where a name ends is part of the checksum");
    }

    #[test]
    fn zeros_are_not_a_value() {
        for len in 0..256 {
            assert!(open_sealed("", b"", &vec![0; len]).is_err(), "{len} zeros");
        }
    }
}
