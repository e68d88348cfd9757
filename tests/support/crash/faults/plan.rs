//! What is wrong with the disk, what somebody noticed of it, and how often.

use counterfoil::testing::{CallKind, Fault, FaultError, SimDisk};
use counterfoil::{Error, Execution};

/// Which calls fail, how, and whether all later ones do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) on: CallKind,
    pub(crate) error: FaultError,
    pub(crate) permanent: bool,
}

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    /// The Nth call fails.
    Fault(Plan, u64),
    /// There is room for so many bytes.
    Full(u64),
}

impl Trouble {
    pub(super) fn begin(self, disk: &SimDisk) {
        match self {
            Self::Fault(Plan { on, error, permanent }, nth) => {
                disk.fail(Fault { on, nth, name_contains: None, error, permanent });
            }
            Self::Full(bytes) => disk.set_capacity(Some(bytes)),
        }
    }

    pub(super) fn end(disk: &SimDisk) {
        disk.clear_faults();
        disk.set_capacity(None);
    }

    /// Eviction changes nothing unless something was dropped.
    pub(super) fn drops_data(self) -> bool {
        matches!(self, Self::Fault(Plan { error: FaultError::SyncDropsData, .. }, _))
    }

    /// Reads may fail as well, so that what is stored need not be replayed while it lasts.
    pub(super) fn keeps_from_reading(self) -> bool {
        match self {
            Self::Fault(plan, _) => {
                matches!(plan.on, CallKind::Read | CallKind::Len | CallKind::Open | CallKind::List | CallKind::Any)
            }
            Self::Full(_) => false,
        }
    }
}

/// What somebody noticed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    NotExecuted,
    Unknown,
    Open,
    Close,
}

impl Noticed {
    pub(super) fn answer(error: &Error) -> Self {
        match error.execution() {
            Execution::Unknown => Self::Unknown,
            Execution::NotExecuted | Execution::Executed => Self::NotExecuted,
        }
    }
}

/// How many trials ended how: by what was noticed first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) tried: u64,
    /// Nobody noticed anything: every answer was given.
    pub(crate) answered: u64,
    pub(crate) not_executed: u64,
    pub(crate) unknown: u64,
    pub(crate) open: u64,
    pub(crate) close: u64,
    /// The store stopped until it was reopened.
    pub(crate) stopped: u64,
    /// A call did fail, and what it was about.
    pub(crate) struck: u64,
    pub(crate) struck_removals: u64,
    pub(crate) struck_preparations: u64,
    pub(crate) struck_directories: u64,
}

/// Which calls failed in a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Struck {
    any: bool,
    /// Of a segment under its own name.
    removal: bool,
    /// The creation of a segment under its temporary name, or the rename to its own.
    preparation: bool,
    /// A sync of the directory of segments.
    directory: bool,
}

impl Struck {
    /// As the trace tells.
    pub(super) fn on(disk: &SimDisk) -> Self {
        let failed: Vec<String> = disk.trace().into_iter().filter(|call| is_failed(call)).collect();
        let any = |parts: &[&str]| failed.iter().any(|call| parts.iter().all(|part| call.contains(part)));
        Self {
            any: disk.faults_struck() > 0,
            removal: any(&[": Remove log/", ".seg"]),
            preparation: any(&[": Create log/", ".seg.new"]) || any(&[": Rename log/", ".seg.new"]),
            directory: any(&[": SyncDir log"]),
        }
    }
}

/// A call that failed ends with the error behind an arrow; a rename has an arrow between its names as well.
fn is_failed(call: &str) -> bool {
    let arrows = call.matches(" -> ").count();
    arrows > usize::from(call.contains(": Rename "))
}

impl Figures {
    pub(crate) fn add(&mut self, other: Self) {
        self.tried += other.tried;
        self.answered += other.answered;
        self.not_executed += other.not_executed;
        self.unknown += other.unknown;
        self.open += other.open;
        self.close += other.close;
        self.stopped += other.stopped;
        self.struck += other.struck;
        self.struck_removals += other.struck_removals;
        self.struck_preparations += other.struck_preparations;
        self.struck_directories += other.struck_directories;
    }

    pub(super) fn one(noticed: Option<Noticed>, stopped: bool, struck: Struck) -> Self {
        let is = |wanted| u64::from(noticed == wanted);
        Self {
            tried: 1,
            answered: is(None),
            not_executed: is(Some(Noticed::NotExecuted)),
            unknown: is(Some(Noticed::Unknown)),
            open: is(Some(Noticed::Open)),
            close: is(Some(Noticed::Close)),
            stopped: u64::from(stopped),
            struck: u64::from(struck.any),
            struck_removals: u64::from(struck.removal),
            struck_preparations: u64::from(struck.preparation),
            struck_directories: u64::from(struck.directory),
        }
    }
}

/// Something that must never be, and how to see it again.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) trial: String,
    pub(crate) what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.trial, self.what)
    }
}

/// All errors that mean something to a kind of call, each once and for ever, but for those that are not tried.
pub(crate) fn plans(on: CallKind) -> Vec<Plan> {
    use FaultError::{
        Eacces, Eintr, Eio, EioPartWritten, Enospc, ShortRead, ShortWrite, SyncDropsData, SyncErrorsButDurable,
    };
    let mut errors = vec![Eio, Enospc, Eintr, Eacces];
    match on {
        CallKind::Read => errors.push(ShortRead),
        CallKind::Write => errors.extend([ShortWrite, EioPartWritten]),
        CallKind::Sync | CallKind::SyncDir => errors.extend([SyncDropsData, SyncErrorsButDurable]),
        CallKind::Len
        | CallKind::SetLen
        | CallKind::Rename
        | CallKind::Remove
        | CallKind::Create
        | CallKind::Open
        | CallKind::Lock
        | CallKind::List
        | CallKind::Any => {}
    }
    let both = |error| [false, true].map(|permanent| Plan { on, error, permanent });
    errors.into_iter().flat_map(both).filter(|plan| not_tried(*plan).is_none()).collect()
}

/// Why a plan is not tried, if it is not.
pub(crate) fn not_tried(plan: Plan) -> Option<&'static str> {
    let repeated = matches!(plan.on, CallKind::Read | CallKind::Write) && plan.error == FaultError::Eintr;
    (repeated && plan.permanent).then_some("an interrupted call is made again, and no system interrupts it for ever")
}

/// The kinds of calls, in the order of the table.
pub(crate) const KINDS: [CallKind; 12] = [
    CallKind::Read,
    CallKind::Write,
    CallKind::Sync,
    CallKind::SetLen,
    CallKind::Rename,
    CallKind::SyncDir,
    CallKind::Create,
    CallKind::Remove,
    CallKind::Open,
    CallKind::Len,
    CallKind::List,
    CallKind::Lock,
];
