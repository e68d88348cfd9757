//! 8: a check is as old as the sleep that follows it.

use super::{C, CAST, DONE, REFUSED};
use crate::lesson::script::{Act, Fall, Gap, Lesson, Line, Point, Role, Turn, Variant, always, fault};
use crate::rules::knobs::{Identity, Knobs, Placement};

const PAUSED: &str = "A is paused behind its check";

pub(super) fn lesson() -> Lesson {
    let placed = |placement| Knobs { owner: C, ..Knobs::placed(placement) };
    let without_key = |placement| Knobs { identity: Identity::PerAttempt, ..placed(placement) };
    Lesson {
        number: 8,
        name: "the-sleeper",
        set_up: "A asks a majority, nobody knows the key, and before it acts it falls asleep: a long garbage collection, a \
                 suspended machine. The client hears nothing and asks B, who takes over and executes. Then A wakes up, \
                 knows nothing of the time between, and goes on.",
        question: "Would checking more often help?",
        answer: "No: between the last check and the act there is always room for a sleep. The check has to be part of the \
                 write, at the place that is written to.",
        replicas: 3,
        cast: CAST,
        falls: vec![Fall { name: PAUSED, after: Point::Stands(1), before: Point::Sent(2) }],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "A acted on an answer that was true before it slept",
            knobs: placed(Placement::MajorityCheckThenAct),
            script: script(),
            executed: 2,
            found: false,
            told: vec![DONE, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "the keeper refuses A's old epoch in the same write; A is told that it is stale",
            knobs: placed(Placement::AtomicFenced),
            script: script(),
            executed: 1,
            found: true,
            told: vec![DONE, DONE],
        },
        more: vec![
            Variant {
                name: "no key, one owner",
                turn: Turn::Beside,
                shows: "work without a key: one owner alone does it twice",
                knobs: without_key(Placement::Atomic),
                script: script(),
                executed: 2,
                found: false,
                told: vec![DONE, DONE],
            },
            Variant {
                name: "no key, fenced",
                turn: Turn::Beside,
                shows: "work without a key: the fence is what stops the sleeper",
                knobs: without_key(Placement::AtomicFenced),
                script: script(),
                executed: 1,
                found: false,
                told: vec![REFUSED, DONE],
            },
        ],
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Count),
        always(Act::TakeOver(Role::Executor)),
        fault(Act::Stop(1, Role::Executor, Gap::AfterLook)),
        always(Act::Send(1, Role::Executor)),
        fault(Act::Stands(1)),
        fault(Act::Pause(Role::Executor)),
        fault(Act::Fell(PAUSED, Role::Executor)),
        always(Act::Count),
        fault(Act::TakeOver(Role::Forwarder)),
        always(Act::Ask(2, Role::Forwarder)),
        fault(Act::Go(1)),
        fault(Act::Resume(Role::Executor)),
        always(Act::Hear(1)),
        always(Act::Count),
    ]
}
