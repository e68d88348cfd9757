//! The interleaving of each lesson, driven through the decision function alone. A script is one function; the broken and
//! the repaired variant are the same script with other switches.

use counterfoil_lab::rules::{
    action::Note,
    barrier::Barrier,
    fault::{Direction, Fault, FaultRule},
    ids::{Endpoint, ReplicaId},
    knobs::{EffectPlace, Knobs, Mismatch, NoMajority, Order, Placement, ProviderIdentity, Switch},
    message::MessageKind,
    outcome::{Outcome, OutcomeKind, Refused, Unknown},
    plan,
};

use crate::world::{A, World, b, c, receipt_of, replica};

fn placed(placement: Placement) -> Knobs {
    Knobs::placed(placement)
}

const ATOMIC: Placement = Placement::Atomic;

/// Where the placement stops if the script says `wanted`.
fn stop(world: &mut World, executor: ReplicaId, wanted: Barrier, attempt: u32) {
    let barrier = plan::nearest(&world.knobs, executor, wanted);
    world.hold(executor, barrier, attempt);
}

/// 1: the reply to the first attempt is lost, and the client tries again.
fn lost_reply(knobs: Knobs) -> (World, Outcome) {
    let mut world = World::new(3, knobs);
    let rule = world.arm(FaultRule::next_reply(Some(Endpoint::Replica(A))));
    assert_eq!(world.ask(A, "k", 50, 1), Outcome::Unknown(Unknown::NoAnswer));
    assert_eq!(world.disarm(rule), 1, "the reply was lost");
    let second = world.ask(A, "k", 50, 2);
    (world, second)
}

#[test]
fn lesson_1_without_a_record_a_lost_reply_means_two_executions_and_with_the_receipt_one() {
    let (world, second) = lost_reply(placed(Placement::None));
    assert_eq!(second.kind(), OutcomeKind::Done);
    assert_eq!(world.executions("intent"), 2);

    let (world, second) = lost_reply(placed(ATOMIC));
    assert_eq!(world.executions("intent"), 1);
    assert!(matches!(&second, Outcome::Done { replayed: true, .. }));
    assert_eq!(receipt_of(&second).attempt.0, 1, "the receipt is that of the attempt whose reply was lost");
}

/// 2: as 1, and the coordinator dies between the attempts.
fn remembered_in_ram(knobs: Knobs) -> World {
    let mut world = World::new(3, knobs);
    world.arm(FaultRule::next_reply(None));
    assert_eq!(world.ask(A, "k", 50, 1).kind(), OutcomeKind::Unknown);
    world.kill(A);
    world.restart(A);
    assert_eq!(world.ask(A, "k", 50, 2).kind(), OutcomeKind::Done);
    world
}

#[test]
fn lesson_2_a_map_dies_with_its_process() {
    assert_eq!(remembered_in_ram(placed(Placement::Memory)).executions("intent"), 2);
    assert_eq!(remembered_in_ram(placed(ATOMIC)).executions("intent"), 1);
}

#[test]
fn lesson_2_with_the_crash_taken_out_the_map_is_enough() {
    let (world, second) = lost_reply(placed(Placement::Memory));
    assert!(matches!(second, Outcome::Done { replayed: true, .. }));
    assert_eq!(world.executions("intent"), 1);
}

/// 3: killed between two writes.
fn crash_between(knobs: Knobs, gap: Barrier) -> (World, Outcome) {
    let mut world = World::new(3, knobs);
    stop(&mut world, A, gap, 1);
    let first = world.send(A, "k", 50, 1, "intent");
    world.run();
    assert!(world.is_held(A));
    world.kill(A);
    world.restart(A);
    assert_eq!(world.conclude(first), Outcome::Unknown(Unknown::ConnectionLost));
    let second = world.ask(A, "k", 50, 2);
    (world, second)
}

