//! The shop itself: its tables and the one thing that can be done, whoever keeps the receipts.

use counterfoil::{Decision, Failure, OperationType, Reply, Table, Tx};
use serde::{Deserialize, Serialize};

/// The operation.
pub(crate) const CREATE_ORDER: OperationType = OperationType::new("create_order");

/// Orders by number.
pub(crate) const ORDERS: Table<u64, Order> = Table::new("orders");
/// Pieces left of each item.
pub(crate) const STOCK: Table<String, u64> = Table::new("stock");
/// What each customer did, in order.
pub(crate) const HISTORY: Table<(String, u64), HistoryEntry> = Table::new("history");

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CreateOrder {
    /// What the client had in mind. The shop writes it down and never looks at it: the audit counts by it, so that
    /// neither keys nor receipts have a say in whether they worked.
    pub(crate) intent: u64,
    pub(crate) item: String,
    pub(crate) count: u64,
}

/// An order as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) customer: String,
    #[serde(flatten)]
    pub(crate) wanted: CreateOrder,
}

/// One line of a customer's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HistoryEntry {
    pub(crate) order: u64,
    pub(crate) intent: u64,
}

/// Moves the stock, writes the order, appends to the customer's history; or says no and has written nothing.
pub(crate) fn create_order(tx: &Tx<'_>, customer: &str, wanted: CreateOrder) -> Result<Decision, Failure> {
    let stock = tx.table(&STOCK)?;
    let left = stock.get(&wanted.item)?.unwrap_or(0);
    let Some(rest) = left.checked_sub(wanted.count) else {
        return Ok(Decision::Reject(Reply::refused().json(&format!("only {left} of {} left", wanted.item))?));
    };
    stock.put(&wanted.item, &rest)?;

    let orders = tx.table(&ORDERS)?;
    let number = orders.last()?.map_or(1, |(last, _)| last + 1);
    let history = tx.table(&HISTORY)?;
    let line = history.prefix((customer,))?.next_back().transpose()?.map_or(1, |((_, last), _)| last + 1);
    history.insert_new((customer, line), &HistoryEntry { order: number, intent: wanted.intent })?;
    let order = Order { customer: customer.to_owned(), wanted };
    orders.insert_new(number, &order)?;
    Ok(Decision::Reply(Reply::created().resource_id(format!("orders/{number}")).json(&order)?))
}
