//! The one comparison that decides what is still known, used by reads and sweeps alike, and the store's own time.

use std::time::Duration;

use crate::base::operation::Retention;
use crate::base::position::TimestampMs;

/// What a receipt still answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The reply can be replayed.
    Replay,
    /// The key is known, the reply is not: a retry is answered "gone".
    Refuse,
    /// Nothing is known.
    Forgotten,
}

/// Which phase a receipt is in. A deadline that is exactly now has passed.
pub(crate) fn phase(now: TimestampMs, replay_until: TimestampMs, refuse_until: TimestampMs) -> Phase {
    if now >= refuse_until {
        Phase::Forgotten
    } else if now >= replay_until {
        Phase::Refuse
    } else {
        Phase::Replay
    }
}

/// Until when a receipt answers what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlines {
    pub(crate) replay_until: TimestampMs,
    pub(crate) refuse_until: TimestampMs,
    /// What the reply itself said, where it did.
    pub(crate) allowed_until: Option<TimestampMs>,
}

/// The deadlines of an operation that completes now. A reply that may be replayed for a shorter time than its operation
/// type says ends the replay tier early; for how long the key is known does not depend on it.
pub(crate) fn deadlines(completed_at: TimestampMs, retention: Retention, allowed_for: Option<Duration>) -> Deadlines {
    let replay_until = completed_at.saturating_add(retention.replay);
    let allowed_until = allowed_for.map(|validity| completed_at.saturating_add(validity));
    Deadlines {
        replay_until: allowed_until.map_or(replay_until, |allowed| allowed.min(replay_until)),
        refuse_until: replay_until.saturating_add(retention.refuse),
        allowed_until,
    }
}

/// What the wall clock looks like beside what the store remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockState {
    /// Nothing unusual.
    Good,
    /// The wall clock is far ahead of the store's time, which follows only a bounded way until a person accepts it.
    Ahead(Duration),
    /// The wall clock is behind the store's time, which does not go back.
    Behind(Duration),
}

/// By how much the wall clock and the store's time may differ and pass for the same: ordinary corrections are smaller.
pub(crate) const CLOCK_TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// What the wall clock looks like beside the store's time. `accepted_ahead` is how far the store's time was ahead when a
/// person last said that this is as it should be.
pub(crate) fn clock_state(time: TimestampMs, wall: TimestampMs, accepted_ahead: Duration) -> ClockState {
    let (ahead, behind) = (wall.since(time), time.since(wall));
    if ahead > CLOCK_TOLERANCE {
        ClockState::Ahead(ahead)
    } else if behind > accepted_ahead.saturating_add(CLOCK_TOLERANCE) {
        ClockState::Behind(behind)
    } else {
        ClockState::Good
    }
}

/// The store's time at open, from its persisted mark (zero in a new store) and the wall clock.
///
/// It never falls below the mark, so a clock that was set back re-opens nothing; and it leaps at most `leap_max`
/// ahead of the last time that was beyond doubt, so one that is years ahead forgets nothing, however often the store is
/// opened under it.
pub(crate) fn time_at_open(
    mark: TimestampMs,
    trusted: TimestampMs,
    wall: TimestampMs,
    leap_max: Duration,
) -> TimestampMs {
    if mark == TimestampMs(0) {
        return wall;
    }
    let furthest = trusted.saturating_add(leap_max).max(mark);
    wall.clamp(mark, furthest)
}

