//! Runs a scenario many times: under real threads, or under every schedule that a model checker draws.

#[cfg(counterfoil_shuttle)]
pub(crate) use shuttle::thread;
#[cfg(not(counterfoil_shuttle))]
pub(crate) use std::thread;

/// What a round draws by lot. It repeats with the round's seed; in a model it is part of the schedule.
pub(crate) struct Chance {
    #[cfg(not(counterfoil_shuttle))]
    state: u64,
}

impl Chance {
    /// Below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    #[cfg(counterfoil_shuttle)]
    fn next(&mut self) -> u64 {
        shuttle::rand::Rng::r#gen::<u64>(&mut shuttle::rand::thread_rng())
    }

    #[cfg(not(counterfoil_shuttle))]
    fn next(&mut self) -> u64 {
        // splitmix64
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A chance of its own for another thread.
    pub(crate) fn split(&mut self) -> Self {
        Self {
            #[cfg(not(counterfoil_shuttle))]
            state: self.next(),
        }
    }

    /// Lets others go first, up to `bound` times.
    pub(crate) fn dawdle(&mut self, bound: u64) {
        for _ in 0..self.below(bound) {
            pause();
        }
    }
}

/// Lets others go first.
pub(crate) fn pause() {
    #[cfg(counterfoil_shuttle)]
    thread::sleep(std::time::Duration::ZERO);
    #[cfg(not(counterfoil_shuttle))]
    thread::yield_now();
}

#[cfg(not(counterfoil_shuttle))]
pub(crate) use stress::{explore, once};

#[cfg(not(counterfoil_shuttle))]
mod stress {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use super::Chance;
    use crate::scale::scaled;

    /// Rounds of each scenario at full size.
    const ROUNDS: u64 = 2000;

    /// After this long a round is stuck, and a message is better than a hang.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Runs once, as preparation.
    pub(crate) fn once(work: impl FnOnce() + Send + 'static) {
        work();
    }

    /// Runs as many rounds as the scale says.
    pub(crate) fn explore(name: &str, scenario: fn(Chance)) {
        let rounds = scaled(ROUNDS);
        let (report, rounds_done) = channel();
        let runner = std::thread::spawn(move || {
            for seed in 0..rounds {
                scenario(Chance { state: seed });
                report.send(seed).expect("the test waits");
            }
        });
        let mut done = 0;
        loop {
            match rounds_done.recv_timeout(PATIENCE) {
                Ok(_) => done += 1,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("{name}: round {done} is stuck"),
            }
        }
        if runner.join().is_err() {
            panic!("{name}: round {done} failed");
        }
        println!("{name}: {done} rounds with real threads, 0 violations");
    }
}

#[cfg(counterfoil_shuttle)]
pub(crate) use model::{explore, once};

#[cfg(counterfoil_shuttle)]
mod model {
    use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler};
    use shuttle::{Config, Runner};

    use super::Chance;
    use crate::scale::scaled;

    /// Schedules of each scenario at full size: half of them drawn at every step, half by priorities that change at a
    /// few steps, which finds what needs a rare order of few events.
    const SCHEDULES: u64 = 4000;

    /// How many steps change the priorities.
    const DEPTH: usize = 3;

    /// Chooses another set of schedules.
    const SEED: &str = "COUNTERFOIL_SCHEDULE_SEED";

    /// A failed schedule as it was printed: run it alone.
    const REPLAY: &str = "COUNTERFOIL_SCHEDULE";

    fn config() -> Config {
        let mut config = Config::new();
        // redb and the persistent map are written for the stacks of real threads.
        config.stack_size = 1024 * 1024;
        // What is not modelled is said in src/base/sync.rs.
        config.silence_warnings = true;
        config
    }

    fn run<S: Scheduler + 'static>(scheduler: S, scenario: fn(Chance)) -> usize {
        Runner::new(scheduler, config()).run(move || scenario(Chance {}))
    }

    /// Runs once, as preparation.
    pub(crate) fn once(work: impl FnOnce() + Send + 'static) {
        let work = std::sync::Mutex::new(Some(work));
        Runner::new(RandomScheduler::new_from_seed(0, 1), config()).run(move || {
            let work = work.lock().expect("no panic").take();
            work.expect("one run")();
        });
    }

    /// Runs under as many schedules as the scale says.
    pub(crate) fn explore(name: &str, scenario: fn(Chance)) {
        if let Ok(schedule) = std::env::var(REPLAY) {
            run(ReplayScheduler::new_from_encoded(&schedule), scenario);
            return;
        }
        let seed = std::env::var(SEED).map_or(1, |text| text.parse().unwrap_or_else(|error| panic!("{SEED}: {error}")));
        let half = usize::try_from(scaled(SCHEDULES).div_ceil(2)).expect("a small number");
        println!("{name}: {SEED}={seed}; a failed schedule is printed and repeated with {REPLAY}");
        let random = run(RandomScheduler::new_from_seed(seed, half), scenario);
        let by_priority = run(PctScheduler::new_from_seed(seed, DEPTH, half), scenario);
        println!("{name}: {} schedules, 0 violations", random + by_priority);
    }
}
