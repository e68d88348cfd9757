//! News that arrives by itself: compared with what is known, whatever came first.

use super::state::Phase;

/// What news says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Applied,
    Refused,
    /// Still under way, or nothing known: it settles nothing.
    Open,
}

/// News beside a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// It settles an effect that is not final.
    Settles,
    /// It says what is known, or nothing.
    Agrees,
    /// It says the opposite of a final state.
    Contradicts,
}

/// Compares news with a state. Final states are final: the first authoritative outcome has won.
pub(crate) const fn compare(phase: Phase, news: News) -> Comparison {
    match (phase, news) {
        (_, News::Open) | (Phase::Applied, News::Applied) | (Phase::Refused, News::Refused) => Comparison::Agrees,
        (Phase::Applied, News::Refused) | (Phase::Refused, News::Applied) => Comparison::Contradicts,
        (
            Phase::Planned { .. } | Phase::Sending { .. } | Phase::Uncertain { .. } | Phase::Parked,
            News::Applied | News::Refused,
        ) => Comparison::Settles,
    }
}

/// What becomes of a callback that belongs to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// It moves the effect to its final state, or says that it is under way.
    Applied,
    /// Older than what is known, or nothing new.
    Stale,
    Disputed,
}

/// Decides a callback. `order` is the provider's own order of its news, `known` that of the newest one received.
pub(crate) fn receive(phase: Phase, news: News, order: Option<u64>, known: Option<u64>) -> Receipt {
    if let (Some(order), Some(known)) = (order, known)
        && order <= known
    {
        return Receipt::Stale;
    }
    match compare(phase, news) {
        Comparison::Settles => Receipt::Applied,
        Comparison::Agrees if phase.is_final() => Receipt::Stale,
        Comparison::Agrees => Receipt::Applied,
        Comparison::Contradicts => Receipt::Disputed,
    }
}
