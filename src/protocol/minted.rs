//! Keys that say when they were minted, and whether that is too long ago or in the future.

use std::time::Duration;

use crate::base::operation::KeyForm;
use crate::base::position::TimestampMs;

/// When a key was minted, or `None` if it does not have the form.
///
/// A UUID is taken as text with hyphens (RFC 9562, section 4), as 32 hexadecimal digits, or as 16 bytes; a ULID as 26
/// characters of Crockford's alphabet or as 16 bytes. Both begin with 48 bits of milliseconds since 1970.
pub(crate) fn minted_at(form: KeyForm, key: &[u8]) -> Option<TimestampMs> {
    let bytes = match form {
        KeyForm::Opaque => return None,
        KeyForm::Uuid7 => uuid7(key)?,
        KeyForm::Ulid => ulid(key)?,
    };
    let mut millis = [0; 8];
    millis[2..].copy_from_slice(&bytes[..6]);
    Some(TimestampMs(u64::from_be_bytes(millis)))
}

fn uuid7(key: &[u8]) -> Option<[u8; 16]> {
    let bytes = match key.len() {
        16 => key.try_into().ok()?,
        32 => hex(key)?,
        36 => {
            if [8, 13, 18, 23].iter().any(|&place| key[place] != b'-') {
                return None;
            }
            let digits: Vec<u8> = key.iter().copied().filter(|byte| *byte != b'-').collect();
            hex(&digits)?
        }
        _ => return None,
    };
    // Version 7, and the variant of RFC 9562.
    (bytes[6] >> 4 == 7 && bytes[8] >> 6 == 0b10).then_some(bytes)
}

fn hex(digits: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = [0; 16];
    if digits.len() != 32 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

fn ulid(key: &[u8]) -> Option<[u8; 16]> {
    if key.len() == 16 {
        return key.try_into().ok();
    }
    // 26 characters of 5 bits are 130: the first has two of them too many, so it is at most 7.
    if key.len() != 26 || key[0] > b'7' {
        return None;
    }
    let mut number = 0_u128;
    for byte in key {
        let digit = CROCKFORD.iter().position(|letter| letter.eq_ignore_ascii_case(byte))?;
        number = number << 5 | digit as u128;
    }
    Some(number.to_be_bytes())
}

/// How old a key is, as admission sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyAge {
    /// Young enough, or it does not say.
    Good,
    /// Minted longer ago than retries are answered: what became of the operation is not known any more.
    Expired,
    /// Minted in the future, by more than clocks may disagree.
    Future,
}

/// Judges a key. `age_time` is the later of the wall clock and the store's time, so that neither makes an old key young;
/// the future is a matter of the wall clock alone, which is what the client's clock is to agree with.
pub(crate) fn key_age(
    minted: Option<TimestampMs>,
    horizon: Duration,
    age_time: TimestampMs,
    wall: TimestampMs,
    tolerance: Duration,
) -> KeyAge {
    match minted {
        None => KeyAge::Good,
        Some(minted) if minted.since(wall) > tolerance => KeyAge::Future,
        // Exactly as old as the horizon has passed it, as with every deadline.
        Some(minted) if age_time >= minted.saturating_add(horizon) => KeyAge::Expired,
        Some(_) => KeyAge::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9562, appendix A.6: 2022-02-22T19:22:22Z.
    const UUID: &str = "017F22E2-79B0-7CC3-98C4-DC0C0C07398F";
    const UUID_MS: TimestampMs = TimestampMs(1_645_557_742_000);
    /// The example of the ULID specification.
    const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const ULID_MS: TimestampMs = TimestampMs(1_469_922_850_259);

    #[test]
    fn a_uuid_of_version_7_says_when_it_was_minted_in_each_of_its_forms() {
        let compact = UUID.replace('-', "").to_lowercase();
        let bytes = hex(compact.as_bytes()).expect("32 digits");
        for key in [UUID.as_bytes(), compact.as_bytes(), &bytes] {
            assert_eq!(minted_at(KeyForm::Uuid7, key), Some(UUID_MS), "{key:?}");
        }
    }

    #[test]
    fn a_ulid_says_when_it_was_minted_in_either_case_and_as_bytes() {
        let bytes = ulid(ULID.as_bytes()).unwrap();
        for key in [ULID.as_bytes(), ULID.to_lowercase().as_bytes(), &bytes] {
            assert_eq!(minted_at(KeyForm::Ulid, key), Some(ULID_MS), "{key:?}");
        }
    }

    #[test]
    fn what_has_another_form_says_nothing() {
        let version_4 = "0e1b4f5c-3c63-4a31-9b5d-0f7b54b1f2aa";
        let wrong_variant = "017F22E2-79B0-7CC3-18C4-DC0C0C07398F";
        let misplaced = "017F22E279B0-7CC3-98C4-DC0C0C07398F-";
        for key in [version_4, wrong_variant, misplaced, "", "order-1", &UUID[1..]] {
            assert_eq!(minted_at(KeyForm::Uuid7, key.as_bytes()), None, "{key}");
        }
        for key in ["81ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAU", "01ARZ3", ""] {
            assert_eq!(minted_at(KeyForm::Ulid, key.as_bytes()), None, "{key}");
        }
        assert_eq!(minted_at(KeyForm::Opaque, UUID.as_bytes()), None);
    }

    #[test]
    fn a_key_is_too_old_from_the_very_millisecond_of_its_horizon_by_the_later_clock() {
        let (horizon, tolerance) = (Duration::from_millis(100), Duration::from_millis(10));
        let age = |age_time, wall| {
            key_age(Some(TimestampMs(1000)), horizon, TimestampMs(age_time), TimestampMs(wall), tolerance)
        };
        assert_eq!(age(1099, 1099), KeyAge::Good);
        assert_eq!(age(1100, 1050), KeyAge::Expired);
        assert_eq!(age(990, 990), KeyAge::Good, "as far ahead as clocks may disagree");
        assert_eq!(age(989, 989), KeyAge::Future);
        assert_eq!(age(5000, 989), KeyAge::Future, "the store's time may run ahead of the wall clock");
        assert_eq!(key_age(None, horizon, TimestampMs(9), TimestampMs(0), tolerance), KeyAge::Good);
        let for_ever =
            key_age(Some(TimestampMs(1)), Duration::MAX, TimestampMs(u64::MAX - 1), TimestampMs(1), tolerance);
        assert_eq!(for_ever, KeyAge::Good, "a horizon that overflows never passes");
    }
}
