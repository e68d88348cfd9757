//! 3: killed between two writes, in both orders.

use super::{CAST, DONE, UNKNOWN, atomic};
use crate::lesson::script::{Act, Fall, Gap, Lesson, Line, Point, Role, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Order, Placement};

const KILLED: &str = "the executor is killed between the two writes";

pub(super) fn lesson() -> Lesson {
    let local = Knobs::placed(Placement::Local);
    Lesson {
        number: 3,
        name: "crash-between",
        set_up: "A writes the effect to its disk and waits for it, then writes the record to the same disk and waits for \
                 that. Between the two it is killed with kill -9 and started again. The client, who lost its connection, \
                 asks again with the same key.",
        question: "Is there a safe order of two writes?",
        answer: "No. Effect first does it twice, record first never does it and says \"done\"; each order only chooses \
                 which harm it is. The way out is one write for both.",
        replicas: 3,
        cast: CAST,
        falls: vec![Fall { name: KILLED, after: Point::Stands(1), before: Point::Sent(2) }],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "effect first: the disk holds the effect and no record of it",
            knobs: local,
            script: script(),
            executed: 2,
            found: false,
            told: vec![UNKNOWN, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "one write has no middle to be killed in",
            knobs: atomic(),
            script: script(),
            executed: 1,
            found: true,
            told: vec![UNKNOWN, DONE],
        },
        more: vec![Variant {
            name: "3b: record first",
            turn: Turn::Harm,
            shows: "the record says \"done\" of something that never happened: lost",
            knobs: Knobs { order: Order::RecordFirst, ..local },
            script: script(),
            executed: 0,
            found: true,
            told: vec![UNKNOWN, DONE],
        }],
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Count),
        fault(Act::Stop(1, Role::Executor, Gap::BetweenWrites)),
        always(Act::Send(1, Role::Executor)),
        fault(Act::Stands(1)),
        fault(Act::Kill(Role::Executor)),
        fault(Act::Fell(KILLED, Role::Executor)),
        always(Act::Hear(1)),
        always(Act::Count),
        fault(Act::Restart(Role::Executor)),
        always(Act::Ask(2, Role::Executor)),
        always(Act::Count),
    ]
}
