//! What a store makes of damage: opened, read, asked again for everything, and checked.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use counterfoil::testing::{SimDisk, Survival};
use counterfoil::{Error, LogReadError, LogStart, OpenError, Store, TableError};

use crate::crash::harness::{Process, builder};
use crate::crash::model::Tables;
use crate::crash::script::{Kind, Op};
use crate::specimen::Specimen;

/// How damage was met. Anything else is a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The store did not open, the error names the file, and nothing was changed.
    Refused,
    /// It opened, and a read or a retry was answered with an error of damage. The rest is as it was.
    FoundByRead,
    /// It opened, everything that was read is as it was, and `verify` names the damage.
    FoundByVerify,
    /// It opened and something is missing or was executed again; `verify` names the damage and the full check refuses
    /// the store. For the state file alone: see N4.
    MissingUntilVerified,
    /// The last batch before an unclean stop is gone, which nothing proved durable: see N3.
    TornTail,
    /// The last segment was cut exactly behind a mark and looks like one that was closed there: see N3.
    CutBehindMark,
    /// Everything is as it was.
    NoEffect,
}

impl Verdict {
    pub(crate) const ALL: [Self; 7] = [
        Self::Refused,
        Self::FoundByRead,
        Self::FoundByVerify,
        Self::MissingUntilVerified,
        Self::TornTail,
        Self::CutBehindMark,
        Self::NoEffect,
    ];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::FoundByRead => "read",
            Self::FoundByVerify => "verify",
            Self::MissingUntilVerified => "missing",
            Self::TornTail => "torn",
            Self::CutBehindMark => "cut",
            Self::NoEffect => "none",
        }
    }
}

/// What was seen of an open store.
#[derive(Debug, Default)]
struct Seen {
    /// Errors that say that something is damaged.
    found: Vec<String>,
    /// Answers that differ from what was written, and errors that do not say why.
    wrong: Vec<String>,
}

impl Seen {
    fn wrong(&mut self, what: impl fmt::Display) {
        self.wrong.push(what.to_string());
    }

    fn error(&mut self, error: &Error) {
        // Where a closure met it, its own error is that of the table.
        let is_damage = matches!(error, Error::Corrupt(_))
            || matches!(error, Error::Failed(failure) if failure.downcast_ref().is_some_and(is_damage));
        if is_damage { self.found.push(error.to_string()) } else { self.wrong(error) }
    }
}

fn is_damage(error: &TableError) -> bool {
    matches!(error, TableError::Damaged { .. } | TableError::Storage { .. } | TableError::Decode { .. })
}

/// Judges a disk on which one file was damaged, perhaps so that it looks as if it had been closed at an earlier time.
/// The error says what must never happen.
pub(crate) fn judge(specimen: &Specimen, disk: &SimDisk, file: &str, looks_closed: bool) -> Result<Verdict, String> {
    let judged = catch_unwind(AssertUnwindSafe(|| judge_open(specimen, disk, file, looks_closed)));
    judged.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("a panic: {}", text.unwrap_or_default()))
    })
}

fn judge_open(specimen: &Specimen, disk: &SimDisk, file: &str, looks_closed: bool) -> Result<Verdict, String> {
    let before = disk.crash(&Survival::Nothing);
    let disk = &before.crash(&Survival::Nothing);
    let mut process = specimen.process(disk);
    if let Err(error) = process.open() {
        refused(&error, file, &before, disk)?;
        return Ok(Verdict::Refused);
    }
    let (seen, problems, entries) = look(specimen, &process);
    drop(process);
    if entries < specimen.entries() && problems.is_empty() && seen.found.is_empty() {
        return match seen.wrong.is_empty() {
            true if entries >= specimen.proven => Ok(Verdict::TornTail),
            true if looks_closed => Ok(Verdict::CutBehindMark),
            _ => Err(format!("nothing finds that only {entries} entries are left: {:?}", seen.wrong)),
        };
    }
    let verdict = match (seen.wrong.is_empty(), seen.found.is_empty(), problems.is_empty()) {
        (false, _, true) => return Err(format!("nothing finds it: {:?}, {:?}", seen.wrong, seen.found)),
        (false, _, false) if file != "state.redb" => return Err(format!("{:?}, though {problems:?}", seen.wrong)),
        (false, _, false) => Verdict::MissingUntilVerified,
        (true, false, _) => Verdict::FoundByRead,
        (true, true, false) => Verdict::FoundByVerify,
        (true, true, true) => Verdict::NoEffect,
    };
    if verdict != Verdict::NoEffect {
        check_full(specimen, &before, file)?;
    }
    Ok(verdict)
}

