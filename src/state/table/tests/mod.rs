//! Typed tables over a view: codecs, versions, limits, and errors that stick.

mod errors;
mod versions;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;
use crate::state::error::TableError;
use crate::state::testing::{at, engine};
use crate::state::{Engine, FoldDurability, MemoryMap, Overlay, RowKey, TableLimits, View};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OrderV1 {
    item: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

impl From<OrderV1> for Order {
    fn from(old: OrderV1) -> Self {
        Self { item: old.item, count: 1 }
    }
}

const ORDERS: Table<u64, Order> = Table::new("orders");
const ORDERS_V1: Table<u64, OrderV1> = Table::new("orders");
const ORDERS_V2: Table<u64, Order> = Table::new("orders").version(2).upgrade_from::<OrderV1>(1);
const STOCK: Table<String, u32> = Table::new("stock").bincode();
const BY_CUSTOMER: Table<(String, u64), ()> = Table::new("by-customer");
static BLOBS: Table<Vec<u8>, Vec<u8>> = Table::raw("blobs");

/// A store of its own for a test: tables are declared, transactions applied, nothing is logged.
struct Fixture {
    engine: Engine,
    view: View,
    declared: Arc<Declarations>,
    limits: TableLimits,
}

impl Fixture {
    fn new() -> Self {
        let engine = engine();
        let view = View::new(engine.snapshot().unwrap());
        Self { engine, view, declared: Arc::default(), limits: TableLimits::default() }
    }

    fn declare<K: TableKey, V>(mut self, table: &Table<K, V>) -> Self {
        let id = self.engine.catalog().intern(table.name()).unwrap();
        Arc::get_mut(&mut self.declared).unwrap().add(table, id).unwrap();
        self
    }

    fn all() -> Self {
        Self::new().declare(&ORDERS).declare(&STOCK).declare(&BY_CUSTOMER).declare(&BLOBS)
    }

    /// The same rows, opened by a program that declares nothing yet.
    fn reopened(self) -> Self {
        Self { declared: Arc::default(), ..self }
    }

    fn tx(&self) -> TxRows {
        TxRows::new(self.view.clone(), Arc::clone(&self.declared), self.limits)
    }

    fn commit(&mut self, tx: TxRows) {
        let mut overlay = Overlay::new(&self.view);
        overlay.apply(&tx.into_writes().unwrap());
        self.view.active = overlay.into_map();
    }

    fn run(&mut self, work: impl FnOnce(&TxRows)) {
        let tx = self.tx();
        work(&tx);
        self.commit(tx);
    }

    fn fold(&mut self, sequence: u64) {
        let rows = std::mem::take(&mut self.view.active);
        self.engine.fold(&rows, at(sequence), FoldDurability::Volatile).unwrap();
        self.view.base = self.engine.snapshot().unwrap();
    }

    fn read<'a, K: TableKey, V>(&'a self, table: &'a Table<K, V>) -> TableView<'a, K, V> {
        TableView::open(&self.view, &self.declared, table).unwrap()
    }

    /// Key and bytes of the n-th row in memory.
    fn nth_row(&self, index: usize) -> (RowKey, Vec<u8>) {
        let (key, value) = self.view.active.iter().nth(index).unwrap();
        (key.clone(), value.unwrap().to_vec())
    }
}

fn order(item: &str, count: u32) -> Order {
    Order { item: item.to_owned(), count }
}

#[test]
fn an_operation_reads_its_own_writes_and_readers_do_not_until_it_is_applied() {
    let mut fixture = Fixture::all();
    let tx = fixture.tx();
    let orders = tx.table(&ORDERS).unwrap();
    let stock = tx.table(&STOCK).unwrap();
    orders.put(7, &order("tea", 2)).unwrap();
    stock.put("tea", &10).unwrap();
    assert_eq!(stock.update("tea", |left| std::mem::replace(left, *left - 2)).unwrap(), Some(10));
    assert_eq!(stock.update("coffee", |left| *left = 0).unwrap(), None);
    assert_eq!(orders.get(7).unwrap(), Some(order("tea", 2)));
    assert_eq!(stock.get("tea").unwrap(), Some(8));
    assert_eq!((orders.len().unwrap(), stock.len().unwrap()), (1, 1));
    assert!(fixture.read(&ORDERS).is_empty().unwrap());
    fixture.commit(tx);
    assert_eq!(fixture.read(&ORDERS).get(7).unwrap(), Some(order("tea", 2)));
    assert_eq!(fixture.read(&STOCK).first().unwrap(), Some(("tea".to_owned(), 8)));
}

#[test]
fn one_final_value_per_row_is_recorded() {
    let fixture = Fixture::all();
    let tx = fixture.tx();
    let stock = tx.table(&STOCK).unwrap();
    for count in 0..5 {
        stock.put("tea", &count).unwrap();
    }
    stock.put("milk", &1).unwrap();
    assert!(stock.remove("milk").unwrap());
    assert!(!stock.remove("sugar").unwrap());
    let writes = tx.into_writes().unwrap();
    let recorded: Vec<_> = writes.iter().map(|(key, value)| (key.key().to_vec(), value.is_some())).collect();
    assert_eq!(recorded, [(b"milk".to_vec(), false), (b"tea".to_vec(), true)]);
}

#[test]
fn ranges_prefixes_and_ends_see_all_layers_in_order() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| {
        let index = tx.table(&BY_CUSTOMER).unwrap();
        for (customer, id) in [("ann", 1), ("ann", 3), ("anna", 2), ("bob", 4)] {
            index.put((customer, id), &()).unwrap();
        }
    });
    fixture.fold(1);
    let tx = fixture.tx();
    let index = tx.table(&BY_CUSTOMER).unwrap();
    index.put(("ann", 2), &()).unwrap();
    index.remove(("ann", 1)).unwrap();
    let keys = |range: TableRange<'_, (String, u64), ()>| -> Vec<u64> { range.map(|row| row.unwrap().0.1).collect() };
    assert_eq!(keys(index.prefix(("ann",)).unwrap()), [2, 3]);
    assert_eq!(keys(index.range(("ann", 3)..("bob", 4)).unwrap()), [3, 2]);
    assert_eq!(keys(index.range(..=("bob", 4)).unwrap()), [2, 3, 2, 4]);
    assert_eq!(index.first().unwrap().unwrap().0, ("ann".to_owned(), 2));
    assert_eq!(index.last().unwrap().unwrap().0, ("bob".to_owned(), 4));
    assert_eq!(index.range(..).unwrap().next_back().unwrap().unwrap().0.1, 4);
    assert_eq!(index.len().unwrap(), 4);
    assert!(index.contains(("anna", 2)).unwrap() && !index.contains(("ann", 1)).unwrap());
    assert_eq!(keys(fixture.read(&BY_CUSTOMER).prefix(("ann",)).unwrap()), [1, 3]);
    assert!(tx.first_error().is_none());
}

