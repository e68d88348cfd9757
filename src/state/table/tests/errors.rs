//! Errors: what is refused, and that it sticks.

use std::collections::HashMap;

use super::*;

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
