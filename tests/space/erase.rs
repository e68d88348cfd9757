//! Erasure: at once in every answer, on request in every file, and never a second execution.

use crate::support::*;
use counterfoil::testing::{Survival, TestBed};
use counterfoil::{
    EntryKind, Erase, Error, Exported, Limits, LogStart, NextAnswer, Operation, ReceiptFilter, Reply, Slot, Store,
    StoreBuilder, Tx,
};

/// What an erased operation said, in every place where it can say something.
const BODY: &str = "SECRET-BODY";
const HEADER: &str = "SECRET-HEADER";
const RESOURCE: &str = "SECRET-RESOURCE";
const ROW: &str = "SECRET-ROW";
const SECRETS: [&str; 4] = [BODY, HEADER, RESOURCE, ROW];
/// The same of operations that stay.
const KEPT: &str = "KEPT-BODY";

fn small() -> StoreBuilder {
    let mut limits = Limits::default();
    limits.fold_bytes = 3_000;
    limits.segment_bytes_first = 4096;
    builder().limits(limits).allow_header("x-secret")
}

fn asked(tenant: &str, actor: &str, key: &str) -> Operation {
    KEEP.request(tenant, actor, key).expect("a slot").json(&1).expect("a request")
}

fn slot(tenant: &str, actor: &str, key: &str) -> Slot {
    Slot::new(tenant, actor, "keep", key).expect("a slot")
}

/// Writes a row under a number, and takes it away again: business rows are the application's own to delete, and what is
/// searched for is what the log holds of it.
fn says_secrets(tx: &Tx<'_>) -> Result<Reply, counterfoil::Failure> {
    let runs = tx.table(&RUNS)?;
    let next = runs.last()?.map_or(0, |(number, _)| number + 1);
    runs.put(next, &ROW.to_owned())?;
    Ok(Reply::ok().resource_id(RESOURCE).header("x-secret", HEADER)?.bytes("text/plain", BODY))
}

/// Two tenants with two actors each, all of whom said secrets, and one who did not.
fn talkative() -> TestBed {
    let bed = bed_of(small);
    for tenant in ["acme", "bolt"] {
        for actor in ["alice", "bob"] {
            for key in ["k1", "k2"] {
                drop(bed.store().execute(asked(tenant, actor, key), says_secrets).expect("it executes"));
            }
        }
    }
    let kept = |_: &Tx<'_>| Ok(Reply::ok().bytes("text/plain", KEPT));
    drop(bed.store().execute(asked("cork", "carol", "k1"), kept).expect("it executes"));
    settle(bed.store());
    bed
}

/// The application deletes its own rows.
fn delete_rows(store: &Store) {
    let deleted = store.write(|tx| {
        let runs = tx.table(&RUNS)?;
        while let Some((number, _)) = runs.first()? {
            runs.remove(number)?;
        }
        Ok(())
    });
    assert!(deleted.is_ok(), "{deleted:?}");
}

fn places(bed: &TestBed, text: &str) -> Vec<String> {
    let found = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    bed.disk().files().into_iter().filter(|(_, bytes)| found(bytes)).map(|(name, _)| name).collect()
}

