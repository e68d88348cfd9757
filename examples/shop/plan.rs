//! What a run is going to do, decided by its seed before it begins: the orders, the keys that are used again, the
//! replies that get lost, the moments of the kills.
//!
//! The seed decides what is tried, not how threads and disk interleave: two runs of one seed try the same things and
//! may still differ in what was in flight at a kill.

use std::time::Duration;

use crate::shop::CreateOrder;

/// How many clients submit at the same time; each waits for one answer before it goes on.
pub(crate) const CLIENTS: usize = 16;
/// Of how many replies in a hundred the client never hears.
pub(crate) const DROPPED_PERCENT: u64 = 5;
/// After how many orders one key is used again with other contents.
const REUSE_EVERY: u64 = 50;
/// One order in so many asks for more than the shop ever had.
const GREEDY_EVERY: u64 = 40;
const CUSTOMERS: u64 = 40;
const ITEMS: u64 = 20;
/// How much of what is asked for is in stock, in percent: the last customers go away empty.
const STOCKED_PERCENT: u64 = 97;
/// A kill follows the answer that set it off by at most this, so that it meets operations at every stage.
const PAUSE_MICROS_MAX: u64 = 300;

/// One thing that a client wants, whatever number of attempts it takes.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    pub(crate) customer: String,
    pub(crate) key: String,
    pub(crate) order: CreateOrder,
}

/// An order and, now and then, a later request of the same client that carelessly uses the key again.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    pub(crate) order: Intent,
    pub(crate) reuse: Option<Intent>,
}

/// When to kill the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KillMoment {
    /// After so many answers.
    pub(crate) answers: u64,
    /// And so long after the next one arrived, which is not delivered any more.
    pub(crate) pause: Duration,
}

/// Everything about a run that its seed decides.
#[derive(Debug)]
pub(crate) struct Plan {
    seed: u64,
    pub(crate) errands: Vec<Errand>,
    /// Item and how many pieces of it there are at the beginning.
    pub(crate) stock: Vec<(String, u64)>,
    pub(crate) kills: Vec<KillMoment>,
}

impl Plan {
    pub(crate) fn new(seed: u64, orders: u64, kills: u64) -> Self {
        let mut random = SplitMix64(seed);
        let mut asked = vec![0; usize::try_from(ITEMS).expect("a few items")];
        let errands = (0..orders).map(|number| errand(number, orders, &mut random, &mut asked)).collect();
        let stock =
            (0..).zip(asked).map(|(item, asked)| (item_name(item), (asked * STOCKED_PERCENT).div_ceil(100))).collect();
        Self { seed, errands, stock, kills: kill_moments(orders, kills, &mut random) }
    }

    /// Whether the network drops the reply to an attempt.
    pub(crate) fn drops_reply(&self, intent: u64, attempt: u32) -> bool {
        let mut random = SplitMix64(self.seed ^ intent.rotate_left(20) ^ u64::from(attempt).rotate_left(52));
        random.below(100) < DROPPED_PERCENT
    }

    pub(crate) fn intents(&self) -> impl Iterator<Item = &Intent> {
        self.errands.iter().flat_map(|errand| std::iter::once(&errand.order).chain(&errand.reuse))
    }
}

fn errand(number: u64, orders: u64, random: &mut SplitMix64, asked: &mut [u64]) -> Errand {
    let item = random.below(ITEMS);
    let count = if random.below(GREEDY_EVERY) == 0 {
        1_000_000
    } else {
        let count = 1 + random.below(3);
        asked[usize::try_from(item).expect("a few items")] += count;
        count
    };
    let customer = format!("customer-{:02}", random.below(CUSTOMERS));
    // Random keys, as clients make them; their number keeps them apart.
    let key = format!("{:016x}-{number}", random.next());
    let order = CreateOrder { intent: number, item: item_name(item), count };
    let reuse = (number % REUSE_EVERY == REUSE_EVERY / 2).then(|| Intent {
        customer: customer.clone(),
        key: key.clone(),
        order: CreateOrder { intent: orders + number, count: 1 + count % 3, item: order.item.clone() },
    });
    Errand { order: Intent { customer, key, order }, reuse }
}

fn item_name(item: u64) -> String {
    format!("item-{item:02}")
}

/// Kills fall into equal parts of the run, anywhere in each; the last sixth is left for finishing what they broke.
fn kill_moments(orders: u64, kills: u64, random: &mut SplitMix64) -> Vec<KillMoment> {
    let part = orders * 5 / 6 / kills.max(1);
    (0..kills)
        .map(|kill| KillMoment {
            answers: kill * part + part / 4 + random.below((part / 2).max(1)),
            pause: Duration::from_micros(random.below(PAUSE_MICROS_MAX)),
        })
        .collect()
}

/// Sebastiano Vigna's SplitMix64: small, and good enough to decide who is unlucky.
#[derive(Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
