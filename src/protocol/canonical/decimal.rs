//! Numbers as exact decimals.

use super::error::CanonicalError;
use super::{NUMBER_DIGITS_MAX, NUMBER_EXPONENT_MAX};

/// A JSON number, cut into its parts. The value is ±`whole`.`fraction` × 10^`exponent`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    /// Saturated well inside `i64`, so that adding the length of a text cannot overflow.
    exponent: i64,
}

/// Written exponents beyond this are read as this. No text is so long that its digits could bring the value back into
/// range, so it is refused all the same, unless the digits are all zeros.
const EXPONENT_SATURATED: i64 = 1 << 60;

impl<'a> Decimal<'a> {
    /// Reads the number that `text` begins with, by the grammar of RFC 8259 section 6; the second value is its length.
    ///
    /// Fails with the position in `text` at which a digit is missing. A number followed by something else, as in `01`,
    /// is for the caller to refuse.
    pub(super) fn read(text: &'a [u8]) -> Result<(Self, usize), usize> {
        let negative = text.first() == Some(&b'-');
        let mut at = usize::from(negative);
        let whole = if text.get(at) == Some(&b'0') { &text[at..=at] } else { digits(text, at)? };
        at += whole.len();
        let mut fraction: &[u8] = &[];
        if text.get(at) == Some(&b'.') {
            fraction = digits(text, at + 1)?;
            at += 1 + fraction.len();
        }
        let mut exponent = 0;
        if matches!(text.get(at), Some(b'e' | b'E')) {
            let sign = text.get(at + 1);
            at += 1 + usize::from(matches!(sign, Some(b'+' | b'-')));
            let written = digits(text, at)?;
            at += written.len();
            let size = written.iter().fold(0_i64, |size, digit| {
                size.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(EXPONENT_SATURATED)
            });
            exponent = if sign == Some(&b'-') { -size } else { size };
        }
        Ok((Self { negative, whole, fraction, exponent }, at))
    }

    /// Appends the one text of this value; `at` is the place that an error names.
    pub(super) fn write(self, out: &mut Vec<u8>, at: Option<usize>) -> Result<(), CanonicalError> {
        let out_of_range = CanonicalError::NumberOutOfRange { at };
        let fraction = trim_end(self.fraction);
        let mut exponent = self.exponent - i64::try_from(fraction.len()).map_err(|_| out_of_range)?;
        let mut whole = trim_start(self.whole);
        if fraction.is_empty() {
            let trimmed = trim_end(whole);
            exponent += i64::try_from(whole.len() - trimmed.len()).map_err(|_| out_of_range)?;
            whole = trimmed;
        }
        let fraction = if whole.is_empty() { trim_start(fraction) } else { fraction };

        let length = whole.len() + fraction.len();
        if length == 0 {
            out.push(b'0');
            return Ok(());
        }
        if length > NUMBER_DIGITS_MAX {
            return Err(CanonicalError::NumberTooLong { at });
        }
        if exponent.abs() > NUMBER_EXPONENT_MAX {
            return Err(out_of_range);
        }
        if self.negative {
            out.push(b'-');
        }
        out.extend_from_slice(whole);
        out.extend_from_slice(fraction);
        if exponent != 0 {
            out.extend_from_slice(format!("e{exponent}").as_bytes());
        }
        Ok(())
    }
}

/// The digits from `at` on, at least one.
fn digits(text: &[u8], at: usize) -> Result<&[u8], usize> {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 { Err(at) } else { Ok(&rest[..length]) }
}

fn trim_start(mut digits: &[u8]) -> &[u8] {
    while let [b'0', rest @ ..] = digits {
        digits = rest;
    }
    digits
}

fn trim_end(mut digits: &[u8]) -> &[u8] {
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    digits
}
