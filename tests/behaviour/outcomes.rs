//! What becomes of mutation and receipt, by how the closure ends.

use std::fmt;

use crate::support::*;
use counterfoil::testing::{SimDisk, TestBed};
use counterfoil::{
    Decision, Error, Execution, Failure, Invalid, Limits, OpenError, OperationType, Oversize, Reply, Slot, Store,
    Table, TableError, Tx,
};

const SHORT: OperationType = OperationType::new("short").oversize(Oversize::DropBody);
const UNDECLARED: Table<u64, u64> = Table::new("undeclared");
const AS_BINCODE: Table<String, u64> = Table::new("totals").bincode();
const OTHER_KEY: Table<u64, u64> = Table::new("totals");
const OTHER_VERSION: Table<String, u64> = Table::new("totals").version(2);
const BLOBS: Table<String, Vec<u8>> = Table::raw("blobs");

fn small() -> TestBed {
    bed_of(|| {
        let mut limits = Limits::default();
        limits.reply_bytes_max = 1000;
        limits.record_bytes_max = 4000;
        limits.row_bytes_max = 2000;
        limits.row_key_bytes_max = 100;
        limits.operation_rows_max = 10;
        builder().operation(&SHORT).table(&BLOBS).limits(limits)
    })
}

type Body = fn(&Tx<'_>) -> Result<Decision, Failure>;

/// A mutation that must not be seen, then `rest`.
fn fails(bed: &TestBed, name: &str, rest: Body) -> Error {
    let error = bed
        .store()
        .execute(op(name), move |tx: &Tx<'_>| {
            tx.table(&TOTALS)?.put("half", &1)?;
            rest(tx)
        })
        .expect_err(name);
    assert_eq!(error.execution(), Execution::NotExecuted, "{name}");
    assert_eq!(total(bed.store(), "half"), 0, "{name}: half of an operation");
    let slot = Slot::new("acme", "alice", "add", name).expect("a slot");
    assert_eq!(bed.store().receipt(&slot).expect("a look-up"), None, "{name}: a receipt");
    let entries = bed.store().stats().position.sequence;
    assert!(!bed.store().execute(op(name), add("free")).expect("the key is free").is_replayed(), "{name}");
    assert_eq!(bed.store().stats().position.sequence, entries + 1, "{name}");
    error
}

#[derive(Debug, PartialEq)]
struct NoFunds {
    missing: u32,
}

impl fmt::Display for NoFunds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} are missing", self.missing)
    }
}

impl std::error::Error for NoFunds {}

#[test]
fn a_closures_own_error_comes_back_as_it_was_and_frees_the_key() {
    let bed = small();
    let error = fails(&bed, "own", |_| Err(NoFunds { missing: 7 }.into()));
    let Error::Failed(failure) = &error else { panic!("{error:?}") };
    assert_eq!(failure.downcast_ref::<NoFunds>(), Some(&NoFunds { missing: 7 }));
    assert!(failure.downcast_ref::<TableError>().is_none());
    assert!(error.is_retryable() && error.to_string().contains("7 are missing"), "{error}");
    let error = fails(&bed, "text", |_| Err(Failure::message("not today")));
    assert!(error.to_string().contains("not today"), "{error}");
    bed.store().assert_sound();
}

#[test]
fn a_panic_is_an_error_with_its_message() {
    let bed = small();
    let rows: [(&str, Body, &str); 3] = [
        ("text", |_| panic!("plain text"), "plain text"),
        ("formatted", |_| panic!("number {}", 5), "number 5"),
        ("no text", |_| std::panic::panic_any(5), "no message"),
    ];
    for (name, body, message) in rows {
        let error = fails(&bed, name, body);
        assert!(matches!(&error, Error::Panicked { message: found } if found == message), "{name}: {error:?}");
        assert!(!error.is_retryable(), "{name}");
    }
    bed.store().assert_sound();
}

