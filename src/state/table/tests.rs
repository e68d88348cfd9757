//! Typed tables over a view: codecs, versions, limits, and errors that stick.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::*;
use crate::state::error::{TableError, TableOpenError};
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
fn an_ignored_error_of_a_handle_fails_the_operation() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| tx.table(&ORDERS).unwrap().insert_new(1, &order("tea", 1)).unwrap());
    let tx = fixture.tx();
    let orders = tx.table(&ORDERS).unwrap();
    assert!(matches!(orders.insert_new(1, &order("milk", 9)), Err(TableError::AlreadyExists { .. })));
    let too_long = tx.table(&STOCK).unwrap().put("x".repeat(2000), &1);
    assert!(matches!(too_long, Err(TableError::KeyTooLong { bytes: 2000, bytes_max: 1024, .. })));
    orders.put(2, &order("fine", 1)).unwrap();
    let error = tx.into_writes().unwrap_err();
    assert!(matches!(error, TableError::AlreadyExists { .. }), "the first error is the one that counts: {error}");
    assert_eq!(error.to_string(), "row 0x0000000000000001 of table orders exists already");
}

#[test]
fn an_ignored_error_of_a_range_fails_the_operation() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| {
        let stock = tx.table(&STOCK).unwrap();
        for item in ["a", "b", "c"] {
            stock.put(item, &1).unwrap();
        }
    });
    let (key, mut bytes) = fixture.nth_row(1);
    *bytes.last_mut().unwrap() ^= 1;
    fixture.view.active.insert(key, bytes.into());
    let tx = fixture.tx();
    let rows: Vec<_> = tx.table(&STOCK).unwrap().range(..).unwrap().map(|row| row.map_err(|e| e.to_string())).collect();
    assert_eq!(rows.len(), 3, "the row is not skipped and does not hide its neighbours");
    assert!(rows[1].as_ref().unwrap_err().starts_with("row \"b\" of table stock is damaged"), "{rows:?}");
    assert!(rows[0].is_ok() && rows[2].is_ok());
    assert!(matches!(tx.into_writes(), Err(TableError::Damaged { .. })));
}

#[test]
fn a_damaged_row_can_be_removed() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| tx.table(&STOCK).unwrap().put("a", &1).unwrap());
    let (key, _) = fixture.nth_row(0);
    fixture.view.active.insert(key, vec![0; 20].into());
    assert!(fixture.read(&STOCK).get("a").is_err());
    fixture.run(|tx| assert!(tx.table(&STOCK).unwrap().remove("a").unwrap()));
    assert!(fixture.read(&STOCK).is_empty().unwrap());
}

#[test]
fn limits_are_refused_before_anything_changes() {
    let mut fixture = Fixture::all();
    fixture.limits =
        TableLimits { key_bytes_max: 8, value_bytes_max: 100, operation_rows_max: 3, operation_bytes_max: 300 };
    let refused = |work: &dyn Fn(&TxRows) -> Result<(), TableError>, fixture: &Fixture| {
        let tx = fixture.tx();
        let error = work(&tx).unwrap_err();
        assert!(tx.into_writes().is_err());
        error
    };
    let error = refused(&|tx| tx.table(&BLOBS)?.put(b"123456789", &vec![]), &fixture);
    assert!(matches!(error, TableError::KeyTooLong { bytes: 9, bytes_max: 8, .. }), "{error}");
    let error = refused(&|tx| tx.table(&BLOBS)?.put(b"k", &vec![0; 101]), &fixture);
    assert!(matches!(error, TableError::ValueTooLarge { bytes: 101, bytes_max: 100, .. }), "{error}");
    let error = refused(&|tx| (0..4u8).try_for_each(|key| tx.table(&BLOBS)?.put([key], &vec![])), &fixture);
    assert!(matches!(error, TableError::TooManyRows { rows_max: 3 }), "{error}");
    let error = refused(&|tx| (0..3u8).try_for_each(|key| tx.table(&BLOBS)?.put([key], &vec![0; 100])), &fixture);
    assert!(matches!(error, TableError::TooManyBytes { bytes_max: 300 }), "{error}");
    fixture.run(|tx| {
        for _ in 0..100 {
            tx.table(&BLOBS).unwrap().put(b"same", &vec![0; 100]).unwrap();
        }
    });
    assert_eq!(fixture.read(&BLOBS).get(b"same").unwrap(), Some(vec![0; 100]));
}

