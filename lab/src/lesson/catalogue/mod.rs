//! The lessons, one file each. Each is data: a set-up, a script, the switches, and what its author says will come out.

mod l01_lost_reply;
mod l02_remembered_in_ram;
mod l03_crash_between;
mod l04_asked_the_wrong_one;
mod l05_two_majorities;
mod l06_no_majority_and_yet;
mod l07_same_name_empty_disk;
mod l08_the_sleeper;
mod l09_paused_is_not_dead;
mod l11_same_key_other_amount;

use super::script::{Cast, Lesson};
use crate::rules::{
    ids::ReplicaId,
    knobs::{Knobs, Placement},
    outcome::OutcomeKind,
};

const A: ReplicaId = ReplicaId::FIRST;
const B: ReplicaId = replica(2);
const C: ReplicaId = replica(3);
const D: ReplicaId = replica(4);
const E: ReplicaId = replica(5);

const fn replica(number: u8) -> ReplicaId {
    match ReplicaId::new(number) {
        Some(replica) => replica,
        None => panic!("a replica of a lesson is one of nine"),
    }
}

const DONE: OutcomeKind = OutcomeKind::Done;
const REFUSED: OutcomeKind = OutcomeKind::Refused;
const UNKNOWN: OutcomeKind = OutcomeKind::Unknown;
const MISMATCH: OutcomeKind = OutcomeKind::Mismatch;

/// The usual three.
const CAST: Cast = Cast { executor: A, forwarder: B, bystander: C };

fn atomic() -> Knobs {
    Knobs::placed(Placement::Atomic)
}

/// All lessons, in the order of the curriculum.
#[must_use]
pub fn lessons() -> Vec<Lesson> {
    vec![
        l01_lost_reply::lesson(),
        l02_remembered_in_ram::lesson(),
        l03_crash_between::lesson(),
        l04_asked_the_wrong_one::lesson(),
        l05_two_majorities::lesson(),
        l06_no_majority_and_yet::lesson(),
        l07_same_name_empty_disk::lesson(),
        l08_the_sleeper::lesson(),
        l09_paused_is_not_dead::lesson(),
        l11_same_key_other_amount::lesson(),
    ]
}

/// A lesson by its name or number.
///
/// # Errors
///
/// A line that lists the names.
pub fn find(name: &str) -> Result<Lesson, String> {
    let lessons = lessons();
    let known = |lesson: &&Lesson| lesson.name == name || lesson.number.to_string() == name;
    match lessons.iter().find(known) {
        Some(lesson) => Ok(lesson.clone()),
        None => {
            let names: Vec<&str> = lessons.iter().map(|lesson| lesson.name).collect();
            Err(format!("there is no lesson {name:?}; there are: {}", names.join(", ")))
        }
    }
}
