//! A caller against the store: an uncertain outcome is settled by calling again with the same identity.

use std::cell::Cell;

use counterfoil::call::{Answer, Attempt, AttemptError, Call, Kind, Outcome, Verdict, classify};
use counterfoil::{OperationType, Receipt, Reply, Store, Table, Tx};

use super::support::World;

const CREATE: OperationType = OperationType::new("create_order");
const ORDERS: Table<u32, String> = Table::new("orders");

/// Executes an attempt, and says what its network makes of the answer.
fn attempt(store: &Store, attempt: &Attempt, lose: bool) -> Result<Answer<Receipt>, AttemptError<String>> {
    let key = attempt.identity().unwrap().key().clone();
    let operation = CREATE.request("shop", "alice", key.as_bytes()).unwrap().json(&("book", 1)).unwrap();
    let operation = operation.attempt(attempt.number()).trace_id(attempt.trace_id().to_string()).unwrap();
    let answer = store.execute(operation.deadline(attempt.remaining()), |tx: &Tx<'_>| {
        let orders = tx.table(&ORDERS)?;
        let number = u32::try_from(orders.len()?)? + 1;
        orders.insert_new(number, &"book".to_owned())?;
        Ok(Reply::created().resource_id(format!("orders/{number}")))
    });
    if lose {
        return Err(AttemptError::new(Verdict::maybe_applied(Kind::Transient), "the answer was lost".to_owned()));
    }
    match answer {
        Ok(receipt) => Ok(Answer::new(receipt.clone()).replayed(receipt.is_replayed())),
        Err(error) => Err(AttemptError::new(classify::store::error(&error), error.to_string())),
    }
}

#[test]
fn a_lost_answer_ends_in_the_receipt_of_the_first_attempt_and_one_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::builder().operation(&CREATE).table(&ORDERS).open(directory.path().join("store")).unwrap();
    let world = World::new();
    let caller = world.builder().build().unwrap();

    let call = Call::mutation("create_order", caller.mint());
    let finished = caller.call_blocking(call, |now| attempt(&store, &now, now.number() == 1));
    let first = finished.report.trace_ids().next().unwrap().to_string();
    let Outcome::Success { value: receipt, replayed: true, .. } = finished.outcome else { panic!("{finished:?}") };
    assert_eq!(receipt.reply().resource(), Some("orders/1"));
    assert_eq!((receipt.meta().attempt, receipt.meta().trace_id.as_deref()), (1, Some(first.as_str())));

    let lost = Cell::new(3);
    let call = Call::mutation("create_order", caller.mint());
    let uncertain = caller.call_blocking(call, |now| {
        lost.set(lost.get() - 1);
        attempt(&store, &now, true)
    });
    let Outcome::Uncertain { identity: Some(identity), .. } = uncertain.outcome else { panic!("{uncertain:?}") };
    assert_eq!(lost.get(), 0);
    let settled = caller.call_blocking(Call::mutation("create_order", identity), |now| attempt(&store, &now, false));
    assert!(matches!(settled.outcome, Outcome::Success { replayed: true, .. }));
    let orders = store.read(|view| view.table(&ORDERS).unwrap().len().unwrap());
    assert_eq!(orders, 2);
}