#[test]
fn lesson_3_effect_first_does_it_twice_record_first_never_and_one_write_once() {
    let (world, _) = crash_between(placed(Placement::Local), Barrier::AfterEffect);
    assert_eq!(world.executions("intent"), 2);

    let record_first = Knobs { order: Order::RecordFirst, ..placed(Placement::Local) };
    let (world, second) = crash_between(record_first, Barrier::AfterRecord);
    assert_eq!(world.executions("intent"), 0, "lost, and the client is told that it is done");
    assert_eq!(second.kind(), OutcomeKind::Done);

    for gap in [Barrier::AfterEffect, Barrier::AfterRecord] {
        let (world, second) = crash_between(placed(ATOMIC), gap);
        assert_eq!(world.executions("intent"), 1);
        assert!(matches!(second, Outcome::Done { replayed: true, .. }));
    }
}

/// 4: the copy to C is held, and the retry lands at C.
fn asked_the_wrong_one(knobs: Knobs) -> World {
    let mut world = World::new(3, knobs);
    world.arm(FaultRule {
        to: Some(Endpoint::Replica(c())),
        kind: Some(MessageKind::Store),
        direction: Some(Direction::Request),
        ..FaultRule::everything(Fault::Hold)
    });
    world.arm(FaultRule::next_reply(None));
    assert_eq!(world.ask(A, "k", 50, 1).kind(), OutcomeKind::Unknown);
    assert_eq!(world.ask(c(), "k", 50, 2).kind(), OutcomeKind::Done);
    world
}

#[test]
fn lesson_4_a_majority_that_was_written_does_not_help_whoever_reads_one() {
    assert_eq!(asked_the_wrong_one(placed(Placement::MajorityReadOne)).executions("intent"), 2);
    assert_eq!(asked_the_wrong_one(placed(ATOMIC)).executions("intent"), 1);
    // Reading a majority mends this one. The next lesson is about what it does not mend.
    assert_eq!(asked_the_wrong_one(placed(Placement::MajorityCheckThenAct)).executions("intent"), 1);
}

/// 5: two coordinators, two majorities that share C, both held after their looks.
fn two_majorities(knobs: Knobs) -> World {
    let mut world = World::new(5, knobs);
    let (x, y) = (A, replica("e"));
    for (from, to) in [(x, "d"), (x, "e"), (y, "a"), (y, "b")] {
        world.arm(FaultRule {
            from: Some(Endpoint::Replica(from)),
            to: Some(Endpoint::Replica(replica(to))),
            kind: Some(MessageKind::Look),
            ..FaultRule::everything(Fault::Drop)
        });
    }
    stop(&mut world, x, Barrier::AfterLook, 1);
    stop(&mut world, y, Barrier::AfterLook, 2);
    world.send(x, "k", 50, 1, "intent");
    world.run();
    // The client has timed out at X and asks Y, with the same key.
    let second = world.send(y, "k", 50, 2, "intent");
    world.run();
    assert!(world.is_held(x) && world.is_held(y));
    world.release(x);
    world.release(y);
    world.run_and_wait();
    assert_eq!(world.conclude(second).kind(), OutcomeKind::Done);
    world
}

#[test]
fn lesson_5_two_majorities_share_a_member_and_execute_twice_all_the_same() {
    let world = two_majorities(placed(Placement::MajorityCheckThenAct));
    assert_eq!(world.executions("intent"), 2);
    let reached = world.notes.iter().filter(|(_, note)| matches!(note, Note::Counted { counted: 3, needed: 3, .. }));
    assert_eq!(reached.count(), 4, "two looks and two records, each counted by three of five");
    assert_eq!(two_majorities(placed(ATOMIC)).executions("intent"), 1);
}

/// 6: A is cut off after its look and before its record.
fn no_majority_and_yet(knobs: Knobs) -> (World, Outcome) {
    let mut world = World::new(3, knobs);
    stop(&mut world, A, Barrier::AfterLook, 1);
    let first = world.send(A, "k1", 50, 1, "intent");
    world.run();
    assert!(world.is_held(A));
    for other in [b(), c()] {
        for rule in FaultRule::cut(Endpoint::Replica(A), Endpoint::Replica(other)) {
            world.arm(rule);
        }
    }
    world.release(A);
    world.run_and_wait();
    let first = world.conclude(first);
    (world, first)
}

