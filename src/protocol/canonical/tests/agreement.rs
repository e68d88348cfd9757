//! Both ways to the form agree: a value through serde, and the JSON text that serde_json makes of it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::{try_canonical, try_typed};

fn agree<T: Serialize>(value: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_vec(value).unwrap();
    let form = try_typed(value);
    prop_assert_eq!(&form, &try_canonical(&text));
    prop_assert_eq!(&try_canonical(form.clone().unwrap().as_bytes()), &form);
    Ok(())
}

#[derive(Debug, Clone, Serialize)]
struct Unit;

#[derive(Debug, Clone, Serialize)]
struct Newtype(f32);

#[derive(Debug, Clone, Serialize)]
struct Tuple(u8, String);

#[derive(Debug, Clone, Serialize)]
enum External {
    Plain,
    Newtype(i128),
    Tuple(f64, Vec<Option<u8>>),
    Named { z: char, a: bool },
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind")]
enum Internal {
    Plain,
    Named { z: u16, a: Unit },
}

#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", content = "body")]
enum Adjacent {
    Tuple(u8, i64),
}

#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
enum Untagged {
    Number(u128),
    Text(String),
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Everything {
    some_external: Vec<External>,
    internal: [Internal; 2],
    adjacent: Adjacent,
    untagged: Vec<Untagged>,
    newtype: Newtype,
    tuple: Tuple,
    unit: Unit,
    optional: Option<u8>,
    by_number: BTreeMap<i32, String>,
    by_character: BTreeMap<char, (f32, f64)>,
    #[serde(flatten)]
    flat: BTreeMap<String, Vec<u8>>,
}

fn finite32() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |float| float.is_finite())
}

fn finite64() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |float| float.is_finite())
}

fn external() -> impl Strategy<Value = External> {
    prop_oneof![
        Just(External::Plain),
        any::<i128>().prop_map(External::Newtype),
        (finite64(), prop::collection::vec(any::<Option<u8>>(), 0..4)).prop_map(|(a, b)| External::Tuple(a, b)),
        (any::<char>(), any::<bool>()).prop_map(|(z, a)| External::Named { z, a }),
    ]
}

fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![any::<u128>().prop_map(Untagged::Number), any::<String>().prop_map(Untagged::Text)]
}

fn everything() -> impl Strategy<Value = Everything> {
    let maps = (
        prop::collection::btree_map(any::<i32>(), any::<String>(), 0..4),
        prop::collection::btree_map(any::<char>(), (finite32(), finite64()), 0..4),
        // Upper case, so that no name is that of a field.
        prop::collection::btree_map("[A-Z\u{e000}-\u{f8ff}\u{10000}-\u{10fff}]{0,4}", any::<Vec<u8>>(), 0..4),
    );
    let lists = (prop::collection::vec(external(), 0..4), prop::collection::vec(untagged(), 0..4));
    let leaves = (any::<u16>(), any::<u8>(), any::<i64>(), finite32(), any::<String>());
    (maps, lists, leaves).prop_map(|(maps, (some_external, untagged), (z, byte, long, float, text))| Everything {
        some_external,
        internal: [Internal::Plain, Internal::Named { z, a: Unit }],
        adjacent: Adjacent::Tuple(byte, long),
        untagged,
        newtype: Newtype(float),
        tuple: Tuple(byte, text),
        unit: Unit,
        optional: Some(byte),
        by_number: maps.0,
        by_character: maps.1,
        flat: maps.2,
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        finite64().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_value_has_one_form_by_either_way(value in value()) {
        agree(&value)?;
    }

    #[test]
    fn every_shape_that_serde_knows_has_one_form_by_either_way(everything in everything()) {
        agree(&everything)?;
    }
}
