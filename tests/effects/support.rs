//! A shop that charges through a provider, and a provider that remembers what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil::effect::{
    Answer, Attempt, Dispatcher, EffectHandler, EffectId, EffectStatus, HandlerLimits, Intent, LookUpAnswer, Provider,
    Settled, Verdict,
};
use counterfoil::testing::{SimDisk, TestBed};
use counterfoil::{Decision, Error, Failure, OperationType, Receipt, Reply, Store, StoreBuilder, Table, Tx};

pub(crate) const PAY: OperationType = OperationType::new("pay");
/// What became of orders.
pub(crate) const ORDERS: Table<String, String> = Table::new("orders");
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn keyed() -> Provider {
    Provider::new("bank").deduplicates(24 * HOUR).attempts_max(4)
}

pub(crate) fn blind() -> Provider {
    Provider::new("bank").attempts_max(4)
}

pub(crate) fn builder(provider: Provider) -> StoreBuilder {
    Store::builder().operation(&PAY).table(&ORDERS).provider(provider).continuation(&PAY, finish)
}

/// The order is paid or not, and the receipt says so.
pub(crate) fn finish(tx: &Tx<'_>, settled: &Settled) -> Result<Decision, Failure> {
    let paid = settled.effects.iter().all(|effect| effect.applied);
    let key = String::from_utf8_lossy(settled.slot.key.as_bytes()).into_owned();
    tx.table(&ORDERS)?.put(key.as_str(), &if paid { "paid" } else { "unpaid" }.to_owned())?;
    let references: Vec<_> = settled.effects.iter().map(|effect| effect.reference.clone()).collect();
    Ok(if paid { Reply::ok() } else { Reply::new(402)? }.json(&references)?.into())
}

pub(crate) fn bed(provider: fn() -> Provider) -> TestBed {
    TestBed::new(move || builder(provider())).expect("the store opens")
}

/// Orders, and is accepted; or asks again.
pub(crate) fn pay(store: &Store, key: &str) -> Result<Receipt, Error> {
    pay_with(store, key, |tx| Ok(vec![tx.intend(Intent::new("bank", "12.00"))?]))
}

pub(crate) fn pay_with(
    store: &Store,
    key: &str,
    plan: impl FnOnce(&Tx<'_>) -> Result<Vec<EffectId>, Failure> + Send + 'static,
) -> Result<Receipt, Error> {
    let operation = PAY.request("acme", "alice", key).expect("a slot").json(&key).expect("a request");
    let name = key.to_owned();
    store.execute(operation, move |tx: &Tx<'_>| {
        tx.table(&ORDERS)?.put(name.as_str(), &"open".to_owned())?;
        let ids: Vec<String> = plan(tx)?.iter().map(ToString::to_string).collect();
        Ok(Decision::Accept(Reply::accepted().json(&ids)?))
    })
}

pub(crate) fn order(store: &Store, key: &str) -> Option<String> {
    store.read(|view| view.table(&ORDERS).expect("declared").get(key).expect("readable"))
}

pub(crate) fn effects(store: &Store) -> Vec<EffectStatus> {
    store.effects(|_| true).expect("readable")
}

/// The only effect there is.
pub(crate) fn effect(store: &Store) -> EffectStatus {
    let effects = effects(store);
    assert_eq!(effects.len(), 1, "{effects:?}");
    effects.into_iter().next().expect("one")
}

type Script<T> = VecDeque<Box<dyn FnOnce(&Attempt) -> T + Send>>;

/// A provider that does what its script says, and else says yes.
#[derive(Clone, Default)]
pub(crate) struct Bank {
    pub(crate) sent: Arc<Mutex<Vec<(EffectId, String)>>>,
    pub(crate) asked: Arc<Mutex<Vec<EffectId>>>,
    sends: Arc<Mutex<Script<Verdict>>>,
    asks: Arc<Mutex<Script<LookUpAnswer>>>,
}

impl Bank {
    pub(crate) fn then(self, send: impl FnOnce(&Attempt) -> Verdict + Send + 'static) -> Self {
        self.sends.lock().expect("nobody panics in here").push_back(Box::new(send));
        self
    }

    pub(crate) fn answers(self, verdict: Verdict) -> Self {
        self.then(move |_| verdict)
    }

    pub(crate) fn says(self, answer: LookUpAnswer) -> Self {
        self.asks.lock().expect("nobody panics in here").push_back(Box::new(move |_| answer));
        self
    }

    /// Power goes while the request is with the provider: the answer is never recorded.
    pub(crate) fn loses_power(self, disk: &SimDisk) -> Self {
        let disk = disk.clone();
        self.then(move |_| {
            disk.power_cut_at(disk.operations());
            Verdict::Applied(Answer::new())
        })
    }

    pub(crate) fn dispatcher(&self, store: &Store) -> Dispatcher {
        let dispatcher = Dispatcher::new(store).seed(1);
        dispatcher.handler("bank", self.clone(), HandlerLimits::default()).expect("declared")
    }

    pub(crate) fn payloads(&self) -> Vec<String> {
        self.sent.lock().expect("nobody panics in here").iter().map(|(_, payload)| payload.clone()).collect()
    }
}

impl EffectHandler for Bank {
    fn send(&self, attempt: &Attempt) -> Verdict {
        let payload = String::from_utf8_lossy(attempt.payload()).into_owned();
        self.sent.lock().expect("nobody panics in here").push((attempt.id(), payload));
        let next = self.sends.lock().expect("nobody panics in here").pop_front();
        next.map_or_else(|| Verdict::Applied(Answer::new().reference("ch-1")), |send| send(attempt))
    }

    fn look_up(&self, attempt: &Attempt) -> LookUpAnswer {
        self.asked.lock().expect("nobody panics in here").push(attempt.id());
        let next = self.asks.lock().expect("nobody panics in here").pop_front();
        next.map_or(LookUpAnswer::Failed, |ask| ask(attempt))
    }
}

/// Steps until nothing is due now.
pub(crate) fn settle(dispatcher: &Dispatcher) {
    while dispatcher.step().expect("the store goes on") > 0 {}
}

/// Steps through an hour of pauses.
pub(crate) fn pass_an_hour(bed: &TestBed, dispatcher: &Dispatcher) {
    for _ in 0..60 {
        settle(dispatcher);
        bed.clock().advance(60 * SECOND);
    }
    settle(dispatcher);
}