fn heal(world: &mut World) {
    for rule in 1..=4 {
        world.disarm(counterfoil_lab::rules::fault::RuleId(rule));
    }
    for id in [A, b(), c()] {
        world.healed(id);
    }
    world.run_and_wait();
}

#[test]
fn lesson_6_an_error_that_is_taken_for_a_no_makes_the_client_do_it_again() {
    let failed = Knobs { no_majority: NoMajority::Failed, ..placed(Placement::MajorityCheckThenAct) };
    let (mut world, first) = no_majority_and_yet(failed);
    assert_eq!(first, Outcome::Refused(Refused::SaidFailed { counted: 1, needed: 2 }));
    // "Definitely not executed", so a new key is allowed.
    assert_eq!(world.ask(b(), "k2", 50, 2).kind(), OutcomeKind::Done);
    assert_eq!(world.executions("intent"), 2);
}

#[test]
fn lesson_6_unknown_and_the_same_key_give_one_where_the_record_is_and_two_where_it_is_not_yet() {
    let unknown = Knobs { catch_up_on_heal: Switch::On, ..placed(Placement::MajorityCheckThenAct) };
    let (mut world, first) = no_majority_and_yet(unknown);
    assert_eq!(first, Outcome::Unknown(Unknown::NoMajority { counted: 1, needed: 2 }));
    let before = world.clone();

    assert!(matches!(world.ask(A, "k1", 50, 2), Outcome::Done { replayed: true, .. }), "A holds the record");
    assert_eq!(world.executions("intent"), 1);

    let mut healed = before.clone();
    heal(&mut healed);
    assert!(matches!(healed.ask(b(), "k1", 50, 2), Outcome::Done { replayed: true, .. }), "B has copied it");
    assert_eq!(healed.executions("intent"), 1);

    let mut too_early = before;
    assert!(matches!(too_early.ask(b(), "k1", 50, 2), Outcome::Done { replayed: false, .. }));
    assert_eq!(too_early.executions("intent"), 2);
}

#[test]
fn lesson_6_with_one_write_at_an_owner_an_error_is_never_a_second_execution() {
    let atomic = Knobs { no_majority: NoMajority::Failed, ..placed(ATOMIC) };
    let (mut world, first) = no_majority_and_yet(atomic);
    assert_eq!(first.kind(), OutcomeKind::Done, "the owner needs nobody");
    // B cannot reach it: it sends, hears nothing and does not know.
    assert_eq!(world.ask(b(), "k1", 50, 2), Outcome::Unknown(Unknown::OwnerSilent(A)));
    heal(&mut world);
    assert!(matches!(world.ask(b(), "k1", 50, 3), Outcome::Done { replayed: true, .. }));
    assert_eq!(world.executions("intent"), 1);
}

/// 7: the record is at A and B; B gets an empty disk under the same name; A is paused.
fn same_name_empty_disk(knobs: Knobs) -> (World, Outcome) {
    let mut world = World::new(3, knobs);
    let copy = world.arm(FaultRule {
        to: Some(Endpoint::Replica(c())),
        kind: Some(MessageKind::Store),
        ..FaultRule::everything(Fault::Drop)
    });
    world.arm(FaultRule::next_reply(None));
    assert_eq!(world.ask(A, "k", 50, 1).kind(), OutcomeKind::Unknown);
    assert_eq!(world.disarm(copy), 1, "C has no copy");
    world.kill(b());
    world.wipe(b());
    world.pause(A);
    world.restart(b());
    let second = world.ask(c(), "k", 50, 2);
    (world, second)
}

