//! Power is lost at every disk operation of the whole path, with a provider that remembers what it was asked.
//!
//! Its requests take their time: they arrive half a minute after they were sent, when the sender has given up, and answers
//! are lost. So a look-up can overtake the request that it asks about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil::Clock;
use counterfoil::effect::{
    Answer, Attempt, Dispatcher, EffectHandler, EffectId, EffectPhase, HandlerLimits, LookUpAnswer, LookUpMeaning,
    Provider, Verdict,
};
use counterfoil::testing::{Survival, TestBed, VirtualClock};

use crate::support::{SECOND, blind, builder, effects, keyed, order, pay};

const TRAVEL: Duration = Duration::from_secs(30);

#[derive(Default)]
struct Ledger {
    /// Requests on their way, with the time at which they arrive.
    travelling: Vec<(Duration, EffectId)>,
    /// Charges by identity.
    charges: BTreeMap<EffectId, u32>,
    barred: BTreeSet<EffectId>,
    overtaken: u32,
}

/// A provider in a world of its own: it outlives every crash of the store.
#[derive(Clone)]
struct World {
    ledger: Arc<Mutex<Ledger>>,
    clock: VirtualClock,
    deduplicates: bool,
    bars: bool,
}

impl World {
    fn arrive(&self) {
        let mut ledger = self.ledger.lock().expect("nobody panics in here");
        let now = self.clock.monotonic();
        let (arrived, travelling): (Vec<_>, Vec<_>) = ledger.travelling.iter().copied().partition(|(at, _)| *at <= now);
        ledger.travelling = travelling;
        for (_, id) in arrived {
            if ledger.barred.contains(&id) {
                continue;
            }
            let count = ledger.charges.entry(id).or_default();
            *count = if self.deduplicates { 1 } else { *count + 1 };
        }
    }

    fn charged(&self) -> u32 {
        self.arrive();
        self.ledger.lock().expect("nobody panics in here").charges.values().sum()
    }
}

impl EffectHandler for World {
    fn send(&self, attempt: &Attempt) -> Verdict {
        self.arrive();
        let mut ledger = self.ledger.lock().expect("nobody panics in here");
        // A provider that deduplicates answers a repetition from the first.
        if self.deduplicates && ledger.charges.contains_key(&attempt.id()) {
            return Verdict::Applied(Answer::new().reference("ch-1"));
        }
        let at = self.clock.monotonic() + TRAVEL;
        ledger.travelling.push((at, attempt.id()));
        Verdict::Unknown
    }

    fn look_up(&self, attempt: &Attempt) -> LookUpAnswer {
        self.arrive();
        let mut ledger = self.ledger.lock().expect("nobody panics in here");
        if ledger.charges.contains_key(&attempt.id()) {
            return LookUpAnswer::Applied(Answer::new().reference("ch-1"));
        }
        ledger.overtaken += u32::from(ledger.travelling.iter().any(|(_, id)| *id == attempt.id()));
        if self.bars {
            ledger.barred.insert(attempt.id());
        }
        LookUpAnswer::NotFound
    }
}

struct Ability {
    name: &'static str,
    provider: fn() -> Provider,
    /// Whatever happens, it is settled without a person.
    settles: bool,
    deduplicates: bool,
    bars: bool,
}

const ABILITIES: [Ability; 5] = [
    Ability { name: "keys", provider: || keyed().attempts_max(20), settles: true, deduplicates: true, bars: false },
    Ability {
        name: "look-up with a bound",
        provider: || blind().look_up(LookUpMeaning::NotAppliedAfter(2 * TRAVEL)),
        settles: true,
        deduplicates: false,
        bars: false,
    },
    Ability {
        name: "look-up that bars",
        provider: || blind().look_up(LookUpMeaning::Barred),
        settles: true,
        deduplicates: false,
        bars: true,
    },
    Ability {
        name: "look-up that means nothing",
        provider: || blind().look_up(LookUpMeaning::Nothing),
        settles: false,
        deduplicates: false,
        bars: false,
    },
    Ability { name: "nothing", provider: blind, settles: false, deduplicates: false, bars: false },
];

fn open(ability: &Ability) -> (TestBed, World) {
    let provider = ability.provider;
    let bed = TestBed::new(move || builder(provider()).identity_seed(7)).expect("the store opens");
    let ledger = Arc::default();
    let world = World { ledger, clock: bed.clock().clone(), deduplicates: ability.deduplicates, bars: ability.bars };
    (bed, world)
}

/// Orders, and dispatches for a while. Ends early when the power goes.
fn work(bed: &TestBed, world: &World, turns: usize) -> Option<()> {
    drop(pay(bed.store(), "k").ok()?);
    let dispatcher = Dispatcher::new(bed.store()).seed(3);
    let dispatcher = dispatcher.handler("bank", world.clone(), HandlerLimits::default()).expect("declared");
    for _ in 0..turns {
        while dispatcher.step().ok()? > 0 {}
        bed.clock().advance(10 * SECOND);
    }
    Some(())
}

/// What became of everything once the store has had its time: whether a person is needed.
fn judge(bed: &TestBed, world: &World, ability: &Ability, at: &str) -> bool {
    work(bed, world, 200).expect("the power stays on");
    let receipt = pay(bed.store(), "k").expect("known");
    let charged = world.charged();
    assert!(charged <= 1, "{at}: charged {charged} times");
    let parked = effects(bed.store()).iter().any(|effect| effect.phase == EffectPhase::Parked);
    let became = order(bed.store(), "k");
    match became.as_deref() {
        Some("paid") => assert_eq!((charged, receipt.reply().status()), (1, 200), "{at}"),
        Some("unpaid") => assert_eq!((charged, receipt.reply().status()), (0, 402), "{at}"),
        other => assert!(parked && receipt.is_accepted(), "{at}: {other:?} is unknown, and nobody is asked"),
    }
    assert!(!(ability.settles && parked), "{at}: a person is asked without need");
    bed.store().assert_sound();
    parked
}

#[test]
fn wherever_the_power_goes_nobody_is_charged_twice_and_what_stays_open_is_given_to_a_person() {
    for ability in &ABILITIES {
        let (bed, world) = open(ability);
        let first = bed.disk().operations();
        work(&bed, &world, 12).expect("the power stays on");
        let last = bed.disk().operations();
        assert!(last > first + 4, "the path writes");
        let (mut parked, mut overtaken) = (0, 0);
        for operation in first..=last {
            for survival in [Survival::Nothing, Survival::Everything, Survival::Random(operation)] {
                let at = format!("{}, operation {operation}, {survival:?}", ability.name);
                let (mut bed, world) = open(ability);
                bed.disk().power_cut_at(operation);
                let cut = work(&bed, &world, 12).is_none();
                assert!(cut || operation >= last, "{at}: the power went");
                bed.crash_and_reopen(&survival).unwrap_or_else(|error| panic!("{at}: {error}"));
                parked += u32::from(judge(&bed, &world, ability, &at));
                overtaken += world.ledger.lock().unwrap().overtaken;
            }
        }
        assert_eq!(parked > 0, !ability.settles, "{}: {parked} were parked", ability.name);
        let asks = !matches!(ability.name, "keys" | "nothing");
        assert_eq!(overtaken > 0, asks, "{}: look-ups overtook their requests", ability.name);
    }
}
