//! Nothing shows before it is durable.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{Decision, Error, Failure, LogStart, Reply, Tx};

#[test]
fn nothing_of_a_batch_shows_while_its_sync_is_under_way_and_all_of_it_afterwards() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    drop(store.execute(op("before"), add("before")).unwrap());
    let before = store.stats();
    let mut follower = store.log(LogStart::After(before.position)).unwrap();

    let gate = hold(&disk);
    let executed = store.submit(op("k"), add("k")).unwrap();
    let slot = op("k").slot().clone();
    gate.wait_until_blocked();
    // The second batch waits behind the first: a duplicate, a no, a failure, a write.
    let again = store.submit(op("k"), never).unwrap();
    let no = store.submit(op("no"), |_: &Tx<'_>| Ok(Decision::Reject(Reply::refused()))).unwrap();
    let failed = store.submit(op("f"), |_: &Tx<'_>| -> Result<Reply, _> { Err(Failure::message("f")) }).unwrap();
    let (send, written) = channel();
    let writer = std::thread::spawn({
        let store = store.clone();
        move || send.send(store.write(|tx| Ok(tx.table(&TOTALS)?.put("w", &1)?))).unwrap()
    });

    let nothing = || {
        assert_eq!(total(&store, "k"), 0, "readable");
        assert_eq!(store.receipt(&slot).unwrap(), None, "a receipt");
        assert_eq!(store.view().position(), Some(before.position));
        assert_eq!(store.stats().position, before.position, "in the stats");
        assert_eq!(store.stats().executed, before.executed, "counted");
        assert!(!executed.is_answered() && !again.is_answered() && !no.is_answered() && !failed.is_answered());
        assert!(written.try_recv().is_err());
    };
    nothing();
    assert!(follower.try_next().unwrap().is_none(), "followed");
    // What is durable is answered and read all the while: neither waits for the sync.
    assert!(store.execute(op("before"), never).unwrap().is_replayed());
    assert_eq!(total(&store, "before"), 1);
    assert_eq!(gate.blocked(), 1);
    nothing();

    gate.release();
    let receipt = executed.wait().unwrap();
    assert!(!receipt.is_replayed());
    assert_eq!(total(&store, "k"), 1, "what was answered can be read");
    assert_eq!(follower.try_next().unwrap().unwrap().position, receipt.position());
    assert_eq!(store.receipt(&slot).unwrap().unwrap().meta(), receipt.meta());
    assert!(again.wait().unwrap().is_replayed());
    assert!(no.wait().unwrap().is_rejected());
    assert!(matches!(failed.wait(), Err(Error::Failed(_))));
    written.recv().unwrap().unwrap();
    writer.join().unwrap();
    store.assert_sound();
    store.close().unwrap();
}

#[test]
fn refusals_of_a_batch_that_wrote_wait_for_its_sync() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    // While the writer is in this closure, which writes nothing and so has no sync, the others gather to one batch.
    let (enter, inside) = channel();
    let (go, leave) = channel::<()>();
    let holding = std::thread::spawn({
        let store = store.clone();
        move || {
            store.write(move |_| {
                enter.send(())?;
                Ok(leave.recv()?)
            })
        }
    });
    inside.recv().unwrap();
    let second = store.submit(op("second"), add("n")).unwrap();
    let refused = store.submit(op("refused"), |tx: &Tx<'_>| -> Result<Reply, _> {
        Err(Failure::message(format!("there are {:?}", tx.table(&TOTALS)?.get("n")?)))
    });
    let refused = refused.unwrap();
    let gate = hold(&disk);
    go.send(()).unwrap();
    holding.join().unwrap().unwrap();
    gate.wait_until_blocked();
    assert!(!second.is_answered() && !refused.is_answered());
    gate.release();
    drop(second.wait().unwrap());
    let Err(Error::Failed(failure)) = refused.wait() else { panic!("a failure") };
    assert_eq!(failure.to_string(), "there are Some(1)");
    store.close().unwrap();
}

#[test]
fn what_was_answered_survives_a_loss_of_power_and_what_was_not_may_be_asked_again() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let answered = store.execute(op("answered"), add("n")).unwrap();
    let gate = hold(&disk);
    let ticket = store.submit(op("waiting"), add("n")).unwrap();
    gate.wait_until_blocked();
    for survival in [Survival::Nothing, Survival::Everything] {
        let after = disk.crash(&survival);
        let reopened = threaded(&after);
        let again = reopened.execute(op("answered"), never).unwrap();
        assert_eq!(again.meta(), answered.meta());
        let sum = total(&reopened, "n");
        let retried = reopened.execute(op("waiting"), add("n")).unwrap();
        assert_eq!(retried.is_replayed(), sum == 2, "{survival:?}: mutation and receipt are there together");
        assert_eq!(total(&reopened, "n"), 2, "{survival:?}");
        reopened.assert_sound();
        reopened.close().unwrap();
    }
    gate.release();
    assert!(matches!(ticket.wait(), Err(Error::Unknown(_))), "the power went before its sync");
    assert!(matches!(store.close(), Err(Error::Poisoned(_))));
}

#[test]
fn a_view_shows_one_state_however_long_it_is_kept() {
    let bed = bed_of(|| {
        let mut limits = counterfoil::Limits::default();
        limits.fold_bytes = 2000;
        builder().limits(limits)
    });
    let store = bed.store();
    drop(store.execute(op("k"), add("n")).unwrap());
    let old = store.view();
    bed.clock().advance(Duration::from_secs(60));
    let folds = store.stats().folds;
    for number in 0..50 {
        drop(store.execute(op(&format!("more-{number}")), add("n")).unwrap());
        settle(store);
    }
    assert!(store.stats().folds > folds + 3, "the state file changed beneath the view");
    assert_eq!(old.table(&TOTALS).unwrap().get("n").unwrap(), Some(1));
    assert_eq!(old.table(&TOTALS).unwrap().len().unwrap(), 1);
    assert_eq!(total(store, "n"), 51);
    let stats = store.stats();
    assert_eq!((stats.views, stats.oldest_view), (1, Some(Duration::from_secs(60))));
    drop(old);
    assert_eq!((store.stats().views, store.stats().oldest_view), (0, None));
    store.assert_sound();
}
