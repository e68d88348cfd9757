//! 11: the same key with another amount.

use super::{CAST, DONE, MISMATCH, atomic};
use crate::lesson::script::{Act, Fall, Lesson, Line, Point, Role, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, Mismatch};

const OTHER: &str = "the second request has another amount";

pub(super) fn lesson() -> Lesson {
    let rule = |mismatch| Knobs { mismatch, ..atomic() };
    Lesson {
        number: 11,
        name: "same-key-other-amount",
        set_up: "A client pays 50, and is told that it is done. Then a second request comes with the same key and 500: a \
                 mistake in the client, or somebody who reuses keys. All three replicas are up, and the record is \
                 durable and found.",
        question: "Which would you want at your bank?",
        answer: "The one that refuses. Two payments and a silently missing one are both wrong, and only a refusal tells \
                 somebody that a program is wrong. So a record must hold what was asked, or a digest of it.",
        replicas: 3,
        cast: CAST,
        falls: vec![Fall { name: OTHER, after: Point::Heard(1), before: Point::Sent(2) }],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "ignore: the amount is part of the identity, so both are paid",
            knobs: rule(Mismatch::Ignore),
            script: script(),
            executed: 2,
            found: false,
            told: vec![DONE, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "refuse: the client is told that its key stands for 50",
            knobs: rule(Mismatch::Refuse),
            script: script(),
            executed: 1,
            found: true,
            told: vec![DONE, MISMATCH],
        },
        more: vec![Variant {
            name: "the old answer",
            turn: Turn::Harm,
            shows: "the receipt for 50 is given to whoever wanted 500: a silent lie",
            knobs: rule(Mismatch::OldAnswer),
            script: script(),
            executed: 1,
            found: true,
            told: vec![DONE, DONE],
        }],
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Count),
        always(Act::Ask(1, Role::Executor)),
        fault(Act::OtherAmount(500)),
        fault(Act::Fell(OTHER, Role::Executor)),
        always(Act::Insist(2, Role::Executor)),
        always(Act::Count),
    ]
}
