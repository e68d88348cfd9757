//! One process asks: for each step it hears an answer or a typed failure, and anything else is a violation.

use counterfoil::testing::SimDisk;
use counterfoil::{EntryKind, Error, LogStart, OpenError, Position, Reply, Store, Tx};

use super::plan::{Noticed, Trouble};
use crate::crash::harness::{Process, Stopped, unmanned};
use crate::crash::script::{Kind, ORDERS, Op, Step};

/// A change that failed on a file that counts must have been noticed by somebody.
pub(super) fn check_nothing_swallowed(disk: &SimDisk) -> Result<(), String> {
    for call in disk.trace() {
        let Some((tried, error)) = call.split_once(" -> ").filter(|_| !call.contains(": Rename ")) else { continue };
        // A segment under its temporary name is prepared again when it is needed.
        let counts = (tried.contains(" state.redb") || tried.contains(".seg")) && !tried.contains(".new");
        let changes = [": Write ", ": Sync ", ": SetLen "].iter().any(|kind| tried.contains(kind));
        // redb writes pages ahead of need and keeps those that it could not write until it must; a call that is
        // interrupted or short is made whole.
        let ahead = tried.contains(": Write ") && tried.contains(" state.redb");
        let repeated = ahead || error == "ShortWrite" || (error == "Eintr" && tried.contains(": Write "));
        if counts && changes && !repeated {
            return Err(format!("nobody noticed {call}"));
        }
    }
    Ok(())
}

/// An error of an opening is about the disk.
pub(super) fn check_open_error(error: &OpenError) -> Result<(), String> {
    let typed =
        matches!(error, OpenError::Io { .. } | OpenError::DiskFull(_) | OpenError::Log(_) | OpenError::State(_));
    if typed && error.to_string().contains("simulated: ") {
        Ok(())
    } else {
        Err(format!("the opening said: {error:?}"))
    }
}

pub(super) fn open(process: &mut Process, threads: bool) -> Result<(), OpenError> {
    if threads {
        process.store = Some(unmanned(&process.clock).open_in(&process.disk)?);
        Ok(())
    } else {
        process.open()
    }
}

/// Opens again in the same process: first on the disk as it is, then on a mended one, where it must succeed.
pub(super) fn reopen(process: &mut Process, threads: bool) -> Result<(), String> {
    process.store = None;
    if let Err(error) = open(process, threads) {
        check_open_error(&error)?;
        Trouble::end(&process.disk);
        open(process, threads).map_err(|error| format!("on a mended disk it does not open: {error}"))?;
    }
    Ok(())
}

pub(super) fn is_stopped(process: &Process) -> bool {
    process.store.as_ref().is_some_and(|store| store.stats().stopped.is_some())
}

/// A stopped store runs nothing, replays what is certain, and says of everything else what it is.
pub(super) fn check_stopped(process: &mut Process, trouble: Trouble) -> Result<(), String> {
    let store = process.store().clone();
    let ran = |_: &Tx<'_>| -> Result<Reply, _> { panic!("a stopped store ran a closure") };
    let other = Op { id: 7777, kind: Kind::Create };
    match store.execute(other.request(), ran) {
        Err(Error::Poisoned(_)) => {}
        Err(error) if trouble.keeps_from_reading() && Noticed::answer(&error) == Noticed::NotExecuted => {}
        answer => return Err(format!("a stopped store answered a new operation by {answer:?}")),
    }
    let write = store.write(|_| -> Result<(), _> { panic!("a stopped store ran a closure") });
    if !matches!(write, Err(Error::Poisoned(_))) {
        return Err(format!("a stopped store answered a plain write by {write:?}"));
    }
    for op in process.told.unknown.values().filter(|op| op.has_receipt()) {
        let answer = store.execute(op.request(), ran);
        if !matches!(answer, Err(Error::Unknown(_))) {
            return Err(format!("{op:?} was unknown, and then the stopped store said {answer:?}"));
        }
    }
    for (op, position, reply) in process.told.receipts.values() {
        match store.execute(op.request(), ran) {
            Ok(receipt) if receipt.is_replayed() && receipt.position() == *position && receipt.reply() == reply => {}
            Err(error) if trouble.keeps_from_reading() && Noticed::answer(&error) == Noticed::NotExecuted => {}
            answer => return Err(format!("{op:?} was answered, and then the stopped store said {answer:?}")),
        }
    }
    Ok(())
}

