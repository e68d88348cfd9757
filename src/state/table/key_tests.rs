//! Keys: what goes in comes out, and bytes sort like values.

use std::fmt::Debug;
use std::ops::Bound;

use proptest::prelude::*;

use super::super::key::{decode, encode};
use super::super::key_range::{KeyRange, prefix_bounds};
use super::*;

fn bytes<K: TableKey>(key: &K) -> Vec<u8> {
    encode::<K>(key)
}

fn holds<K: TableKey + Ord + Debug>(a: &K, b: &K) {
    assert_eq!(bytes(a).cmp(&bytes(b)), a.cmp(b), "{a:?} and {b:?}");
    for key in [a, b] {
        assert_eq!(&decode::<K>(&bytes(key)).unwrap(), key);
    }
}

/// Strings in which the bytes that tuples escape are frequent.
fn awkward() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just('\0'), Just('\u{1}'), Just('a'), Just('ÿ'), any::<char>()], 0..6)
        .prop_map(|chars| chars.into_iter().collect())
}

fn awkward_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(254), Just(255)], 0..6)
}

proptest! {
    #[test]
    fn integers_sort_like_numbers(a in any::<[i128; 2]>(), small in any::<[i8; 2]>(), u in any::<[u64; 2]>()) {
        holds(&a[0], &a[1]);
        holds(&small[0], &small[1]);
        holds(&i16::from(small[0]), &i16::from(small[1]));
        holds(&i32::from(small[0]), &i32::from(small[1]));
        holds(&i64::from(small[0]), &i64::from(small[1]));
        holds(&u[0], &u[1]);
        holds(&u128::from(u[0]), &u128::from(u[1]));
    }

    #[test]
    fn strings_bytes_and_arrays_sort_like_values(
        s in (awkward(), awkward()),
        b in (awkward_bytes(), awkward_bytes()),
        array in any::<[[u8; 3]; 2]>(),
        flag in any::<[bool; 2]>(),
    ) {
        holds(&s.0, &s.1);
        holds(&b.0, &b.1);
        holds(&array[0], &array[1]);
        holds(&flag[0], &flag[1]);
    }

    #[test]
    fn tuples_sort_part_by_part(
        a in (awkward(), any::<i8>(), awkward_bytes(), awkward()),
        b in (awkward(), any::<i8>(), awkward_bytes(), awkward()),
    ) {
        holds(&a, &b);
        holds(&(a.0.clone(), a.3.clone()), &(b.0.clone(), b.3.clone()));
        holds(&(a.0.clone(), a.1, a.2.clone()), &(b.0.clone(), b.1, b.2.clone()));
        holds(&((a.0, a.1), a.2), &((b.0, b.1), b.2));
    }

    #[test]
    fn equal_first_parts_leave_the_order_to_the_second(first in awkward(), b in (awkward(), awkward())) {
        holds(&(first.clone(), b.0), &(first, b.1));
    }

    #[test]
    fn a_prefix_holds_exactly_the_keys_that_begin_with_it(prefix in awkward_bytes(), key in awkward_bytes(), rest in any::<u8>()) {
        let inside = |bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>), key: Vec<u8>| {
            std::ops::RangeBounds::contains(bounds, &key)
        };
        let bounds = prefix_bounds::<Vec<u8>>(&prefix);
        prop_assert_eq!(inside(&bounds, bytes(&key)), key.starts_with(&prefix));
        let bounds = prefix_bounds::<(Vec<u8>, u8)>(&(&prefix,));
        prop_assert_eq!(inside(&bounds, bytes(&(key.clone(), rest))), key == prefix);
        let bounds = prefix_bounds::<(Vec<u8>, u8, String)>(&(&prefix, rest));
        prop_assert!(inside(&bounds, bytes(&(prefix.clone(), rest, String::new()))));
        prop_assert_eq!(inside(&bounds, bytes(&(key.clone(), rest, "x".to_owned()))), key == prefix);
    }

    #[test]
    fn no_bytes_make_decoding_panic(noise in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(key) = decode::<(String, i32, Vec<u8>, bool)>(&noise) {
            prop_assert_eq!(&bytes(&key), &noise, "what decodes is the only encoding of its key");
        }
        drop(decode::<u64>(&noise));
        drop(decode::<[u8; 7]>(&noise));
        drop(decode::<bool>(&noise));
    }
}

#[test]
fn a_string_with_a_zero_byte_does_not_run_into_the_next_part() {
    let apart = [("a", "b\0"), ("a\0", "b"), ("a\0b", ""), ("", "a\0b")].map(|(a, b)| {
        let key = (a.to_owned(), b.to_owned());
        assert_eq!(decode::<(String, String)>(&bytes(&key)).unwrap(), key);
        bytes(&key)
    });
    for (index, one) in apart.iter().enumerate() {
        assert!(apart[index + 1..].iter().all(|other| one != other));
    }
}

#[test]
fn the_bytes_of_keys_never_change() {
    assert_eq!(bytes(&0x0102u16), [1, 2]);
    assert_eq!(bytes(&-1i16), [0x7F, 0xFF]);
    assert_eq!(bytes(&true), [1]);
    assert_eq!(bytes(&"a\0b".to_owned()), b"a\0b");
    assert_eq!(bytes(&("a\0b".to_owned(), 1u8)), b"a\0\xFFb\0\0\x01");
    assert_eq!(bytes(&([1u8, 0], vec![0u8])), [1, 0, 0, 0xFF, 0, 0]);
}

#[test]
fn type_names_are_what_stored_declarations_say() {
    assert_eq!(u64::type_name(), "u64");
    assert_eq!(<(String, [u8; 16], (i8, Vec<u8>))>::type_name(), "(string,bytes[16],(i8,bytes))");
}

#[test]
fn references_stand_for_keys() {
    assert_eq!(encode::<String>("a"), encode::<String>(&"a".to_owned()));
    assert_eq!(encode::<Vec<u8>>(b"ab"), encode::<Vec<u8>>(&vec![b'a', b'b']));
    assert_eq!(encode::<(String, u64)>(&("a", 1)), bytes(&("a".to_owned(), 1u64)));
    assert_eq!(encode::<(String, u64)>(&(&"a".to_owned(), &1)), bytes(&("a".to_owned(), 1u64)));
}

#[test]
fn all_of_rusts_ranges_are_ranges_of_keys() {
    fn bounds<K>(range: impl KeyRange<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        range.key_bounds()
    }
    use Bound::{Excluded, Included, Unbounded};
    assert_eq!(bounds::<u8>(..), (Unbounded, Unbounded));
    assert_eq!(bounds::<u8>(1..2), (Included(vec![1]), Excluded(vec![2])));
    assert_eq!(bounds::<u8>(1..=2), (Included(vec![1]), Included(vec![2])));
    assert_eq!(bounds::<u8>(1..), (Included(vec![1]), Unbounded));
    assert_eq!(bounds::<u8>(..2), (Unbounded, Excluded(vec![2])));
    assert_eq!(bounds::<u8>(..=2), (Unbounded, Included(vec![2])));
    assert_eq!(bounds::<String>((Excluded("a"), Unbounded)), (Excluded(b"a".to_vec()), Unbounded));
    assert_eq!(bounds::<String>("a".."b"), (Included(b"a".to_vec()), Excluded(b"b".to_vec())));
}

#[cfg(feature = "uuid")]
#[test]
fn uuids_sort_like_their_text() {
    let (a, b) = (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(u128::MAX - 1));
    holds(&a, &b);
    assert!(a.to_string() < b.to_string());
}
