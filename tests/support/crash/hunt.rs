//! The hunt for a crash that loses, doubles or changes something.
//!
//! A [`Scenario`] is a workload and what befalls it. [`hunt`] reaches every crash point of it, lets every kind of
//! survival happen there, and checks each surviving image in full, once for each distinct image and each set of
//! answers that the outside world had heard by then.
//!
//! Everything is decided by the scenario's name, the number of the crash point and the survival. A [`Violation`] says
//! them, and what to set to see that one crash point again.

use std::any::Any;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use counterfoil::testing::{SimDisk, Survival};

use crate::crash::check::{Workload, for_each};
use crate::crash::harness::Told;
use crate::crash::ordeal::{Crash, Ordeal, Start};
use crate::crash::phase::{Phase, Phases};
use crate::crash::scale;

/// A workload, where it begins, and what befalls it.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) workload: Workload,
    /// So many steps were done and the store was closed before crashes begin. Without it they begin with the creation.
    pub(crate) begins_after: Option<usize>,
    pub(crate) ordeal: Ordeal,
    /// Phases that this scenario has none of, and why.
    pub(crate) lacks: Vec<(Phase, &'static str)>,
}

impl Scenario {
    /// Why it has nothing of this phase, if it has not.
    pub(crate) fn lacks(&self, phase: Phase) -> Option<&'static str> {
        self.lacks.iter().find(|(lacking, _)| *lacking == phase).map(|(_, reason)| *reason)
    }
}

/// The environment variable that names one crash point, `scenario:point`, or one scenario: nothing else is tried.
pub(crate) const ONLY: &str = "COUNTERFOIL_CRASH_POINT";

/// How much of a scenario is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// One crash point in so many of each phase, and one survival in so many at each of those.
    every: u64,
    /// Seeds of each random kind of survival.
    seeds: u64,
    only: Option<u64>,
}

impl Effort {
    /// This part of everything: the root of it in crash points, the root of it in survivals.
    pub(crate) fn percent(percent: u64) -> Self {
        let seeds = if percent >= 100 { (SEEDS * percent / 100).max(1) } else { SEEDS };
        Self { every: (100 / percent.max(1)).isqrt().max(1), seeds, only: None }
    }

    /// As much as the environment says (see [`scale`]).
    pub(crate) fn from_environment() -> Self {
        Self::percent(scale::percent())
    }

    /// Everything at one crash point.
    pub(crate) fn only(point: u64) -> Self {
        Self { only: Some(point), ..Self::percent(100) }
    }

    /// Those of a list that are tried; which ones differs from place to place.
    fn pick<T>(&self, all: Vec<T>, place: u64) -> impl Iterator<Item = T> {
        sampled(all, self.every, place)
    }

    /// What is full effort at one in so many: everything, if it is about one crash point.
    pub(crate) fn of(&self, every: u64) -> u64 {
        if self.only.is_some() { 1 } else { every * self.every }
    }

    /// This many of something that is only counted.
    pub(crate) fn count(&self, full: u64) -> u64 {
        (full / self.every / self.every).max(1)
    }
}

/// One in so many of a list, and at least one; the place decides where it begins. Of each group the next one in its order
/// is taken, so that a list with a pattern is met in all its parts, whatever its period.
pub(crate) fn sampled<T>(all: Vec<T>, every: u64, place: u64) -> impl Iterator<Item = T> {
    let (last, mut taken) = ((all.len() as u64).saturating_sub(1), false);
    (0_u64..).zip(all).filter_map(move |(index, item)| {
        let take = index % every == (place + index / every) % every || (index == last && !taken);
        taken |= take;
        take.then_some(item)
    })
}

const SEEDS: u64 = 6;

const UNPOISONED: &str = "nothing panics while it holds the lock";

/// What was tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// The distinct states that were checked, by what tells them apart: the surviving image and what had been told. Each
    /// with the phases in which it was met.
    pub(crate) states: HashMap<u128, Phases>,
    /// The distinct surviving images alone.
    pub(crate) distinct_images: HashSet<u128>,
    /// Crashes, and surviving images of them, equal ones counted again.
    pub(crate) crashes: u64,
    pub(crate) images: u64,
}

impl Figures {
    /// Distinct states of this phase. A state that was met in two phases counts in both, and was checked once.
    pub(crate) fn of(&self, phase: Phase) -> usize {
        self.states.values().filter(|phases| phases.contains(phase)).count()
    }
}

/// A promise that was broken, and how to see it again.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) scenario: &'static str,
    pub(crate) point: u64,
    /// What happened at this point, in order.
    pub(crate) path: String,
    pub(crate) fault: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, point, path, fault } = self;
        write!(f, "{scenario}, crash point {point}: {path}: {fault}\nrepeat it with {ONLY}={scenario}:{point}")
    }
}

