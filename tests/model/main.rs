//! Random operations against a plain model in memory: every answer, every row, every receipt and every entry of the
//! log is compared. Cases come from seeds and shrink to the fewest steps that still fail.
#![cfg(feature = "testing")]

mod oracle;
mod queue;
#[path = "../support/crash/scale.rs"]
mod scale;
mod script;
mod session;
mod steps;
mod tables;
mod tally;

use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::session::Session;
use crate::tally::Tally;

/// Cases in a full run, over all workers.
const CASES: u64 = 4_000;
const WORKERS: u64 = 2;

#[test]
fn whatever_is_asked_in_whatever_order_the_store_answers_as_the_plain_model_does() {
    let cases = scale::scaled(CASES).max(WORKERS * 60);
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let tally = &tally;
            scope.spawn(move || run(worker, cases / WORKERS, tally));
        }
    });
    print!("{}", tally.table());
    println!("{} cases, {} steps, 0 differences", cases / WORKERS * WORKERS, tally.total("step"));
    assert!(tally.missing().is_empty(), "never seen: {:?}", tally.missing());
}

/// Runs cases from the worker's own seed; the first that fails is shrunk and shown.
fn run(worker: u64, cases: u64, tally: &Tally) {
    let config = Config {
        cases: u32::try_from(cases).expect("few enough cases"),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&worker.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let outcome = runner
        .run(&steps::case(), |case| Session::run(&case, tally).map_err(proptest::test_runner::TestCaseError::fail));
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!("worker {worker}: {reason}\nthe smallest case: {case:#?}"),
        Err(TestError::Abort(reason)) => panic!("worker {worker}: {reason}"),
    }
}
