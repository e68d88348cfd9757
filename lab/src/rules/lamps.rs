//! Four lamps for each replica, because "up" is four different things.
//!
//! A paused process exists, and its kernel still accepts connections on its behalf; it answers nothing and writes
//! nothing. Whoever looks at one lamp and calls it "up" has not said which question was asked. So each lamp also says who
//! measured it, when, and how long that took.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::{Endpoint, Millis, ReplicaId},
    majority::Members,
    record::{DiskIdentity, Standing},
    word::words,
};

words! {
    /// One of the four questions.
    pub enum Lamp, "lamp" {
        /// Is there a process? Asked of the operating system.
        Exists = "exists",
        /// Does a TCP connection come about? Its kernel says yes for a process that is paused.
        Accepts = "accepts",
        /// Does it answer a ping in time?
        Answers = "answers",
        /// Does it complete a durable write in time?
        Writes = "writes",
    }
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// What came out.
    pub lit: bool,
    /// Who asked.
    pub by: Endpoint,
    /// When the answer came, or waiting ended.
    pub at: Millis,
    /// How long that took.
    pub took_ms: u64,
}

/// What is known of one replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Which.
    pub replica: ReplicaId,
    /// Its lamps. One that is missing was not measured, which is not the same as dark.
    pub lamps: BTreeMap<Lamp, Measured>,
    /// Whether the lab itself has paused it.
    pub paused: bool,
    /// Which disk it runs on, if it could be asked.
    pub disk: Option<DiskIdentity>,
    /// How many records lie on that disk, of the lab's own and the store's receipts together.
    pub records: Option<u64>,
    /// Which others it reaches, as it says. Nobody knows that from outside: a cut may have one direction only.
    pub sees: Option<BTreeSet<ReplicaId>>,
}

impl ReplicaStatus {
    /// A lamp, unless it was not measured or too long ago.
    pub fn lamp(&self, lamp: Lamp, now: Millis, fresh_ms: u64) -> Light {
        match self.lamps.get(&lamp) {
            Some(measured) if now.since(measured.at) > fresh_ms => Light::NotMeasured,
            Some(Measured { lit: true, .. }) => Light::Lit,
            Some(_) => Light::Dark,
            None => Light::NotMeasured,
        }
    }
}

words! {
    /// What a lamp shows.
    pub enum Light, "light" {
        /// Yes.
        Lit = "yes",
        /// No, or not in time.
        Dark = "no",
        /// Nobody has asked lately. Counted as nothing.
        NotMeasured = "not measured",
    }
}

/// One count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// By which lamp.
    pub lamp: Lamp,
    /// How many show it.
    pub count: u8,
    /// Whether that is a majority of the configured members.
    pub majority: bool,
}

/// A disk that does not hold what its name once held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyName {
    /// The name.
    pub replica: ReplicaId,
    /// How many records lie on its disk.
    pub holds: u64,
    /// How many lie on the fullest disk.
    pub of: u64,
    /// Whether it has caught up all the same.
    pub standing: Standing,
}

/// Two members of which one reaches the other, and not the other way round, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotSeen {
    /// Who does not reach.
    pub from: ReplicaId,
    /// Whom.
    pub to: ReplicaId,
}

/// The status of the lab, as it is read out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// How many are configured. This is what is counted against.
    pub configured: u8,
    /// How many are a majority.
    pub majority: u8,
    /// One count for each lamp: four numbers for one word.
    pub counts: Vec<Counted>,
    /// Disks that are not the ones that their names began with.
    pub replaced: Vec<EmptyName>,
    /// Who does not see whom.
    pub unseen: Vec<NotSeen>,
}

/// What every status ends with.
pub const A_COUNT_AND_NOTHING_MORE: &str = "This is a count and nothing more. A majority that is up is not a transaction, not consensus, and not \
     exactly-once execution: ask where the durable record of your operation is.";

