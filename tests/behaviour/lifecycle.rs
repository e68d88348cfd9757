//! Opening, handing around, closing.

use crate::support::*;
use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{
    Entry, Error, LogFollower, LogStart, OpenError, ReadView, Receipt, Reply, Store, StoreBuilder, Ticket, Tx,
};

const fn assert_send_and_sync<T: Send + Sync>() {}
const fn assert_send<T: Send>() {}

const _: () = {
    assert_send_and_sync::<Store>();
    assert_send_and_sync::<Ticket>();
    assert_send_and_sync::<ReadView>();
    assert_send_and_sync::<Receipt>();
    assert_send_and_sync::<Error>();
    assert_send_and_sync::<OpenError>();
    assert_send_and_sync::<Entry>();
    assert_send::<LogFollower>();
    assert_send::<StoreBuilder>();
};

#[test]
fn a_closed_store_with_many_receipts_is_closed_and_not_damaged() {
    let bed = bed();
    let store = bed.store().clone();
    for number in 0..3_000 {
        drop(store.submit(op(&format!("{number:05}")), add("n")).unwrap());
        if number % 500 == 0 {
            settle(&store);
        }
    }
    settle(&store);
    let other = store.clone();
    store.close().unwrap();
    for number in [0, 1_500, 2_999, 5_000] {
        let operation = op(&format!("{number:05}"));
        let slot = operation.slot().clone();
        let known = other.receipt(&slot);
        assert!(matches!(known, Ok(_) | Err(Error::Closed)), "{known:?}");
        match other.execute(operation, never) {
            Ok(receipt) => assert!(receipt.is_replayed()),
            Err(error) => assert!(matches!(error, Error::Closed), "{error:?}"),
        }
    }
}

#[test]
fn a_closed_store_says_so_at_every_handle_and_reads_what_was_durable() {
    let manual = bed();
    for (mode, store) in [("manual", manual.store().clone()), ("threads", threaded(&SimDisk::new()))] {
        let first = store.execute(op("k"), add("n")).unwrap();
        let other = store.clone();
        store.close().unwrap();
        for error in [
            other.execute(op("new"), never).unwrap_err(),
            other.submit(op("new"), never).unwrap_err(),
            other.write(|_| -> Result<(), _> { panic!("ran") }).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Closed), "{mode}: {error:?}");
        }
        assert_eq!(total(&other, "n"), 1, "{mode}");
        assert_eq!(other.receipt(first.slot()).unwrap().unwrap().meta(), first.meta(), "{mode}");
        let mut log = other.log(LogStart::Oldest).unwrap();
        while log.next().is_some_and(|entry| entry.is_ok()) {}
        let again = other.clone();
        assert!(matches!(other.close(), Err(Error::Closed)), "{mode}: closed twice");
        drop(again);
    }
}

#[test]
fn what_is_queued_is_served_at_close() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let gate = hold(&disk);
    let mut tickets: Vec<Ticket> = vec![store.submit(op("first"), add("n")).unwrap()];
    gate.wait_until_blocked();
    tickets.extend((0..50).map(|n| store.submit(op(&n.to_string()), add("n")).unwrap()));
    let closing = std::thread::spawn(move || store.close());
    gate.release();
    for ticket in tickets {
        assert!(!ticket.wait().unwrap().is_replayed());
    }
    closing.join().unwrap().unwrap();
    let store = threaded(&disk);
    assert_eq!(total(&store, "n"), 51);
    store.assert_sound();

    let bed = bed();
    let tickets: Vec<Ticket> = (0..5).map(|n| bed.store().submit(op(&n.to_string()), add("n")).unwrap()).collect();
    bed.store().clone().close().unwrap();
    assert!(tickets.into_iter().all(|ticket| answer(ticket).is_ok()));
}

#[test]
fn dropping_the_last_handle_serves_the_queue_and_is_as_good_as_closing() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let tickets: Vec<Ticket> = (0..50).map(|n| store.submit(op(&n.to_string()), add("n")).unwrap()).collect();
    drop(store);
    assert!(tickets.into_iter().all(|ticket| answer(ticket).is_ok()));
    let store = threaded(&disk.crash(&Survival::Nothing));
    assert_eq!(total(&store, "n"), 50);
    assert_eq!(store.stats().recovered_unproven, 0, "the last batch was proven");
    store.assert_sound();
}

