//! What the tables say, held against what the clients wanted and were told.
//!
//! It counts orders per intent. It reads no receipt and no key: a count by the key could not find an order that was
//! made twice under two receipts, and a count of receipts would ask the accused.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::Path;

use counterfoil::{Store, TableError};

use crate::client::{Outcome, Told};
use crate::plan::{Intent, Plan};
use crate::service;
use crate::shop::{HISTORY, ORDERS, Order, STOCK};
use crate::verdict::Audit;

/// Everything in the tables.
#[derive(Debug, Default)]
struct Books {
    /// By intent.
    orders: HashMap<u64, Vec<Order>>,
    /// Lines by intent.
    history: HashMap<u64, u64>,
    stock: HashMap<String, u64>,
}

/// Opens the store that the service has closed, and reads it.
pub(crate) fn audit(directory: &Path, plan: &Plan, outcomes: &[Outcome]) -> Result<Audit, Box<dyn Error>> {
    let store = service::open(directory)?;
    let books = read_books(&store)?;
    let mut audit = compare(&books, plan, outcomes);
    let problems = store.verify()?.problems;
    audit
        .remarks
        .extend(problems.iter().take(REMARKS_MAX).map(|problem| format!("{}: {}", problem.check, problem.message)));
    store.close()?;
    Ok(audit)
}

const REMARKS_MAX: usize = 3;

fn read_books(store: &Store) -> Result<Books, TableError> {
    store.read(|view| {
        let mut books = Books::default();
        for row in view.table(&ORDERS)?.range(..)? {
            let (_, order) = row?;
            books.orders.entry(order.wanted.intent).or_default().push(order);
        }
        for row in view.table(&HISTORY)?.range(..)? {
            *books.history.entry(row?.1.intent).or_default() += 1;
        }
        books.stock = view.table(&STOCK)?.range(..)?.collect::<Result<_, _>>()?;
        Ok(books)
    })
}

fn compare(books: &Books, plan: &Plan, outcomes: &[Outcome]) -> Audit {
    let told: HashMap<u64, &Told> = outcomes.iter().map(|outcome| (outcome.intent, &outcome.told)).collect();
    let mut audit =
        Audit { orders_found: books.orders.values().map(|orders| orders.len() as u64).sum(), ..Audit::default() };
    for intent in plan.intents() {
        compare_intent(&mut audit, books, intent, told.get(&intent.order.intent).copied());
    }
    let reused = plan.errands.iter().filter_map(|errand| errand.reuse.as_ref());
    audit.reused_keys_executed =
        reused.filter(|intent| told.get(&intent.order.intent) == Some(&&Told::Created)).count() as u64;
    let known: HashSet<u64> = plan.intents().map(|intent| intent.order.intent).collect();
    audit.executed_though_refused += books.orders.keys().filter(|intent| !known.contains(intent)).count() as u64;
    audit.stock_off = plan.stock.iter().filter(|(item, stocked)| !stock_adds_up(books, item, *stocked)).count() as u64;
    audit
}

fn compare_intent(audit: &mut Audit, books: &Books, intent: &Intent, told: Option<&Told>) {
    let number = intent.order.intent;
    let orders = books.orders.get(&number).map_or(&[][..], Vec::as_slice);
    let lines = books.history.get(&number).copied().unwrap_or(0);
    if orders.len() > 1 || lines > 1 {
        audit.duplicates += 1;
    }
    let exists = orders.iter().any(|order| order.wanted == intent.order && order.customer == intent.customer);
    match told {
        Some(Told::Created) if !exists || lines == 0 => audit.lost += 1,
        Some(Told::Created) => {}
        Some(Told::Rejected | Told::Conflict) if !orders.is_empty() || lines > 0 => audit.executed_though_refused += 1,
        Some(Told::Rejected | Told::Conflict) => {}
        Some(Told::Fault(fault)) => {
            audit.unsettled += 1;
            if audit.remarks.len() < REMARKS_MAX {
                audit.remarks.push(format!("intent {number}: {fault}"));
            }
        }
        None => audit.unsettled += 1,
    }
}

fn stock_adds_up(books: &Books, item: &str, stocked: u64) -> bool {
    let ordered: u64 =
        books.orders.values().flatten().filter(|order| order.wanted.item == item).map(|order| order.wanted.count).sum();
    books.stock.get(item).and_then(|left| left.checked_add(ordered)) == Some(stocked)
}
