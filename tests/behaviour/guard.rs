//! The replay guard: asked on every path, told nothing of the reply, and its no tells nothing.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::*;
use counterfoil::testing::{CallKind, Fault, FaultError, TestBed};
use counterfoil::{Access, Error, Execution, OperationType, Receipt, ReceiptMeta, Reply, Retention, Slot, Tx};

const HOUR: Duration = Duration::from_secs(3600);
const KEEP: OperationType = OperationType::new("keep").retention(Retention { replay: HOUR, refuse: HOUR });

const ALLOW: u8 = 0;
const DENY: u8 = 1;
const PANIC: u8 = 2;
/// Allowed on the caller's thread, denied from the second question on, which is the writer's.
const DENY_SECOND: u8 = 3;

type Asked = Arc<Mutex<Vec<(Slot, Option<ReceiptMeta>)>>>;

fn guarded() -> (TestBed, Arc<AtomicU8>, Asked) {
    let (mood, asked) = (Arc::new(AtomicU8::new(ALLOW)), Asked::default());
    let (in_mood, in_asked) = (Arc::clone(&mood), Arc::clone(&asked));
    let bed = bed_of(move || {
        let (mood, asked) = (Arc::clone(&in_mood), Arc::clone(&in_asked));
        builder().operation(&KEEP).replay_guard(move |slot, meta| {
            asked.lock().expect("no panic").push((slot.clone(), meta.cloned()));
            match mood.load(Ordering::SeqCst) {
                ALLOW => Access::Allowed,
                DENY => Access::Denied,
                PANIC => panic!("the guard panics"),
                _ => {
                    mood.store(DENY, Ordering::SeqCst);
                    Access::Allowed
                }
            }
        })
    });
    (bed, mood, asked)
}

fn keep(key: &str, content: u32) -> counterfoil::Operation {
    typed_op(&KEEP, "acme", key, content)
}

#[test]
fn a_no_is_one_answer_on_every_path_whatever_is_stored() {
    let (bed, mood, _) = guarded();
    let store = bed.store();
    drop(store.execute(keep("gone", 1), add("n")).unwrap());
    bed.clock().advance(HOUR);
    drop(store.execute(keep("stored", 1), add("n")).unwrap());
    let entries = store.stats().position;
    let denied = |answer: Result<Receipt, Error>, path: &str| {
        let error = answer.expect_err(path);
        assert!(matches!(error, Error::Denied), "{path}: {error:?}");
        assert_eq!(error.execution(), Execution::NotExecuted);
        assert_eq!(error.to_string(), Error::Denied.to_string());
    };
    for no in [DENY, PANIC] {
        mood.store(no, Ordering::SeqCst);
        for (key, content) in [("nothing", 1), ("stored", 1), ("stored", 2), ("gone", 1), ("gone", 2)] {
            denied(store.execute(keep(key, content), never), key);
            denied(store.submit(keep(key, content), never).unwrap().wait(), key);
            denied(store.receipt(keep(key, content).slot()).map(|_| panic!("told")), key);
        }
    }
    // On the writer's thread: nothing is executed for whoever lost access while it waited.
    mood.store(DENY_SECOND, Ordering::SeqCst);
    denied(store.execute(keep("nothing", 1), never), "on the writer");
    assert_eq!(store.stats().position, entries);
    mood.store(ALLOW, Ordering::SeqCst);
    assert!(store.execute(keep("stored", 1), never).unwrap().is_replayed());
    assert!(!store.execute(keep("nothing", 1), add("n")).unwrap().is_replayed(), "the key is free");
    store.assert_sound();
}

#[test]
fn a_duplicate_in_the_same_batch_is_asked_for_as_well() {
    let (bed, mood, asked) = guarded();
    let first = bed.store().submit(op("k"), add("n")).unwrap();
    let again = bed.store().submit(op("k"), never).unwrap();
    asked.lock().unwrap().clear();
    mood.store(DENY_SECOND, Ordering::SeqCst);
    bed.store().step().unwrap();
    let receipt = answer(first).unwrap();
    assert!(matches!(answer(again), Err(Error::Denied)));
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().map(|(_, meta)| meta.as_ref()).collect::<Vec<_>>(), [None, Some(receipt.meta())]);
}

#[test]
fn a_no_comes_before_unknown_when_the_store_has_stopped() {
    let (bed, mood, _) = guarded();
    let fault = Fault { name_contains: Some(ACTIVE.to_owned()), ..Fault::next(CallKind::Sync, FaultError::Eio) };
    bed.disk().fail(fault);
    assert!(matches!(bed.store().execute(op("k"), add("n")), Err(Error::Unknown(_))));
    mood.store(DENY, Ordering::SeqCst);
    for key in ["k", "other"] {
        assert!(matches!(bed.store().execute(op(key), never), Err(Error::Denied)), "{key}");
        assert!(matches!(bed.store().receipt(op(key).slot()), Err(Error::Denied)), "{key}");
    }
    mood.store(ALLOW, Ordering::SeqCst);
    assert!(matches!(bed.store().execute(op("k"), never), Err(Error::Unknown(_))));
}

#[test]
fn the_guard_sees_the_slot_and_what_a_receipt_says_beside_its_reply() {
    let (bed, _, asked) = guarded();
    let body = |_: &Tx<'_>| Ok(Reply::created().resource_id("orders/7").json("card 4711")?);
    let receipt = bed.store().execute(keep("k", 1).attempt(2), body).unwrap();
    asked.lock().unwrap().clear();
    drop(bed.store().execute(keep("k", 1), never).unwrap());
    drop(bed.store().receipt(receipt.slot()).unwrap());
    assert!(bed.store().execute(keep("k", 2), never).is_err());
    bed.clock().advance(HOUR);
    assert!(bed.store().execute(keep("k", 1), never).is_err());
    let seen = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(seen.len(), 4);
    for (slot, meta) in seen {
        assert_eq!((&slot, meta.as_ref()), (receipt.slot(), Some(receipt.meta())));
        assert!(!format!("{meta:?}").contains("4711"));
    }
    bed.clock().advance(HOUR);
    assert_eq!(bed.store().receipt(receipt.slot()).unwrap(), None);
    assert_eq!(asked.lock().unwrap()[0].1, None, "what is forgotten is not shown");
}