#[test]
fn tables_are_used_as_they_were_declared_or_not_at_all() {
    let mut fixture = Fixture::new().declare(&ORDERS);
    let wrong_key: Table<u32, Order> = Table::new("orders");
    let wrong_codec: Table<u64, Order> = Table::new("orders").bincode();
    let what = |result: Result<(), TableError>| match result {
        Err(TableError::DeclaredOtherwise { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let tx = fixture.tx();
    assert_eq!(what(tx.table(&wrong_key).map(drop)), "key type");
    assert_eq!(what(tx.table(&wrong_codec).map(drop)), "codec");
    assert_eq!(what(tx.table(&ORDERS_V2).map(drop)), "version");
    assert!(tx.into_writes().is_err(), "asking for a wrong table is sticky too");
    assert!(matches!(fixture.tx().table(&STOCK), Err(TableError::NotDeclared { .. })));
    let id = fixture.engine.catalog().id("orders").unwrap();
    let twice = Arc::get_mut(&mut fixture.declared).unwrap().add(&ORDERS, id);
    assert!(matches!(twice, Err(TableOpenError::DeclaredTwice { .. })));
}

#[test]
fn rows_of_an_old_version_are_upgraded_as_they_are_read() {
    let mut old = Fixture::new().declare(&ORDERS_V1);
    old.run(|tx| tx.table(&ORDERS_V1).unwrap().put(1, &OrderV1 { item: "tea".to_owned() }).unwrap());
    let mut new = old.reopened().declare(&ORDERS_V2);
    assert_eq!(new.read(&ORDERS_V2).get(1).unwrap(), Some(order("tea", 1)));
    assert_eq!(new.read(&ORDERS_V2).range(..).unwrap().next().unwrap().unwrap(), (1, order("tea", 1)));
    new.run(|tx| {
        tx.table(&ORDERS_V2).unwrap().update(1, |order| order.count = 5).unwrap();
    });
    assert_eq!(new.read(&ORDERS_V2).get(1).unwrap(), Some(order("tea", 5)));
    let rolled_back = new.reopened().declare(&ORDERS_V1);
    let error = rolled_back.read(&ORDERS_V1).get(1).unwrap_err();
    assert!(error.to_string().contains("it has version 2, the table 1"), "{error}");
}

#[test]
fn upgrades_chain_through_from_in_any_codec() {
    #[derive(Serialize, Deserialize)]
    struct V1(u8);
    #[derive(Serialize, Deserialize)]
    struct V2(u8, u8);
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct V3(u8, u8, u8);
    impl From<V1> for V2 {
        fn from(old: V1) -> Self {
            Self(old.0, 2)
        }
    }
    impl From<V2> for V3 {
        fn from(old: V2) -> Self {
            Self(old.0, old.1, 3)
        }
    }
    impl From<V1> for V3 {
        fn from(old: V1) -> Self {
            V2::from(old).into()
        }
    }
    const ONE: Table<u8, V1> = Table::new("t").bincode();
    const TWO: Table<u8, V2> = Table::new("t").bincode().version(2);
    const THREE: Table<u8, V3> = Table::new("t").bincode().version(3).upgrade_from::<V1>(1).upgrade_from::<V2>(2);
    const RETIRED: Table<u8, V3> = Table::new("t").bincode().version(3).retire(1).upgrade_from::<V2>(2);
    let mut fixture = Fixture::new().declare(&ONE);
    fixture.run(|tx| tx.table(&ONE).unwrap().put(1, &V1(1)).unwrap());
    let mut fixture = fixture.reopened().declare(&TWO);
    fixture.run(|tx| tx.table(&TWO).unwrap().put(2, &V2(7, 7)).unwrap());
    let fixture = fixture.reopened().declare(&THREE);
    assert_eq!(fixture.read(&THREE).get(1).unwrap(), Some(V3(1, 2, 3)));
    assert_eq!(fixture.read(&THREE).get(2).unwrap(), Some(V3(7, 7, 3)));
    let fixture = fixture.reopened().declare(&RETIRED);
    let error = fixture.read(&RETIRED).get(1).unwrap_err();
    assert!(error.to_string().contains("at version 1: this version was declared as retired"), "{error}");
    assert_eq!(fixture.read(&RETIRED).get(2).unwrap(), Some(V3(7, 7, 3)));
}

#[test]
fn a_value_that_cannot_be_read_back_is_refused() {
    #[derive(Serialize, Deserialize)]
    struct Skips {
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        count: u32,
    }
    const POSITIONAL: Table<u8, Skips> = Table::new("t").bincode();
    const NAMED: Table<u8, Skips> = Table::new("u");
    const MAP: Table<u8, HashMap<(u8, u8), u8>> = Table::new("v");
    const FLOAT: Table<u8, f64> = Table::new("w");
    let fixture = Fixture::new().declare(&POSITIONAL).declare(&NAMED).declare(&MAP).declare(&FLOAT);
    let tx = fixture.tx();
    let value = Skips { note: None, count: 1 };
    let error = tx.table(&POSITIONAL).unwrap().put(1, &value).unwrap_err();
    assert!(error.to_string().contains("row 0x01 of table t cannot be stored: it could not be read back"), "{error}");
    tx.table(&NAMED).unwrap().put(1, &value).unwrap();
    assert!(matches!(tx.table(&MAP).unwrap().put(1, &HashMap::from([((1, 2), 3)])), Err(TableError::Encode { .. })));
    assert!(matches!(tx.table(&FLOAT).unwrap().put(1, &f64::NAN), Err(TableError::Encode { .. })));
}

#[test]
fn raw_values_are_stored_as_they_are() {
    let mut fixture = Fixture::all();
    fixture.run(|tx| tx.table(&BLOBS).unwrap().put(b"k", &vec![1, 2, 3]).unwrap());
    let (_, bytes) = fixture.nth_row(0);
    assert_eq!(bytes[crate::state::ENVELOPE_BYTES..], [1, 2, 3]);
    assert_eq!(fixture.read(&BLOBS).get(b"k").unwrap(), Some(vec![1, 2, 3]));
}

#[test]
fn declarations_say_whether_a_stored_table_can_be_used() {
    let check = |stored: &TableDeclaration, declared: &TableDeclaration| TableDeclaration::check(stored, declared);
    let stored = ORDERS.declaration();
    assert_eq!(check(&stored, &ORDERS.declaration()), Ok(Compat::Same));
    let other_key: Table<i64, Order> = Table::new("orders");
    assert!(matches!(check(&stored, &other_key.declaration()), Err(TableOpenError::KeyType { .. })));
    assert!(matches!(check(&stored, &ORDERS.bincode().declaration()), Err(TableOpenError::Codec { .. })));
    let no_upgrade = ORDERS.version(2).declaration();
    assert!(matches!(check(&stored, &no_upgrade), Err(TableOpenError::NoUpgrade { stored: 1, .. })));

    let Ok(Compat::Redeclare(second)) = check(&stored, &ORDERS_V2.declaration()) else { panic!("an upgrade is fine") };
    assert_eq!((second.version, second.rows_of.as_slice()), (2, [1, 2].as_slice()));
    assert_eq!(check(&second, &ORDERS_V2.declaration()), Ok(Compat::Same));
    assert!(matches!(check(&second, &stored), Err(TableOpenError::Newer { stored: 2, declared: 1, .. })));
    assert!(
        matches!(check(&second, &ORDERS.version(2).declaration()), Err(TableOpenError::NoUpgrade { stored: 1, .. })),
        "rows of version 1 may still be there, whatever the last declaration was"
    );
    let only_from_two = ORDERS.version(3).upgrade_from::<Order>(2);
    assert!(matches!(check(&second, &only_from_two.declaration()), Err(TableOpenError::NoUpgrade { stored: 1, .. })));
    assert!(check(&second, &only_from_two.retire(1).declaration()).is_ok());
}

#[test]
fn declarations_are_stored_as_any_serde_value() {
    let declaration = ORDERS_V2.declaration();
    let json = serde_json::to_string(&declaration).unwrap();
    assert_eq!(serde_json::from_str::<TableDeclaration>(&json).unwrap(), declaration);
    let bytes = crate::base::encoding::encode(&declaration).unwrap();
    assert_eq!(crate::base::encoding::decode::<TableDeclaration>(&bytes).unwrap(), declaration);
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
