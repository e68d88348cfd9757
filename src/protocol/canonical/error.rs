//! Why a request has no canonical form.

use super::{DEPTH_MAX, NUMBER_DIGITS_MAX, NUMBER_EXPONENT_MAX};

/// Why a request has no canonical form, and so no digest.
///
/// **Nothing was executed and nothing was stored**, whichever variant it is: a request without a digest is never
/// admitted. Trying again with the same request fails the same way.
///
/// An error names the place and never the content: requests hold secrets, and errors end up in logs. Offsets count
/// bytes of the JSON text from 0. They are `None` where the request was a Rust value, which has no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// There is no value: the text is empty or only white space.
    #[error("the JSON text is empty")]
    Empty,
    /// The text begins with a byte order mark, which RFC 8259 forbids to send.
    #[error("the JSON text begins with a byte order mark")]
    ByteOrderMark,
    /// The text is not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    InvalidUtf8 {
        /// The first byte that is no part of a character.
        at: usize,
    },
    /// The text is not JSON.
    #[error("expected {expected} at byte {at}")]
    Unexpected {
        /// The byte that stands there instead.
        at: usize,
        /// What JSON allows there.
        expected: &'static str,
    },
    /// The text ends inside a value.
    #[error("the JSON text ends at byte {at}, where {expected} was expected")]
    UnexpectedEnd {
        /// The length of the text.
        at: usize,
        /// What JSON allows there.
        expected: &'static str,
    },
    /// Something follows the value.
    #[error("something follows the value at byte {at}")]
    TrailingContent {
        /// The first byte after the value that is not white space.
        at: usize,
    },
    /// A control character stands in a string without an escape.
    #[error("a control character without escape at byte {at}")]
    ControlCharacter {
        /// The character.
        at: usize,
    },
    /// A backslash begins no escape that JSON knows.
    #[error("an escape that JSON does not know at byte {at}")]
    InvalidEscape {
        /// The backslash.
        at: usize,
    },
    /// An escape gives half of a surrogate pair, which is no character.
    #[error("half of a surrogate pair at byte {at}")]
    LoneSurrogate {
        /// The backslash.
        at: usize,
    },
    /// An object has two members of one name; readers disagree which of them counts.
    #[error("a member name for the second time{}", place(*at))]
    DuplicateMember {
        /// The opening quote of a name that was there before.
        at: Option<usize>,
    },
    /// Arrays and objects stand more than 128 deep inside each other.
    #[error("more than {} arrays and objects inside each other{}", DEPTH_MAX, place(*at))]
    TooDeep {
        /// The bracket that is one too many.
        at: Option<usize>,
    },
    /// A number has more than 1,000 digits, zeros at either end not counted.
    #[error("a number of more than {} digits{}", NUMBER_DIGITS_MAX, place(*at))]
    NumberTooLong {
        /// The first byte of the number.
        at: Option<usize>,
    },
    /// A number, written as an integer times a power of ten, needs a power beyond 10,000 or below -10,000.
    #[error("a number whose power of ten is beyond ±{}{}", NUMBER_EXPONENT_MAX, place(*at))]
    NumberOutOfRange {
        /// The first byte of the number.
        at: Option<usize>,
    },
    /// A float is NaN or infinite.
    #[error("a float that is NaN or infinite")]
    NotFinite,
    /// A map has keys that are no JSON member names: only strings, integers, booleans, characters and enum variants
    /// without data are. Floats are refused because equal ones can be written in several ways.
    #[error("a map key that is neither a string nor an integer, a boolean, a character or a plain enum variant")]
    UnsupportedKey,
    /// The value's own `Serialize` implementation failed or broke serde's protocol. Its message is not kept, since it
    /// may quote the value.
    #[error("the value's own Serialize implementation failed")]
    Serialize,
}

impl CanonicalError {
    /// The byte of the JSON text at which the request was refused; `None` if the request was a Rust value.
    #[must_use]
    pub fn offset(&self) -> Option<usize> {
        match *self {
            Self::Empty | Self::ByteOrderMark => Some(0),
            Self::InvalidUtf8 { at }
            | Self::Unexpected { at, .. }
            | Self::UnexpectedEnd { at, .. }
            | Self::TrailingContent { at }
            | Self::ControlCharacter { at }
            | Self::InvalidEscape { at }
            | Self::LoneSurrogate { at } => Some(at),
            Self::DuplicateMember { at }
            | Self::TooDeep { at }
            | Self::NumberTooLong { at }
            | Self::NumberOutOfRange { at } => at,
            Self::NotFinite | Self::UnsupportedKey | Self::Serialize => None,
        }
    }

    /// The error of a JSON text that stands inside a Rust value: no offset, and bad JSON is the value's own fault.
    pub(super) fn inside_a_value(self) -> Self {
        match self {
            Self::DuplicateMember { .. } => Self::DuplicateMember { at: None },
            Self::TooDeep { .. } => Self::TooDeep { at: None },
            Self::NumberTooLong { .. } => Self::NumberTooLong { at: None },
            Self::NumberOutOfRange { .. } => Self::NumberOutOfRange { at: None },
            Self::NotFinite | Self::UnsupportedKey => self,
            Self::Empty
            | Self::ByteOrderMark
            | Self::InvalidUtf8 { .. }
            | Self::Unexpected { .. }
            | Self::UnexpectedEnd { .. }
            | Self::TrailingContent { .. }
            | Self::ControlCharacter { .. }
            | Self::InvalidEscape { .. }
            | Self::LoneSurrogate { .. }
            | Self::Serialize => Self::Serialize,
        }
    }
}

impl serde::ser::Error for CanonicalError {
    fn custom<T: std::fmt::Display>(_may_quote_the_value: T) -> Self {
        Self::Serialize
    }
}

fn place(at: Option<usize>) -> String {
    at.map_or_else(String::new, |at| format!(" at byte {at}"))
}