/// Adds the lamps up. Members of which nothing is known count as not there: the majority is of the configured ones.
pub fn summarize(members: Members, now: Millis, fresh_ms: u64, replicas: &[ReplicaStatus]) -> Summary {
    let known = || replicas.iter().filter(|one| members.contains(one.replica));
    let count = |lamp: Lamp| {
        let lit: BTreeSet<ReplicaId> =
            known().filter(|one| one.lamp(lamp, now, fresh_ms) == Light::Lit).map(|one| one.replica).collect();
        let count = u8::try_from(lit.len()).unwrap_or(u8::MAX);
        Counted { lamp, count, majority: members.is_majority(lit.len()) }
    };
    let fullest = known().filter_map(|one| one.records).max().unwrap_or(0);
    let replaced = known().filter_map(|one| {
        let disk = one.disk.as_ref().filter(|disk| disk.standing != Standing::Founding)?;
        Some(EmptyName { replica: one.replica, holds: one.records?, of: fullest, standing: disk.standing })
    });
    let unseen = known().flat_map(|one| {
        let sees = one.sees.clone();
        let others = members.others(one.replica);
        others.filter_map(move |to| {
            let unseen = sees.as_ref().is_some_and(|sees| !sees.contains(&to));
            unseen.then_some(NotSeen { from: one.replica, to })
        })
    });
    Summary {
        configured: members.configured(),
        majority: members.majority(),
        counts: Lamp::ALL.iter().copied().map(count).collect(),
        replaced: replaced.collect(),
        unseen: unseen.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Lamp, Measured, ReplicaStatus, summarize};
    use crate::rules::{
        ids::{Endpoint, IncarnationId, Millis, ReplicaId},
        majority::Members,
        record::{DiskIdentity, Standing},
    };

    const NOW: Millis = Millis(10_000);

    fn replica(number: u8, lit: &[Lamp]) -> ReplicaStatus {
        let measured =
            |lamp: &Lamp| Measured { lit: lit.contains(lamp), by: Endpoint::Supervisor, at: NOW, took_ms: 1 };
        ReplicaStatus {
            replica: ReplicaId::new(number).expect("a number from 1 to 9"),
            lamps: Lamp::ALL.iter().map(|lamp| (*lamp, measured(lamp))).collect(),
            paused: false,
            disk: None,
            records: None,
            sees: None,
        }
    }

    fn counts(members: u8, replicas: &[ReplicaStatus]) -> Vec<(u8, bool)> {
        let summary = summarize(Members::new(members).expect("1 to 9"), NOW, 1_000, replicas);
        summary.counts.iter().map(|counted| (counted.count, counted.majority)).collect()
    }

    #[test]
    fn lesson_9_one_of_three_is_paused_and_one_word_has_four_numbers() {
        let paused = replica(3, &[Lamp::Exists, Lamp::Accepts]);
        let replicas = [replica(1, Lamp::ALL), replica(2, Lamp::ALL), paused];
        assert_eq!(counts(3, &replicas), [(3, true), (3, true), (2, true), (2, true)]);
    }

    #[test]
    fn four_members_split_two_and_two_have_no_majority_on_either_side() {
        assert_eq!(counts(4, &[replica(1, Lamp::ALL), replica(2, Lamp::ALL)])[3], (2, false));
    }

    #[test]
    fn a_measurement_that_is_too_old_and_one_of_a_stranger_count_for_nothing() {
        let mut old = replica(1, Lamp::ALL);
        for measured in old.lamps.values_mut() {
            measured.at = Millis(8_999);
        }
        assert_eq!(counts(3, &[old, replica(7, Lamp::ALL)]), [(0, false); 4]);
    }

    #[test]
    fn the_same_replica_reported_twice_counts_once() {
        assert_eq!(counts(3, &[replica(1, Lamp::ALL), replica(1, Lamp::ALL)])[0], (1, false));
    }

    #[test]
    fn a_name_with_another_disk_says_how_much_it_holds_of_how_much() {
        let (mut full, mut empty) = (replica(1, Lamp::ALL), replica(2, Lamp::ALL));
        (full.records, empty.records) = (Some(7), Some(0));
        let incarnation = IncarnationId("2nd".to_owned());
        empty.disk = Some(DiskIdentity { incarnation, born_at: NOW, standing: Standing::Behind });
        let summary = summarize(Members::new(3).unwrap(), NOW, 1_000, &[full, empty]);
        let [replaced] = summary.replaced.as_slice() else { panic!("one disk was replaced: {summary:?}") };
        assert_eq!((replaced.replica.letter(), replaced.holds, replaced.of), ('B', 0, 7));
    }

    #[test]
    fn who_does_not_see_whom_has_a_direction() {
        let mut b = replica(2, Lamp::ALL);
        b.sees = Some([ReplicaId::FIRST].into());
        let mut a = replica(1, Lamp::ALL);
        a.sees = Some([2, 3].into_iter().filter_map(ReplicaId::new).collect());
        let summary = summarize(Members::new(3).unwrap(), NOW, 1_000, &[a, b]);
        let unseen: Vec<(char, char)> = summary.unseen.iter().map(|one| (one.from.letter(), one.to.letter())).collect();
        assert_eq!(unseen, [('B', 'C')]);
    }
}