/// Tries a scenario. The first violation ends it.
pub(crate) fn hunt(scenario: &Scenario, effort: Effort) -> Result<Figures, Violation> {
    let violation = |point, fault| Violation { scenario: scenario.name, point, path: "before any crash".into(), fault };
    let start = caught(|| Start::of(scenario)).map_err(|fault| violation(0, fault))?;
    let hunt = Hunt { scenario, effort, start, figures: Mutex::default() };
    let points = hunt.points();
    let found: Mutex<Option<Violation>> = Mutex::default();
    let over = AtomicBool::new(false);
    for_each(points.len() as u64, |number| {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let point = points[usize::try_from(number - 1).expect("an index of a list")];
        let probed = caught(|| hunt.probe(point)).unwrap_or_else(|fault| Err((String::new(), fault)));
        if let Err((path, fault)) = probed {
            over.store(true, Ordering::Relaxed);
            found.lock().expect(UNPOISONED).get_or_insert(Violation { path, ..violation(point, fault) });
        }
    });
    match found.into_inner().expect(UNPOISONED) {
        Some(violation) => Err(violation),
        None => Ok(hunt.figures.into_inner().expect(UNPOISONED)),
    }
}

struct Hunt<'a> {
    scenario: &'a Scenario,
    effort: Effort,
    start: Start,
    figures: Mutex<Figures>,
}

impl Hunt<'_> {
    /// The crash points to try: of each phase its share, and at least one.
    fn points(&self) -> Vec<u64> {
        if let Some(point) = self.effort.only {
            return vec![point];
        }
        let mut by_phase: BTreeMap<Phase, Vec<u64>> = BTreeMap::new();
        for (point, phase) in self.scenario.ordeal.points(&self.start.course, &self.effort) {
            by_phase.entry(phase).or_default().push(point);
        }
        if matches!(self.scenario.ordeal, Ordeal::Lives { .. }) {
            return by_phase.into_values().flatten().collect();
        }
        by_phase.into_values().flat_map(|points| self.effort.pick(points, 0)).collect()
    }

    fn probe(&self, point: u64) -> Result<(), (String, String)> {
        let mut places = 0;
        self.scenario.ordeal.reach(self.scenario, (&self.start, &self.effort), point, &mut |crash, workload| {
            places += 1;
            self.judge(point + places, &crash, workload)
        })
    }

    /// Everything that may survive one crash.
    fn judge(&self, place: u64, crash: &Crash<'_>, workload: &Workload) -> Result<(), (String, String)> {
        let unsynced = crash.disk.unsynced();
        let survivals = match crash.seed {
            None => self.effort.pick(Survival::every_place(unsynced, self.effort.seeds), place).collect(),
            Some(seed) => a_few(seed, unsynced),
        };
        self.figures.lock().expect(UNPOISONED).crashes += 1;
        for survival in survivals {
            let survivor = crash.disk.crash(&survival);
            if self.is_new(crash.phase, &survivor, crash.told) {
                let checked = caught(|| workload.check(&survivor, crash.told)).and_then(|outcome| outcome);
                checked.map_err(|fault| (format!("{}, {survival:?} survives", crash.path), fault))?;
            }
        }
        Ok(())
    }

    fn is_new(&self, phase: Phase, survivor: &SimDisk, told: &Told) -> bool {
        let image = survivor.image_hash();
        let state = image ^ u128::from(hash_of(told));
        let mut figures = self.figures.lock().expect(UNPOISONED);
        figures.images += 1;
        figures.distinct_images.insert(image);
        match figures.states.entry(state) {
            Entry::Occupied(mut known) => {
                known.get_mut().insert(phase);
                false
            }
            Entry::Vacant(new) => {
                new.insert(Phases::default()).insert(phase);
                true
            }
        }
    }
}

/// For the crashes of a long life, of which there are many: the extremes and some by chance.
fn a_few(seed: u64, unsynced: usize) -> Vec<Survival> {
    let place = usize::try_from(seed).unwrap_or(0) % unsynced.max(1);
    let by_place = if seed.is_multiple_of(2) { Survival::Prefix(place) } else { Survival::AllButOne(place) };
    let by_chance = [Survival::Random(seed), Survival::Random(seed + 1), Survival::Torn(seed), by_place];
    by_chance.into_iter().chain([Survival::Nothing, Survival::Everything]).collect()
}

/// What was told, as a number. The same for equal ones within one process, which is all that is asked of it.
fn hash_of(told: &Told) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (op, position) in told.positions() {
        (op.id, position.epoch, position.sequence).hash(&mut hasher);
    }
    told.not_executed.keys().for_each(|id| id.hash(&mut hasher));
    told.seen.hash(&mut hasher);
    hasher.finish()
}

/// A panic of the store or of an assertion is a fault like any other.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| format!("a panic: {}", message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}
