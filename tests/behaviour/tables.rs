//! Tables of business data, across the layers that their rows pass through.

use std::collections::BTreeMap;

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{Error, Limits, OpenError, Reply, Store, StoreBuilder, Table, TableError, TableOpenError, Tx};
use serde::{Deserialize, Serialize};

const PAIRS: Table<(String, u64), i64> = Table::new("pairs");
const ROWS: Table<i64, String> = Table::new("rows").bincode();
const AS_BINCODE: Table<String, u64> = Table::new("totals").bincode();
const BLOBS: Table<Vec<u8>, Vec<u8>> = Table::raw("blobs");

fn folding() -> StoreBuilder {
    let mut limits = Limits::default();
    limits.fold_bytes = 3000;
    limits.checkpoint_log_bytes = 20_000;
    builder().table(&PAIRS).table(&ROWS).table(&BLOBS).limits(limits)
}

#[test]
fn a_closure_reads_its_own_writes_and_a_failed_one_leaves_none() {
    let bed = bed_of(folding);
    let body = |tx: &Tx<'_>| {
        let pairs = tx.table(&PAIRS)?;
        for number in [3, 1, 2] {
            pairs.put(("a".to_owned(), number), &-(number as i64))?;
        }
        assert!(pairs.remove(("a".to_owned(), 2))? && !pairs.remove(("a".to_owned(), 2))?);
        assert_eq!(pairs.update(("a".to_owned(), 3), |value| std::mem::replace(value, 30))?, Some(-3));
        assert_eq!(pairs.update(("a".to_owned(), 9), |_| ())?, None);
        // A second handle sees the same rows, and rows may be written while a range is walked.
        let other = tx.table(&PAIRS)?;
        assert_eq!((other.len()?, other.is_empty()?), (2, false));
        for row in other.range(..)? {
            let ((name, number), value) = row?;
            pairs.put((name, number + 100), &value)?;
        }
        let seen: Vec<_> =
            other.range(..)?.map(|row| row.map(|((_, number), value)| (number, value))).collect::<Result<_, _>>()?;
        assert_eq!(seen, [(1, -1), (3, 30), (101, -1), (103, 30)]);
        Ok(Reply::ok())
    };
    drop(bed.store().execute(op("k"), body).unwrap());
    let failed = bed.store().execute(op("f"), |tx: &Tx<'_>| -> Result<Reply, _> {
        tx.table(&PAIRS)?.put(("z".to_owned(), 1), &1)?;
        Err(counterfoil::Failure::message("no"))
    });
    assert!(failed.is_err());
    bed.store().read(|view| {
        let pairs = view.table(&PAIRS).unwrap();
        assert_eq!(pairs.len().unwrap(), 4);
        assert_eq!(pairs.first().unwrap().unwrap().0.1, 1);
        assert_eq!(pairs.last().unwrap().unwrap(), (("a".to_owned(), 103), 30));
        assert!(!pairs.contains(("z".to_owned(), 1)).unwrap());
    });
}

/// The same changes on a store whose maps are folded all the time, and on a map of the standard library.
#[test]
fn ranges_first_last_prefix_and_len_agree_with_a_model_across_folds_and_reopenings() {
    let mut bed = bed_of(folding);
    let mut model = BTreeMap::new();
    let mut folds = 0;
    let mut random = 12_345_u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for round in 0..400 {
        let changes: Vec<_> = (0..3).map(|_| ((format!("t{}", next(5)), next(40)), next(10))).collect();
        for (key, action) in &changes {
            if *action < 3 {
                model.remove(key);
            } else {
                model.insert(key.clone(), round);
            }
        }
        let write = bed.store().write(move |tx| {
            let pairs = tx.table(&PAIRS)?;
            for (key, action) in changes {
                if action < 3 {
                    pairs.remove(key)?;
                } else {
                    pairs.put(key, &round)?;
                }
            }
            Ok(())
        });
        write.unwrap();
        if round % 3 == 0 {
            bed.store().step().unwrap();
        }
        if round % 97 == 96 {
            folds += bed.store().stats().folds;
            bed.crash_and_reopen(&Survival::Nothing).unwrap();
        }
        if round % 10 == 0 {
            bed.store().read(|view| {
                let pairs = view.table(&PAIRS).unwrap();
                let all: Vec<_> = pairs.range(..).unwrap().map(Result::unwrap).collect();
                let expected: Vec<_> = model.clone().into_iter().collect();
                assert_eq!(all, expected, "round {round}");
                let backwards: Vec<_> = pairs.range(..).unwrap().rev().map(Result::unwrap).collect();
                assert_eq!(backwards, expected.iter().rev().cloned().collect::<Vec<_>>(), "round {round}");
                assert_eq!(pairs.len().unwrap(), model.len() as u64, "round {round}");
                assert_eq!(pairs.first().unwrap(), expected.first().cloned());
                assert_eq!(pairs.last().unwrap(), expected.last().cloned());
                let prefix: Vec<_> = pairs.prefix(("t2",)).unwrap().map(Result::unwrap).collect();
                let within: Vec<_> = expected.iter().filter(|row| row.0.0 == "t2").cloned().collect();
                assert_eq!(prefix, within, "round {round}");
                let (from, to) = (("t1".to_owned(), 20), ("t3".to_owned(), 5));
                let range: Vec<_> = pairs.range(from.clone()..to.clone()).unwrap().map(Result::unwrap).collect();
                let within: Vec<_> = model.range(from..to).map(|(key, value)| (key.clone(), *value)).collect();
                assert_eq!(range, within, "round {round}");
            });
        }
    }
    assert!(folds > 12, "rows passed through the state file: {folds} folds");
    bed.store().assert_sound();
}

