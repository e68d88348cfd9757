use proptest::prelude::*;

use super::*;

#[test]
fn a_timeout_is_written_in_the_finest_unit_in_which_eight_digits_are_enough() {
    let write = |nanos| write_timeout(Duration::from_nanos(nanos)).unwrap();
    assert_eq!(write(1), "1n");
    assert_eq!(write(99_999_999), "99999999n");
    assert_eq!(write(100_000_000), "100000u");
    assert_eq!(write(210_000_000), "210000u");
    assert_eq!(write(99_999_999_999), "99999999u");
    assert_eq!(write(100_000_999_999), "100000m", "rounded down");
    assert_eq!(write_timeout(Duration::from_secs(100_000_000)).unwrap(), "1666666M");
    assert_eq!(write_timeout(Duration::MAX).unwrap(), "99999999H");
}

#[test]
fn nothing_left_is_never_written() {
    assert_eq!(write_timeout(Duration::ZERO), Err(Expired));
}

#[test]
fn every_unit_is_read_and_the_longest_does_not_overflow() {
    let units = [("1n", 1), ("1u", 1_000), ("1m", 1_000_000), ("1S", 1_000_000_000), ("1M", 60_000_000_000)];
    for (text, nanos) in units {
        assert_eq!(read_timeout(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
    assert_eq!(read_timeout("99999999H"), Ok(Duration::from_secs(99_999_999 * 3600)));
    assert_eq!(read_timeout("0m"), Ok(Duration::ZERO));
    assert_eq!(read_timeout("00000001S"), Ok(Duration::from_secs(1)));
}

#[test]
fn every_malformed_timeout_is_named() {
    for (text, fault) in [
        ("", MalformedFault::Empty),
        ("m", MalformedFault::Empty),
        ("100", MalformedFault::Unit),
        ("100s", MalformedFault::Unit),
        ("100ms", MalformedFault::Unit),
        ("-1m", MalformedFault::NotANumber),
        ("+1m", MalformedFault::NotANumber),
        ("1.5S", MalformedFault::NotANumber),
        (" 1m", MalformedFault::NotANumber),
        ("1 m", MalformedFault::NotANumber),
        ("1m ", MalformedFault::Unit),
        ("1e3m", MalformedFault::NotANumber),
        ("１m", MalformedFault::NotANumber),
        ("1µ", MalformedFault::Unit),
        ("100000000n", MalformedFault::TooLong),
        ("99999999999999999999999999H", MalformedFault::TooLong),
    ] {
        assert_eq!(read_timeout(text), Err(fault), "{text:?}");
    }
}

#[test]
fn previous_attempts_are_a_number_and_nothing_else() {
    assert_eq!(read_previous_attempts("2"), Ok(2));
    assert_eq!(read_previous_attempts("4294967295"), Ok(u32::MAX));
    for text in ["", "-1", "+1", "1.0", "x", "4294967296", "99999999999999999999"] {
        assert!(read_previous_attempts(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_negative_or_unreadable_pushback_means_never() {
    assert_eq!(read_pushback("0"), Hint::After(Duration::ZERO));
    assert_eq!(read_pushback("250"), Hint::After(Duration::from_millis(250)));
    for text in ["-1", "-250", "", "soon", "1.5", "+3", "2147483648", " 5", "99999999999999999999"] {
        assert_eq!(read_pushback(text), Hint::Never, "{text:?}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_no_more_and_hardly_less(remaining in any::<Duration>()) {
        prop_assume!(!remaining.is_zero());
        let text = write_timeout(remaining).unwrap();
        let read = read_timeout(&text).unwrap();
        prop_assert!(text.len() <= DIGITS_MAX + 1);
        prop_assert!(!read.is_zero() && read <= remaining, "{} {:?}", text, remaining);
        if remaining < Duration::from_secs(3600 * 99_999_999) {
            prop_assert!(read.as_secs_f64() >= remaining.as_secs_f64() * 0.999_9, "{} {:?}", text, remaining);
        }
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in ".*") {
        let (timeout, attempts) = (read_timeout(&text), read_previous_attempts(&text));
        prop_assert!(timeout.is_err() || attempts.is_err(), "one has a unit and the other has none");
        prop_assert_ne!(read_pushback(&text), Hint::None);
    }
}