#[test]
fn lesson_7_a_majority_of_names_is_no_majority_of_disks() {
    let off = placed(Placement::MajorityCheckThenAct);
    let (world, second) = same_name_empty_disk(off);
    assert_eq!(second.kind(), OutcomeKind::Done);
    assert_eq!(world.executions("intent"), 2);

    let on = Knobs { incarnation: Switch::On, ..off };
    let (mut world, second) = same_name_empty_disk(on);
    assert_eq!(second, Outcome::Refused(Refused::NoMajority { counted: 1, needed: 2 }), "unavailable, and honest");
    world.resume(A);
    world.run_and_wait();
    assert!(world.identity(b()).standing.has_vote(), "copied from A and C, which are two of three");
    assert!(matches!(world.ask(c(), "k", 50, 3), Outcome::Done { replayed: true, .. }));
    assert_eq!(world.executions("intent"), 1);
    let differences = off.differences(&on);
    assert_eq!(differences.len(), 1);
}

#[test]
fn lesson_7_the_owner_with_an_empty_disk_says_unknown_and_never_executes_an_old_key() {
    let mut world = World::new(3, placed(ATOMIC));
    assert_eq!(world.ask(b(), "k", 50, 1).kind(), OutcomeKind::Done);
    world.kill(A);
    world.wipe(A);
    world.restart(A);
    for from in [A, b(), c()] {
        assert_eq!(world.ask(from, "k", 50, 2), Outcome::Unknown(Unknown::OlderThanDisk));
    }
    assert_eq!(world.executions("intent"), 1, "the wiped disk is evidence");
}

/// 8: X passes its check and sleeps; Y takes over and executes; X wakes up. The keeper is a bystander.
fn the_sleeper(knobs: Knobs, keys: [&str; 2]) -> (World, Outcome) {
    let mut world = World::new(3, Knobs { owner: c(), ..knobs });
    let (x, y) = (A, b());
    let fenced = knobs.placement == Placement::AtomicFenced;
    if fenced {
        world.take_over(x);
    }
    stop(&mut world, x, Barrier::AfterLook, 1);
    let first = world.send(x, keys[0], 50, 1, "intent");
    world.run();
    assert!(world.is_held(x));
    world.pause(x);
    if fenced {
        world.take_over(y);
    }
    assert_eq!(world.ask(y, keys[1], 50, 2).kind(), OutcomeKind::Done);
    world.release(x);
    world.resume(x);
    world.run_and_wait();
    let first = world.conclude(first);
    (world, first)
}

#[test]
fn lesson_8_a_check_is_as_old_as_the_sleep_that_follows_it() {
    let (world, first) = the_sleeper(placed(Placement::MajorityCheckThenAct), ["k", "k"]);
    assert_eq!(first.kind(), OutcomeKind::Done);
    assert_eq!(world.executions("intent"), 2);

    let (world, first) = the_sleeper(placed(Placement::AtomicFenced), ["k", "k"]);
    assert_eq!(world.executions("intent"), 1);
    assert_eq!(receipt_of(&first).attempt.0, 2, "X gives the receipt of Y");
    let told = world.notes.iter().any(|(who, note)| *who == A && matches!(note, Note::Stale { .. }));
    assert!(told && world.nodes[&A].replica.as_ref().unwrap().fence().is_none(), "X is told that it is stale");
}

#[test]
fn lesson_8_the_fence_also_holds_for_work_that_has_no_key() {
    // A key of its own for each attempt is as good as none: the receipt cannot help, and an owner does it twice.
    let (world, _) = the_sleeper(placed(ATOMIC), ["k1", "k2"]);
    assert_eq!(world.executions("intent"), 2);
    let (world, first) = the_sleeper(placed(Placement::AtomicFenced), ["k1", "k2"]);
    assert_eq!(world.executions("intent"), 1);
    assert!(matches!(first, Outcome::Refused(Refused::Stale { .. })), "{first:?}");
}

#[test]
fn lesson_9_a_paused_replica_is_silent_and_the_record_can_still_be_asked_for() {
    let mut world = World::new(3, placed(Placement::MajorityCheckThenAct));
    assert_eq!(world.ask(A, "k", 50, 1).kind(), OutcomeKind::Done);
    world.pause(c());
    assert!(matches!(world.ask(b(), "k", 50, 2), Outcome::Done { replayed: true, .. }));
    assert_eq!(world.executions("intent"), 1);
}