/// Whether a moment is beyond doubt: the wall clock of that moment and the store's time agreed.
pub(crate) fn is_trusted(time: TimestampMs, wall: TimestampMs) -> bool {
    clock_state(time, wall, Duration::ZERO) == ClockState::Good
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);
    const MARK: TimestampMs = TimestampMs(1_700_000_000_000);

    #[test]
    fn refusal_follows_replay_and_both_count_from_completion() {
        let retention = Retention { replay: Duration::from_millis(7), refuse: Duration::from_millis(30) };
        let found = deadlines(TimestampMs(100), retention, None);
        assert_eq!((found.replay_until, found.refuse_until), (TimestampMs(107), TimestampMs(137)));
    }

    #[test]
    fn a_reply_of_short_validity_ends_its_replay_early_and_a_long_one_lengthens_nothing() {
        let retention = Retention { replay: Duration::from_millis(7), refuse: Duration::from_millis(30) };
        for (validity, replay_until) in [(0, 100), (3, 103), (7, 107), (1_000, 107)] {
            let found = deadlines(TimestampMs(100), retention, Some(Duration::from_millis(validity)));
            assert_eq!((found.replay_until, found.refuse_until), (TimestampMs(replay_until), TimestampMs(137)));
            assert_eq!(found.allowed_until, Some(TimestampMs(100 + validity)));
        }
    }

    #[test]
    fn a_retention_that_overflows_keeps_for_ever() {
        let retention = Retention { replay: Duration::MAX, refuse: Duration::MAX };
        let Deadlines { replay_until, refuse_until, .. } = deadlines(MARK, retention, None);
        assert_eq!(phase(TimestampMs(u64::MAX - 1), replay_until, refuse_until), Phase::Replay);
    }

    #[test]
    fn a_zero_tier_is_skipped() {
        assert_eq!(phase(TimestampMs(5), TimestampMs(5), TimestampMs(9)), Phase::Refuse);
        assert_eq!(phase(TimestampMs(5), TimestampMs(5), TimestampMs(5)), Phase::Forgotten);
    }

    const GOOD: ClockState = ClockState::Good;

    fn open(mark: TimestampMs, trusted: TimestampMs, wall: TimestampMs) -> (TimestampMs, ClockState) {
        let time = time_at_open(mark, trusted, wall, 7 * DAY);
        (time, clock_state(time, wall, Duration::ZERO))
    }

    #[test]
    fn a_clock_that_stepped_back_does_not_take_the_store_with_it() {
        let wall = TimestampMs(MARK.0 - 3_600_000);
        assert_eq!(open(MARK, MARK, wall), (MARK, ClockState::Behind(Duration::from_secs(3600))));
    }

    #[test]
    fn a_store_that_is_ahead_of_the_wall_by_what_a_person_accepted_is_as_it_should_be() {
        let wall = TimestampMs(MARK.0 - 3_600_000);
        assert_eq!(clock_state(MARK, wall, Duration::from_secs(3600)), GOOD);
        let further = TimestampMs(wall.0 - 300_001);
        assert!(matches!(clock_state(MARK, further, Duration::from_secs(3600)), ClockState::Behind(_)));
    }

    #[test]
    fn a_small_step_back_is_nothing_unusual_and_changes_nothing() {
        assert_eq!(open(MARK, MARK, TimestampMs(MARK.0 - 1_000)), (MARK, GOOD));
    }

    #[test]
    fn a_clock_a_year_ahead_leaps_seven_days_at_most() {
        let wall = MARK.saturating_add(365 * DAY);
        assert_eq!(open(MARK, MARK, wall), (MARK.saturating_add(7 * DAY), ClockState::Ahead(358 * DAY)));
    }

    #[test]
    fn a_clock_a_year_ahead_does_not_leap_again_at_every_opening() {
        let wall = MARK.saturating_add(365 * DAY);
        let (first, _) = open(MARK, MARK, wall);
        let (second, state) = open(first, MARK, wall);
        assert_eq!(second, first);
        assert!(matches!(state, ClockState::Ahead(_)));
    }

    #[test]
    fn a_weekend_closed_is_followed_whole_and_a_new_store_takes_the_wall() {
        let wall = MARK.saturating_add(2 * DAY);
        assert_eq!(open(MARK, MARK, wall), (wall, GOOD));
        assert_eq!(open(TimestampMs(0), TimestampMs(0), wall), (wall, GOOD));
    }
}
