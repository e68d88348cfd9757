//! 5: two majorities that share a member.

use super::{A, B, C, D, DONE, E, atomic};
use crate::lesson::script::{Act, Cast, Fall, Gap, Lesson, Line, Point, Role, Trouble, Turn, Variant, always, fault};
use crate::rules::ids::ReplicaId;
use crate::rules::knobs::{Knobs, Placement};

const BOTH: &str = "both have looked, and neither has written";

const NOT_OF_A: &[ReplicaId] = &[D, E];
const NOT_OF_E: &[ReplicaId] = &[A, B];

pub(super) fn lesson() -> Lesson {
    Lesson {
        number: 5,
        name: "two-majorities",
        set_up: "Of five replicas, A asks A, B and C whether they know the key: nobody does, and three of five are a \
                 majority. The client hears nothing yet and asks E, who asks C, D and E: again a majority that knows \
                 nothing, and C is in both. Then both go on.",
        question: "They share a member: why did it not help?",
        answer: "Both looks came before both writes, and each effect before its record. C told the truth twice. Asking \
                 and then acting are two steps, and a majority does not make them one.",
        replicas: 5,
        cast: Cast { executor: A, forwarder: E, bystander: C },
        falls: vec![Fall { name: BOTH, after: Point::Stands(1), before: Point::Heard(1) }],
        lamps: None,
        broken: Variant {
            name: "broken",
            turn: Turn::Harm,
            shows: "two quorums of three, one shared member, and two executions",
            knobs: Knobs::placed(Placement::MajorityCheckThenAct),
            script: script(),
            executed: 2,
            found: false,
            told: vec![DONE, DONE],
        },
        repaired: Variant {
            name: "repaired",
            turn: Turn::Repair,
            shows: "one conditional durable write, together with the mutation",
            knobs: atomic(),
            script: script(),
            executed: 1,
            found: true,
            told: vec![DONE, DONE],
        },
        more: Vec::new(),
    }
}

fn script() -> Vec<Line> {
    vec![
        always(Act::Count),
        always(Act::Arm("A does not reach D and E", Trouble::LostLooks(Role::Executor, NOT_OF_A))),
        always(Act::Arm("E does not reach A and B", Trouble::LostLooks(Role::Forwarder, NOT_OF_E))),
        fault(Act::Stop(1, Role::Executor, Gap::AfterLook)),
        fault(Act::Stop(2, Role::Forwarder, Gap::AfterLook)),
        always(Act::Send(1, Role::Executor)),
        fault(Act::Stands(1)),
        always(Act::Send(2, Role::Forwarder)),
        fault(Act::Stands(2)),
        fault(Act::Fell(BOTH, Role::Bystander)),
        always(Act::Count),
        fault(Act::Go(1)),
        always(Act::Hear(1)),
        fault(Act::Go(2)),
        always(Act::Hear(2)),
        always(Act::Count),
    ]
}