#[test]
fn rows_can_be_written_while_a_range_is_walked() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| {
        let stock = tx.table(&STOCK).unwrap();
        for item in ["a", "b", "c"] {
            stock.put(item, &1).unwrap();
        }
        let mut seen = 0;
        for row in stock.range(..).unwrap() {
            let (item, count) = row.unwrap();
            stock.put(format!("{item}{item}"), &(count + 1)).unwrap();
            stock.remove(item).unwrap();
            seen += 1;
        }
        assert_eq!(seen, 3);
        assert_eq!(stock.len().unwrap(), 3);
    });
    assert_eq!(fixture.read(&STOCK).first().unwrap(), Some(("aa".to_owned(), 2)));
}

#[test]
fn raw_values_are_stored_as_they_are() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| tx.table(&BLOBS).unwrap().put(b"k", &vec![1, 2, 3]).unwrap());
    let (_, bytes) = fixture.nth_row(0);
    assert_eq!(bytes[crate::state::envelope::ENVELOPE_BYTES..], [1, 2, 3]);
    assert_eq!(fixture.read(&BLOBS).get(b"k").unwrap(), Some(vec![1, 2, 3]));
}

#[test]
fn tables_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Table<String, std::rc::Rc<()>>>();
    shared::<TableError>();
    shared::<View>();
    shared::<MemoryMap>();
    shared::<Engine>();
    fn sent<T: Send>() {}
    sent::<TxRows>();
    sent::<TableRange<'static, u64, Order>>();
}