#[test]
fn keys_order_as_their_values_and_raw_bytes_come_back_as_they_are() {
    let mut bed = bed_of(folding);
    let numbers = [i64::MIN, -256, -1, 0, 1, 255, 256, i64::MAX];
    let blobs: [&[u8]; 5] = [b"", b"\0", b"\0\xff", b"a", b"\xff\xff"];
    bed.store()
        .write(move |tx| {
            for number in numbers.iter().rev() {
                tx.table(&ROWS)?.put(*number, &number.to_string())?;
            }
            for blob in blobs.iter().rev() {
                tx.table(&BLOBS)?.put(blob.to_vec(), &blob.to_vec())?;
            }
            Ok(())
        })
        .unwrap();
    bed.close_and_reopen().unwrap();
    let view = bed.store().view();
    let rows: Vec<_> = view.table(&ROWS).unwrap().range(..).unwrap().map(|row| row.unwrap().0).collect();
    assert_eq!(rows, numbers);
    let table = view.table(&BLOBS).unwrap();
    let rows: Vec<_> = table.range(..).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, blobs.map(|blob| (blob.to_vec(), blob.to_vec())));
    assert_eq!(table.prefix([0_u8]).unwrap().count(), 2);
    assert_eq!(table.prefix([0xff_u8, 0xff]).unwrap().count(), 1, "a prefix that has no end");
}

#[test]
fn a_table_is_used_as_it_was_declared() {
    let bed = bed_of(folding);
    let view = bed.store().view();
    const NOT: Table<u64, u64> = Table::new("not");
    const OTHER_KEY: Table<u64, i64> = Table::new("pairs");
    const OTHER_CODEC: Table<(String, u64), i64> = Table::new("pairs").bincode();
    const OTHER_VERSION: Table<(String, u64), i64> = Table::new("pairs").version(2);
    assert!(matches!(view.table(&NOT), Err(TableError::NotDeclared { .. })));
    assert!(matches!(view.table(&OTHER_KEY), Err(TableError::DeclaredOtherwise { what: "key type", .. })));
    assert!(matches!(view.table(&OTHER_CODEC), Err(TableError::DeclaredOtherwise { what: "codec", .. })));
    assert!(matches!(view.table(&OTHER_VERSION), Err(TableError::DeclaredOtherwise { what: "version", .. })));
}

