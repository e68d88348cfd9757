//! 9: one word, four numbers, and none of them is about the operation.

use super::{CAST, DONE, UNKNOWN, atomic};
use crate::lesson::script::{Act, Fall, Lesson, Line, Point, Role, Trouble, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Placement};

const LOST: &str = "the reply to attempt 1 is lost";
const PAUSED: &str = "C is paused";

pub(super) fn lesson() -> Lesson {
    Lesson {
        number: 9,
        name: "paused-is-not-dead",
        set_up: "A executes and its reply is lost. C is paused: its process exists and its system goes on accepting \
                 connections for it. Four lamps are read (exists, accepts, answers, writes), somebody says \"all three \
                 are up\", and the client asks B again.",
        question: "Who measured what, when?",
        answer: "\"Up\" is four questions with four numbers, 3, 3, 2 and 2, and each is already old. None says what became \
                 of the operation: ask for the record, not the lamp.",
        replicas: 3,
        cast: CAST,
        falls: vec![
            Fall { name: LOST, after: Point::Sent(1), before: Point::Heard(1) },
            Fall { name: PAUSED, after: Point::Heard(1), before: Point::Sent(2) },
        ],
        lamps: Some([3, 3, 2, 2]),
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "the lamps were read, and the record was not asked for",
            knobs: Knobs::placed(Placement::Local),
            script: script(),
            executed: 2,
            found: false,
            told: vec![UNKNOWN, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "the same four numbers; B asks the owner for the record",
            knobs: atomic(),
            script: script(),
            executed: 1,
            found: true,
            told: vec![UNKNOWN, DONE],
        },
        more: Vec::new(),
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Arm(LOST, Trouble::LostReply(1))),
        always(Act::Send(1, Role::Executor)),
        always(Act::Hit(LOST)),
        always(Act::GiveUp(1)),
        always(Act::Hear(1)),
        fault(Act::Pause(Role::Bystander)),
        fault(Act::Fell(PAUSED, Role::Bystander)),
        always(Act::Count),
        always(Act::Ask(2, Role::Forwarder)),
        fault(Act::Resume(Role::Bystander)),
    ]
}
