//! Order, strings and white space of JSON text. Rows marked RFC 8785 are its published examples, with the numbers in
//! our form.

use proptest::prelude::*;

use super::canonical;

#[test]
fn the_example_of_rfc_8785_section_3_2_2_has_its_published_form_but_for_the_numbers() {
    let raw = r#"{
        "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]
    }"#;
    let expected = concat!(
        r#"{"literals":[null,true,false],"numbers":[33333333333333329e-8,1e30,45e-1,2e-3,1e-27],"#,
        r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
    );
    assert_eq!(canonical(raw), expected);
}

#[test]
fn the_sorting_example_of_rfc_8785_section_3_2_3_has_its_published_order() {
    let raw = r#"{
        "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
        "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
    }"#;
    let expected = [
        r#"{"\r":"Carriage Return","1":"One","#,
        "\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",",
        "\"\u{1f600}\":\"Emoji: Grinning Face\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    ];
    assert_eq!(canonical(raw), expected.concat());
}

#[test]
fn names_sort_as_whole_strings_and_the_empty_one_comes_first() {
    assert_eq!(canonical(r#"{"ab":1,"b":2,"a":3,"":4,"aa":5,"A":6}"#), r#"{"":4,"A":6,"a":3,"aa":5,"ab":1,"b":2}"#);
}

#[test]
fn names_sort_by_what_they_mean_and_not_by_how_they_are_escaped() {
    assert_eq!(canonical(r#"{"\u0062":1,"a":2,"\"":3}"#), r#"{"\"":3,"a":2,"b":1}"#);
}

#[test]
fn members_sort_in_every_object_also_inside_arrays_and_array_order_is_kept() {
    assert_eq!(
        canonical(r#"[{"b":[{"z":1,"y":{"d":1,"c":2}}],"a":2},3,1,2]"#),
        r#"[{"a":2,"b":[{"y":{"c":2,"d":1},"z":1}]},3,1,2]"#
    );
    assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
}

#[test]
fn white_space_between_tokens_means_nothing() {
    assert_eq!(
        canonical(" \t\r\n{ \"a\" :\n[ ] , \"b\" : { } , \"c\" : [ 1 , 2 ] }\n"),
        r#"{"a":[],"b":{},"c":[1,2]}"#
    );
}

#[test]
fn a_value_of_any_kind_may_stand_alone() {
    for raw in ["null", "true", "false", "0", "-5", "\"\"", "[]", "{}"] {
        assert_eq!(canonical(raw), raw);
    }
}

#[test]
fn every_control_character_has_the_escape_of_rfc_8785_and_no_other_character_has_one() {
    let named = [(8, "\\b"), (9, "\\t"), (10, "\\n"), (12, "\\f"), (13, "\\r")];
    for code in 0..0x20_u32 {
        let expected = named.iter().find(|(c, _)| *c == code).map(|(_, text)| (*text).to_owned());
        let expected = expected.unwrap_or_else(|| format!("\\u{code:04x}"));
        assert_eq!(canonical(&format!("\"x\\u{code:04X}y\"")), format!("\"x{expected}y\""));
    }
    for plain in ['\u{7f}', '\u{80}', '/', '<', '\u{2028}', '\u{feff}', '\u{fffd}', '\u{ffff}', '\u{10ffff}'] {
        assert_eq!(canonical(&format!("\"{plain}\"")), format!("\"{plain}\""));
    }
}

#[test]
fn every_spelling_of_a_character_gives_the_same_string() {
    for (spellings, expected) in [
        (["\"/\"", r#""\/""#, r#""\u002f""#], "\"/\""),
        (["\"\u{1f600}\"", r#""\ud83d\ude00""#, r#""\uD83D\uDE00""#], "\"\u{1f600}\""),
        (["\"\\\\\"", r#""\u005c""#, r#""\u005C""#], "\"\\\\\""),
    ] {
        for spelling in spellings {
            assert_eq!(canonical(spelling), expected, "{spelling}");
        }
    }
}

#[test]
fn strings_are_not_normalised() {
    assert_eq!(canonical(r#""A\u030a""#), "\"A\u{30a}\"");
    assert_ne!(canonical(r#""\u00e5""#), canonical(r#""a\u030a""#));
}

#[test]
fn a_null_member_is_not_an_absent_one_in_raw_json() {
    assert_ne!(canonical(r#"{"a":null}"#), canonical("{}"));
}

/// A JSON value with its numbers as text and its members in the order of generation.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// What the canonical form is by definition, written without regard to cost.
    fn expected(&self) -> String {
        let list = |parts: Vec<String>| parts.join(",");
        match self {
            Self::Leaf(leaf) => leaf.clone(),
            Self::Text(text) => serde_json::to_string(text).unwrap(),
            Self::Array(items) => format!("[{}]", list(items.iter().map(Self::expected).collect())),
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<u16>>());
                let member = |(name, value): &&(String, Self)| {
                    format!("{}:{}", serde_json::to_string(name).unwrap(), value.expected())
                };
                format!("{{{}}}", list(members.iter().map(member).collect()))
            }
        }
    }

    /// Some other text of the same value: members rotated, every character escaped, white space between.
    fn disguised(&self, turn: usize) -> String {
        let quoted = |text: &str| {
            let units = text.encode_utf16().map(|unit| format!("\\u{unit:04X}"));
            format!("\"{}\"", units.collect::<String>())
        };
        match self {
            Self::Leaf(leaf) => leaf.clone(),
            Self::Text(text) => quoted(text),
            Self::Array(items) => {
                format!("[ {}\t]", items.iter().map(|item| item.disguised(turn)).collect::<Vec<_>>().join(" , "))
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members
                    .iter()
                    .map(|(name, value)| format!("{} : {}", quoted(name), value.disguised(turn)))
                    .collect();
                let length = members.len().max(1);
                members.rotate_left(turn % length);
                if turn % 2 == 1 {
                    members.reverse();
                }
                format!("{{\r\n{}\n}}", members.join(" ,\n"))
            }
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        prop_oneof![Just("null"), Just("true"), Just("false"), Just("0"), Just("-15e-1")]
            .prop_map(|l| Tree::Leaf(l.into())),
        (1..=9_u64, any::<u32>()).prop_map(|(last, n)| Tree::Leaf((u64::from(n) * 10 + last).to_string())),
        any::<String>().prop_map(Tree::Text),
    ];
    // Names around the surrogates, where the order of UTF-16 differs from that of the bytes.
    let name = prop_oneof![any::<String>(), "[a\u{7ff}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}]{0,3}"];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Tree::Array),
            prop::collection::btree_map(name.clone(), inner, 0..6)
                .prop_map(|members| Tree::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn permuted_and_respelt_members_give_equal_bytes(tree in tree(), turn in any::<u8>()) {
        let expected = tree.expected();
        prop_assert_eq!(&canonical(&tree.disguised(usize::from(turn))), &expected);
        prop_assert_eq!(canonical(&tree.disguised(usize::from(turn) + 1)), expected);
    }

    #[test]
    fn the_canonical_form_is_its_own_canonical_form(tree in tree(), turn in any::<u8>()) {
        let once = canonical(&tree.disguised(usize::from(turn)));
        prop_assert_eq!(canonical(&once), once);
    }
}
