//! JSON text to the canonical form.
//!
//! A parser of its own, because serde_json holds numbers as 64-bit values and its `arbitrary_precision` would change the
//! serde_json of the whole program. Strict RFC 8259; duplicate members and lone surrogates, which the RFC leaves to the
//! reader, are refused, as RFC 8785 asks by way of I-JSON (RFC 7493 section 2).

use std::borrow::Cow;

use super::decimal::Decimal;
use super::error::CanonicalError;
use super::writer::Writer;

/// Brings JSON text to the canonical form; see [`super`] for what that is.
///
/// Time and memory are linear in the length of `raw`, but for the sorting of member names; the stack is bounded by the
/// depth limit.
///
/// # Errors
///
/// The text is not JSON, is ambiguous (duplicate members, lone surrogates) or exceeds a limit. Nothing was executed.
pub(crate) fn canonicalise(raw: &[u8]) -> Result<Vec<u8>, CanonicalError> {
    if raw.starts_with(b"\xef\xbb\xbf") {
        return Err(CanonicalError::ByteOrderMark);
    }
    let text = std::str::from_utf8(raw).map_err(|error| CanonicalError::InvalidUtf8 { at: error.valid_up_to() })?;
    let mut writer = Writer::with_capacity(raw.len());
    read_into(text, &mut writer)?;
    writer.finish()
}

/// Writes the one value that `text` holds.
pub(super) fn read_into(text: &str, writer: &mut Writer) -> Result<(), CanonicalError> {
    let mut reader = Reader { text, at: 0 };
    reader.skip_space();
    if reader.peek().is_none() {
        return Err(CanonicalError::Empty);
    }
    reader.value(writer)?;
    reader.skip_space();
    if reader.peek().is_some() { Err(CanonicalError::TrailingContent { at: reader.at }) } else { Ok(()) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Recursive; the writer bounds the depth.
    fn value(&mut self, writer: &mut Writer) -> Result<(), CanonicalError> {
        match self.peek() {
            Some(b'{') => self.object(writer),
            Some(b'[') => self.array(writer),
            Some(b'"') => {
                writer.string(&self.string()?);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(writer),
            Some(b'n') => self.literal("null").map(|()| writer.null()),
            Some(b't') => self.literal("true").map(|()| writer.boolean(true)),
            Some(b'f') => self.literal("false").map(|()| writer.boolean(false)),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn object(&mut self, writer: &mut Writer) -> Result<(), CanonicalError> {
        writer.begin_object(Some(self.at))?;
        self.at += 1;
        self.skip_space();
        if !self.take(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected("a member name"));
                }
                let at = self.at;
                let name = self.string()?;
                writer.name(&name, Some(at));
                self.skip_space();
                if !self.take(b':') {
                    return Err(self.unexpected("a colon"));
                }
                self.skip_space();
                self.value(writer)?;
                self.skip_space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.unexpected("a comma or a closing brace"));
                }
                self.skip_space();
            }
        }
        writer.end()
    }

    fn array(&mut self, writer: &mut Writer) -> Result<(), CanonicalError> {
        writer.begin_array(Some(self.at))?;
        self.at += 1;
        self.skip_space();
        if !self.take(b']') {
            loop {
                self.value(writer)?;
                self.skip_space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.unexpected("a comma or a closing bracket"));
                }
                self.skip_space();
            }
        }
        writer.end()
    }

    fn number(&mut self, writer: &mut Writer) -> Result<(), CanonicalError> {
        let start = self.at;
        match Decimal::read(self.rest()) {
            Ok((number, length)) => {
                self.at += length;
                writer.number(number, Some(start))
            }
            Err(missing) => {
                self.at += missing;
                Err(self.unexpected("a digit"))
            }
        }
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), CanonicalError> {
        if self.rest().starts_with(literal.as_bytes()) {
            self.at += literal.len();
            return Ok(());
        }
        let same = self.rest().iter().zip(literal.bytes()).take_while(|(a, b)| **a == *b).count();
        self.at += same;
        Err(self.unexpected(literal))
    }

    /// The string that begins here, unescaped.
    fn string(&mut self) -> Result<Cow<'a, str>, CanonicalError> {
        self.at += 1;
        let mut value = Cow::Borrowed("");
        loop {
            let plain = self.rest().iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0x00..=0x1f)).count();
            // Both ends are at ASCII bytes, or the end, and so on character boundaries.
            let run = &self.text[self.at..self.at + plain];
            self.at += plain;
            if value.is_empty() {
                value = Cow::Borrowed(run);
            } else {
                value.to_mut().push_str(run);
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(value);
                }
                Some(b'\\') => value.to_mut().push(self.escape()?),
                Some(_) => return Err(CanonicalError::ControlCharacter { at: self.at }),
                None => return Err(self.unexpected("a closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, CanonicalError> {
        let at = self.at;
        self.at += 1;
        let short = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(b'u') => return self.unicode(at),
            Some(_) => return Err(CanonicalError::InvalidEscape { at }),
            None => return Err(self.unexpected("an escape")),
        };
        self.at += 1;
        Ok(short)
    }

    /// `\uXXXX`, or two of them for a character beyond U+FFFF; `at` is the backslash of the first.
    fn unicode(&mut self, at: usize) -> Result<char, CanonicalError> {
        let lone = CanonicalError::LoneSurrogate { at };
        let first = self.code_unit()?;
        let second = match first {
            0xd800..=0xdbff if self.rest().starts_with(b"\\u") => {
                self.at += 1;
                Some(self.code_unit()?)
            }
            _ => None,
        };
        char::decode_utf16([Some(first), second].into_iter().flatten()).next().and_then(Result::ok).ok_or(lone)
    }

    /// The four hexadecimal digits after the `u` that stands here.
    fn code_unit(&mut self) -> Result<u16, CanonicalError> {
        self.at += 1;
        let mut unit = 0_u16;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let digit = digit.and_then(|digit| u16::try_from(digit).ok());
            unit = unit << 4 | digit.ok_or_else(|| self.unexpected("a hexadecimal digit"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn skip_space(&mut self) {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn unexpected(&self, expected: &'static str) -> CanonicalError {
        match self.peek() {
            Some(_) => CanonicalError::Unexpected { at: self.at, expected },
            None => CanonicalError::UnexpectedEnd { at: self.at, expected },
        }
    }
}