/// An error at open names the file and changes nothing. A recovery may have left an epoch without entries.
fn refused(error: &OpenError, file: &str, before: &SimDisk, after: &SimDisk) -> Result<(), String> {
    let message = error.to_string();
    let is_named = message.contains(file)
        || file == "state.redb" && message.contains("state file")
        // Segments at the old end of the log are missed by their entries.
        || message.contains("log: entries 1 to ") && !after.files().contains_key(file);
    if !is_named {
        return Err(format!("the error does not name {file}: {message}"));
    }
    let after = after.files();
    for (name, content) in before.files() {
        if name != "HOLDER" && after.get(&name) != Some(&content) {
            return Err(format!("{name} was changed or deleted by an open that failed: {message}"));
        }
    }
    Ok(())
}

/// The full check refuses what a plain open let pass.
fn check_full(specimen: &Specimen, before: &SimDisk, file: &str) -> Result<(), String> {
    let disk = before.crash(&Survival::Nothing);
    let clock = specimen.process(&disk).clock;
    match builder(&clock, specimen.limits.clone()).full_check().open_in(&disk) {
        Ok(_) => Err("the full check lets it pass".to_owned()),
        Err(error) => refused(&error, file, before, &disk),
    }
}

/// Reads and retries everything. Gives what was seen, what `verify` says, and how many entries there are.
fn look(specimen: &Specimen, process: &Process) -> (Seen, Vec<String>, usize) {
    let store = process.store();
    let mut seen = Seen::default();
    let entries = Specimen::entries_at(store.stats().position.sequence);
    if entries > specimen.entries() {
        seen.wrong(format!("{entries} entries are more than there were"));
    }
    let problems = match store.verify() {
        Ok(report) => report.problems.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    };
    read_receipts(specimen, store, entries, &mut seen);
    match store.read(Tables::of) {
        Ok(tables) if tables == *specimen.workload.model.after(entries.min(specimen.entries())) => {}
        Ok(_) => seen.wrong("the tables differ"),
        Err(error) if is_damage(&error) => seen.found.push(error.to_string()),
        Err(error) => seen.wrong(error),
    }
    read_log(specimen, store, &mut seen);
    retry(specimen, store, entries, &mut seen);
    (seen, problems, entries)
}

fn operations(specimen: &Specimen) -> impl Iterator<Item = (Op, Option<usize>)> {
    let all = specimen.workload.operations.iter().filter(|op| op.kind != Kind::Write);
    all.map(|op| (*op, specimen.workload.model.place(*op)))
}

fn read_receipts(specimen: &Specimen, store: &Store, entries: usize, seen: &mut Seen) {
    for (op, place) in operations(specimen) {
        let expected = place.filter(|place| *place < entries).map(|place| &specimen.workload.model.entries[place]);
        match (store.receipt(&op.slot()), expected) {
            (Ok(Some(receipt)), Some(entry)) if receipt.reply() == entry.reply() => {}
            (Ok(None), None) => {}
            (Ok(found), _) => seen.wrong(format!("the receipt of {op:?} is {found:?}")),
            (Err(error), _) => seen.error(&error),
        }
    }
}

fn read_log(specimen: &Specimen, store: &Store, seen: &mut Seen) {
    let outcome = store.log(LogStart::Oldest).and_then(|mut log| {
        for expected in &specimen.log {
            match log.try_next()? {
                Some(entry) if entry == *expected => {}
                Some(entry) => seen.wrong(format!("entry {} differs", entry.position)),
                // How many there must be is asked elsewhere.
                None => break,
            }
        }
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(LogReadError::Damaged(message)) if message.contains("log/") || message.contains("kept") => {
            seen.found.push(message);
        }
        Err(error) => seen.wrong(format!("reading the log: {error}")),
    }
}

fn retry(specimen: &Specimen, store: &Store, entries: usize, seen: &mut Seen) {
    for (op, place) in operations(specimen) {
        let Some(place) = place else { continue };
        let is_there = place < entries;
        match store.execute(op.request(), move |tx| op.execute(tx)) {
            Ok(receipt) if receipt.is_replayed() != is_there => seen.wrong(format!("{op:?} was executed again")),
            Ok(receipt) if is_there && receipt.reply() != specimen.workload.model.entries[place].reply() => {
                seen.wrong(format!("{op:?} has another reply"));
            }
            Ok(_) => {}
            Err(error) => seen.error(&error),
        }
    }
}
