//! Orders through the bad network, and the count at the end.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

use counterfoil::call::{Finished, Identity, Outcome};
use tokio::task::JoinSet;

use crate::client::Orders;
use crate::{Failed, proxy};

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

/// `true`: every order is there once.
pub(crate) async fn run(orders: u32, seed: u64) -> Result<bool, Failed> {
    let directory = tempfile::tempdir()?;
    let service = Service::start(&directory.path().join("store"))?;
    let (address, harm) = proxy::start(service.address, seed).await?;
    let client = Orders::new(address)?;

    let mut tasks = JoinSet::new();
    for worker in 0..WORKERS {
        tasks.spawn(work(client.clone(), (worker..orders).step_by(WORKERS as usize)));
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
    Ok(right && tally.shared_locations == 0 && tally.unsettled == 0)
}

/// The orders of one customer, one after the other. Every tenth is one of nothing, which the business refuses.
async fn work(client: Orders, numbers: impl Iterator<Item = u32>) -> Vec<Vec<Finished<String, String>>> {
    let mut finished = Vec::new();
    for number in numbers {
        let order = format!("{{\"item\":\"socks\",\"count\":{},\"number\":{number}}}", number % 10);
        finished.push(settle(&client, &order).await);
    }
    finished
}

/// One order, asked for again under the same key for as long as it is uncertain or was not done.
async fn settle(client: &Orders, order: &str) -> Vec<Finished<String, String>> {
    let identity: Identity = client.mint();
    let mut rounds = Vec::new();
    for _ in 0..20 {
        let finished = client.create(identity.clone(), order).await;
        let settled = matches!(finished.outcome, Outcome::Success { .. } | Outcome::Rejected { .. });
        rounds.push(finished);
        if settled {
            break;
        }
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