/// Takes a step, again if need be, and says what somebody noticed. An error is a violation.
pub(super) fn attempt(process: &mut Process, step: &Step, threads: bool) -> Result<Option<Noticed>, String> {
    match step {
        Step::Idle | Step::Compact | Step::Purge => {
            process.step(step).map(|()| None).map_err(|stopped| format!("{stopped:?}"))
        }
        Step::Reopen => {
            if process.close().is_err() {
                return Ok(Some(Noticed::Close));
            }
            match open(process, threads) {
                Ok(()) => Ok(None),
                Err(error) => check_open_error(&error).map(|()| Some(Noticed::Open)),
            }
        }
        Step::Conflict(op) => {
            let op = *op;
            match process.store().execute(op.request_for(1), move |tx| op.execute(tx)) {
                Err(Error::Conflict { .. }) => Ok(None),
                Err(error) => Ok(Some(Noticed::answer(&error))),
                Ok(receipt) => Err(format!("another request under the key of {op:?} was answered by {receipt:?}")),
            }
        }
        Step::One(op) if op.kind == Kind::Write => attempt_write(process, *op),
        Step::One(op) | Step::Retry(op) => attempt_all(process, step, &[*op]),
        Step::Batch(ops) => attempt_all(process, step, ops),
    }
}

/// A write without a key is not done again if it is there.
fn attempt_write(process: &mut Process, op: Op) -> Result<Option<Noticed>, String> {
    if process.told.writes.contains_key(&op.id) {
        return Ok(None);
    }
    if process.told.unknown.contains_key(&op.id) {
        match process.store().read(|view| view.table(&ORDERS)?.contains(op.row())) {
            Ok(true) => {
                let position = last_write(process.store())?;
                process.told.unknown.remove(&op.id);
                process.told.writes.insert(op.id, (op, position));
                return Ok(None);
            }
            Ok(false) => {}
            Err(_) => return Ok(Some(Noticed::NotExecuted)),
        }
    }
    attempt_all(process, &Step::One(op), &[op])
}

/// Where the newest plain write stands: the unknown one, since nothing was done after it.
fn last_write(store: &Store) -> Result<Position, String> {
    let mut log = store.log(LogStart::Oldest).map_err(|error| error.to_string())?;
    let mut last = None;
    while let Some(entry) = log.try_next().map_err(|error| error.to_string())? {
        if matches!(entry.kind, EntryKind::Write) {
            last = Some(entry.position);
        }
    }
    last.ok_or_else(|| "the row of a plain write is there, and no entry is".to_owned())
}

/// "Not executed" is said of a submission. Of an operation whose earlier submission is unknown it says nothing.
fn attempt_all(process: &mut Process, step: &Step, ops: &[Op]) -> Result<Option<Noticed>, String> {
    let mut unknown = Vec::new();
    for op in ops {
        unknown.extend(process.told.unknown.remove(&op.id));
        process.told.not_executed.remove(&op.id);
    }
    let outcome = process.step(step);
    for op in unknown {
        if process.told.not_executed.remove(&op.id).is_some() {
            process.told.unknown.insert(op.id, op);
        }
    }
    match outcome {
        Ok(()) => Ok(None),
        Err(Stopped::Answer(_, error)) => {
            let any_unknown = ops.iter().any(|op| process.told.unknown.contains_key(&op.id));
            Ok(Some(if any_unknown { Noticed::Unknown } else { Noticed::answer(&error) }))
        }
        Err(stopped @ (Stopped::Open(_) | Stopped::Upkeep(_) | Stopped::Close(_))) => {
            Err(format!("{step:?} ended by {stopped:?}"))
        }
    }
}