#[test]
fn closing_while_others_submit_answers_everybody() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let callers: Vec<_> = (0..4)
        .map(|caller| {
            let store = store.clone();
            std::thread::spawn(move || {
                let mut done = 0;
                for number in 0.. {
                    match store.execute(op(&format!("{caller}-{number}")), add("n")) {
                        Ok(_) => done += 1,
                        Err(Error::Closed) => return done,
                        Err(error) => panic!("{error:?}"),
                    }
                }
                done
            })
        })
        .collect();
    while total(&store, "n") < 20 {
        std::thread::yield_now();
    }
    store.close().unwrap();
    let done: u64 = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    assert_eq!(total(&threaded(&disk), "n"), done);
}

#[test]
fn one_process_owns_a_store_and_a_dead_holder_does_not_count() {
    let disk = SimDisk::new();
    let store = threaded(&disk);
    let Err(OpenError::Held { holder }) = builder().open_in(&disk) else { panic!("held") };
    assert!(holder.contains(&std::process::id().to_string()), "{holder}");
    drop(threaded(&disk.kill()));
    drop(store);
}

#[test]
fn a_store_exists_once_it_was_opened_and_must_exist_makes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let absent = || builder().must_exist().open(&path);
    assert!(matches!(absent(), Err(OpenError::Absent(_))));
    assert!(!Store::exists(&path) && !path.exists(), "a mistyped path stays what it was");
    builder().open(&path).unwrap().close().unwrap();
    assert!(Store::exists(&path));
    let store = absent().unwrap();
    assert!(store.location().contains("store"), "{}", store.location());
    store.close().unwrap();

    let other = directory.path().join("other");
    std::fs::create_dir(&other).unwrap();
    assert!(matches!(builder().must_exist().open(&other), Err(OpenError::Absent(_))));
    std::fs::write(other.join("letter.txt"), "dear").unwrap();
    assert!(matches!(builder().open(&other), Err(OpenError::NotAStore { .. })));
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1, "nothing was added");
    assert!(builder().open(directory.path().join("no/parent")).is_err());
    std::fs::remove_file(path.join("state.redb")).unwrap();
    assert!(matches!(builder().open(&path), Err(OpenError::Missing { missing }) if missing == "state.redb"));
}

#[test]
fn debug_output_shows_no_payload() {
    let bed = bed();
    let secret = ADD.request("acme", "alice", "k").unwrap().json(&"s3cret").unwrap();
    let texts = [format!("{:?}", secret), {
        let receipt = bed.store().execute(secret, |tx: &Tx<'_>| {
            tx.table(&RUNS)?.put(1, &"s3cret".to_owned())?;
            assert!(!format!("{tx:?}").contains("s3cret"));
            Ok(Reply::ok().header("etag", "s3cret")?.json("s3cret")?)
        });
        format!("{:?}", receipt.unwrap())
    }];
    let entries: Vec<_> = {
        let mut log = bed.store().log(LogStart::Oldest).unwrap();
        std::iter::from_fn(|| log.try_next().unwrap()).collect()
    };
    let view = bed.store().view();
    let more = [
        format!("{entries:?}"),
        format!("{:?}", bed.store()),
        format!("{view:?}"),
        format!("{:?}", bed.store().stats()),
        format!("{:?}", bed.store().log(LogStart::Oldest).unwrap()),
        format!("{:?}", bed.store().submit(op("l"), add("n")).unwrap()),
        format!("{:?}", builder()),
        format!("{:?} {:?}", bed.disk(), bed),
    ];
    for text in texts.iter().chain(&more) {
        assert!(text.len() < 5_000, "a dump: {}", &text[..100]);
        assert!(!text.contains("s3cret"), "{text}");
        let bytes = format!("{:?}", b"s3cret").replace(['[', ']'], "");
        assert!(!text.contains(&bytes), "{text}");
    }
}

#[test]
fn an_unfinished_creation_is_started_over() {
    let mut operation = 0;
    loop {
        operation += 1;
        let disk = SimDisk::new();
        disk.power_cut_at(operation);
        let opened = builder().manual().open_in(&disk);
        let done = opened.is_ok() && !disk.is_off();
        drop(opened);
        let store = builder().manual().open_in(&disk.crash(&Survival::Nothing)).expect("it opens, or is made");
        drop(store.execute(op("k"), add("n")).unwrap());
        store.assert_sound();
        if done {
            break;
        }
    }
    assert!(operation > 10);
}
