//! 7: the same name with an empty disk.

use super::{A, B, C, DONE, REFUSED, UNKNOWN};
use crate::lesson::script::{Act, Cast, Fall, Lesson, Line, Point, Role, Trouble, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Placement, Switch};

const LOST: &str = "the reply to attempt 1 is lost";
const COPY: &str = "the copy of the record to C is lost";
const WIPED: &str = "B gets an empty disk";
const PAUSED: &str = "A is paused";

pub(super) fn lesson() -> Lesson {
    let names = Knobs::placed(Placement::MajorityCheckThenAct);
    Lesson {
        number: 7,
        name: "same-name-empty-disk",
        set_up: "The record is on the disks of A and B: a majority. B's machine is replaced: it comes back under the same \
                 name with an empty disk, while A is paused. The client asks C, and C asks a majority: B and itself.",
        question: "Did we count names, processes or disks?",
        answer: "Names. The majority that was written and the one that was asked share B, and B was two disks. A vote \
                 belongs to a disk that has not been replaced, or has caught up from a counted majority of others.",
        replicas: 3,
        cast: Cast { executor: A, forwarder: C, bystander: B },
        falls: vec![
            Fall { name: LOST, after: Point::Sent(1), before: Point::Heard(1) },
            Fall { name: COPY, after: Point::Sent(1), before: Point::Heard(1) },
            Fall { name: WIPED, after: Point::Heard(1), before: Point::Sent(2) },
            Fall { name: PAUSED, after: Point::Heard(1), before: Point::Sent(2) },
        ],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "an empty disk says \"not found\", and its name makes that a vote",
            knobs: names,
            script: script(),
            executed: 2,
            found: false,
            told: vec![UNKNOWN, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "the replaced disk has no vote: unavailable while A is paused, and then 1",
            knobs: Knobs { incarnation: Switch::On, ..names },
            script: script(),
            executed: 1,
            found: true,
            told: vec![UNKNOWN, REFUSED, DONE],
        },
        more: Vec::new(),
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Count),
        always(Act::Arm(COPY, Trouble::LostCopies(Role::Forwarder))),
        always(Act::Arm(LOST, Trouble::LostReply(1))),
        always(Act::Send(1, Role::Executor)),
        always(Act::Hit(LOST)),
        always(Act::Hit(COPY)),
        always(Act::GiveUp(1)),
        always(Act::Hear(1)),
        fault(Act::Kill(Role::Bystander)),
        fault(Act::Wipe(Role::Bystander)),
        fault(Act::Fell(WIPED, Role::Bystander)),
        // It comes back when A is paused already: it is to find nobody whom it could copy from.
        fault(Act::Pause(Role::Executor)),
        fault(Act::Fell(PAUSED, Role::Executor)),
        fault(Act::Restart(Role::Bystander)),
        always(Act::Count),
        always(Act::Ask(2, Role::Forwarder)),
        fault(Act::Resume(Role::Executor)),
        always(Act::Ask(3, Role::Forwarder)),
        always(Act::Count),
    ]
}
