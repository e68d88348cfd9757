//! The child process: a small order service on a store, which knows nothing of being killed.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use counterfoil::{Store, TableError};

use crate::habits::{Desk, Habit, SEPARATE_RECEIPTS};
use crate::plan::CLIENTS;
use crate::protocol::{FromService, OrderRequest, ToService};
use crate::shop::{CREATE_ORDER, HISTORY, ORDERS, STOCK};

/// What the parent tells the child on its command line.
#[derive(Debug)]
pub(crate) struct ServiceArgs {
    pub(crate) habit: Habit,
    pub(crate) store: PathBuf,
    /// `item=count,item=count`: what a new store begins with.
    pub(crate) stock: String,
}

/// Serves until standard input ends, which it also does when the parent dies: no child outlives it.
pub(crate) fn serve(args: &ServiceArgs) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let store = open(&args.store)?;
    let open_ms = started.elapsed().as_secs_f64() * 1000.0;
    fill_stock(&store, &args.stock)?;
    say(&FromService::Ready { open_ms })?;

    let desk = Arc::new(Desk::new(store.clone(), args.habit));
    let (requests, workers) = start_workers(&desk);
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            ToService::CreateOrder(request) => requests.send(request)?,
            ToService::FindOrders { intents } => {
                say(&FromService::FoundOrders { intents: find_orders(&store, &intents)? })?;
            }
        }
    }
    drop(requests);
    for worker in workers {
        worker.join().map_err(|_| "a worker panicked")?;
    }
    Ok(store.close()?)
}

/// The store with everything that any of the three runs uses. The audit opens it the same way.
pub(crate) fn open(directory: &Path) -> Result<Store, counterfoil::OpenError> {
    Store::builder()
        .operation(&CREATE_ORDER)
        .table(&ORDERS)
        .table(&STOCK)
        .table(&HISTORY)
        .table(&SEPARATE_RECEIPTS)
        .open(directory)
}

/// Every item at once or none, and only in a shop that has none yet: a kill in between must not fill it twice.
fn fill_stock(store: &Store, stock: &str) -> Result<(), Box<dyn Error>> {
    let items = stock
        .split(',')
        .filter_map(|item| item.split_once('='))
        .map(|(item, count)| Ok((item.to_owned(), count.parse()?)))
        .collect::<Result<Vec<(String, u64)>, std::num::ParseIntError>>()?;
    store.write(move |tx| {
        let table = tx.table(&STOCK)?;
        if table.first()?.is_none() {
            for (item, count) in &items {
                table.insert_new(item, count)?;
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// As many workers as there are clients, so that whoever waits, waits for the store.
fn start_workers(desk: &Arc<Desk>) -> (Sender<OrderRequest>, Vec<thread::JoinHandle<()>>) {
    let (sender, receiver) = mpsc::channel();
    let receiver = Arc::new(Mutex::new(receiver));
    let workers = (0..CLIENTS)
        .map(|_| {
            let (desk, receiver) = (Arc::clone(desk), Arc::clone(&receiver));
            thread::spawn(move || work(&desk, &receiver))
        })
        .collect();
    (sender, workers)
}

fn work(desk: &Desk, requests: &Mutex<Receiver<OrderRequest>>) {
    loop {
        let next = requests.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        // Nobody to answer: the parent is gone, and the end of standard input is about to say so.
        if say(&FromService::Answer(desk.answer(request))).is_err() {
            return;
        }
    }
}

fn find_orders(store: &Store, intents: &[u64]) -> Result<Vec<u64>, TableError> {
    store.read(|view| {
        let mut found = Vec::new();
        for row in view.table(&ORDERS)?.range(..)? {
            let intent = row?.1.wanted.intent;
            if intents.contains(&intent) {
                found.push(intent);
            }
        }
        Ok(found)
    })
}

/// Writes one line, whole.
pub(crate) fn say(message: &FromService) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
