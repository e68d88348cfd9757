//! Rust values: what serde gives, and what `None` means.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde::ser::{Error as _, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use super::{CanonicalError as E, canonical, try_typed, typed};

#[test]
fn a_new_optional_field_keeps_the_digests_of_requests_that_do_not_use_it() {
    #[derive(Serialize)]
    struct Old {
        amount: u64,
        to: &'static str,
    }
    #[derive(Serialize)]
    struct New {
        reference: Option<&'static str>,
        to: &'static str,
        tags: Option<Vec<u8>>,
        amount: u64,
        zone: Option<()>,
    }
    let old = typed(&Old { amount: 5, to: "x" });
    assert_eq!(old, r#"{"amount":5,"to":"x"}"#);
    assert_eq!(typed(&New { reference: None, to: "x", tags: None, amount: 5, zone: None }), old);
    assert_eq!(
        typed(&New { reference: Some("r"), to: "x", tags: Some(vec![]), amount: 5, zone: Some(()) }),
        r#"{"amount":5,"reference":"r","tags":[],"to":"x","zone":null}"#
    );
}

#[test]
fn a_struct_of_nothing_but_none_is_empty() {
    #[derive(Serialize)]
    struct Two {
        a: Option<u8>,
        b: Option<u8>,
    }
    assert_eq!(typed(&Two { a: None, b: None }), "{}");
    assert_eq!(typed(&Two { a: None, b: Some(1) }), r#"{"b":1}"#);
    assert_eq!(typed(&Two { a: Some(1), b: None }), r#"{"a":1}"#);
}

#[test]
fn none_is_null_where_it_holds_a_place() {
    #[derive(Serialize)]
    struct Pair(Option<u8>, Option<u8>);
    #[derive(Serialize)]
    enum Choice {
        One(Option<u8>),
        Two(Option<u8>, u8),
        Named { a: Option<u8>, b: u8 },
    }
    assert_eq!(typed(&None::<u8>), "null");
    assert_eq!(typed(&[None, Some(1)]), "[null,1]");
    assert_eq!(typed(&(None::<u8>, 2)), "[null,2]");
    assert_eq!(typed(&Pair(None, Some(3))), "[null,3]");
    assert_eq!(typed(&Choice::One(None)), r#"{"One":null}"#);
    assert_eq!(typed(&Choice::Two(None, 1)), r#"{"Two":[null,1]}"#);
    assert_eq!(typed(&Choice::Named { a: None, b: 1 }), r#"{"Named":{"b":1}}"#);
}

#[test]
fn none_in_a_map_is_absent_and_null_in_a_map_is_null() {
    assert_eq!(typed(&BTreeMap::from([("a", None), ("b", Some(1))])), r#"{"b":1}"#);
    assert_eq!(typed(&serde_json::json!({"b": null, "a": 1})), r#"{"a":1,"b":null}"#);
    assert_eq!(typed(&BTreeMap::from([("a", ())])), r#"{"a":null}"#);
}

#[test]
fn some_of_none_says_null_and_none_says_nothing() {
    #[derive(Serialize)]
    struct Change {
        note: Option<Option<u8>>,
    }
    assert_eq!(typed(&Change { note: None }), "{}");
    assert_eq!(typed(&Change { note: Some(None) }), r#"{"note":null}"#);
    assert_eq!(typed(&Change { note: Some(Some(1)) }), r#"{"note":1}"#);
}

#[test]
fn a_newtype_around_an_option_is_the_option() {
    #[derive(Serialize)]
    struct Wrapper(Option<u8>);
    #[derive(Serialize)]
    struct Holder {
        w: Wrapper,
    }
    assert_eq!(typed(&Holder { w: Wrapper(None) }), "{}");
    assert_eq!(typed(&[Wrapper(None)]), "[null]");
}

#[test]
fn flattened_fields_are_members_like_the_others() {
    #[derive(Serialize)]
    struct Inner {
        b: u8,
        gone: Option<u8>,
    }
    #[derive(Serialize)]
    struct Outer {
        z: u8,
        #[serde(flatten)]
        inner: Inner,
        #[serde(flatten)]
        maybe: Option<Inner>,
        #[serde(flatten)]
        rest: HashMap<String, u8>,
        a: Option<u8>,
    }
    let outer = |rest| Outer { z: 1, inner: Inner { b: 2, gone: None }, maybe: None, rest, a: None };
    assert_eq!(typed(&outer(HashMap::from([("c".into(), 3)]))), r#"{"b":2,"c":3,"z":1}"#);
    assert_eq!(try_typed(&outer(HashMap::from([("b".into(), 3)]))), Err(E::DuplicateMember { at: None }));
}

#[test]
fn keys_are_strings_integers_booleans_characters_and_plain_variants() {
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Kind {
        Red,
    }
    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    struct Id(u64);
    // Sorted as text: "10" before "9". A key is a name and not a number, so it is not shortened.
    assert_eq!(typed(&BTreeMap::from([(9, 'a'), (10, 'b'), (-1, 'c')])), r#"{"-1":"c","10":"b","9":"a"}"#);
    assert_eq!(typed(&BTreeMap::from([(true, 1), (false, 2)])), r#"{"false":2,"true":1}"#);
    assert_eq!(typed(&BTreeMap::from([('é', 1)])), r#"{"é":1}"#);
    assert_eq!(typed(&BTreeMap::from([(Kind::Red, 1)])), r#"{"Red":1}"#);
    assert_eq!(typed(&BTreeMap::from([(Id(1000), 1)])), r#"{"1000":1}"#);
    assert_eq!(typed(&BTreeMap::from([(u128::MAX, 1)])), r#"{"340282366920938463463374607431768211455":1}"#);
}

#[test]
fn other_keys_are_refused() {
    struct FloatKey(bool);
    impl Serialize for FloatKey {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            if self.0 {
                map.serialize_entry(&1.5_f32, "")?;
            } else {
                map.serialize_entry(&1.5_f64, "")?;
            }
            map.end()
        }
    }
    assert_eq!(try_typed(&FloatKey(true)), Err(E::UnsupportedKey));
    assert_eq!(try_typed(&FloatKey(false)), Err(E::UnsupportedKey));
    assert_eq!(try_typed(&BTreeMap::from([((), 1)])), Err(E::UnsupportedKey));
    assert_eq!(try_typed(&BTreeMap::from([(None::<u8>, 1)])), Err(E::UnsupportedKey));
    assert_eq!(try_typed(&BTreeMap::from([(vec![1], 1)])), Err(E::UnsupportedKey));
    assert_eq!(try_typed(&BTreeMap::from([((1, 2), 1)])), Err(E::UnsupportedKey));
}

#[test]
fn floats_that_are_not_finite_are_refused() {
    for float in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(try_typed(&[float]), Err(E::NotFinite));
        assert_eq!(try_typed(&Some(f32::from_bits(0x7fc0_0000))), Err(E::NotFinite));
    }
    assert_eq!(try_typed(&f32::INFINITY), Err(E::NotFinite));
}

struct Bytes<'a>(&'a [u8]);
impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[test]
fn bytes_are_an_array_of_numbers() {
    assert_eq!(typed(&Bytes(&[0, 10, 255])), "[0,1e1,255]");
    assert_eq!(typed(&Bytes(&[])), "[]");
}

/// Two entries of one name, as a list of pairs can give.
struct Entries(&'static [(&'static str, Option<u8>)]);
impl Serialize for Entries {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

#[test]
fn duplicate_members_are_refused_and_an_absent_one_is_no_duplicate() {
    assert_eq!(try_typed(&Entries(&[("a", Some(1)), ("a", Some(1))])), Err(E::DuplicateMember { at: None }));
    assert_eq!(typed(&Entries(&[("a", None), ("b", None), ("a", Some(1)), ("b", None)])), r#"{"a":1}"#);
}

/// What a wrong `Serialize` implementation may do.
enum Wrong {
    SwallowsElement,
    SwallowsField,
    ValueWithoutKey,
    KeyWithoutValue,
    Fails,
}
impl Serialize for Wrong {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::SwallowsElement => {
                let mut seq = serializer.serialize_seq(None)?;
                assert!(seq.serialize_element(&vec![f64::NAN]).is_err());
                assert!(seq.serialize_element(&1).is_err());
                seq.end()
            }
            Self::SwallowsField => {
                let mut fields = serializer.serialize_struct("S", 2)?;
                assert!(fields.serialize_field("a", &[[f64::NAN]]).is_err());
                assert!(fields.serialize_field("b", &1).is_err());
                fields.end()
            }
            Self::ValueWithoutKey => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_value(&1)?;
                map.end()
            }
            Self::KeyWithoutValue => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_key("a")?;
                map.end()
            }
            Self::Fails => Err(S::Error::custom("hunter2")),
        }
    }
}

#[test]
fn a_serialize_implementation_that_swallows_errors_gets_no_digest_of_half_a_value() {
    assert_eq!(try_typed(&[Wrong::SwallowsElement]), Err(E::NotFinite));
    assert_eq!(try_typed(&[Wrong::SwallowsField]), Err(E::NotFinite));
}

#[test]
fn a_serialize_implementation_that_breaks_the_protocol_or_fails_is_refused_without_its_message() {
    for wrong in [Wrong::ValueWithoutKey, Wrong::KeyWithoutValue, Wrong::Fails] {
        let error = try_typed(&wrong).unwrap_err();
        assert_eq!(error, E::Serialize);
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}

/// As serde_json's `RawValue`, and its `Number` under `arbitrary_precision`, pass themselves through serde.
struct JsonText(&'static str, &'static str, usize);
impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct(self.0, 1)?;
        for _ in 0..self.2 {
            fields.serialize_field(self.0, self.1)?;
        }
        fields.end()
    }
}

#[test]
fn json_text_inside_a_value_is_read_as_json() {
    let number = |text| JsonText("$serde_json::private::Number", text, 1);
    let raw = |text| JsonText("$serde_json::private::RawValue", text, 1);
    assert_eq!(typed(&[number("1.50"), number("9007199254740993")]), "[15e-1,9007199254740993]");
    assert_eq!(typed(&BTreeMap::from([("x", raw(r#" {"b":1,"a":[1.0]} "#))])), canonical(r#"{"x":{"a":[1],"b":1}}"#));
    assert_eq!(try_typed(&raw(r#"{"a":1,"a":2}"#)), Err(E::DuplicateMember { at: None }));
    assert_eq!(try_typed(&raw("{")), Err(E::Serialize));
    for times in [0, 2] {
        assert_eq!(try_typed(&JsonText("$serde_json::private::RawValue", "1", times)), Err(E::Serialize));
    }
}
