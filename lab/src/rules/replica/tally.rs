//! Counting who is for, who is against, and who can still change it.

use std::collections::BTreeSet;

use crate::rules::{ids::ReplicaId, majority::Members};

/// Votes of the configured members. Each member counts once, whatever it says twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    yes: BTreeSet<ReplicaId>,
    no: BTreeSet<ReplicaId>,
}

/// What the count has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    /// A majority of the configured members.
    Reached,
    /// Too many have said no or nothing: it cannot be reached any more.
    OutOfReach,
    /// It depends on who has not answered yet.
    Open,
}

impl Tally {
    pub(super) fn cast(&mut self, who: ReplicaId, yes: bool) {
        let votes = if yes { &mut self.yes } else { &mut self.no };
        votes.insert(who);
    }

    pub(super) fn counted(&self) -> u8 {
        u8::try_from(self.yes.len()).unwrap_or(u8::MAX)
    }

    pub(super) fn count(&self, members: Members) -> Count {
        let left = usize::from(members.configured()).saturating_sub(self.no.len());
        match () {
            () if members.is_majority(self.yes.len()) => Count::Reached,
            () if !members.is_majority(left) => Count::OutOfReach,
            () => Count::Open,
        }
    }
}
