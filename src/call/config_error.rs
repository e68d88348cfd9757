//! Settings that are refused when a caller is built.

use std::time::Duration;

/// Why settings are refused. Nothing was built and nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Something that must be more than nothing is zero.
    #[error("{what} is zero: leave it out if you do not want it")]
    Zero {
        /// Which setting.
        what: &'static str,
    },
    /// A ratio is no number, or not within what it may be.
    #[error("{what} is {value}: it must be a number above {above} and at most {most}")]
    Ratio {
        /// Which setting.
        what: &'static str,
        /// What it was.
        value: f64,
        /// It must be above this.
        above: f64,
        /// It may be this at most.
        most: f64,
    },
    /// A lower bound is above its upper bound.
    #[error("{low_is} ({low:?}) is above {high_is} ({high:?})")]
    Inverted {
        /// The lower bound's name.
        low_is: &'static str,
        /// The lower bound.
        low: Duration,
        /// The upper bound's name.
        high_is: &'static str,
        /// The upper bound.
        high: Duration,
    },
    /// A setting is below the least that it may be.
    #[error("{what} is {value:?}: at least {least:?}")]
    TooSmall {
        /// Which setting.
        what: &'static str,
        /// What it was.
        value: Duration,
        /// What it may be at least.
        least: Duration,
    },
    /// A setting is above the most that it may be.
    #[error("{what} is {value}: at most {most}")]
    TooLarge {
        /// Which setting.
        what: &'static str,
        /// What it was.
        value: u64,
        /// What it may be at most.
        most: u64,
    },
    /// A setting does nothing, or harm, without another one.
    #[error("{what} needs {needs}")]
    Needs {
        /// Which setting.
        what: &'static str,
        /// What it needs.
        needs: &'static str,
    },
}

/// Refuses a duration of zero.
pub(crate) fn not_zero(what: &'static str, value: Duration) -> Result<(), ConfigError> {
    if value.is_zero() { Err(ConfigError::Zero { what }) } else { Ok(()) }
}

/// Refuses a lower bound above its upper bound.
pub(crate) fn ordered(
    (low_is, low): (&'static str, Duration),
    (high_is, high): (&'static str, Duration),
) -> Result<(), ConfigError> {
    if low > high { Err(ConfigError::Inverted { low_is, low, high_is, high }) } else { Ok(()) }
}

/// A ratio above 0 and at most 1, in millionths. Fixed point, so that ten times 0.6 is 6 and not 5.999 or 6.001.
pub(crate) fn millionths(what: &'static str, value: f64) -> Result<u64, ConfigError> {
    let refused = ConfigError::Ratio { what, value, above: 0.0, most: 1.0 };
    if !(value > 0.0 && value <= 1.0) {
        return Err(refused);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above 0 and at most a million")]
    let millionths = (value * 1e6).round() as u64;
    if millionths == 0 { Err(refused) } else { Ok(millionths) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_number_above_zero_and_at_most_one() {
        for refused in [0.0, -0.0, -0.1, 1.000_001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-9] {
            assert!(matches!(millionths("ratio", refused), Err(ConfigError::Ratio { .. })), "{refused}");
        }
        assert_eq!(millionths("ratio", 0.1), Ok(100_000));
        assert_eq!(millionths("ratio", 0.6), Ok(600_000));
        assert_eq!(millionths("ratio", 1.0), Ok(1_000_000));
        assert_eq!(millionths("ratio", 1e-6), Ok(1));
    }

    #[test]
    fn the_error_names_the_setting_and_says_what_it_may_be() {
        let error = millionths("the budget's ratio", f64::NAN).unwrap_err();
        assert_eq!(error.to_string(), "the budget's ratio is NaN: it must be a number above 0 and at most 1");
        let (low, high) = (Duration::from_secs(2), Duration::from_secs(1));
        let error = ordered(("first delay", low), ("cap", high)).unwrap_err();
        assert_eq!(error.to_string(), "first delay (2s) is above cap (1s)");
    }
}