/// 11: the same key with another amount.
fn same_key_other_amount(mismatch: Mismatch, placement: Placement) -> (usize, Outcome) {
    let mut world = World::new(3, Knobs { mismatch, ..placed(placement) });
    assert_eq!(world.ask(A, "k", 50, 1).kind(), OutcomeKind::Done);
    let second = world.ask(A, "k", 500, 2);
    (world.executions("intent"), second)
}

#[test]
fn lesson_11_another_amount_is_executed_or_silently_dropped_or_refused() {
    for placement in [Placement::Memory, Placement::Local, Placement::MajorityCheckThenAct, ATOMIC, Placement::Provider]
    {
        let (executions, second) = same_key_other_amount(Mismatch::Ignore, placement);
        assert_eq!((executions, receipt_of(&second).amount.0), (2, 500), "{placement}");

        let (executions, second) = same_key_other_amount(Mismatch::OldAnswer, placement);
        assert_eq!((executions, receipt_of(&second).amount.0), (1, 50), "{placement}: a silent lie");

        let (executions, second) = same_key_other_amount(Mismatch::Refuse, placement);
        assert_eq!(executions, 1, "{placement}");
        assert_eq!(second.kind(), OutcomeKind::Mismatch, "{placement}");
    }
}

/// 12: killed after the provider was called.
#[test]
fn lesson_12_our_own_log_is_atomic_and_the_world_outside_is_charged_twice() {
    let outside = Knobs { effect: EffectPlace::Outside, ..placed(ATOMIC) };
    let (world, _) = crash_between(outside, Barrier::AfterEffect);
    assert_eq!(world.executions("intent"), 2);
    for provider in [ProviderIdentity::Key, ProviderIdentity::LookUp] {
        let (world, second) = crash_between(Knobs { provider, ..outside }, Barrier::AfterEffect);
        assert_eq!(world.executions("intent"), 1, "{provider}");
        assert_eq!(second.kind(), OutcomeKind::Done, "{provider}");
    }
    let handed = Knobs { effect: EffectPlace::Outside, ..placed(Placement::Provider) };
    let (world, _) = crash_between(handed, Barrier::AfterEffect);
    assert_eq!(world.executions("intent"), 1);
}

/// The whole lecture: one script, every placement.
#[test]
fn the_matrix_of_one_crash_after_the_effect() {
    let row = |effect: EffectPlace| -> Vec<(Placement, usize)> {
        let run = |placement: Placement| {
            let mut world = World::new(3, Knobs { effect, ..placed(placement) });
            if placement == Placement::AtomicFenced {
                world.take_over(A);
            }
            stop(&mut world, A, Barrier::AfterEffect, 1);
            world.send(A, "k", 50, 1, "intent");
            world.run();
            assert!(world.is_held(A), "{placement}");
            world.kill(A);
            world.restart(A);
            if placement == Placement::AtomicFenced {
                world.take_over(A);
            }
            assert_eq!(world.ask(A, "k", 50, 2).kind(), OutcomeKind::Done, "{placement}");
            (placement, world.executions("intent"))
        };
        Placement::ALL.iter().copied().map(run).collect()
    };
    let inside = [
        (Placement::None, 2),
        (Placement::Memory, 2),
        (Placement::Local, 2),
        (Placement::MajorityReadOne, 2),
        (Placement::MajorityCheckThenAct, 2),
        (ATOMIC, 1),
        (Placement::AtomicFenced, 1),
        (Placement::Provider, 1),
    ];
    assert_eq!(row(EffectPlace::Inside), inside);
    let outside = inside.map(|(placement, _)| (placement, if placement == Placement::Provider { 1 } else { 2 }));
    assert_eq!(row(EffectPlace::Outside), outside, "with the effect outside, only the provider's own record helps");
}
