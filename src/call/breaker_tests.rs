use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const CONFIG: BreakerConfig = BreakerConfig::new(10, 0.5);

fn breaker(config: BreakerConfig) -> Arc<Breaker> {
    config.check().unwrap();
    Arc::new(Breaker::new(config))
}

fn report(breaker: &Arc<Breaker>, now: Duration, health: Health, times: usize) {
    for _ in 0..times {
        breaker.take(now).unwrap().record(now, health, 0);
    }
}

/// A breaker that opened at 0 for a second.
fn open(config: BreakerConfig) -> Arc<Breaker> {
    let breaker = breaker(config);
    report(&breaker, ms(0), Health::Bad, 10);
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

#[test]
fn below_its_minimum_of_samples_it_stays_closed_whatever_fails() {
    let breaker = breaker(CONFIG);
    report(&breaker, ms(0), Health::Bad, 9);
    assert_eq!(breaker.state(), BreakerState::Closed);
    report(&breaker, ms(0), Health::Bad, 1);
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn it_opens_at_the_ratio_and_not_below() {
    let breaker = breaker(CONFIG);
    report(&breaker, ms(0), Health::Good, 11);
    report(&breaker, ms(0), Health::Bad, 10);
    assert_eq!(breaker.state(), BreakerState::Closed, "10 of 21");
    report(&breaker, ms(0), Health::Bad, 1);
    assert_eq!(breaker.state(), BreakerState::Open, "11 of 22");
}

#[test]
fn failures_of_an_earlier_window_are_forgotten() {
    let breaker = breaker(CONFIG);
    report(&breaker, ms(0), Health::Bad, 9);
    report(&breaker, ms(11_000), Health::Bad, 9);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn an_open_one_says_when_to_come_again() {
    let breaker = open(CONFIG);
    assert_eq!(breaker.look(ms(400)), Err(Blocked { retry_after: Some(ms(600)) }));
    assert_eq!(breaker.take(ms(400)).unwrap_err(), Blocked { retry_after: Some(ms(600)) });
    assert_eq!(breaker.look(ms(1000)), Ok(()));
}

#[test]
fn exactly_as_many_probes_as_configured_are_let_through_at_a_time() {
    let breaker = open(CONFIG);
    let probes: Vec<_> = (0..300).filter_map(|_| breaker.take(ms(1000)).ok()).collect();
    assert_eq!(probes.len(), 3);
    assert_eq!(breaker.look(ms(1000)), Err(Blocked { retry_after: None }));
}

#[test]
fn as_many_successful_probes_close_it() {
    let breaker = open(CONFIG);
    report(&breaker, ms(1000), Health::Good, 2);
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    report(&breaker, ms(1000), Health::Good, 1);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn one_failed_probe_opens_it_for_twice_as_long_up_to_the_bound() {
    let breaker = open(CONFIG);
    let mut now = ms(1000);
    for seconds in [2, 4, 8, 16, 30, 30] {
        report(&breaker, now, Health::Bad, 1);
        assert_eq!(breaker.look(now), Err(Blocked { retry_after: Some(Duration::from_secs(seconds)) }));
        now += Duration::from_secs(seconds);
    }
    report(&breaker, now, Health::Good, 3);
    report(&breaker, now, Health::Bad, 10);
    assert_eq!(breaker.look(now), Err(Blocked { retry_after: Some(Duration::from_secs(1)) }), "short again");
}

#[test]
fn a_dropped_probe_returns_its_lease() {
    let breaker = open(CONFIG);
    let probes: Vec<_> = (0..3).map(|_| breaker.take(ms(1000)).unwrap()).collect();
    drop(probes);
    assert_eq!(breaker.look(ms(1000)), Ok(()));
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "and says nothing");
}

#[test]
fn a_probe_that_panics_returns_its_lease() {
    let breaker = open(CONFIG.probes(1));
    let inside = Arc::clone(&breaker);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _token = inside.take(ms(1000)).unwrap();
        std::panic::resume_unwind(Box::new("the attempt panicked"));
    }));
    assert!(panicked.is_err());
    assert_eq!(breaker.look(ms(1000)), Ok(()));
}

#[test]
fn a_probe_that_hangs_keeps_its_place_for_its_lease_only() {
    let breaker = open(CONFIG.probes(1).probe_lease(ms(500)));
    let hanging = breaker.take(ms(1000)).unwrap();
    assert!(breaker.look(ms(1499)).is_err());
    let next = breaker.take(ms(1500)).unwrap();
    hanging.record(ms(1501), Health::Bad, 0);
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "what it says too late is not heard");
    next.record(ms(1502), Health::Good, 0);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn what_was_sent_before_it_opened_says_nothing_afterwards() {
    let breaker = breaker(CONFIG);
    let stale: Vec<_> = (0..20).map(|_| breaker.take(ms(0)).unwrap()).collect();
    report(&breaker, ms(0), Health::Bad, 10);
    report(&breaker, ms(1000), Health::Good, 2);
    for token in stale {
        token.record(ms(1000), Health::Bad, 0);
    }
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
}

#[test]
fn neutral_results_do_not_count_as_samples() {
    let breaker = breaker(CONFIG);
    report(&breaker, ms(0), Health::Neutral, 1000);
    report(&breaker, ms(0), Health::Bad, 9);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn settings_of_zero_no_number_and_upside_down_are_refused() {
    for refused in [
        BreakerConfig::new(0, 0.5),
        BreakerConfig::new(10, 0.0),
        BreakerConfig::new(10, f64::NAN),
        BreakerConfig::new(10, 1.1),
        CONFIG.window(Duration::ZERO),
        CONFIG.probes(0),
        CONFIG.probe_lease(Duration::ZERO),
        CONFIG.open_for(Duration::ZERO, ms(1)),
        CONFIG.open_for(ms(2), ms(1)),
    ] {
        assert!(refused.check().is_err(), "{refused:?}");
    }
    assert_eq!(CONFIG.check(), Ok(()));
}

proptest! {
    #[test]
    fn the_open_interval_is_between_half_and_all_of_its_length(draw in any::<u64>()) {
        let breaker = breaker(CONFIG);
        for _ in 0..10 {
            breaker.take(ms(0)).unwrap().record(ms(0), Health::Bad, draw);
        }
        let wait = breaker.look(ms(0)).unwrap_err().retry_after.unwrap();
        prop_assert!(ms(500) <= wait && wait <= ms(1000), "{:?}", wait);
    }

    #[test]
    fn whatever_happens_there_are_never_more_probes_and_the_lease_always_returns(
        steps in prop::collection::vec((0_u64..800, 0_u8..5, any::<u64>()), 1..300)
    ) {
        let breaker = breaker(BreakerConfig::new(3, 0.5).probes(2));
        let (mut now, mut held) = (ms(0), Vec::new());
        for (pause, what, draw) in steps {
            now += ms(pause);
            match what {
                0 | 1 => held.extend(breaker.take(now).ok()),
                2 if !held.is_empty() => drop(held.swap_remove(0)),
                3 if !held.is_empty() => drop(held.swap_remove(0).record(now, Health::Bad, draw)),
                _ if !held.is_empty() => drop(held.swap_remove(0).record(now, Health::Good, draw)),
                _ => {}
            }
            if let Phase::HalfOpen { leases, .. } = &breaker.inner().phase {
                prop_assert!(leases.iter().filter(|lease| lease.ends > now).count() <= 2);
            }
        }
        drop(held);
        prop_assert!(breaker.take(now + Duration::from_secs(31)).is_ok());
    }
}
