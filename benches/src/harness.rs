//! The peers take turns: in every round, in every cell, each for the same time.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::failure::{Failure, Outcome};
use crate::peer::{Peer, PeerKind};
use crate::progress::Progress;
use crate::workload::{Keys, Workload};

const MIB: u64 = 1024 * 1024;
/// What `--quick` leaves for turns of its 60 seconds: the rest is for opening, counting, and turns that run over.
const QUICK_BUDGET: Duration = Duration::from_secs(45);
/// A turn is not made shorter than this, however late it is.
const SLICE_MIN: Duration = Duration::from_millis(20);

/// What is to be measured.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) peers: Vec<PeerKind>,
    pub(crate) clients: Vec<u16>,
    pub(crate) keys: Vec<Keys>,
    pub(crate) rounds: u32,
    /// The longest that a turn lasts.
    pub(crate) slice: Duration,
    /// All turns end within this, getting shorter if need be.
    budget: Option<Duration>,
    pub(crate) seed: u64,
    pub(crate) checkpoint_log_bytes: u64,
    /// What this store appends for one operation.
    pub(crate) frame_bytes: usize,
}

impl Plan {
    pub(crate) fn new(args: &Args, frame_bytes: usize) -> Self {
        let (rounds, seconds, checkpoint_mib) = if args.quick { (3, 0.3, 4) } else { (5, 1.0, 32) };
        let is_default = args.rounds.is_none() && args.seconds_per_cell.is_none();
        Self {
            peers: sorted(&args.peers),
            clients: sorted(&args.clients),
            keys: sorted(&args.keys),
            rounds: args.rounds.unwrap_or(rounds),
            slice: Duration::from_secs_f64(args.seconds_per_cell.unwrap_or(seconds)),
            budget: (args.quick && is_default).then_some(QUICK_BUDGET),
            seed: args.seed,
            checkpoint_log_bytes: u64::from(args.checkpoint_mib.unwrap_or(checkpoint_mib)) * MIB,
            frame_bytes,
        }
    }

    /// How many turns there are.
    pub(crate) fn slices(&self) -> usize {
        self.rounds as usize * self.keys.len() * self.clients.len() * self.peers.len()
    }

    /// How long the next turn lasts.
    fn next_slice(&self, elapsed: Duration, done: usize) -> Duration {
        let left = u32::try_from(self.slices().saturating_sub(done)).unwrap_or(u32::MAX).max(1);
        let share = self.budget.map_or(self.slice, |budget| budget.saturating_sub(elapsed) / left);
        share.clamp(SLICE_MIN.min(self.slice), self.slice)
    }
}

fn sorted<T: Ord + Clone>(values: &[T]) -> Vec<T> {
    let mut values = values.to_vec();
    values.sort();
    values.dedup();
    values
}

/// One turn of one peer.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) peer: PeerKind,
    pub(crate) clients: u16,
    pub(crate) keys: Keys,
    pub(crate) elapsed: Duration,
    /// Of every operation, in nanoseconds; sorted.
    pub(crate) latencies: Vec<u64>,
    /// Checkpoints that ended in this turn, or in the wait behind it.
    pub(crate) checkpoints: u64,
    /// How long work in the background outlived the turn.
    pub(crate) settled: Duration,
}

impl Slice {
    #[expect(clippy::cast_precision_loss, reason = "no turn has 2^53 operations")]
    pub(crate) fn operations_per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn worst(&self) -> u64 {
        self.latencies.last().copied().unwrap_or(0)
    }
}

struct Contestant {
    kind: PeerKind,
    keys: Keys,
    peer: Box<dyn Peer>,
    workload: Workload,
}

/// Everybody who takes part, once for each order of keys, open for the whole run.
pub(crate) struct World(Vec<Contestant>);

impl World {
    pub(crate) fn open(plan: &Plan, directory: &Path) -> Outcome<Self> {
        let mut contestants = Vec::new();
        for &keys in &plan.keys {
            for &kind in &plan.peers {
                let peer = kind.open(plan, &directory.join(format!("{}-{}", kind.name(), keys.name())))?;
                contestants.push(Contestant { kind, keys, peer, workload: Workload::new(keys, plan.seed) });
            }
        }
        Ok(Self(contestants))
    }

