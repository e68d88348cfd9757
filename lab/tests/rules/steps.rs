//! The table of placements, step by step, and what each failure is called: before the effect *refused*, after it
//! *unknown*.

use counterfoil_lab::rules::{
    action::{Action, DiskCommand, Note, StepMark},
    barrier::Barrier,
    event::{CallFailure, DiskDone, Event},
    ids::{Amount, Attempt, CallId, Endpoint, Epoch, IncarnationId, IntentId, Millis, OpId, ReplicaId, SealedIntent},
    knobs::{EffectPlace, Knobs, NoMajority, Order, Placement, ProviderIdentity, Switch},
    majority::Members,
    message::{Message, ProviderReply, Reply},
    outcome::{Outcome, OutcomeKind, Refused, Unknown},
    plan::{self, Needs, Step},
    record::{DiskIdentity, Request, Standing},
    replica::{Patience, Replica},
};

use crate::world::{A, World, b, c};

fn words(steps: &[Step]) -> String {
    steps.iter().map(|step| step.word()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_table_of_placements_is_what_is_printed_on_the_wall() {
    let row = |placement, order, effect, provider| {
        words(&plan::steps(&Knobs { order, effect, provider, ..Knobs::placed(placement) }, A))
    };
    let inside = |placement| row(placement, Order::EffectFirst, EffectPlace::Inside, ProviderIdentity::None);
    assert_eq!(inside(Placement::None), "effect");
    assert_eq!(inside(Placement::Memory), "look-in-map effect put-in-map");
    assert_eq!(inside(Placement::Local), "look-on-disk effect record-on-disk");
    assert_eq!(inside(Placement::MajorityReadOne), "look-on-disk effect record-to-all");
    assert_eq!(inside(Placement::MajorityCheckThenAct), "ask-majority effect record-to-all");
    assert_eq!(inside(Placement::Atomic), "execute");
    assert_eq!(inside(Placement::AtomicFenced), "look-at-keeper execute-at-keeper");
    assert_eq!(inside(Placement::Provider), "call-provider");
    assert_eq!(words(&plan::steps(&Knobs::placed(Placement::Atomic), b())), "forward");

    let outside = |placement, order| row(placement, order, EffectPlace::Outside, ProviderIdentity::LookUp);
    assert_eq!(outside(Placement::None, Order::EffectFirst), "look-up call-provider");
    assert_eq!(outside(Placement::Atomic, Order::EffectFirst), "look-at-receipts intend look-up call-provider execute");
    assert_eq!(outside(Placement::Atomic, Order::RecordFirst), "look-at-receipts execute look-up call-provider");
    assert_eq!(outside(Placement::Local, Order::RecordFirst), "look-on-disk record-on-disk look-up call-provider");
}

fn all_knobs() -> impl Iterator<Item = Knobs> {
    Placement::ALL.iter().flat_map(|placement| {
        Order::ALL.iter().flat_map(|order| {
            EffectPlace::ALL.iter().flat_map(|effect| {
                ProviderIdentity::ALL.iter().map(|provider| Knobs {
                    order: *order,
                    effect: *effect,
                    provider: *provider,
                    owner: c(),
                    ..Knobs::placed(*placement)
                })
            })
        })
    })
}

#[test]
fn every_gap_between_two_steps_has_a_name_of_its_own_and_a_script_always_finds_one() {
    for knobs in all_knobs() {
        for me in [A, c()] {
            let barriers = plan::barriers(&knobs, me);
            assert_eq!(barriers.len(), plan::steps(&knobs, me).len() + 1, "{knobs:?}");
            assert_eq!((barriers[0], barriers[barriers.len() - 1]), (Barrier::Arrived, Barrier::BeforeAnswer));
            let distinct: std::collections::BTreeSet<Barrier> = barriers.iter().copied().collect();
            assert_eq!(distinct.len(), barriers.len(), "two gaps with one name: {knobs:?} {barriers:?}");
            for wanted in Barrier::ALL {
                let found = plan::nearest(&knobs, me, *wanted);
                assert!(barriers.contains(&found), "{knobs:?} {wanted}");
                assert!(found == *wanted || !barriers.contains(wanted), "{wanted} is there and was not taken");
            }
        }
    }
}

#[test]
fn a_script_that_stops_after_the_look_finds_nothing_done_yet_under_every_placement() {
    for knobs in all_knobs() {
        for me in [A, c()] {
            let barriers = plan::barriers(&knobs, me);
            let stop = plan::nearest(&knobs, me, Barrier::AfterLook);
            let index = barriers.iter().position(|barrier| *barrier == stop).unwrap();
            let done = &plan::steps(&knobs, me)[..index];
            assert!(done.iter().all(|step| !plan::may_have_effect(&knobs, *step)), "{knobs:?} stops at {stop}");
        }
    }
}

/// A replica with nobody around it: the test is its disk, its peers and its provider.
struct Alone {
    replica: Replica,
    actions: Vec<Action>,
}

const CALL: CallId = CallId(7);
const NOW: Millis = Millis(1_000);

fn request() -> Request {
    Request {
        key: "k".parse().expect("a key"),
        minted_at: Millis(900),
        amount: Amount(50),
        attempt: Attempt::FIRST,
        intent: SealedIntent::seal(&IntentId("intent".to_owned())),
    }
}

impl Alone {
    fn new(me: ReplicaId, knobs: Knobs) -> Self {
        let mut replica = Replica::new(me, Members::new(3).expect("three"), knobs, Patience::default());
        let incarnation = IncarnationId("disk".to_owned());
        let disk = DiskIdentity { incarnation, born_at: Millis(0), standing: Standing::Founding };
        assert!(replica.step(NOW, Event::Started(disk)).is_empty());
        Self { replica, actions: Vec::new() }
    }

    fn step(&mut self, event: Event) {
        self.actions = self.replica.step(NOW, event);
    }

    fn outcome(&self) -> Option<Outcome> {
        self.actions.iter().find_map(|action| {
            let Action::Answer { call: CALL, outcome } = action else { return None };
            Some(outcome.clone())
        })
    }

    fn held_at(&self) -> Option<(OpId, Barrier)> {
        self.actions.iter().find_map(|action| {
            let Action::Reach { op, at } = action else { return None };
            Some((*op, at.barrier))
        })
    }

    /// Goes through the steps and makes everything succeed, up to the step that is wanted, which has just begun.
    fn up_to(&mut self, wanted: Step) -> OpId {
        if self.replica.fence().is_none() {
            self.step(Event::TakeOver { call: CallId(1) });
            self.succeed();
        }
        self.step(Event::Request { call: CALL, request: request() });
        for _ in 0..20 {
            if let Some((op, barrier)) = self.held_at() {
                self.step(Event::Released { op, barrier });
                let began = self.actions.iter().find_map(|action| {
                    let Action::Note(Note::Step { step, mark: StepMark::Began, .. }) = action else { return None };
                    Some(*step)
                });
                if began == Some(wanted) {
                    return op;
                }
            } else {
                self.succeed();
            }
        }
        panic!("never came to {wanted}: {:?}", self.actions);
    }

    /// Everything that was asked for comes back well.
    fn succeed(&mut self) {
        let mut next = Vec::new();
        for action in std::mem::take(&mut self.actions) {
            if let Some(event) = success(action) {
                next.extend(self.replica.step(NOW, event));
            }
        }
        self.actions = next;
    }
}

fn success(action: Action) -> Option<Event> {
    let mut disk = crate::disk::Disk::new("disk".to_owned(), Millis(0), Standing::Founding);
    Some(match action {
        Action::Disk { op, command } => Event::DiskDone { op, done: disk.carry_out(command) },
        Action::Send { op, to: peer, message } => {
            let identity = disk.identity.clone();
            let reply = match message {
                Message::Look(_) => Reply::Looked { record: None, disk: identity },
                Message::Store(_) => Reply::Stored { disk: identity },
                Message::LookAtKeeper(_) => Reply::Kept { receipt: None, newest: Epoch(1) },
                Message::IssueEpoch => {
                    let done = disk.carry_out(DiskCommand::IssueEpoch { to: peer });
                    let DiskDone::Issued(fence) = done else { panic!("{done:?}") };
                    Reply::Issued(fence)
                }
                Message::ExecuteAtKeeper(execution) => {
                    let done = disk.carry_out(DiskCommand::Execute(execution));
                    let DiskDone::Executed(executed) = done else { panic!("{done:?}") };
                    Reply::Executed(executed)
                }
                Message::Forward(_) | Message::Records => return None,
            };
            Event::PeerAnswered { op, peer, reply }
        }
        Action::CallProvider { op, call } => {
            let (reply, _) = counterfoil_lab::rules::provider::decide(call, |_| None);
            Event::ProviderAnswered { op, reply }
        }
        Action::Answer { .. } | Action::Reply { .. } | Action::Reach { .. } | Action::Note(_) => return None,
    })
}

/// Fails a step in a way that certainly did nothing, or in one that may have done it.
fn fail(alone: &mut Alone, op: OpId, step: Step, certain: bool) -> Outcome {
    let failure = if certain { CallFailure::BeforeConnection } else { CallFailure::Later };
    match step.needs() {
        Needs::Disk => alone.step(Event::DiskFailed { op, certain }),
        Needs::Provider => alone.step(Event::ProviderFailed { op, failure }),
        Needs::Owner => {
            let by_disk = alone.actions.iter().any(|action| matches!(action, Action::Disk { .. }));
            alone.step(match by_disk {
                true => Event::DiskFailed { op, certain },
                false => Event::PeerFailed { op, peer: c(), failure },
            });
        }
        Needs::Majority => {
            alone.step(Event::PeerFailed { op, peer: b(), failure });
            assert_eq!(alone.outcome(), None, "two of three can still be reached");
            alone.step(Event::PeerFailed { op, peer: c(), failure });
        }
        Needs::Nobody => panic!("cannot fail"),
    }
    alone.outcome().unwrap_or_else(|| panic!("{step} failed and nothing was answered: {:?}", alone.actions))
}

/// The rule of the table, in every position of the switches: before the effect began *refused*, after it *unknown*.
#[test]
fn a_step_that_fails_before_the_effect_is_refused_and_after_it_unknown() {
    let mut looked_at = 0;
    for knobs in all_knobs() {
        for me in [A, c()] {
            let steps = plan::steps(&knobs, me);
            let effect = steps.iter().position(|step| plan::may_have_effect(&knobs, *step)).unwrap();
            for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.needs() != Needs::Nobody) {
                for certain in [true, false] {
                    let mut alone = Alone::new(me, knobs);
                    let op = alone.up_to(*step);
                    let kind = fail(&mut alone, op, *step, certain).kind();
                    let expected = match index.cmp(&effect) {
                        std::cmp::Ordering::Less => OutcomeKind::Refused,
                        std::cmp::Ordering::Equal if certain => OutcomeKind::Refused,
                        std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => OutcomeKind::Unknown,
                    };
                    assert_eq!(kind, expected, "{me} {step} certain={certain} {knobs:?}");
                    assert_eq!(alone.replica.in_hand(), 0, "an operation that is over is in nobody's hand");
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at > 300, "{looked_at}");
}

#[test]
fn the_switch_no_majority_decides_between_the_truth_and_a_lie() {
    for (no_majority, kind) in [(NoMajority::Unknown, OutcomeKind::Unknown), (NoMajority::Failed, OutcomeKind::Refused)]
    {
        let knobs = Knobs { no_majority, ..Knobs::placed(Placement::MajorityReadOne) };
        let mut alone = Alone::new(A, knobs);
        let op = alone.up_to(Step::RecordToAll);
        assert_eq!(fail(&mut alone, op, Step::RecordToAll, true).kind(), kind);
    }
}

#[test]
fn who_waits_too_long_is_told_so_at_the_deadline_and_not_before() {
    let mut alone = Alone::new(A, Knobs { owner: c(), ..Knobs::placed(Placement::Atomic) });
    alone.up_to(Step::Forward);
    let deadline = alone.replica.next_deadline().unwrap();
    assert_eq!(deadline, NOW.plus(Patience::default().answer_ms));
    assert!(alone.replica.step(Millis(deadline.0 - 1), Event::Tick).is_empty());
    alone.actions = alone.replica.step(deadline, Event::Tick);
    assert_eq!(alone.outcome(), Some(Outcome::Unknown(Unknown::OwnerSilent(c()))));
    assert_eq!(alone.replica.next_deadline(), None);
}

#[test]
fn a_late_answer_for_an_operation_that_is_over_changes_nothing() {
    let mut alone = Alone::new(A, Knobs { owner: c(), ..Knobs::placed(Placement::Atomic) });
    let op = alone.up_to(Step::Forward);
    alone.actions = alone.replica.step(NOW.plus(10_000), Event::Tick);
    assert!(alone.outcome().is_some());
    alone.step(Event::PeerAnswered { op, peer: c(), reply: Reply::NotMine });
    assert!(alone.actions.is_empty());
    alone.step(Event::ProviderAnswered { op: OpId(99), reply: ProviderReply::NotFound });
    assert!(alone.actions.is_empty());
}

#[test]
fn a_vote_counts_once_however_often_it_comes() {
    let mut alone = Alone::new(A, Knobs::placed(Placement::MajorityCheckThenAct));
    alone.replica =
        Replica::new(A, Members::new(5).unwrap(), Knobs::placed(Placement::MajorityCheckThenAct), Patience::default());
    let disk =
        DiskIdentity { incarnation: IncarnationId("d".to_owned()), born_at: Millis(0), standing: Standing::Founding };
    alone.step(Event::Started(disk.clone()));
    alone.step(Event::Request { call: CALL, request: request() });
    let (op, barrier) = alone.held_at().unwrap();
    alone.step(Event::Released { op, barrier });
    for _ in 0..5 {
        alone.step(Event::PeerAnswered { op, peer: b(), reply: Reply::Looked { record: None, disk: disk.clone() } });
        assert_eq!(alone.held_at(), None, "one vote is no majority of five");
    }
}

#[test]
fn a_replica_that_has_not_opened_its_disk_takes_nothing_in() {
    let mut replica = Replica::new(A, Members::new(3).unwrap(), Knobs::default(), Patience::default());
    let actions = replica.step(NOW, Event::Request { call: CALL, request: request() });
    let outcome = Outcome::Refused(Refused::NotReady);
    assert_eq!(actions, [Action::Answer { call: CALL, outcome }]);
    let look = Message::Records;
    let actions = replica.step(NOW, Event::Peer { call: CALL, from: b(), message: look });
    assert_eq!(actions, [Action::Reply { call: CALL, reply: Reply::NotMine }]);
}

#[test]
fn a_replica_without_an_epoch_may_not_execute_but_still_tells_what_the_keeper_holds() {
    let mut world = World::new(3, Knobs { owner: c(), ..Knobs::placed(Placement::AtomicFenced) });
    assert_eq!(world.ask(A, "k", 50, 1), Outcome::Refused(Refused::NoEpoch));
    world.take_over(A);
    assert_eq!(world.ask(A, "k", 50, 2).kind(), OutcomeKind::Done);
    assert!(matches!(world.ask(b(), "k", 50, 3), Outcome::Done { replayed: true, .. }));
    assert_eq!(world.executions("intent"), 1);
}

#[test]
fn an_epoch_of_a_keeper_whose_disk_was_replaced_is_none() {
    let mut world = World::new(3, Knobs { owner: c(), ..Knobs::placed(Placement::AtomicFenced) });
    world.take_over(A);
    world.kill(c());
    world.wipe(c());
    world.restart(c());
    // The new disk gives out the number 1 again; the old 1 must not be taken for it, even for a key that is younger.
    world.take_over(b());
    world.mints_at = world.now.plus(1);
    assert_eq!(world.ask(A, "k", 50, 1), Outcome::Refused(Refused::Stale { newest: Epoch(0) }));
    assert_eq!(world.executions("intent"), 0);
    assert_eq!(world.ask(b(), "k", 50, 2).kind(), OutcomeKind::Done, "who holds the new one may execute");
}

#[test]
fn a_replaced_disk_of_two_members_never_votes_again() {
    let mut world = World::new(2, Knobs { incarnation: Switch::On, ..Knobs::placed(Placement::MajorityCheckThenAct) });
    assert_eq!(world.ask(A, "k", 50, 1).kind(), OutcomeKind::Done);
    world.kill(b());
    world.wipe(b());
    world.restart(b());
    world.run_and_wait();
    assert_eq!(world.identity(b()).standing, Standing::Behind, "one other is no majority of two");
    let refused = Outcome::Refused(Refused::NoMajority { counted: 1, needed: 2 });
    assert_eq!(world.ask(A, "k2", 50, 1), refused);
}

#[test]
fn two_replaced_disks_do_not_vouch_for_each_other() {
    let on = Knobs { incarnation: Switch::On, ..Knobs::placed(Placement::MajorityCheckThenAct) };
    let mut world = World::new(3, on);
    for id in [b(), c()] {
        world.kill(id);
        world.wipe(id);
    }
    for id in [b(), c()] {
        world.restart(id);
    }
    world.run_and_wait();
    for id in [b(), c()] {
        assert_eq!(world.identity(id).standing, Standing::Behind, "{id}: one unbroken disk is no majority of three");
    }
}

#[test]
fn letting_go_of_another_gap_than_the_one_it_stands_in_changes_nothing() {
    let mut alone = Alone::new(A, Knobs::placed(Placement::Local));
    alone.step(Event::Request { call: CALL, request: request() });
    let (op, barrier) = alone.held_at().unwrap();
    assert_eq!(barrier, Barrier::Arrived);
    for another in Barrier::ALL.iter().filter(|another| **another != barrier) {
        alone.step(Event::Released { op, barrier: *another });
        assert!(alone.actions.is_empty(), "{another}");
    }
    alone.step(Event::Released { op, barrier });
    assert!(!alone.actions.is_empty());
    alone.step(Event::Released { op, barrier });
    assert!(alone.actions.is_empty(), "a step that runs is not begun again");
}

/// The proof that replica code does not look into the envelope: other contents, same decisions.
#[test]
fn the_intent_decides_nothing() {
    for knobs in all_knobs() {
        let run = |intent: &str| {
            let mut world = World::new(3, knobs);
            for attempt in 1..=2 {
                world.send(A, "k", 50, attempt, intent);
                world.send(c(), "k", 50, attempt + 2, &format!("{intent}{attempt}"));
                world.run_and_wait();
            }
            (format!("{:?}", world.outcomes), format!("{:?}", world.notes))
        };
        assert_eq!(run("one"), run("another"), "{knobs:?}");
    }
}

#[test]
fn what_is_known_after_a_refusal_is_what_was_known_before() {
    let unknown = Outcome::Unknown(Unknown::NoAnswer);
    let refused = || Outcome::Refused(Refused::NotConnected);
    assert_eq!(refused().after(Some(&unknown)), unknown, "a refusal says nothing about the attempt before it");
    assert_eq!(refused().after(None), refused());
    let receipt = counterfoil_lab::rules::record::Receipt {
        key: "k".parse().unwrap(),
        amount: Amount(50),
        attempt: Attempt::FIRST,
        by: Endpoint::Replica(A),
        position: None,
    };
    let done = Outcome::Done { receipt, replayed: true };
    assert_eq!(done.clone().after(Some(&unknown)), done, "the receipt settles it");
}
