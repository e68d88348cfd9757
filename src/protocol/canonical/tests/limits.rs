//! Digits, powers and depth at both sides of their limits.

use super::{CanonicalError, canonical, try_canonical, try_typed};

fn refused(raw: &str) -> CanonicalError {
    try_canonical(raw.as_bytes()).unwrap_err()
}

#[test]
fn a_thousand_digits_are_taken_and_one_more_is_refused() {
    let thousand = "7".repeat(1_000);
    assert_eq!(canonical(&thousand), thousand);
    assert_eq!(canonical(&format!("0.{thousand}")), format!("{thousand}e-1000"));
    for raw in [format!("{thousand}7"), format!("{thousand}.7"), format!("7.{thousand}"), format!("-{thousand}7e-3")] {
        assert_eq!(refused(&raw), CanonicalError::NumberTooLong { at: Some(0) });
    }
}

#[test]
fn zeros_at_either_end_are_no_digits() {
    let thousand = "7".repeat(1_000);
    let zeros = "0".repeat(2_000);
    assert_eq!(canonical(&format!("{thousand}{zeros}")), format!("{thousand}e2000"));
    assert_eq!(canonical(&format!("{thousand}.{zeros}")), thousand);
    assert_eq!(canonical(&format!("0.{zeros}{thousand}")), format!("{thousand}e-3000"));
    assert_eq!(canonical(&format!("0.{zeros}")), "0");
}

#[test]
fn powers_of_ten_are_taken_up_to_ten_thousand_at_both_ends() {
    for (raw, expected) in [
        ("1e10000", "1e10000"),
        ("1E+0010000", "1e10000"),
        ("10e9999", "1e10000"),
        ("0.1e10001", "1e10000"),
        ("1e-10000", "1e-10000"),
        ("0.1e-9999", "1e-10000"),
        ("10e-10001", "1e-10000"),
        ("12.5e-9999", "125e-10000"),
    ] {
        assert_eq!(canonical(raw), expected, "{raw}");
        assert_eq!(canonical(expected), expected);
    }
    let zeros = "0".repeat(9_999);
    assert_eq!(canonical(&format!("10{zeros}")), "1e10000");
    assert_eq!(canonical(&format!("0.{zeros}1")), "1e-10000");
}

#[test]
fn powers_of_ten_beyond_the_limit_are_refused_however_they_are_written() {
    let zeros = "0".repeat(10_001);
    let long = format!("1{zeros}");
    let small = format!("0.{zeros}1");
    for raw in [
        "1e10001",
        "10e10000",
        "1e-10001",
        "0.1e-10000",
        "1.5e-10000",
        "-1e10001",
        "1e9223372036854775807",
        "1e-9223372036854775808",
        "1e99999999999999999999999999999999999999",
        "0.1e-99999999999999999999999999999999999999",
        &long,
        &small,
    ] {
        assert_eq!(refused(raw), CanonicalError::NumberOutOfRange { at: Some(0) });
    }
    assert_eq!(refused("[1, 1e10001]"), CanonicalError::NumberOutOfRange { at: Some(4) });
}

#[test]
fn depth_128_is_taken_and_129_refused_at_its_bracket() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(canonical(&nested(128)), nested(128));
    assert_eq!(refused(&nested(129)), CanonicalError::TooDeep { at: Some(128) });
    assert_eq!(refused(&"[".repeat(1_000_000)), CanonicalError::TooDeep { at: Some(128) });

    let members = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    assert_eq!(canonical(&members(128)), members(128));
    assert_eq!(refused(&members(129)), CanonicalError::TooDeep { at: Some(128 * 5) });
}

#[test]
fn depth_is_what_is_open_at_once_and_not_how_many_there_are() {
    let wide = format!("[{}[]]", "[],{},".repeat(500));
    assert_eq!(canonical(&wide), wide);
}

#[test]
fn typed_values_have_the_same_depth_limit() {
    #[derive(serde::Serialize)]
    struct Nested(Vec<Nested>);
    let nested = |depth: usize| (1..depth).fold(Nested(Vec::new()), |inner, _| Nested(vec![inner]));
    assert_eq!(try_typed(&nested(128)).unwrap(), format!("{}{}", "[".repeat(128), "]".repeat(128)));
    assert_eq!(try_typed(&nested(129)), Err(CanonicalError::TooDeep { at: None }));

    #[derive(serde::Serialize)]
    enum Link {
        End,
        Next(Box<Link>),
    }
    let chain = |length: usize| (0..length).fold(Link::End, |inner, _| Link::Next(Box::new(inner)));
    assert!(try_typed(&chain(128)).is_ok());
    assert_eq!(try_typed(&chain(129)), Err(CanonicalError::TooDeep { at: None }));
}

#[test]
fn the_error_of_a_limit_names_the_limit() {
    for (error, expected) in [
        (CanonicalError::TooDeep { at: Some(7) }, "more than 128 arrays and objects inside each other at byte 7"),
        (CanonicalError::NumberTooLong { at: None }, "a number of more than 1000 digits"),
        (CanonicalError::NumberOutOfRange { at: None }, "a number whose power of ten is beyond ±10000"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

/// Neither a long run of names with one beginning nor many levels out of order may take more than linear time; with a
/// quadratic step this would run for minutes.
#[test]
fn a_large_object_takes_time_in_proportion() {
    let members: Vec<String> = (0..200_000).rev().map(|n| format!("\"common/prefix/{n:06}\":{n}")).collect();
    let raw = format!("{{{}}}", members.join(","));
    assert!(canonical(&raw).starts_with("{\"common/prefix/000000\":0,"));
    let twice = format!("{{{},\"common/prefix/199999\":0}}", members.join(","));
    let at = twice.rfind("\"common").unwrap();
    assert_eq!(refused(&twice), CanonicalError::DuplicateMember { at: Some(at) });

    let deep = format!("{}\"{}\"{}", r#"{"z":0,"a":"#.repeat(128), "x".repeat(500_000), "}".repeat(128));
    assert!(canonical(&deep).ends_with("\"z\":0}"));
}
