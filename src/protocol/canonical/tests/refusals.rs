//! What is refused, with its place, and that errors hold nothing of the content.

use proptest::prelude::*;

use super::{CanonicalError as E, try_canonical};

fn check(rows: &[(&[u8], E)]) {
    for (raw, expected) in rows {
        assert_eq!(try_canonical(raw), Err(*expected), "{}", String::from_utf8_lossy(raw));
    }
}

#[test]
fn empty_text_is_refused() {
    check(&[(b"", E::Empty), (b" \n\t\r", E::Empty)]);
}

#[test]
fn a_leading_byte_order_mark_is_refused() {
    check(&[(b"\xef\xbb\xbf{}", E::ByteOrderMark), (b"\xef\xbb\xbf", E::ByteOrderMark)]);
    assert!(try_canonical(b"\xff\xfe{\0}\0").is_err());
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    check(&[
        (b"\"\xff\"", E::InvalidUtf8 { at: 1 }),
        (b"\"ab\xc3\"", E::InvalidUtf8 { at: 3 }),
        (b"\"\xc0\x80\"", E::InvalidUtf8 { at: 1 }),
        (b"\"\xed\xa0\xbd\xed\xb8\x80\"", E::InvalidUtf8 { at: 1 }),
        (b"\"\xf4\x90\x80\x80\"", E::InvalidUtf8 { at: 1 }),
    ]);
}

#[test]
fn anything_after_the_value_is_refused() {
    check(&[
        (b"{} x", E::TrailingContent { at: 3 }),
        (b"1 2", E::TrailingContent { at: 2 }),
        (b"01", E::TrailingContent { at: 1 }),
        (b"-00", E::TrailingContent { at: 2 }),
        (b"1.0.0", E::TrailingContent { at: 3 }),
        (b"[]]", E::TrailingContent { at: 2 }),
        (b"null\0", E::TrailingContent { at: 4 }),
        (b"1_000", E::TrailingContent { at: 1 }),
        (b"0x10", E::TrailingContent { at: 1 }),
        ("1\u{a0}".as_bytes(), E::TrailingContent { at: 1 }),
    ]);
}

#[test]
fn text_that_is_not_json_is_refused_at_its_first_wrong_byte() {
    let wrong = |at, expected| E::Unexpected { at, expected };
    check(&[
        (b"x", wrong(0, "a value")),
        (b"NaN", wrong(0, "a value")),
        (b"+1", wrong(0, "a value")),
        (b".5", wrong(0, "a value")),
        (b"'a'", wrong(0, "a value")),
        (b"True", wrong(0, "a value")),
        (b"\x0c1", wrong(0, "a value")),
        ("\u{a0}1".as_bytes(), wrong(0, "a value")),
        (b"nulk", wrong(3, "null")),
        (b"-x", wrong(1, "a digit")),
        (b"-Infinity", wrong(1, "a digit")),
        (b"[1.]", wrong(3, "a digit")),
        (b"[1e]", wrong(3, "a digit")),
        (b"[1e+]", wrong(4, "a digit")),
        (b"[1.e5]", wrong(3, "a digit")),
        (b"[01]", wrong(2, "a comma or a closing bracket")),
        (b"[1 2]", wrong(3, "a comma or a closing bracket")),
        (b"[1}", wrong(2, "a comma or a closing bracket")),
        (b"[1,]", wrong(3, "a value")),
        (b"[,1]", wrong(1, "a value")),
        (b"{\"a\"}", wrong(4, "a colon")),
        (b"{\"a\":}", wrong(5, "a value")),
        (b"{\"a\":1,}", wrong(7, "a member name")),
        (b"{\"a\":1 \"b\":2}", wrong(7, "a comma or a closing brace")),
        (b"{a:1}", wrong(1, "a member name")),
        (b"{1:1}", wrong(1, "a member name")),
        (b"[1/**/]", wrong(2, "a comma or a closing bracket")),
        (b"/**/1", wrong(0, "a value")),
        (b"\"\\u12g4\"", wrong(5, "a hexadecimal digit")),
        (b"\"\\u+123\"", wrong(3, "a hexadecimal digit")),
    ]);
}

