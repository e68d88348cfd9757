//! Ranges and prefixes of keys.

use std::ops::{Bound, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::key::{AsKey, KeyWriter, encode};

/// Encoded bounds.
pub(super) type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

mod sealed {
    /// Only Rust's own ranges are ranges of keys.
    pub trait Sealed {}
}

/// A range of keys of type `K`: any of Rust's ranges, or a pair of bounds, of values that stand for keys.
///
/// `..` is all rows, `"a".."b"` works for a table with `String` keys. A range whose end lies before its start is
/// empty.
pub trait KeyRange<K>: sealed::Sealed {
    #[doc(hidden)]
    fn key_bounds(&self) -> (Bound<Vec<u8>>, Bound<Vec<u8>>);
}

macro_rules! key_ranges {
    ($($range:ty, $self:ident => ($lower:expr, $upper:expr);)*) => {$(
        impl<Q> sealed::Sealed for $range {}

        impl<K, Q: AsKey<K>> KeyRange<K> for $range {
            fn key_bounds(&$self) -> Bounds {
                ($lower, $upper)
            }
        }
    )*};
}

key_ranges! {
    Range<Q>, self => (Bound::Included(encode::<K>(&self.start)), Bound::Excluded(encode::<K>(&self.end)));
    RangeInclusive<Q>, self => (Bound::Included(encode::<K>(self.start())), Bound::Included(encode::<K>(self.end())));
    RangeFrom<Q>, self => (Bound::Included(encode::<K>(&self.start)), Bound::Unbounded);
    RangeTo<Q>, self => (Bound::Unbounded, Bound::Excluded(encode::<K>(&self.end)));
    RangeToInclusive<Q>, self => (Bound::Unbounded, Bound::Included(encode::<K>(&self.end)));
    (Bound<Q>, Bound<Q>), self => (encode_bound::<K, Q>(&self.0), encode_bound::<K, Q>(&self.1));
}

impl sealed::Sealed for RangeFull {}

impl<K> KeyRange<K> for RangeFull {
    fn key_bounds(&self) -> Bounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

fn encode_bound<K, Q: AsKey<K>>(bound: &Bound<Q>) -> Bound<Vec<u8>> {
    bound.as_ref().map(|key| encode::<K>(key))
}

/// The beginning of keys of type `K`: of a string or bytes, or the first parts of a tuple (as a tuple, `(tenant,)`).
pub trait KeyPrefix<K> {
    #[doc(hidden)]
    fn write_prefix(&self, key: &mut KeyWriter);
}

impl<K, Q: KeyPrefix<K> + ?Sized> KeyPrefix<K> for &Q {
    fn write_prefix(&self, key: &mut KeyWriter) {
        (**self).write_prefix(key);
    }
}

macro_rules! plain_prefixes {
    ($($key:ty: $($query:ty),+;)*) => {$($(
        impl KeyPrefix<$key> for $query {
            fn write_prefix(&self, key: &mut KeyWriter) {
                key.write_fixed(self.as_ref());
            }
        }
    )+)*};
}

plain_prefixes! {
    String: str, String;
    Vec<u8>: [u8], Vec<u8>;
}

impl<const N: usize> KeyPrefix<Vec<u8>> for [u8; N] {
    fn write_prefix(&self, key: &mut KeyWriter) {
        key.write_fixed(self);
    }
}

macro_rules! tuple_prefixes {
    ($($key:tt: $($part:ident $query:ident $index:tt),+ $(; $rest:ident)*.)*) => {$(
        impl<$($part, $query: AsKey<$part>,)+ $($rest),*> KeyPrefix<$key> for ($($query,)+) {
            fn write_prefix(&self, key: &mut KeyWriter) {
                key.tuple(|key| {
                    $(self.$index.write_key(key);)+
                });
            }
        }
    )*};
}

tuple_prefixes! {
    (A, B): A QA 0; B.
    (A, B, C): A QA 0; B; C.
    (A, B, C): A QA 0, B QB 1; C.
    (A, B, C, D): A QA 0; B; C; D.
    (A, B, C, D): A QA 0, B QB 1; C; D.
    (A, B, C, D): A QA 0, B QB 1, C QC 2; D.
}

/// All keys that begin with a prefix.
pub(super) fn prefix_bounds<K>(prefix: &(impl KeyPrefix<K> + ?Sized)) -> Bounds {
    let mut writer = KeyWriter::default();
    prefix.write_prefix(&mut writer);
    let lower = writer.into_bytes();
    // The end is the prefix with its last byte that can grow grown by one; without such a byte there is no end.
    let mut upper = lower.clone();
    while let Some(last) = upper.pop() {
        if last < u8::MAX {
            upper.push(last + 1);
            return (Bound::Included(lower), Bound::Excluded(upper));
        }
    }
    (Bound::Included(lower), Bound::Unbounded)
}