#[test]
fn an_ignored_error_of_a_table_fails_the_operation_whatever_the_closure_returns() {
    let bed = small();
    let rows: [(&str, Body); 12] = [
        ("undeclared", |tx| ignoring(tx.table(&UNDECLARED))),
        ("another codec", |tx| ignoring(tx.table(&AS_BINCODE))),
        ("another key type", |tx| ignoring(tx.table(&OTHER_KEY))),
        ("another version", |tx| ignoring(tx.table(&OTHER_VERSION))),
        ("row there already", |tx| ignoring(tx.table(&TOTALS)?.insert_new("half", &2))),
        ("key too long", |tx| ignoring(tx.table(&TOTALS)?.put("k".repeat(101), &2))),
        ("value too large", |tx| ignoring(tx.table(&BLOBS)?.put("k", &vec![0; 2001]))),
        ("too many rows", |tx| {
            let totals = tx.table(&TOTALS)?;
            (0..10).for_each(|row| drop(totals.put(row.to_string(), &1)));
            Ok(().ok_reply())
        }),
        ("too many bytes", |tx| {
            let blobs = tx.table(&BLOBS)?;
            for row in ["a", "b", "c"] {
                drop(blobs.put(row, &vec![0; 1500]));
            }
            Ok(().ok_reply())
        }),
        ("overwritten afterwards", |tx| {
            drop(tx.table(&BLOBS)?.put("k", &vec![0; 2001]));
            tx.table(&BLOBS)?.put("k", &vec![0; 1])?;
            Ok(().ok_reply())
        }),
        ("then a no", |tx| {
            drop(tx.table(&UNDECLARED));
            Ok(Decision::Reject(Reply::refused()))
        }),
        ("in a loop", |tx| {
            for _ in 0..3 {
                drop(tx.table(&UNDECLARED));
            }
            Ok(().ok_reply())
        }),
    ];
    for (name, body) in rows {
        let error = fails(&bed, name, body);
        assert!(matches!(error, Error::Table(_)), "{name}: {error:?}");
        assert!(
            error.to_string().contains("table")
                || error.to_string().contains("operation_rows_max")
                || error.to_string().contains("record_bytes_max"),
            "{name}: {error}"
        );
    }
    bed.store().assert_sound();
}

fn ignoring<T>(result: Result<T, TableError>) -> Result<Decision, Failure> {
    drop(result);
    Ok(Reply::ok().into())
}

trait OkReply: Sized {
    fn ok_reply(self) -> Decision {
        Reply::ok().into()
    }
}

impl OkReply for () {}

#[test]
fn an_error_of_a_table_that_is_passed_on_can_be_looked_at() {
    let bed = small();
    let error = fails(&bed, "passed on", |tx| Ok(tx.table(&TOTALS)?.insert_new("half", &2).map(OkReply::ok_reply)?));
    let Error::Failed(failure) = error else { panic!("{error:?}") };
    assert!(matches!(failure.downcast_ref(), Some(TableError::AlreadyExists { .. })), "{failure:?}");
}

#[test]
fn an_outcome_above_a_limit_names_the_limit_and_changes_nothing() {
    let bed = small();
    let rows: [(&str, Body, &str); 7] = [
        ("reply", |_| Ok(Reply::ok().bytes("text/plain", vec![b'x'; 991]).into()), "reply"),
        ("resource id", |_| Ok(Reply::ok().resource_id("r".repeat(513)).into()), "resource id"),
        ("content type", |_| Ok(Reply::ok().bytes("t".repeat(257), "x").into()), "content type"),
        (
            "headers",
            |_| {
                let headers = (0..65).try_fold(Reply::ok(), |reply, _| reply.header("link", "x"));
                Ok(headers?.into())
            },
            "number of headers",
        ),
        (
            "record",
            |tx| {
                // Each row is within its limits, the bytes of rows are, and with names and reply the record is not.
                let blobs = tx.table(&BLOBS)?;
                blobs.put("a", &vec![0; 1950])?;
                blobs.put("b", &vec![0; 1950])?;
                Ok(Reply::ok().bytes("text/plain", vec![b'x'; 500]).into())
            },
            "record",
        ),
        ("a rejection's reply", |_| Ok(Decision::Reject(Reply::ok().bytes("text/plain", vec![b'x'; 991]))), "reply"),
        ("row", |tx| Ok(tx.table(&BLOBS)?.put("k", &vec![0; 2001]).map(OkReply::ok_reply)?), "row_bytes_max = 2000"),
    ];
    for (name, body, what) in rows {
        let error = fails(&bed, name, body);
        assert!(matches!(error, Error::Limit { .. } | Error::Failed(_)), "{name}: {error:?}");
        assert!(error.to_string().contains(what), "{name}: {error}");
    }
    // Exactly at the limit is fine: 990 + the 10 of the content type.
    let body = |_: &Tx<'_>| Ok(Reply::ok().bytes("text/plain", vec![b'x'; 990]));
    assert_eq!(bed.store().execute(op("at the limit"), body).unwrap().reply().body().len(), 990);
    bed.store().assert_sound();
}

#[test]
fn the_limits_that_rows_exceed_are_named_as_they_are_set() {
    let bed = small();
    let rows: [(&str, Body); 4] = [
        ("row_key_bytes_max", |tx| Ok(tx.table(&TOTALS)?.put("k".repeat(101), &2).map(OkReply::ok_reply)?)),
        ("row_bytes_max", |tx| Ok(tx.table(&BLOBS)?.put("k", &vec![0; 2001]).map(OkReply::ok_reply)?)),
        ("operation_rows_max", |tx| {
            let totals = tx.table(&TOTALS)?;
            (0..10).try_for_each(|row| totals.put(row.to_string(), &1))?;
            Ok(().ok_reply())
        }),
        ("record_bytes_max", |tx| {
            let blobs = tx.table(&BLOBS)?;
            ["a", "b", "c"].into_iter().try_for_each(|row| blobs.put(row, &vec![0; 1500]))?;
            Ok(().ok_reply())
        }),
    ];
    for (limit, body) in rows {
        let error = fails(&bed, limit, body).to_string();
        assert!(error.contains(&format!(" {limit} = ")), "{limit}: {error}");
    }
}

