//! One byte form for requests that mean the same, so that a retry gets the digest of the first attempt.
//!
//! The form is JSON as in [RFC 8785] (JSON Canonicalization Scheme): no white space, members sorted by the UTF-16 code
//! units of their unescaped names, minimal escapes, strings kept as they are (no Unicode normalisation), array order
//! kept. There is **one difference: numbers are exact decimals**. RFC 8785 reads every number as a binary64, where
//! 9007199254740993 and 9007199254740992 are one number; two payments that differ by one would share a digest. Here:
//!
//! * zero, with or without a sign and whatever its exponent, is `0`;
//! * any other number is `-` if negative, its digits as one integer without leading or trailing zeros, and then, unless
//!   the power of ten is 0, `e` and the power: `1.50` is `15e-1`, `1000` is `1e3`, `12` is `12`.
//!
//! Each value has exactly one such text, and the text is itself JSON, so the form is its own canonical form. Nothing is
//! ever expanded: `1e10000` costs seven bytes. The limits below are limits of the *value*, not of how it was written,
//! so two texts of one number are both taken or both refused.
//!
//! [`json`] brings JSON text to the form and [`typed`] anything that serde can serialise. Where no `None` is involved,
//! both agree: `to_canonical(v)` equals `canonicalise(serde_json::to_vec(v))`. They differ in meaning at one point. Raw
//! JSON knows no defaults, so a `null` member there is not an absent one; a typed member that is `None` is left out, so
//! that a new optional field keeps the digests of requests made before it existed.
//!
//! The bytes go into a digest that is stored with the receipt. **Any change to this form makes stored receipts conflict
//! with their own retries**: it needs a new digest version.
//!
//! [RFC 8785]: https://www.rfc-editor.org/rfc/rfc8785

mod decimal;
pub(crate) mod error;
pub(crate) mod json;
#[cfg(test)]
mod tests;
pub(crate) mod typed;
mod writer;

/// How many arrays and objects may stand inside each other. A bound on the stack, since both readers recurse; no honest
/// request comes near it.
const DEPTH_MAX: usize = 128;

/// How many significant digits a number may have. An exact binary64 needs at most 767, so every number that some
/// program holds as a float can be written out in full.
const NUMBER_DIGITS_MAX: usize = 1_000;

/// The largest power of ten, and negated the smallest, in a canonical number: far beyond binary64 (±324) and
/// decimal128 (±6,176), and small enough for five digits.
const NUMBER_EXPONENT_MAX: i64 = 10_000;

// Every Rust number fits: a u128 has 39 digits, and the smallest f64 is 5e-324.
const _: () = assert!(NUMBER_DIGITS_MAX >= 39 && NUMBER_EXPONENT_MAX >= 324 + 17);
