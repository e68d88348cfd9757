//! The four limits of one attempt: connect, first byte, idle, and the attempt as a whole, which always wins.

use std::time::Duration;

use super::config_error::{ConfigError, not_zero};

/// How far an attempt has come, as the code inside it says. Code that says nothing stays at [`Stage::Unmarked`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Nothing was said: bytes may have left.
    #[default]
    Unmarked = 0,
    /// Waiting for the other side to be ready: name, connection, TLS, a connection pool. No byte of the request left.
    Connecting = 1,
    /// The request is on its way, or its answer is awaited.
    Sending = 2,
    /// The answer has begun.
    Receiving = 3,
}

impl Stage {
    pub(crate) const fn from_u8(stage: u8) -> Self {
        match stage {
            1 => Self::Connecting,
            2 => Self::Sending,
            3 => Self::Receiving,
            _ => Self::Unmarked,
        }
    }
}

/// Which limit ended an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Connecting took too long.
    Connect,
    /// The answer did not begin.
    FirstByte,
    /// The answer stopped in the middle.
    Idle,
    /// The attempt as a whole took too long.
    Total,
}

/// Limits of one attempt beside its total.
///
/// Which of them are kept depends on who makes the attempt. The asynchronous driver keeps each one whose stage the
/// closure marks ([`Attempt::connecting`](crate::call::Attempt::connecting) and its neighbours), and the total always.
/// The blocking one interrupts nothing: the closure hands [`Attempt::connect_timeout`](crate::call::Attempt::connect_timeout)
/// and [`Attempt::io_timeout`](crate::call::Attempt::io_timeout) to its socket. The tower adapter marks readiness as
/// connecting; after that it can keep the first byte, and the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptLimits {
    pub(crate) connect: Option<Duration>,
    pub(crate) first_byte: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

impl AttemptLimits {
    /// No limits but the total.
    pub const NONE: Self = Self { connect: None, first_byte: None, idle: None };

    /// For connecting, name look-up and TLS included.
    #[must_use]
    pub const fn connect(self, limit: Duration) -> Self {
        Self { connect: Some(limit), ..self }
    }

    /// From the end of connecting to the first byte of the answer.
    #[must_use]
    pub const fn first_byte(self, limit: Duration) -> Self {
        Self { first_byte: Some(limit), ..self }
    }

    /// Between two chunks of the answer. It is no limit of the whole: a stream may go on for hours.
    #[must_use]
    pub const fn idle(self, limit: Duration) -> Self {
        Self { idle: Some(limit), ..self }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        for (what, limit) in [
            ("the connect limit", self.connect),
            ("the first-byte limit", self.first_byte),
            ("the idle limit", self.idle),
        ] {
            limit.map_or(Ok(()), |limit| not_zero(what, limit))?;
        }
        Ok(())
    }

    /// When an attempt that entered its stage, or last received something, at `since` is to be ended, and by which
    /// limit. `total` is the end of the attempt as a whole; it wins, also where both are the same moment.
    pub(crate) fn end(&self, stage: Stage, since: Duration, total: Option<Duration>) -> Option<(Duration, Limit)> {
        let (limit, name) = match stage {
            Stage::Unmarked => (None, Limit::Total),
            Stage::Connecting => (self.connect, Limit::Connect),
            Stage::Sending => (self.first_byte, Limit::FirstByte),
            Stage::Receiving => (self.idle, Limit::Idle),
        };
        let own = limit.and_then(|limit| since.checked_add(limit));
        match (own, total) {
            (Some(own), Some(total)) if own < total => Some((own, name)),
            (Some(own), None) => Some((own, name)),
            (_, total) => total.map(|total| (total, Limit::Total)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn each_stage_has_its_own_limit_and_the_total_always_wins() {
        let limits = AttemptLimits::NONE.connect(ms(10)).first_byte(ms(20)).idle(ms(30));
        let end = |stage, total| limits.end(stage, ms(100), total);
        assert_eq!(end(Stage::Connecting, Some(ms(500))), Some((ms(110), Limit::Connect)));
        assert_eq!(end(Stage::Sending, Some(ms(500))), Some((ms(120), Limit::FirstByte)));
        assert_eq!(end(Stage::Receiving, Some(ms(500))), Some((ms(130), Limit::Idle)));
        assert_eq!(end(Stage::Receiving, Some(ms(130))), Some((ms(130), Limit::Total)));
        assert_eq!(end(Stage::Receiving, Some(ms(105))), Some((ms(105), Limit::Total)));
        assert_eq!(end(Stage::Unmarked, Some(ms(500))), Some((ms(500), Limit::Total)));
        assert_eq!(end(Stage::Unmarked, None), None);
        assert_eq!(AttemptLimits::NONE.end(Stage::Sending, ms(1), Some(ms(2))), Some((ms(2), Limit::Total)));
    }

    #[test]
    fn a_limit_beyond_the_end_of_the_clock_is_none() {
        assert_eq!(AttemptLimits::NONE.idle(Duration::MAX).end(Stage::Receiving, ms(1), None), None);
    }

    #[test]
    fn a_limit_of_zero_is_refused() {
        assert_eq!(AttemptLimits::NONE.idle(Duration::ZERO).check(), Err(ConfigError::Zero { what: "the idle limit" }));
        assert_eq!(AttemptLimits::NONE.check(), Ok(()));
    }
}
