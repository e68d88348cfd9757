//! Orders through the bad network, and the count at the end.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use counterfoil::call::{Finished, Identity, Outcome};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::client::Orders;
use crate::proxy::{Harm, Upstream};
use crate::{Ended, Failed, proxy};

/// Customers who order at the same time.
const WORKERS: u32 = 16;

/// Ends with this process, whatever ends this.
struct Service {
    child: Child,
    address: SocketAddr,
}

impl Service {
    fn start(directory: &std::path::Path) -> Result<Self, Failed> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg(directory).args(["0", "--child"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("the service has no output")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on ").ok_or("the service did not start")?.parse()?;
        Ok(Self { child, address })
    }

    /// Ends it as a failing machine does: nothing is closed, flushed or answered.
    fn kill(mut self) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The end of its standard input ends it.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

#[derive(Debug, Default)]
struct Tally {
    locations: BTreeSet<String>,
    shared_locations: u32,
    rejected: u32,
    replayed: u32,
    uncertain_once: u32,
    attempts: u32,
    unsettled: u32,
}

/// Makes the orders, and kills the service `kills` times meanwhile.
pub(crate) async fn run(orders: u32, seed: u64, kills: u32) -> Result<Ended, Failed> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("store");
    let mut service = Service::start(&store)?;
    let upstream = Upstream::new(service.address);
    let (address, harm) = proxy::start(upstream.clone(), seed).await?;
    let client = Orders::new(address)?;

    let (mut tasks, (done, mut settled)) = (JoinSet::new(), unbounded_channel());
    for worker in 0..WORKERS {
        tasks.spawn(work(client.clone(), (worker..orders).step_by(WORKERS as usize), done.clone()));
    }
    drop(done);
    let (mut orders_done, mut killed) = (0_u64, 0);
    while settled.recv().await.is_some() {
        orders_done += 1;
        if killed < kills && orders_done * u64::from(kills + 1) >= u64::from(orders) * u64::from(killed + 1) {
            until_a_request_is_open(&harm).await;
            service.kill()?;
            service = Service::start(&store)?;
            upstream.set(service.address);
            killed += 1;
        }
    }
    let mut tally = Tally::default();
    while let Some(finished) = tasks.join_next().await {
        finished?.into_iter().for_each(|rounds| tally.count(rounds));
    }

    let stored = Orders::new(service.address)?.count().await?;
    let made = orders - orders.div_ceil(10);
    println!(
        "{orders} orders in {} attempts; the network lost {} replies, cut {} requests, stalled {}",
        tally.attempts,
        harm.replies_lost.load(Ordering::Relaxed),
        harm.requests_cut.load(Ordering::Relaxed),
        harm.stalled.load(Ordering::Relaxed),
    );
    let open_at_kill = harm.unanswered.load(Ordering::Relaxed);
    println!("the service was killed {killed} times, with {open_at_kill} requests open");
    println!(
        "{} made, {} of them answered from a receipt; {} refused; {} were uncertain and settled under the same key",
        tally.locations.len(),
        tally.replayed,
        tally.rejected,
        tally.uncertain_once,
    );
    println!(
        "{stored} orders in the store: {} doubled, {} missing",
        stored.saturating_sub(made.into()),
        u64::from(made).saturating_sub(stored)
    );
    let right =
        stored == u64::from(made) && tally.locations.len() as u64 == stored && tally.rejected == orders.div_ceil(10);
    if !(right && tally.shared_locations == 0 && tally.unsettled == 0) {
        return Ok(Ended::Wrong);
    }
    if kills > 0 && (killed < kills || open_at_kill == 0) {
        println!("NOT EXERCISED: no kill fell into an open request");
        return Ok(Ended::NotExercised);
    }
    Ok(Ended::Right)
}

/// Or for a second: towards the end there may be none.
async fn until_a_request_is_open(harm: &Harm) {
    let open = async {
        while harm.open.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
    };
    drop(tokio::time::timeout(Duration::from_secs(1), open).await);
}

/// The orders of one customer, one after the other. Every tenth is one of nothing, which the business refuses.
async fn work(
    client: Orders,
    numbers: impl Iterator<Item = u32>,
    done: UnboundedSender<()>,
) -> Vec<Vec<Finished<String, String>>> {
    let mut finished = Vec::new();
    for number in numbers {
        let order = format!("{{\"item\":\"socks\",\"count\":{},\"number\":{number}}}", number % 10);
        finished.push(settle(&client, &order).await);
        if done.send(()).is_err() {
            // The run has failed, and nobody counts any more.
            break;
        }
    }
    finished
}

/// One order, asked for again under the same key for as long as it is uncertain or was not done.
async fn settle(client: &Orders, order: &str) -> Vec<Finished<String, String>> {
    let identity: Identity = client.mint();
    let mut rounds = Vec::new();
    for _ in 0..100 {
        let finished = client.create(identity.clone(), order).await;
        let settled = matches!(finished.outcome, Outcome::Success { .. } | Outcome::Rejected { .. });
        rounds.push(finished);
        if settled {
            break;
        }
        // A service that was killed needs a moment until it listens again.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    rounds
}

impl Tally {
    fn count(&mut self, rounds: Vec<Finished<String, String>>) {
        self.attempts += rounds.iter().map(|round| round.report.attempts).sum::<u32>();
        let uncertain = rounds.iter().any(|round| matches!(round.outcome, Outcome::Uncertain { .. }));
        self.uncertain_once += u32::from(uncertain);
        match rounds.into_iter().next_back().map(|round| round.outcome) {
            Some(Outcome::Success { value, replayed, .. }) => {
                self.replayed += u32::from(replayed);
                self.shared_locations += u32::from(!self.locations.insert(value));
            }
            Some(Outcome::Rejected { .. }) => self.rejected += 1,
            _ => self.unsettled += 1,
        }
    }
}
