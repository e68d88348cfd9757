//! The smallest service: run it, kill it, run it again with the same key. The order is made once.

use counterfoil::{OperationType, Reply, Store, Table, Tx};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

const CREATE_ORDER: OperationType = OperationType::new("create_order");
const ORDERS: Table<u64, Order> = Table::new("orders");

fn main() {
    let made = make_order().inspect_err(|error| eprintln!("minimal: {error}"));
    std::process::exit(i32::from(made.is_err()));
}

fn make_order() -> Result<(), Box<dyn std::error::Error>> {
    let key = std::env::args().nth(1).unwrap_or_else(|| "key-1".to_owned());
    let store = Store::builder().operation(&CREATE_ORDER).table(&ORDERS).open("minimal.counterfoil")?;

    // Tenant, actor and key say which operation this is; the content says what it means.
    let order = Order { item: "socks".to_owned(), count: 2 };
    let operation = CREATE_ORDER.request("acme", "alice", &key)?.json(&order)?;

    // The order and its receipt are committed in one write, before `execute` returns.
    let receipt = store.execute(operation, move |tx: &Tx<'_>| {
        let orders = tx.table(&ORDERS)?;
        let id = orders.last()?.map_or(1, |(id, _)| id + 1);
        orders.insert_new(id, &order)?;
        Ok(Reply::created().resource_id(format!("orders/{id}")))
    })?;
    let made = if receipt.is_replayed() { "already made" } else { "made now" };
    println!("{} {made}, at {}", receipt.reply().resource().unwrap_or("?"), receipt.position());
    println!("{} orders in all", store.read(|view| view.table(&ORDERS)?.len())?);
    Ok(store.close()?)
}
