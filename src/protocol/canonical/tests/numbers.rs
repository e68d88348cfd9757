//! Numbers: one text for each value, whatever its spelling.

use std::fmt::LowerExp;
use std::str::FromStr;

use proptest::prelude::*;

use super::{canonical, typed};

#[test]
fn every_spelling_of_a_number_gives_its_one_text() {
    let rows: [(&str, &[&str]); 9] = [
        (
            "0",
            &["0", "-0", "0.0", "-0.000", "0e5", "0E-0", "-0e99999999999999999999999999", "0.00e-12345678901234567890"],
        ),
        ("1", &["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "100e-2", "0.0001e4", "1e-000", "1.000e+00"]),
        ("-1", &["-1", "-1.0", "-10e-1", "-0.01e2"]),
        ("12", &["12", "12.0", "1.2e1", "120e-1"]),
        ("1e3", &["1000", "1e3", "1.0e+3", "10e2", "0.1e4", "1000.00"]),
        ("15e-1", &["1.5", "15e-1", "1.50", "150e-2", "0.15e1"]),
        ("105e-3", &["0.105", "0.1050", "1.05e-1", "105e-3", "0.00105E+2"]),
        ("1e-27", &["0.000000000000000000000000001", "1e-27", "1E-27", "1000e-30"]),
        ("9007199254740993", &["9007199254740993", "9007199254740993.0", "9007199254740.993e3"]),
    ];
    for (expected, spellings) in rows {
        for spelling in spellings {
            assert_eq!(canonical(spelling), expected, "{spelling}");
        }
    }
}

#[test]
fn numbers_that_binary64_cannot_tell_apart_differ() {
    for (a, b) in [
        ("9007199254740992", "9007199254740993"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ("1e400", "1e401"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
        ("1e-400", "0"),
    ] {
        assert_ne!(canonical(a), canonical(b));
    }
}

/// RFC 8785 appendix B: bits, and the published number in our form.
#[test]
fn the_floats_of_rfc_8785_appendix_b_have_their_published_digits() {
    for (bits, expected) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "-0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ] {
        assert_eq!(typed(&f64::from_bits(bits)), canonical(expected), "{bits:x}");
    }
}

#[test]
fn floats_take_the_shortest_form_of_their_own_width() {
    assert_eq!(typed(&0.1_f32), "1e-1");
    assert_eq!(typed(&0.1_f64), "1e-1");
    assert_eq!(typed(&f64::from(0.1_f32)), "10000000149011612e-17");
    assert_eq!(typed(&16_777_216_f32), "16777216");
    assert_eq!(typed(&f32::MIN_POSITIVE), "11754944e-45");
    assert_eq!(typed(&f32::from_bits(1)), "1e-45");
    assert_eq!(typed(&-0.0_f32), "0");
    assert_eq!(typed(&-0.0_f64), "0");
}

#[test]
fn integers_of_every_width_are_exact() {
    assert_eq!(typed(&u128::MAX), "340282366920938463463374607431768211455");
    assert_eq!(typed(&i128::MIN), "-170141183460469231731687303715884105728");
    assert_eq!(typed(&u64::MAX), "18446744073709551615");
    assert_eq!(typed(&i64::MIN), "-9223372036854775808");
    assert_eq!(typed(&i8::MIN), "-128");
    assert_eq!(typed(&1000_u16), "1e3");
    assert_eq!(typed(&0_u8), "0");
}

/// The digits by definition: the fewest that read back, rounded to the nearest and ties to even, which is what the
/// standard library does when it is told how many digits to give.
fn by_definition<F: LowerExp + FromStr + PartialEq>(float: F) -> String {
    let texts = (0..17).map(|digits| format!("{float:.digits$e}"));
    canonical(&texts.into_iter().find(|text| text.parse::<F>().is_ok_and(|read| read == float)).unwrap())
}

#[test]
fn of_two_shortest_forms_that_are_equally_close_the_even_one_is_taken() {
    // 1424953923781206.25, 2992562.25 and 2.98023223876953125e-8, all exact.
    assert_eq!(typed(&f64::from_bits(0x4314_3ff3_c1cb_0959)), "14249539237812062e-1");
    assert_eq!(typed(&(11_970_249_f32 / 4.0)), "29925622e-1");
    assert_eq!(typed(&2_f64.powi(-25)), "29802322387695312e-24");
}

/// Powers of two are where algorithms have differed: their lower neighbour is nearer than the upper one, so that
/// the nearest decimal of some length may read back as that neighbour and a farther one of the same length be right.
#[test]
fn powers_of_two_have_the_digits_of_the_definition_or_fewer() {
    fn check<F: LowerExp + FromStr + PartialEq + Copy + serde::Serialize>(float: F) {
        let (text, definition) = (typed(&float), by_definition(float));
        let digits = |text: &str| text.split('e').next().unwrap().len();
        assert!(text.parse::<F>().is_ok_and(|read| read == float), "{text}");
        assert!(text == definition || digits(&text) < digits(&definition), "{text} {definition}");
    }
    (0..0x7ff_u64).for_each(|exponent| check(f64::from_bits(exponent << 52)));
    (0..0xff_u32).for_each(|exponent| check(f32::from_bits(exponent << 23)));
}

proptest! {
    #[test]
    fn a_canonical_number_reads_back_as_the_same_float(bits in any::<u64>()) {
        let float = f64::from_bits(bits);
        prop_assume!(float.is_finite());
        prop_assert_eq!(typed(&float).parse::<f64>().unwrap(), float);
        prop_assert_eq!(typed(&float), by_definition(float));
    }

    #[test]
    fn a_canonical_number_reads_back_as_the_same_single_float(bits in any::<u32>()) {
        let float = f32::from_bits(bits);
        prop_assume!(float.is_finite());
        prop_assert_eq!(typed(&float).parse::<f32>().unwrap(), float);
        prop_assert_eq!(typed(&float), by_definition(float));
    }

    #[test]
    fn moving_the_point_and_adding_zeros_changes_nothing(
        digits in "[1-9][0-9]{0,40}", zeros in 0..20_usize, point in 0..40_usize, power in -300..300_i64,
    ) {
        let padded = format!("{digits}{}", "0".repeat(zeros));
        let point = point.min(padded.len());
        let power_moved = power + i64::try_from(padded.len() - point).unwrap() - i64::try_from(zeros).unwrap();
        let (whole, fraction) = padded.split_at(point);
        let whole = if whole.is_empty() { "0" } else { whole };
        let fraction = if fraction.is_empty() { "0" } else { fraction };
        prop_assert_eq!(canonical(&format!("{whole}.{fraction}e{power_moved}")), canonical(&format!("{digits}e{power}")));
    }

    #[test]
    fn different_integers_never_share_a_text(a in any::<i128>(), b in any::<i128>()) {
        prop_assume!(a != b);
        prop_assert_ne!(typed(&a), typed(&b));
    }
}