#[test]
fn declarations_are_compared_with_each_other_and_with_what_is_stored() {
    const LONG: Table<u64, u64> = Table::new("a-name-of-more-than-sixty-four-bytes-which-is-what-a-table-may-have");
    let disk = SimDisk::new();
    let v2: Table<String, u64> = Table::new("totals").version(2).upgrade_from::<u64>(1);
    builder().table(&PAIRS).open_in(&disk).unwrap().close().unwrap();
    let error = |builder: StoreBuilder| match builder.open_in(&disk) {
        Err(OpenError::Table(error)) => error,
        other => panic!("{other:?}"),
    };
    use TableOpenError as E;
    assert!(matches!(error(builder().table(&TOTALS)), E::DeclaredTwice { .. }));
    assert!(matches!(
        error(builder().table(&Table::<u64, u64>::new("_counterfoil/x"))),
        E::ReservedName { .. } | E::InvalidName { .. }
    ));
    assert!(matches!(error(builder().table(&Table::<u64, u64>::new("_counterfoil"))), E::ReservedName { .. }));
    for name in ["", "a b", "a/b", "ä"] {
        assert!(matches!(error(builder().table(&Table::<u64, u64>::new(name))), E::InvalidName { .. }), "{name:?}");
    }
    assert!(matches!(error(builder().table(&LONG)), E::InvalidName { .. }));
    assert!(matches!(error(Store::builder().table(&Table::<u64, u64>::new("totals"))), E::KeyType { .. }));
    assert!(matches!(error(Store::builder().table(&AS_BINCODE)), E::Codec { .. }));
    let no_upgrade = error(Store::builder().table(&Table::<String, u64>::new("totals").version(2)));
    assert!(matches!(no_upgrade, E::NoUpgrade { stored: 1, .. }));
    Store::builder().table(&v2).open_in(&disk).unwrap().close().unwrap();
    assert!(matches!(error(builder()), E::Newer { stored: 2, declared: 1, .. }));
    // None of that changed anything: with the right declarations the store opens, also with fewer tables.
    let store = Store::builder().table(&v2).open_in(&disk).unwrap();
    store.assert_sound();
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct OldOrder {
    item: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    count: u32,
}

impl From<OldOrder> for Order {
    fn from(old: OldOrder) -> Self {
        Self { item: old.item, count: 1 }
    }
}

#[test]
fn old_rows_are_upgraded_as_they_are_read_and_rewritten_when_they_are_written() {
    for bincode in [false, true] {
        let mut old: Table<u64, OldOrder> = Table::new("orders");
        let mut new: Table<u64, Order> = Table::new("orders").version(2);
        if bincode {
            (old, new) = (old.bincode(), new.bincode());
        }
        let new = new.upgrade_from::<OldOrder>(1);
        let disk = SimDisk::new();
        let store = Store::builder().table(&old).open_in(&disk).unwrap();
        store
            .write(move |tx| {
                (0..10).try_for_each(|n| tx.table(&old)?.put(n, &OldOrder { item: format!("item {n}") }))?;
                Ok(())
            })
            .unwrap();
        store.close().unwrap();

        let store = Store::builder().table(&new).open_in(&disk).unwrap();
        let order = |n: u64, count| Order { item: format!("item {n}"), count };
        store.write(move |tx| Ok(tx.table(&new)?.update(3, |order| order.count = 30)?)).unwrap();
        let read = |store: &Store| -> Vec<_> {
            store.read(|view| view.table(&new).unwrap().range(..).unwrap().map(|row| row.unwrap().1).collect())
        };
        let expected: Vec<_> = (0..10).map(|n| order(n, if n == 3 { 30 } else { 1 })).collect();
        assert_eq!(read(&store), expected);
        store.assert_sound();
        store.close().unwrap();
        let store = Store::builder().table(&new).open_in(&disk).unwrap();
        assert_eq!(read(&store), expected);
        store.assert_sound();
    }
}

#[test]
fn a_row_that_does_not_decode_is_named_and_never_skipped() {
    const AS_TEXT: Table<String, String> = Table::new("totals");
    let bed = bed();
    for key in ["a", "b", "c"] {
        drop(bed.store().execute(op(key), add(key)).unwrap());
    }
    let view = bed.store().view();
    let table = view.table(&AS_TEXT).unwrap();
    let error = table.get("b").unwrap_err();
    assert!(
        matches!(&error, TableError::Decode { table, key, .. } if table == "totals" && key.contains('b')),
        "{error}"
    );
    let rows: Vec<_> = table.range(..).unwrap().collect();
    assert!(!rows.is_empty() && rows[0].is_err(), "a listing does not skip");
    assert_eq!(table.len().unwrap(), 3);
    // In an operation it is sticky.
    let swallowed = bed.store().execute(op("k"), |tx: &Tx<'_>| {
        let rows = tx.table(&AS_TEXT)?;
        Ok(Reply::ok().json(&rows.range(..)?.filter_map(Result::ok).count())?)
    });
    assert!(matches!(swallowed, Err(Error::Table(_))), "{swallowed:?}");
    bed.store().assert_sound();
}
