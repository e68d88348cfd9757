//! Every interleaving of two attempts with one crash: not some runs that went well, but all there are.

use std::collections::{BTreeMap, HashSet};

use counterfoil_lab::rules::{
    ids::{CallId, ReplicaId},
    knobs::{Knobs, Order, Placement},
    outcome::Outcome,
};

use crate::world::{A, World, b, c};

/// A small lab and what may still be done to it.
#[derive(Clone)]
struct Run {
    world: World,
    /// Attempts that the client has still to make: attempt number and where.
    unsent: Vec<(u32, ReplicaId)>,
    sent: BTreeMap<u32, CallId>,
    crashes_left: u32,
    /// How many dead replicas may still get an empty disk.
    wipes_left: u32,
}

/// What was found in all runs, or until a second execution was.
#[derive(Debug, Default)]
struct Found {
    states: usize,
    most: usize,
    least_when_done: Option<usize>,
}

impl Run {
    fn new(count: u8, knobs: Knobs, attempts: &[(u32, ReplicaId)], crashes: u32) -> Self {
        let mut world = World::new(count, knobs);
        if knobs.placement == Placement::AtomicFenced {
            world.take_over(A);
        }
        Self { world, unsent: attempts.to_vec(), sent: BTreeMap::new(), crashes_left: crashes, wipes_left: 0 }
    }

    /// Everything that can happen next.
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        if let Some((attempt, to)) = self.unsent.first().copied() {
            let mut run = self.clone();
            run.unsent.remove(0);
            let call = run.world.send(to, "k", 50, attempt, "intent");
            run.sent.insert(attempt, call);
            next.push(run);
        }
        for index in 0..self.world.flights.len() {
            if self.world.is_deliverable(&self.world.flights[index]) {
                let mut run = self.clone();
                run.world.deliver(index);
                next.push(run);
            }
        }
        for id in self.world.members.iter() {
            let lives = self.world.nodes[&id].replica.is_some();
            if !lives && self.wipes_left > 0 {
                let mut run = self.clone();
                run.wipes_left -= 1;
                run.world.wipe(id);
                next.push(run);
            }
            let mut run = self.clone();
            match lives {
                true if self.crashes_left > 0 => {
                    run.crashes_left -= 1;
                    run.world.kill(id);
                }
                true => continue,
                false => run.world.restart(id),
            }
            run.world.notes.clear();
            next.push(run);
        }
        next
    }

    /// What must be true of every state of an honest system.
    fn check(&self) {
        let executions = self.world.executions("intent");
        for (attempt, call) in &self.sent {
            match self.world.outcomes.get(call) {
                Some(Outcome::Done { .. }) => assert!(executions > 0, "done, and nothing was executed"),
                Some(Outcome::Refused(_)) => assert!(!self.executed(*attempt), "refused, and executed all the same"),
                Some(Outcome::Unknown(_) | Outcome::Mismatch { .. }) | None => {}
            }
        }
    }

    fn executed(&self, attempt: u32) -> bool {
        let disks = self.world.nodes.values().flat_map(|node| std::iter::once(&node.disk).chain(&node.evidence));
        disks.flat_map(|disk| &disk.effects).any(|row| row.attempt.0 == attempt)
    }
}

/// Goes through all states; stops at the first with more executions than `enough`.
fn explore(start: Run, enough: usize, honest: bool, states_max: usize) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    let mut open = vec![start];
    while let Some(run) = open.pop() {
        let left = (run.unsent.len(), run.crashes_left, run.wipes_left);
        if !seen.insert((run.world.fingerprint(), left)) {
            continue;
        }
        found.states += 1;
        assert!(found.states <= states_max, "more than {states_max} states: {found:?}");
        let executions = run.world.executions("intent");
        found.most = found.most.max(executions);
        if run.world.outcomes.values().any(|outcome| matches!(outcome, Outcome::Done { .. })) {
            found.least_when_done = Some(found.least_when_done.map_or(executions, |least| least.min(executions)));
        }
        if honest {
            run.check();
        }
        if found.most > enough {
            return found;
        }
        open.extend(run.next());
    }
    println!("{found:?}");
    found
}

#[test]
fn atomic_never_executes_twice_in_any_interleaving_of_two_attempts_and_one_crash() {
    for attempts in [[(1, A), (2, A)], [(1, A), (2, b())], [(1, b()), (2, A)], [(1, b()), (2, b())]] {
        let found = explore(Run::new(2, Knobs::default(), &attempts, 1), 1, true, 200_000);
        assert_eq!((found.most, found.least_when_done), (1, Some(1)), "{found:?}");
        assert!(found.states > 100, "{found:?}");
    }
}

#[test]
fn atomic_never_executes_twice_when_the_owner_comes_back_with_an_empty_disk() {
    for attempts in [[(1, A), (2, A)], [(1, b()), (2, A)]] {
        let run = Run { wipes_left: 1, ..Run::new(2, Knobs::default(), &attempts, 1) };
        let found = explore(run, 1, true, 200_000);
        assert_eq!((found.most, found.least_when_done), (1, Some(1)), "{found:?}");
    }
}

#[test]
fn atomic_fenced_never_executes_twice_either() {
    let knobs = Knobs { owner: b(), ..Knobs::placed(Placement::AtomicFenced) };
    let found = explore(Run::new(2, knobs, &[(1, A), (2, A)], 1), 1, true, 200_000);
    assert_eq!((found.most, found.least_when_done), (1, Some(1)), "{found:?}");
    assert!(found.states > 100, "{found:?}");
}

#[test]
fn every_other_placement_has_an_interleaving_that_executes_twice() {
    let retry_elsewhere = [(1, A), (2, c())];
    for (placement, count, attempts, crashes) in [
        (Placement::None, 1, [(1, A), (2, A)], 0),
        (Placement::Memory, 1, [(1, A), (2, A)], 1),
        (Placement::Local, 1, [(1, A), (2, A)], 1),
        (Placement::MajorityReadOne, 3, retry_elsewhere, 0),
        (Placement::MajorityCheckThenAct, 3, retry_elsewhere, 0),
    ] {
        let run = Run::new(count, Knobs::placed(placement), &attempts, crashes);
        let found = explore(run, 1, true, 200_000);
        assert_eq!(found.most, 2, "{placement}: {found:?}");
    }
}

#[test]
fn two_attempts_one_after_the_other_and_no_crash_are_one_execution_wherever_the_record_is() {
    for placement in [Placement::Memory, Placement::Local, Placement::MajorityCheckThenAct] {
        let mut world = World::new(3, Knobs::placed(placement));
        for attempt in 1..=2 {
            world.ask(A, "k", 50, attempt);
        }
        assert_eq!(world.executions("intent"), 1, "{placement}");
    }
}

#[test]
fn record_first_has_an_interleaving_that_answers_done_and_executes_nothing() {
    let knobs = Knobs { order: Order::RecordFirst, ..Knobs::placed(Placement::Local) };
    let found = explore(Run::new(1, knobs, &[(1, A), (2, A)], 1), 9, false, 200_000);
    assert_eq!(found.least_when_done, Some(0), "{found:?}");
}