    pub(crate) fn measure(&self, plan: &Plan, progress: &mut Progress) -> Outcome<Vec<Slice>> {
        let started = Instant::now();
        let mut slices = Vec::with_capacity(plan.slices());
        for round in 0..plan.rounds {
            for &keys in &plan.keys {
                for &clients in &plan.clients {
                    for contestant in self.turns(keys, round) {
                        let Contestant { kind, peer, workload, .. } = contestant;
                        let (name, keys_name) = (kind.name(), keys.name());
                        progress.turn(&format!("{name}, {clients} clients, {keys_name} keys, round {}", round + 1));
                        let time = plan.next_slice(started.elapsed(), slices.len());
                        let before = peer.checkpoints();
                        let (elapsed, latencies) = run_clients(&**peer, workload, clients, time)?;
                        let settling = Instant::now();
                        peer.settle()?;
                        let settled = settling.elapsed();
                        let checkpoints = peer.checkpoints() - before;
                        slices.push(Slice { peer: *kind, clients, keys, elapsed, latencies, checkpoints, settled });
                    }
                }
            }
            progress.round(round, plan.rounds);
        }
        Ok(slices)
    }

    /// In each round somebody else begins, so that nobody always follows the same one.
    fn turns(&self, keys: Keys, round: u32) -> impl Iterator<Item = &Contestant> {
        let of_keys = self.0.iter().filter(move |contestant| contestant.keys == keys);
        let count = of_keys.clone().count();
        of_keys.cycle().skip(round as usize % count.max(1)).take(count)
    }

    /// Closes everybody. Whoever holds another number of orders than it answered for has measured nothing.
    pub(crate) fn close(self) -> Outcome<()> {
        for Contestant { kind, keys, peer, workload } in self.0 {
            let (asked, stored) = (workload.count(), peer.finish()?);
            if asked != stored {
                return Err(Failure::new(
                    format!("{} ({} keys) answered {asked} orders and holds {stored}", kind.name(), keys.name()),
                    "its figures are worthless, and so is this run: report it with the seed",
                ));
            }
        }
        Ok(())
    }
}

/// Lets clients commit one operation after another until the time is up.
fn run_clients(peer: &dyn Peer, workload: &Workload, clients: u16, time: Duration) -> Outcome<(Duration, Vec<u64>)> {
    let start = Barrier::new(usize::from(clients));
    let clients: Vec<Outcome<ClientRun>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..clients).map(|_| scope.spawn(|| run_client(peer, workload, &start, time))).collect();
        running.into_iter().map(|client| client.join().unwrap_or_else(|_| Err(client_panicked()))).collect()
    });
    let clients = clients.into_iter().collect::<Outcome<Vec<_>>>()?;
    let started = clients.iter().map(|client| client.started).min();
    let ended = clients.iter().map(|client| client.ended).max();
    let elapsed = started.zip(ended).map_or(Duration::ZERO, |(started, ended)| ended - started);
    let mut latencies: Vec<u64> = clients.into_iter().flat_map(|client| client.latencies).collect();
    latencies.sort_unstable();
    Ok((elapsed, latencies))
}

struct ClientRun {
    started: Instant,
    ended: Instant,
    latencies: Vec<u64>,
}

fn run_client(peer: &dyn Peer, workload: &Workload, start: &Barrier, time: Duration) -> Outcome<ClientRun> {
    let mut client = peer.client();
    let mut latencies = Vec::new();
    start.wait();
    let started = Instant::now();
    let mut ended = started;
    while ended - started < time {
        let op = workload.next();
        let asked = Instant::now();
        client.execute(op)?;
        ended = Instant::now();
        latencies.push(u64::try_from((ended - asked).as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(ClientRun { started, ended, latencies })
}

fn client_panicked() -> Failure {
    Failure::new("a client has panicked", "its message is above; --peers leaves a peer out")
}
