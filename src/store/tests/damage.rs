//! Rows that a sound store never loses, taken away: the checker names each.

use std::sync::Arc;

use super::{bed, run};
use crate::base::operation::OperationType;
use crate::base::reply::Reply;
use crate::log::record::{Body, RowChange, TableChanges, WriteRecord};
use crate::state::{ALL, RowKey, Rows, View};
use crate::store::published::Published;
use crate::store::rows::System;
use crate::store::{LogReadError, LogStart, Store};

const T: crate::Table<u64, u64> = crate::Table::new("t");
const ASK: OperationType = OperationType::new("ask");

#[test]
fn a_lost_row_of_the_stores_own_is_found_by_verify() {
    let rows = [
        (System::Scopes, "has no scope"),
        (System::Slots, "is in the log and has no receipt"),
        (System::Replies, "has lost its reply"),
        (System::Expiry, "has no expiry row"),
    ];
    for (table, problem) in rows {
        let bed = bed(|| Store::builder().operation(&ASK));
        for key in ["k", "l"] {
            let operation = ASK.request("t", "a", key).unwrap().json(&1).unwrap();
            drop(bed.store().execute(operation, |_: &crate::Tx<'_>| Ok(Reply::ok())).unwrap());
        }
        assert!(bed.store().verify().unwrap().is_clean());
        let shared = Arc::clone(bed.store().shared());
        let published = shared.publisher.load();
        let first = published.view.range(table.id(), ALL).unwrap().next().unwrap().unwrap().0;
        let mut active = published.view.active.clone();
        active.set(RowKey::new(table.id(), first.key()), None);
        let view = View { active, frozen: None, base: published.view.base.clone() };
        let position = published.position;
        drop(published);
        drop(shared.publisher.publish(Published { view, position }));
        let report = bed.store().verify().unwrap();
        assert!(report.problems.iter().any(|found| found.message.contains(problem)), "{problem}: {report:#?}");
    }
}

#[test]
fn a_follower_stays_at_an_entry_that_it_cannot_decode() {
    let bed = bed(|| Store::builder().table(&T));
    let store = bed.store();
    let mut follower = store.log(LogStart::Now).unwrap();
    let rows = vec![RowChange::Put { key: vec![1], value: b"not a sealed value".as_slice().into() }];
    let changes = vec![TableChanges { table: "t".to_owned(), rows }];
    run(store).commit_own(vec![Body::Write(WriteRecord { changes })]).unwrap();
    let damaged = store.stats().position;
    store.write(|tx| Ok(tx.table(&T)?.put(2, &2)?)).unwrap();
    for _ in 0..3 {
        let error = follower.try_next().expect_err("it is not skipped");
        let LogReadError::Damaged(message) = &error else { panic!("{error:?}") };
        assert!(message.contains(&damaged.to_string()), "{message}");
    }
}
