//! Listing and exporting what is stored, also for a program that declares nothing.

use std::ops::Bound;

use serde_json::{Value, json};

use crate::support::*;
use counterfoil::testing::{SimDisk, VirtualClock, WALL_AT_START};
use counterfoil::{
    Error, Exported, NextAnswer, OperationType, ReceiptFilter, Retention, Store, StoreBuilder, Table, TableInfo,
};

const PAY: OperationType = OperationType::new("pay").retention(Retention { replay: HOUR, refuse: HOUR });
const PAIRS: Table<(String, u64), Vec<u8>> = Table::raw("pairs");
const NAMES: Table<String, String> = Table::new("names");

fn declared() -> StoreBuilder {
    builder().operation(&PAY).table(&PAIRS).table(&NAMES)
}

/// A store in which something of every kind was done, opened again by a program that declares nothing.
fn undeclared() -> (Store, VirtualClock) {
    let (disk, clock) = (SimDisk::new(), VirtualClock::new(WALL_AT_START));
    let store = declared().manual().clock(clock.clone()).open_in(&disk).expect("it opens");
    for (tenant, key) in [("acme", "k1"), ("acme", "k2"), ("bolt", "k1")] {
        drop(store.execute(op(&KEEP, tenant, key), run(key)).expect("it executes"));
    }
    let json = |_: &counterfoil::Tx<'_>| Ok(counterfoil::Reply::ok().json(&json!({ "paid": true }))?);
    drop(store.execute(op(&PAY, "acme", [0_u8, 255]), json).expect("it executes"));
    let wrote = store.write(|tx| {
        tx.table(&PAIRS)?.put(("a".to_owned(), 7), &vec![0, 1, 254])?;
        tx.table(&NAMES)?.put("größe", &"17".to_owned())?;
        Ok(())
    });
    assert!(wrote.expect("it writes").position.is_some());
    store.close().expect("it closes");
    let store = Store::builder().manual().clock(clock.clone()).open_in(&disk).expect("it opens without declarations");
    (store, clock)
}

fn lines(store: &Store, what: Exported) -> Vec<Value> {
    let mut out = Vec::new();
    let mut counted = 0;
    let count = store.export(what, &mut out, |lines| counted = lines).expect("it exports");
    let text = String::from_utf8(out).expect("UTF-8");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines.len() as u64, counted), (count, count));
    lines
}

#[test]
fn receipts_are_listed_with_what_a_retry_is_answered_and_filtered_by_name() {
    let (store, clock) = undeclared();
    let view = store.view();
    let all: Vec<_> = view.receipts(ReceiptFilter::default()).unwrap().map(Result::unwrap).collect();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|listed| matches!(listed.now, NextAnswer::Replay { .. }) && listed.reply_bytes > 0));
    let filter = ReceiptFilter { tenant: Some("acme".to_owned()), operation: Some("keep".to_owned()), actor: None };
    let keys: Vec<_> = view.receipts(filter).unwrap().map(|listed| listed.unwrap().slot.key).collect();
    assert_eq!(keys.iter().map(counterfoil::Key::as_bytes).collect::<Vec<_>>(), [b"k1", b"k2"]);
    clock.advance(HOUR);
    let gone: Vec<_> = store.view().receipts(ReceiptFilter::default()).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert!(gone.iter().all(|listed| matches!(listed.now, NextAnswer::Gone { .. }) && listed.reply_bytes == 0));
    clock.advance(HOUR);
    let forgotten = store.view().receipts(ReceiptFilter::default()).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert!(forgotten.iter().all(|listed| listed.now == NextAnswer::Execute));
}

#[test]
fn tables_and_rows_are_read_without_the_programs_types() {
    let (store, _) = undeclared();
    let view = store.view();
    let tables = view.tables().unwrap();
    let named: Vec<_> = tables.iter().map(|table| (table.declaration.name.as_str(), table.rows)).collect();
    assert_eq!(named, [("names", 1), ("pairs", 1), ("runs", 3)]);
    let find =
        |name: &str| -> &TableInfo { tables.iter().find(|table| table.declaration.name == name).expect("listed") };
    let key = find("names").parse_key("größe").unwrap();
    assert_eq!(view.raw_get("names", &key).unwrap().unwrap().value_json(), json!("17"));
    let key = find("pairs").parse_key(r#"["a", 7]"#).unwrap();
    assert_eq!(view.raw_get("pairs", &key).unwrap().unwrap().value_json(), json!({ "hex": "0001fe" }));
    let key = find("runs").parse_key("1").unwrap();
    assert_eq!(view.raw_get("runs", &key).unwrap().unwrap().value_json(), json!("k2"));
    let numbers: Vec<_> = view
        .raw_scan("runs", (Bound::Included(&key), Bound::Unbounded))
        .unwrap()
        .map(|row| find("runs").key_json(&row.unwrap().key))
        .collect();
    assert_eq!(numbers, [json!(1), json!(2)]);
    assert!(matches!(view.raw_get("nothing", b"k"), Err(Error::Undeclared { what: "table", .. })));
    assert!(matches!(view.raw_get("_counterfoil/slots", b"k"), Err(Error::Undeclared { .. })));
    assert!(matches!(find("runs").parse_key("x"), Err(Error::Table(_))));
}

#[test]
fn an_export_has_every_receipt_row_and_entry_and_loses_nothing() {
    let (store, _) = undeclared();
    let receipts = lines(&store, Exported::Receipts);
    let kept = receipts.iter().filter(|line| line["operation"] == "keep");
    let bodies: Vec<_> = kept.map(|line| &line["reply"]["body"]).collect();
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| body.as_str().is_some_and(|text| text.starts_with("body of k"))), "{bodies:?}");
    let paid: Vec<_> = receipts.iter().filter(|line| line["operation"] == "pay").collect();
    assert_eq!(paid[0]["key"], json!({ "hex": "00ff" }));
    assert_eq!(paid[0]["reply"]["body"], json!({ "paid": true }));

    let rows = lines(&store, Exported::Tables);
    assert_eq!(rows.len(), 5);
    assert!(rows.contains(&json!({
        "table": "pairs", "key": ["a", 7], "codec": "raw", "version": 1, "value": { "hex": "0001fe" },
    })));

    let log = lines(&store, Exported::Log);
    let kinds: Vec<_> = log.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "operation").count(), 4);
    assert_eq!(kinds.iter().filter(|kind| **kind == "table declared").count(), 3);
    assert!(log.iter().any(|line| line["kind"] == "write" && line["changes"].as_array().is_some_and(|c| c.len() == 2)));
}

#[test]
fn the_usage_of_tenants_is_listed() {
    let (store, _) = undeclared();
    let usage = store.view().usage().unwrap();
    let named: Vec<_> = usage.iter().map(|usage| (usage.tenant.as_str(), usage.receipts)).collect();
    assert_eq!(named, [("acme", 3), ("bolt", 1)]);
    assert!(usage.iter().all(|usage| usage.bytes > 0));
}

#[test]
fn an_export_that_cannot_be_written_says_so() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (store, _) = undeclared();
    let failed = store.export(Exported::Receipts, &mut Full, |_| ()).unwrap_err();
    assert!(failed.to_string().contains("cannot be written"), "{failed}");
}
