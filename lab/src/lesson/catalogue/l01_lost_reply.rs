//! 1: the reply is lost, and the client asks again.

use super::{CAST, DONE, UNKNOWN, atomic};
use crate::lesson::script::{Act, Fall, Lesson, Line, Point, Role, Trouble, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Placement};

const LOST: &str = "the reply to attempt 1 is lost";

pub(super) fn lesson() -> Lesson {
    Lesson {
        number: 1,
        name: "lost-reply",
        set_up: "Three replicas are up and stay up. A client pays 50 at A; A does it, and the answer is lost on its way \
                 back. The client hears nothing and asks A again, with the same key.",
        question: "Which fact would the server need, and where must it live?",
        answer: "That this very operation was executed, and with which result. It must be as durable as the effect, and \
                 become so in the same moment: in the same write.",
        replicas: 3,
        cast: CAST,
        falls: vec![Fall { name: LOST, after: Point::Sent(1), before: Point::Heard(1) }],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "nobody remembers anything",
            knobs: Knobs::placed(Placement::None),
            script: script(),
            executed: 2,
            found: false,
            told: vec![UNKNOWN, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "effect and receipt are one durable write; the retry gets the stored receipt",
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
        fault(Act::Arm(LOST, Trouble::LostReply(1))),
        always(Act::Send(1, Role::Executor)),
        fault(Act::Hit(LOST)),
        fault(Act::GiveUp(1)),
        always(Act::Hear(1)),
        always(Act::Count),
        always(Act::Ask(2, Role::Executor)),
        always(Act::Count),
    ]
}
