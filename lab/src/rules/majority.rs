//! The counted majority: of the configured members, never of the live ones.
//!
//! Counting the live ones is the classic mistake: after a split of four, both halves of two would be "all that are
//! there". With a count of the configured ones, two of four is not a majority on either side.

use serde::{Deserialize, Serialize};

use crate::rules::ids::{REPLICAS_MAX, ReplicaId};

/// How many of `configured` members are a majority: half of them, rounded down, and one.
pub const fn majority(configured: u8) -> u8 {
    configured / 2 + 1
}

/// The configured members. It never changes while the lab runs: who is dead or away still counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Members(u8);

/// There are 1 to 9 members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} replicas cannot be: from 1 to 9")]
pub struct NotMembers(pub u8);

impl Members {
    /// A, B, C and so on.
    pub const fn new(count: u8) -> Result<Self, NotMembers> {
        if count >= 1 && count <= REPLICAS_MAX { Ok(Self(count)) } else { Err(NotMembers(count)) }
    }

    /// How many are configured.
    pub const fn configured(self) -> u8 {
        self.0
    }

    /// How many are a majority.
    pub const fn majority(self) -> u8 {
        majority(self.0)
    }

    /// Whether so many are a majority.
    pub const fn is_majority(self, count: usize) -> bool {
        count >= self.majority() as usize
    }

    /// Whether a replica is one of them.
    pub const fn contains(self, replica: ReplicaId) -> bool {
        replica.number() <= self.0
    }

    /// All of them.
    pub fn iter(self) -> impl Iterator<Item = ReplicaId> {
        (1..=self.0).filter_map(ReplicaId::new)
    }

    /// All but one.
    pub fn others(self, me: ReplicaId) -> impl Iterator<Item = ReplicaId> {
        self.iter().filter(move |one| *one != me)
    }
}

impl TryFrom<u8> for Members {
    type Error = NotMembers;

    fn try_from(count: u8) -> Result<Self, NotMembers> {
        Self::new(count)
    }
}

impl From<Members> for u8 {
    fn from(members: Members) -> Self {
        members.configured()
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, majority};

    #[test]
    fn a_majority_is_more_than_half_of_the_configured_members() {
        let counted: Vec<u8> = (1..=9).map(majority).collect();
        assert_eq!(counted, [1, 2, 2, 3, 3, 4, 4, 5, 5]);
    }

    #[test]
    fn two_of_four_are_no_majority_and_two_majorities_always_share_a_member() {
        assert!(!Members::new(4).unwrap().is_majority(2));
        for configured in 1..=9 {
            assert!(2 * majority(configured) > configured);
        }
    }

    #[test]
    fn there_are_one_to_nine_members() {
        assert!(Members::new(0).is_err() && Members::new(10).is_err());
        let letters: String = Members::new(9).unwrap().iter().map(|one| one.letter()).collect();
        assert_eq!(letters, "ABCDEFGHI");
    }
}
