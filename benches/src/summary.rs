//! From turns to figures.

use std::time::Duration;

use serde::Serialize;

use crate::figures::{extremes, median, percentile, ratio};
use crate::harness::{Plan, Slice};
use crate::peer::PeerKind;
use crate::place::Place;
use crate::workload::Keys;

/// Of the floor's time, at most this many times with one client.
const FLOOR_TIMES_MAX: f64 = 1.5;
/// Of the best unbatched peer, at least this many times with 64 clients.
const UNBATCHED_TIMES_MIN: f64 = 4.0;

/// Everything that is printed, and the JSON document as it is.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) file_system: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) seconds_per_cell_max: f64,
    pub(crate) seed: u64,
    pub(crate) frame_bytes: usize,
    pub(crate) checkpoint_log_bytes: u64,
    pub(crate) cells: Vec<Cell>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) expectations: Vec<Expectation>,
}

/// One peer under one load.
#[derive(Debug, Serialize)]
pub(crate) struct Cell {
    pub(crate) clients: u16,
    pub(crate) keys: Keys,
    pub(crate) peer: PeerKind,
    /// The median of the rounds.
    pub(crate) operations_per_second: f64,
    /// Over the operations of all rounds, as are the others.
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) worst_us: f64,
    /// This store's operations per second divided by this peer's, medians both.
    pub(crate) ratio: Option<f64>,
    /// The same within single rounds, the smallest and the largest.
    pub(crate) ratio_range: Option<(f64, f64)>,
    pub(crate) operations_per_second_by_round: Vec<f64>,
}

/// What checkpoints of this store cost its clients.
#[derive(Debug, Serialize)]
pub(crate) struct Checkpoints {
    pub(crate) count: u64,
    /// The slowest operation of turns that contain a checkpoint.
    pub(crate) longest_stall: Option<Stall>,
    /// The slowest operation of all other turns.
    pub(crate) longest_stall_without: Option<Stall>,
    /// The longest that folding went on after a turn, which is not part of the turn's time.
    pub(crate) settled_ms_max: f64,
}

/// One slow operation.
#[derive(Debug, Serialize)]
pub(crate) struct Stall {
    pub(crate) ms: f64,
    pub(crate) clients: u16,
    pub(crate) keys: Keys,
}

/// What the prototypes promised, and whether this run agrees.
#[derive(Debug, Serialize)]
pub(crate) struct Expectation {
    pub(crate) what: &'static str,
    pub(crate) keys: Keys,
    pub(crate) at_least: f64,
    pub(crate) ratio: f64,
    pub(crate) holds: bool,
}

impl Summary {
    pub(crate) fn new(plan: &Plan, place: &Place, slices: &[Slice]) -> Self {
        let mut cells = Vec::new();
        for &keys in &plan.keys {
            for &clients in &plan.clients {
                let of = |peer| rates(slices, peer, clients, keys);
                let ours = of(PeerKind::Counterfoil);
                cells.extend(plan.peers.iter().map(|&peer| cell(slices, (peer, clients, keys), of(peer), &ours)));
            }
        }
        Self {
            file_system: place.file_system.clone(),
            rounds: plan.rounds,
            seconds_per_cell_max: plan.slice.as_secs_f64(),
            seed: plan.seed,
            frame_bytes: plan.frame_bytes,
            checkpoint_log_bytes: plan.checkpoint_log_bytes,
            expectations: plan.keys.iter().flat_map(|&keys| expectations(&cells, keys)).collect(),
            cells,
            checkpoints: checkpoints(slices),
        }
    }
}

fn of_cell(slices: &[Slice], peer: PeerKind, clients: u16, keys: Keys) -> impl Iterator<Item = &Slice> {
    slices.iter().filter(move |slice| (slice.peer, slice.clients, slice.keys) == (peer, clients, keys))
}

fn rates(slices: &[Slice], peer: PeerKind, clients: u16, keys: Keys) -> Vec<f64> {
    of_cell(slices, peer, clients, keys).map(Slice::operations_per_second).collect()
}

fn cell(slices: &[Slice], (peer, clients, keys): (PeerKind, u16, Keys), rates: Vec<f64>, ours: &[f64]) -> Cell {
    let mut latencies: Vec<u64> =
        of_cell(slices, peer, clients, keys).flat_map(|slice| slice.latencies.iter().copied()).collect();
    latencies.sort_unstable();
    let us = |thousandths| micros(percentile(&latencies, thousandths));
    let is_compared = peer != PeerKind::Counterfoil && !ours.is_empty();
    let by_round: Vec<f64> = ours.iter().zip(&rates).map(|(&ours, &peer)| ratio(ours, peer)).collect();
    Cell {
        clients,
        keys,
        peer,
        operations_per_second: median(&rates),
        p50_us: us(500),
        p99_us: us(990),
        worst_us: us(1000),
        ratio: is_compared.then(|| ratio(median(ours), median(&rates))),
        ratio_range: is_compared.then(|| extremes(&by_round)),
        operations_per_second_by_round: rates,
    }
}

fn micros(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6
}

fn checkpoints(slices: &[Slice]) -> Checkpoints {
    let ours = || slices.iter().filter(|slice| slice.peer == PeerKind::Counterfoil);
    let longest = |with_checkpoint: bool| {
        let slowest =
            ours().filter(|slice| (slice.checkpoints > 0) == with_checkpoint).max_by_key(|slice| slice.worst())?;
        Some(Stall { ms: micros(slowest.worst()) / 1e3, clients: slowest.clients, keys: slowest.keys })
    };
    Checkpoints {
        count: ours().map(|slice| slice.checkpoints).sum(),
        longest_stall: longest(true),
        longest_stall_without: longest(false),
        settled_ms_max: ours().map(|slice| slice.settled).max().unwrap_or_default().as_secs_f64() * 1e3,
    }
}

/// As far as this run has the cells for them.
fn expectations(cells: &[Cell], keys: Keys) -> Vec<Expectation> {
    let least = |clients: u16, is_meant: fn(PeerKind) -> bool| {
        let meant = cells.iter().filter(|cell| cell.clients == clients && cell.keys == keys && is_meant(cell.peer));
        meant.filter_map(|cell| cell.ratio).min_by(f64::total_cmp)
    };
    let wishes = [
        (
            "1 client: within 1.5 times the floor's time",
            1.0 / FLOOR_TIMES_MAX,
            least(1, |peer| peer == PeerKind::Floor),
        ),
        ("64 clients: 4 times the best unbatched peer", UNBATCHED_TIMES_MIN, least(64, PeerKind::is_unbatched_peer)),
        ("64 clients: ahead of the peers batched by hand", 1.0, least(64, PeerKind::is_batched_peer)),
    ];
    let met = wishes.into_iter().filter_map(|(what, at_least, ratio)| {
        let ratio = ratio?;
        Some(Expectation { what, keys, at_least, ratio, holds: ratio >= at_least })
    });
    met.collect()
}