#[test]
fn a_header_that_is_not_on_the_list_is_refused_when_the_operation_is_about_to_commit() {
    let bed = small();
    let error = fails(&bed, "header", |_| Ok(Reply::ok().header("X-Secret", "s3cret")?.into()));
    assert!(matches!(&error, Error::Undeclared { what: "reply header", name } if name == "x-secret"), "{error:?}");
    assert!(!error.to_string().contains("s3cret"));
    let error = fails(&bed, "cookie", |_| Ok(Reply::ok().header("Set-Cookie", "s3cret")?.into()));
    let Error::Failed(failure) = error else { panic!("{error:?}") };
    assert!(matches!(failure.downcast_ref(), Some(Invalid::HeaderForbidden(_))));
}

#[test]
fn credentials_are_not_stored_even_if_a_reply_comes_out_of_serde() {
    let bed = small();
    for (text, what) in [
        (
            r#"{"status":200,"headers":[["Set-Cookie","s3cret"]],"resource_id":null,"content_type":null,"body":[]}"#,
            "cookie",
        ),
        (r#"{"status":7,"headers":[],"resource_id":null,"content_type":null,"body":[]}"#, "status"),
    ] {
        let reply: Reply = serde_json::from_str(text).unwrap();
        let error = bed.store().execute(op(what), move |_| Ok(reply)).unwrap_err();
        assert!(matches!(error, Error::Invalid(Invalid::HeaderForbidden(_) | Invalid::Status(7))), "{error:?}");
    }
    let refused = Store::builder().allow_header("Set-Cookie").open_in(&SimDisk::new());
    assert!(matches!(refused, Err(OpenError::Config(_))), "{refused:?}");
}

#[test]
fn a_body_above_the_limit_is_dropped_where_the_operation_asks_and_never_cut() {
    let mut bed = small();
    let big = |tx: &Tx<'_>| {
        tx.table(&TOTALS)?.put("made", &1)?;
        Ok(Reply::created().resource_id("orders/7").header("etag", "x")?.bytes("text/plain", vec![b'x'; 5000]))
    };
    let first = bed.store().execute(typed_op(&SHORT, "acme", "k", 1), big).unwrap();
    assert_eq!(first.reply(), &Reply::created().resource_id("orders/7"), "the first answer is the replayed one");
    assert!(first.meta().body_dropped);
    bed.close_and_reopen().unwrap();
    let again = bed.store().execute(typed_op(&SHORT, "acme", "k", 1), never).unwrap();
    assert_eq!((again.reply(), again.meta()), (first.reply(), first.meta()));
    assert!(again.is_replayed());
    assert_eq!(total(bed.store(), "made"), 1);
    // Below the limit nothing is dropped.
    let small = bed.store().execute(typed_op(&SHORT, "acme", "l", 1), |_| Ok(Reply::ok().bytes("a/b", "x"))).unwrap();
    assert!(!small.meta().body_dropped && small.reply().body() == b"x");
    bed.store().assert_sound();
}

#[test]
fn a_plain_write_has_the_same_outcomes_and_no_receipt() {
    let bed = small();
    let store = bed.store();
    let written = store.write(|tx| Ok(tx.table(&TOTALS)?.put("w", &5).map(|()| "value")?)).unwrap();
    assert_eq!(written.value, "value");
    assert_eq!(written.position, Some(store.stats().position));
    let nothing = store.write(|tx| Ok(tx.table(&TOTALS)?.get("w")?)).unwrap();
    assert_eq!((nothing.value, nothing.position), (Some(5), None), "what changes nothing has no place in the log");
    let own = store.write(|tx| -> Result<(), _> {
        tx.table(&TOTALS)?.put("w", &6)?;
        Err(NoFunds { missing: 1 }.into())
    });
    assert!(matches!(own, Err(Error::Failed(failure)) if failure.downcast_ref::<NoFunds>().is_some()));
    assert!(matches!(store.write(|_| -> Result<(), _> { panic!("p") }), Err(Error::Panicked { .. })));
    assert!(matches!(store.write(|tx| ignoring(tx.table(&UNDECLARED))), Err(Error::Table(_))));
    assert_eq!(total(store, "w"), 5);
    assert_eq!(store.verify().unwrap().receipts, 0);
    store.assert_sound();
}
