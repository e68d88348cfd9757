//! 6: an error is taken for a no.

use super::{CAST, DONE, REFUSED, UNKNOWN};
use crate::lesson::script::{Act, Fall, Gap, Lesson, Line, Point, Role, Turn, Variant, always, fault};
use crate::rules::knobs::{Knobs, NoMajority, Placement, Switch};

const CUT: &str = "the executor is cut off after its look and before its record";

pub(super) fn lesson() -> Lesson {
    let failed = |placement| Knobs { no_majority: NoMajority::Failed, ..Knobs::placed(placement) };
    let unknown = Knobs { catch_up_on_heal: Switch::On, ..Knobs::placed(Placement::MajorityCheckThenAct) };
    Lesson {
        number: 6,
        name: "no-majority-and-yet",
        set_up: "A asks a majority, is told that nobody knows the key, and is then cut off from B and C. It executes, its \
                 record reaches one disk of three, and it answers \"no majority: failed\". The client believes that \
                 nothing was done, and asks B with a new key.",
        question: "Is an error a no?",
        answer: "Only if it proves that nothing had begun. \"No majority\" after the effect is an unknown, and after an \
                 unknown the client asks again with the same key.",
        replicas: 3,
        cast: CAST,
        falls: vec![Fall { name: CUT, after: Point::Stands(1), before: Point::Heard(1) }],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "told \"failed\" of what was executed, the client did it again",
            knobs: failed(Placement::MajorityCheckThenAct),
            script: script(&[]),
            executed: 2,
            found: false,
            told: vec![REFUSED, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "the owner needs no majority; B cannot reach it and says that it does not know",
            knobs: failed(Placement::Atomic),
            script: script(&[]),
            executed: 1,
            found: true,
            told: vec![DONE, UNKNOWN, DONE],
        },
        more: vec![
            Variant {
                name: "half: same key, at A",
                turn: Turn::Half,
                shows: "the truth is told (unknown), the same key is asked where the record is",
                knobs: unknown,
                script: script(&[always(Act::Insist(2, Role::Executor))]),
                executed: 1,
                found: true,
                told: vec![UNKNOWN, DONE],
            },
            Variant {
                name: "half: same key, at B, healed",
                turn: Turn::Half,
                shows: "B has copied the record when the cut was healed",
                knobs: unknown,
                script: script(&[
                    fault(Act::Heal),
                    always(Act::HasRecord(Role::Forwarder)),
                    always(Act::Insist(2, Role::Forwarder)),
                ]),
                executed: 1,
                found: true,
                told: vec![UNKNOWN, DONE],
            },
            Variant {
                name: "half: same key, at B, early",
                turn: Turn::Half,
                shows: "the same key where the record is not yet: half a repair",
                knobs: unknown,
                script: script(&[always(Act::Insist(2, Role::Forwarder))]),
                executed: 2,
                found: false,
                told: vec![UNKNOWN, DONE],
            },
        ],
    }
}

/// Up to the answer of the executor, and then the client's next step: at the forwarder, unless another one is given.
fn script(then: &[Line]) -> Vec<Line> {
    let beginning = [
        always(Act::Count),
        fault(Act::Stop(1, Role::Executor, Gap::AfterLook)),
        always(Act::Send(1, Role::Executor)),
        fault(Act::Stands(1)),
        fault(Act::CutOff(Role::Executor)),
        fault(Act::Fell(CUT, Role::Executor)),
        fault(Act::Go(1)),
        always(Act::Hear(1)),
        always(Act::Count),
    ];
    let at_the_forwarder = [
        always(Act::Insist(2, Role::Forwarder)),
        fault(Act::Heal),
        always(Act::Ask(3, Role::Forwarder)),
        always(Act::Count),
    ];
    let then = if then.is_empty() { &at_the_forwarder } else { then };
    [&beginning, then].concat()
}
