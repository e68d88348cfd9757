//! 2: as the first, with a memory that dies between the attempts.

use super::{CAST, DONE, UNKNOWN, atomic};
use crate::lesson::script::{Act, Fall, Lesson, Line, Point, Role, Trouble, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Placement};

const LOST: &str = "the reply to attempt 1 is lost";
const KILLED: &str = "the executor is killed between the attempts";

pub(super) fn lesson() -> Lesson {
    Lesson {
        number: 2,
        name: "remembered-in-ram",
        set_up: "A now keeps a map of what it has done, in its memory. The reply to the first attempt is lost, and before \
                 the client asks again, A is killed with kill -9 and started again on the same disk. Two of three are up \
                 the whole time: a majority.",
        question: "What dies with a process?",
        answer: "Everything that is not on a disk: its maps, its locks, what it was about to do. A record of something \
                 durable has to be at least as durable.",
        replicas: 3,
        cast: CAST,
        falls: vec![
            Fall { name: LOST, after: Point::Sent(1), before: Point::Heard(1) },
            Fall { name: KILLED, after: Point::Heard(1), before: Point::Sent(2) },
        ],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "the record was in the memory of a process that is gone",
            knobs: Knobs::placed(Placement::Memory),
            script: script(),
            executed: 2,
            found: false,
            told: vec![UNKNOWN, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "the receipt is on the disk, and the new process finds it there",
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
        always(Act::Count),
        always(Act::Arm(LOST, Trouble::LostReply(1))),
        always(Act::Send(1, Role::Executor)),
        always(Act::Hit(LOST)),
        always(Act::GiveUp(1)),
        always(Act::Hear(1)),
        fault(Act::Kill(Role::Executor)),
        fault(Act::Fell(KILLED, Role::Executor)),
        always(Act::Count),
        fault(Act::Restart(Role::Executor)),
        always(Act::Ask(2, Role::Executor)),
        always(Act::Count),
    ]
}