fn is_gone(store: &Store, tenant: &str, actor: &str, key: &str) -> bool {
    match store.execute(asked(tenant, actor, key), never) {
        Err(Error::Gone(gone)) => {
            assert_eq!(gone.resource_id, None, "the resource id is erased as well");
            true
        }
        Ok(receipt) => {
            assert!(receipt.is_replayed());
            false
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn gone(store: &Store) -> Vec<String> {
    let mut gone = Vec::new();
    for tenant in ["acme", "bolt"] {
        for actor in ["alice", "bob"] {
            for key in ["k1", "k2"] {
                if is_gone(store, tenant, actor, key) {
                    gone.push(format!("{tenant} {actor} {key}"));
                }
            }
        }
    }
    gone
}

fn all_of(tenant: &str) -> Vec<String> {
    ["alice k1", "alice k2", "bob k1", "bob k2"].map(|rest| format!("{tenant} {rest}")).to_vec()
}

#[test]
fn each_target_is_erased_at_once_in_every_answer_and_nothing_else_is() {
    let cases = [
        (Erase::operation(slot("acme", "alice", "k1")), vec!["acme alice k1".to_owned()]),
        (Erase::actor("acme", "alice"), vec!["acme alice k1".to_owned(), "acme alice k2".to_owned()]),
        (Erase::tenant("acme"), all_of("acme")),
        (Erase::tenant("nobody"), Vec::new()),
    ];
    for (what, expected) in cases {
        for crash in [false, true] {
            let mut bed = talkative();
            let erased = bed.store().erase(&what, Some("ann"), "asked to", |_| ()).unwrap();
            assert_eq!(erased.receipts, expected.len() as u64, "{what:?}");
            assert_eq!(erased.entries, expected.len() as u64, "{what:?}");
            assert_eq!(gone(bed.store()), expected, "{what:?}");
            bed.store().assert_sound();
            reopen(&mut bed, crash);
            assert_eq!(gone(bed.store()), expected, "{what:?}, crash {crash}");
            let [decided] = &bed.store().erasures().unwrap()[..] else { panic!("one decision") };
            assert_eq!((&decided.target, decided.reason.as_str()), (&what, "asked to"));
            assert_eq!(decided.sequence, erased.position.sequence);
            bed.store().assert_sound();
        }
    }
}

#[test]
fn the_log_the_listing_and_the_export_show_an_erased_operation_as_erased() {
    let bed = talkative();
    bed.store().erase(&Erase::tenant("acme"), None, "they left", |_| ()).unwrap();
    let mut log = bed.store().log(LogStart::Oldest).unwrap();
    let (mut erased, mut shown) = (0, 0);
    while let Some(entry) = log.try_next().unwrap() {
        if entry.kind == EntryKind::Erased {
            assert!(entry.changes.is_empty());
            erased += 1;
        } else if let EntryKind::Operation { slot, .. } = &entry.kind {
            assert_ne!(slot.tenant.as_str(), "acme");
            shown += 1;
        }
    }
    assert_eq!((erased, shown), (4, 5));
    for listed in bed.store().view().receipts(ReceiptFilter::default()).unwrap() {
        let listed = listed.unwrap();
        let is_acme = listed.slot.tenant.as_str() == "acme";
        assert_eq!((listed.erased, matches!(listed.now, NextAnswer::Gone { .. })), (is_acme, is_acme));
    }
    let told = bed.store().explain(&slot("acme", "bob", "k2"), |_, _| ()).unwrap();
    assert!(told.erased && told.receipt.is_some_and(|receipt| receipt.resource_id.is_none()));
    let mut lines = Vec::new();
    bed.store().export(Exported::Receipts, &mut lines, |_| ()).unwrap();
    assert_eq!(String::from_utf8(lines).unwrap().matches(BODY).count(), 4, "the other tenant's");
}

#[test]
fn after_a_purge_no_file_holds_a_byte_of_what_was_erased_and_all_else_is_whole() {
    for what in [Erase::tenant("acme"), Erase::actor("acme", "alice"), Erase::operation(slot("acme", "alice", "k1"))] {
        let bed = talkative();
        // Whoever else said the same would hide what is searched for.
        for other in ["acme", "bolt"] {
            for (actor, key) in [("alice", "k1"), ("alice", "k2"), ("bob", "k1"), ("bob", "k2")] {
                bed.store().erase(&Erase::operation(slot(other, actor, key)), None, "others", |_| ()).unwrap();
            }
        }
        bed.store().erase(&what, None, "asked to", |_| ()).unwrap();
        delete_rows(bed.store());
        settle(bed.store());
        for secret in SECRETS {
            assert!(!places(&bed, secret).is_empty(), "{secret} is still in the log: that is what the purge is for");
        }
        bed.store().purge(|_, _| ()).unwrap();
        settle(bed.store());
        for secret in SECRETS {
            assert_eq!(places(&bed, secret), Vec::<String>::new(), "{secret}");
        }
        assert!(!places(&bed, KEPT).is_empty());
        let kept = bed.store().execute(asked("cork", "carol", "k1"), never).unwrap();
        assert_eq!(kept.reply().body(), KEPT.as_bytes());
        assert_eq!(gone(bed.store()).len(), 8);
        bed.store().assert_sound();
    }
}

#[test]
fn one_tenant_is_purged_and_the_other_keeps_every_answer() {
    for crash in [false, true] {
        let mut bed = talkative();
        bed.store().erase(&Erase::tenant("acme"), None, "they left", |_| ()).unwrap();
        bed.store().purge(|_, _| ()).unwrap();
        reopen(&mut bed, crash);
        assert_eq!(gone(bed.store()), all_of("acme"), "crash {crash}");
        drop(bed.store().execute(asked("acme", "alice", "new"), says_secrets).unwrap());
        assert!(!is_gone(bed.store(), "acme", "alice", "new"), "what comes later is not erased by it");
        bed.store().assert_sound();
    }
}

#[test]
fn an_erasure_ends_with_the_retention_as_every_receipt_does() {
    let bed = talkative();
    bed.store().erase(&Erase::tenant("acme"), None, "they left", |_| ()).unwrap();
    bed.clock().advance(2 * HOUR - MS);
    settle(bed.store());
    for (actor, key) in [("alice", "k1"), ("bob", "k2")] {
        assert!(is_gone(bed.store(), "acme", actor, key), "to the last millisecond");
    }
    bed.clock().advance(MS);
    settle(bed.store());
    assert_eq!(bed.store().verify().unwrap().receipts, 0);
    bed.store().assert_sound();
    assert_eq!(bed.store().erasures().unwrap().len(), 1, "the decision is kept for backups from before");
}

#[test]
fn erasing_again_changes_nothing_more() {
    let bed = talkative();
    bed.store().erase(&Erase::actor("acme", "alice"), None, "once", |_| ()).unwrap();
    let again = bed.store().erase(&Erase::tenant("acme"), None, "twice", |_| ()).unwrap();
    assert_eq!((again.receipts, again.entries), (2, 4), "the other actor's receipts, and every entry");
    let third = bed.store().erase(&Erase::tenant("acme"), None, "thrice", |_| ()).unwrap();
    assert_eq!(third.receipts, 0);
    assert_eq!(gone(bed.store()), all_of("acme"));
    bed.store().assert_sound();
}

#[test]
fn a_loss_of_power_at_any_step_of_erasing_and_purging_leaves_a_sound_store_that_ends_it_when_asked_again() {
    let prepared = talkative().disk().crash(&Survival::Everything);
    let steps = |store: &Store| {
        drop(store.erase(&Erase::tenant("acme"), None, "they left", |_| ()));
        drop(store.purge(|_, _| ()));
        while store.step().is_ok_and(|worked| worked) {}
    };
    let open = |disk: &counterfoil::testing::SimDisk| {
        let clock = counterfoil::testing::VirtualClock::new(counterfoil::testing::WALL_AT_START);
        small().manual().clock(clock).open_in(disk).expect("it opens")
    };
    let whole = prepared.crash(&Survival::Nothing);
    let store = open(&whole);
    let start = whole.operations();
    steps(&store);
    let end = whole.operations();
    for at in (start..=end).step_by(2) {
        for survival in [Survival::Nothing, Survival::Everything, Survival::Random(at)] {
            let disk = prepared.crash(&Survival::Nothing);
            let store = open(&disk);
            disk.power_cut_at(at);
            steps(&store);
            let disk = disk.crash(&survival);
            drop(store);
            let store = open(&disk);
            store.assert_sound();
            let erased = store.erase(&Erase::tenant("acme"), None, "again", |_| ());
            assert!(erased.is_ok(), "at {at}, {survival:?}: {erased:?}");
            assert!(store.purge(|_, _| ()).is_ok(), "at {at}, {survival:?}");
            assert_eq!(gone(&store), all_of("acme"), "at {at}, {survival:?}");
            store.assert_sound();
        }
    }
}

#[test]
fn a_quota_gives_back_what_an_erasure_freed() {
    let bed = bed_of(|| small().quota(counterfoil::Quota { receipts: u64::MAX, bytes: 1_500 }));
    let large = |_: &Tx<'_>| Ok(Reply::ok().bytes("text/plain", vec![b'x'; 1_000]));
    drop(bed.store().execute(asked("acme", "alice", "k1"), large).unwrap());
    assert!(matches!(bed.store().execute(asked("acme", "alice", "k2"), large), Err(Error::QuotaExceeded { .. })));
    bed.store().erase(&Erase::operation(slot("acme", "alice", "k1")), None, "room", |_| ()).unwrap();
    drop(bed.store().execute(asked("acme", "alice", "k2"), large).unwrap());
    bed.store().assert_sound();
}
