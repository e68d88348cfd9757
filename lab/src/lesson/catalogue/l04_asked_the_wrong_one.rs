//! 4: written to a majority, read from one.

use super::{A, B, C, DONE, UNKNOWN, atomic};
use crate::lesson::script::{Act, Cast, Fall, Lesson, Line, Point, Role, Trouble, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Placement};

const LOST: &str = "the reply to attempt 1 is lost";
const COPY: &str = "the copy of the record to C waits on the way";

pub(super) fn lesson() -> Lesson {
    Lesson {
        number: 4,
        name: "asked-the-wrong-one",
        set_up: "Every record goes to all three, and A answers when a counted majority has it on disk. This time A and B \
                 have it, the copy to C is still on its way, and the answer to the client is lost. The client asks C, \
                 and C looks at its own disk.",
        question: "W + R > N: which number was wrong?",
        answer: "R. Two were written and one was read: 2 + 1 is not more than 3. Reading two mends this one, and the next \
                 lesson shows what it does not mend.",
        replicas: 3,
        cast: Cast { executor: A, forwarder: C, bystander: B },
        falls: vec![
            Fall { name: LOST, after: Point::Sent(1), before: Point::Heard(1) },
            Fall { name: COPY, after: Point::Sent(1), before: Point::Heard(1) },
        ],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "the record is on a majority of disks, and the one that is asked is not among them",
            knobs: Knobs::placed(Placement::MajorityReadOne),
            script: script(),
            executed: 2,
            found: false,
            told: vec![UNKNOWN, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "C hands the request to the owner, where the receipt is",
            knobs: atomic(),
            script: script(),
            executed: 1,
            found: true,
            told: vec![UNKNOWN, DONE],
        },
        more: vec![Variant {
            name: "half: reading two",
            turn: Turn::Half,
            shows: "C asks the others too, and one of any two that answer has the record",
            knobs: Knobs::placed(Placement::MajorityCheckThenAct),
            script: script(),
            executed: 1,
            found: true,
            told: vec![UNKNOWN, DONE],
        }],
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Count),
        fault(Act::Arm(COPY, Trouble::HeldCopies(Role::Forwarder))),
        fault(Act::Arm(LOST, Trouble::LostReply(1))),
        always(Act::Send(1, Role::Executor)),
        fault(Act::Hit(LOST)),
        fault(Act::Hit(COPY)),
        fault(Act::GiveUp(1)),
        always(Act::Hear(1)),
        always(Act::Count),
        always(Act::Ask(2, Role::Forwarder)),
        always(Act::Count),
    ]
}
