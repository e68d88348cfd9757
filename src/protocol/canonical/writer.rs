//! The canonical form as it grows: both readers write through this, so that there is one place for escapes, order,
//! duplicates and depth.
//!
//! Everything is written once, into one buffer. An object whose members came in another order is put right when it
//! closes, by one copy of its bytes. Since objects nest at most [`DEPTH_MAX`] deep, a byte is copied at most that many
//! times, and time stays linear in the length but for the sorting of names.

use std::cmp::Ordering;
use std::ops::Range;

use super::DEPTH_MAX;
use super::decimal::Decimal;
use super::error::CanonicalError;

/// A canonical form under construction.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: Vec<u8>,
    open: Vec<Container>,
    /// The members of all open objects, those of the innermost last.
    members: Vec<Member>,
    /// Their unescaped names, one after the other.
    names: String,
    /// The first error, kept for the case that a `Serialize` implementation swallows it and goes on.
    failed: Option<CanonicalError>,
}

#[derive(Debug, Clone, Copy)]
enum Container {
    Array,
    Object { out: usize, members: usize, names: usize },
}

#[derive(Debug, Clone)]
struct Member {
    /// In `names`.
    name: Range<usize>,
    /// In `out`: the name, the colon and the value, without a comma.
    text: Range<usize>,
    /// Where the name stood in the text that was read.
    at: Option<usize>,
}

impl Writer {
    /// A writer for about `bytes` bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// The finished form.
    pub(super) fn finish(self) -> Result<Vec<u8>, CanonicalError> {
        self.check()?;
        if self.open.is_empty() { Ok(self.out) } else { Err(CanonicalError::Serialize) }
    }

    /// Keeps the first error, so that [`finish`](Self::finish) fails whatever comes next.
    pub(super) fn fail(&mut self, error: CanonicalError) -> CanonicalError {
        *self.failed.get_or_insert(error)
    }

    /// Fails if [`fail`](Self::fail) was called before.
    pub(super) fn check(&self) -> Result<(), CanonicalError> {
        self.failed.map_or(Ok(()), Err)
    }

    pub(super) fn null(&mut self) {
        self.begin_value().extend_from_slice(b"null");
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.begin_value().extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn number(&mut self, value: Decimal<'_>, at: Option<usize>) -> Result<(), CanonicalError> {
        value.write(self.begin_value(), at)
    }

    pub(super) fn string(&mut self, value: &str) {
        quote(self.begin_value(), value);
    }

    pub(super) fn begin_array(&mut self, at: Option<usize>) -> Result<(), CanonicalError> {
        self.check_depth(at)?;
        self.begin_value().push(b'[');
        self.open.push(Container::Array);
        Ok(())
    }

    pub(super) fn begin_object(&mut self, at: Option<usize>) -> Result<(), CanonicalError> {
        self.check_depth(at)?;
        self.begin_value().push(b'{');
        let (out, members, names) = (self.out.len(), self.members.len(), self.names.len());
        self.open.push(Container::Object { out, members, names });
        Ok(())
    }

    /// Begins a member of the innermost object; its value must follow.
    pub(super) fn name(&mut self, name: &str, at: Option<usize>) {
        let mut start = self.out.len();
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
            start += 1;
        }
        let name_start = self.names.len();
        self.names.push_str(name);
        quote(&mut self.out, name);
        self.out.push(b':');
        self.members.push(Member { name: name_start..self.names.len(), text: start..self.out.len(), at });
    }

    /// Takes back the name just written, because its member is absent.
    pub(super) fn retract_name(&mut self) {
        if let Some(member) = self.members.pop() {
            self.names.truncate(member.name.start);
            self.out.truncate(member.text.start);
            if self.out.last() == Some(&b',') {
                self.out.pop();
            }
        }
    }

    /// Closes the innermost array or object; an object is sorted and checked for duplicates.
    pub(super) fn end(&mut self) -> Result<(), CanonicalError> {
        match self.open.pop() {
            None => return Err(CanonicalError::Serialize),
            Some(Container::Array) => self.out.push(b']'),
            Some(Container::Object { out, members, names }) => {
                let sorted = self.sort(members);
                if let Some(member) = self.first_duplicate(members) {
                    return Err(CanonicalError::DuplicateMember { at: member.at });
                }
                if !sorted {
                    self.reorder(out, members);
                }
                self.members.truncate(members);
                self.names.truncate(names);
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    fn check_depth(&self, at: Option<usize>) -> Result<(), CanonicalError> {
        if self.open.len() < DEPTH_MAX { Ok(()) } else { Err(CanonicalError::TooDeep { at }) }
    }

    fn begin_value(&mut self) -> &mut Vec<u8> {
        // No value ends in an opening bracket, so this one is the array's own.
        if matches!(self.open.last(), Some(Container::Array)) && self.out.last() != Some(&b'[') {
            self.out.push(b',');
        }
        &mut self.out
    }

    /// Sorts the members from index `from` on; false if they came in another order.
    fn sort(&mut self, from: usize) -> bool {
        let mut end = self.out.len();
        for member in self.members[from..].iter_mut().rev() {
            let start = member.text.start;
            member.text.end = end;
            end = start.saturating_sub(1); // before the comma; of no use for the first member
        }
        let names = &self.names;
        let order = |a: &Member, b: &Member| {
            by_utf16(&names[a.name.clone()], &names[b.name.clone()]).then(a.text.start.cmp(&b.text.start))
        };
        let members = &mut self.members[from..];
        let sorted = members.is_sorted_by(|a, b| order(a, b).is_le());
        if !sorted {
            members.sort_unstable_by(order);
        }
        sorted
    }

    /// Of sorted members, the one that stood first among those whose name was there before.
    fn first_duplicate(&self, from: usize) -> Option<&Member> {
        let name = |member: &Member| &self.names[member.name.clone()];
        let pairs = self.members[from..].windows(2).filter(|pair| name(&pair[0]) == name(&pair[1]));
        pairs.map(|pair| &pair[1]).min_by_key(|member| member.text.start)
    }

    /// Writes the members from index `from` on, whose text begins at `start`, again in their order.
    fn reorder(&mut self, start: usize, from: usize) {
        let unordered = self.out.split_off(start);
        for (index, member) in self.members[from..].iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(&unordered[member.text.start - start..member.text.end - start]);
        }
    }
}

/// The order of RFC 8785 section 3.2.3. It is not that of the bytes: characters beyond U+FFFF come before U+E000.
fn by_utf16(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Appends a string with the escapes of RFC 8785 section 3.2.2.2: what must be escaped, in its shortest form, and
/// nothing else.
fn quote(out: &mut Vec<u8>, value: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = value.as_bytes();
    let mut plain_from = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0x00..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain_from..index]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        plain_from = index + 1;
    }
    out.extend_from_slice(&bytes[plain_from..]);
    out.push(b'"');
}