#[test]
fn text_that_ends_inside_a_value_is_refused_at_its_end() {
    let whole = br#"{"a":[true,-1.5e-7,"x\n\ud83d\ude00",{"b":null}]}"#;
    assert!(try_canonical(whole).is_ok());
    for length in 1..whole.len() {
        match try_canonical(&whole[..length]) {
            Err(E::UnexpectedEnd { at, .. }) => assert_eq!(at, length),
            // A cut pair of surrogates is half a pair.
            Err(E::LoneSurrogate { at }) => assert_eq!(whole[at], b'\\'),
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn control_characters_and_unknown_escapes_are_refused() {
    check(&[
        (b"\"a\nb\"", E::ControlCharacter { at: 2 }),
        (b"\"\0\"", E::ControlCharacter { at: 1 }),
        (b"\"\x1f\"", E::ControlCharacter { at: 1 }),
        (b"\"a\\x41\"", E::InvalidEscape { at: 2 }),
        (b"\"\\'\"", E::InvalidEscape { at: 1 }),
        (b"\"\\U0041\"", E::InvalidEscape { at: 1 }),
        ("\"\\é\"".as_bytes(), E::InvalidEscape { at: 1 }),
    ]);
}

#[test]
fn halves_of_surrogate_pairs_are_refused() {
    for (raw, at) in [
        (r#""\ud83d""#, 1),
        (r#""\ude00""#, 1),
        (r#""\ude00\ud83d""#, 1),
        (r#""\ud83d\ud83d\ude00""#, 1),
        (r#""\ud83dx""#, 1),
        (r#""\ud83d\n""#, 1),
        (r#""\ud83d\u0041""#, 1),
        (r#"["ok","ab\udfff"]"#, 9),
        (r#"{"\ud800":1}"#, 2),
    ] {
        assert_eq!(try_canonical(raw.as_bytes()), Err(E::LoneSurrogate { at }), "{raw}");
    }
}

#[test]
fn duplicate_members_are_refused_after_unescaping_and_wherever_they_are() {
    for (raw, at) in [
        (r#"{"a":1,"a":1}"#, 7),
        (r#"{"a":1,"\u0061":2}"#, 7),
        (r#"{"a":1,"b":2,"a":3,"b":4}"#, 13),
        (r#"{"b":1,"a":2,"b":3,"b":4,"a":5}"#, 13),
        (r#"{"":1,"":2}"#, 6),
        (r#"[{"x":{"k":[],"k":[]}}]"#, 14),
        (r#"{"\ud83d\ude00":1,"😀":2}"#, 18),
    ] {
        assert_eq!(try_canonical(raw.as_bytes()), Err(E::DuplicateMember { at: Some(at) }), "{raw}");
    }
    assert!(try_canonical(br#"{"a":{"a":1},"b":{"a":[{"a":2},{"a":3}]},"A":4}"#).is_ok());
}

#[test]
fn an_error_says_where_and_shows_nothing_of_the_content() {
    for raw in [
        r#"{"hunter2":"hunter2","hunter2":0}"#,
        r#"["hunter2" hunter2]"#,
        r#"["hunter2\ud800"]"#,
        r#"["hunter2"#,
        r#"{"a":"hunter2"}hunter2"#,
    ] {
        let error = try_canonical(raw.as_bytes()).unwrap_err();
        assert!(error.offset().is_some());
        assert!(!format!("{error} {error:?}").contains("hunter"), "{error:?}");
        assert!(error.to_string().contains(&format!("byte {}", error.offset().unwrap())), "{error}");
    }
}

/// serde_json is a second opinion on what JSON is; only the refusals that RFC 8259 leaves to the reader differ.
fn agrees_with_serde_json(raw: &[u8]) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_slice::<serde::de::IgnoredAny>(raw).is_ok() && std::str::from_utf8(raw).is_ok();
    match try_canonical(raw) {
        Ok(form) => {
            prop_assert!(theirs);
            prop_assert_eq!(try_canonical(form.as_bytes()), Ok(form));
        }
        Err(
            E::DuplicateMember { .. } | E::LoneSurrogate { .. } | E::NumberTooLong { .. } | E::NumberOutOfRange { .. },
        ) => {}
        Err(error) => prop_assert!(!theirs, "{error:?}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_bytes_panic_and_serde_json_agrees_on_what_json_is(raw in prop::collection::vec(any::<u8>(), 0..40)) {
        agrees_with_serde_json(&raw)?;
    }

    #[test]
    fn near_json_is_taken_exactly_when_serde_json_takes_it(raw in r#"[\[\]{}",:0-3eE+. \\tnulrase-]{0,14}"#) {
        agrees_with_serde_json(raw.as_bytes())?;
    }

    #[test]
    fn json_with_one_wrong_byte_is_judged_as_serde_json_does(at in 0..48_usize, byte in any::<u8>()) {
        let mut raw = br#"{"a":[true,-1.5e-7,"x\n\u12fA",{"b":null}],"":0}"#.to_vec();
        raw[at] = byte;
        agrees_with_serde_json(&raw)?;
    }
}
