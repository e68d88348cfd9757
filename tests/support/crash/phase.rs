//! What a process was doing when the power went: the phase of a crash point.
//!
//! Nothing is guessed. The harness knows what it had asked for, the disk knows the call in flight (the one that did not
//! happen any more) and the one before it. A run without a crash is traced once; [`Course`] says for each of its disk
//! operations:
//!
//! | the process was | call in flight | phase |
//! |---|---|---|
//! | opening, where no store was | any | creation |
//! | opening or working | removal of a segment, and the sync of `log/` after it | removal |
//! | opening | of a segment's temporary name, or of the directory `log/` | copying |
//! | opening | of `state.redb`, or of a segment (declared tables) | catching up |
//! | opening | any other (lock, holder, directory) | opening |
//! | closing | any, or the next one after it | close |
//! | working | the first one after a sync of a segment | synced |
//! | working | of a segment | append |
//! | working | any other in `log/` | rollover |
//! | working | of `state.redb.new`, and the sync of the directory after it was renamed | compaction |
//! | working | of `state.redb`, in a step that counted a checkpoint | checkpoint |
//! | working | of `state.redb`, in a step that did not | fold |

use std::fmt;

use counterfoil::testing::{CallKind, SimDisk, TracedCall};

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// The store is being made.
    Creation,
    /// A batch or a mark is written and not synced.
    Append,
    /// What was answered is in the log, and nothing of it is in the state file.
    Synced,
    /// A map is being written into the state file without a sync.
    Fold,
    /// The state file is being made durable.
    Checkpoint,
    /// The next segment is being prepared.
    Rollover,
    /// An old segment is being removed.
    Removal,
    /// The state file is being rewritten under another name, or takes its own.
    Compaction,
    /// The last batch is proven, the last checkpoint made; or all of that is done.
    Close,
    /// Another opening looks at what is there.
    Opening,
    /// It writes its own first segment, with copies of what was not proven durable.
    Copying,
    /// It applies the log to the state file and declares tables.
    CatchingUp,
}

impl Phase {
    pub(crate) const ALL: [Self; 12] = [
        Self::Creation,
        Self::Append,
        Self::Synced,
        Self::Fold,
        Self::Checkpoint,
        Self::Rollover,
        Self::Removal,
        Self::Compaction,
        Self::Close,
        Self::Opening,
        Self::Copying,
        Self::CatchingUp,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Creation => "creation",
            Self::Append => "append",
            Self::Synced => "synced",
            Self::Fold => "fold",
            Self::Checkpoint => "checkpoint",
            Self::Rollover => "rollover",
            Self::Removal => "removal",
            Self::Compaction => "compaction",
            Self::Close => "close",
            Self::Opening => "opening",
            Self::Copying => "copying",
            Self::CatchingUp => "catching up",
        }
    }
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phases(u16);

impl Phases {
    pub(crate) fn insert(&mut self, phase: Phase) {
        self.0 |= 1 << phase as u16;
    }

    pub(crate) const fn contains(self, phase: Phase) -> bool {
        self.0 & (1 << phase as u16) != 0
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the harness had asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Creating,
    Opening,
    /// A call for work, or a step; whether it counted a checkpoint is known once it has returned.
    Working {
        checkpoint: bool,
    },
    Closing,
}

/// The activities of a process, each with the disk operations that were done before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diary {
    entries: Vec<(u64, Activity)>,
}

impl Diary {
    pub(crate) fn begin(&mut self, disk: &SimDisk, activity: Activity) {
        self.entries.push((disk.operations(), activity));
    }

    /// The work that was begun last has made a checkpoint.
    pub(crate) fn note_checkpoint(&mut self) {
        if let Some((_, Activity::Working { checkpoint })) = self.entries.last_mut() {
            *checkpoint = true;
        }
    }

    fn at(&self, operation: u64) -> Activity {
        let begun = self.entries.partition_point(|(before, _)| *before < operation);
        self.entries[begun.saturating_sub(1)].1
    }
}

/// The phases of a run that nothing interrupted.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// By number of the disk operation, from 1 on.
    phases: Vec<Phase>,
    /// The names whose syncs these operations are.
    pub(crate) calls: Vec<TracedCall>,
    /// How many operations the first opening took.
    pub(crate) opened_after: u64,
}

impl Course {
    /// Of the run that this disk has traced from its beginning.
    pub(crate) fn of(disk: &SimDisk, diary: &Diary) -> Self {
        let calls = disk.traced_calls();
        let mut phases: Vec<Phase> = Vec::new();
        for (index, call) in calls.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| (&calls[before], phases[before]));
            phases.push(phase(diary.at(call.number), before, call));
        }
        let opened_after = diary.entries.get(1).map_or(disk.operations(), |(before, _)| *before);
        Self { phases, calls, opened_after }
    }

    pub(crate) fn operations(&self) -> u64 {
        self.phases.len() as u64
    }

    /// The phase of a crash instead of this operation; behind the last one everything is done.
    pub(crate) fn phase(&self, cut: u64) -> Phase {
        usize::try_from(cut - 1).ok().and_then(|index| self.phases.get(index)).copied().unwrap_or(Phase::Close)
    }
}

fn phase(activity: Activity, before: Option<(&TracedCall, Phase)>, call: &TracedCall) -> Phase {
    let name = call.name.as_str();
    match activity {
        Activity::Creating => Phase::Creation,
        Activity::Closing => Phase::Close,
        _ if call.kind == CallKind::Remove && is_segment(name) => Phase::Removal,
        _ if call.kind == CallKind::SyncDir && before.is_some_and(|(_, phase)| phase == Phase::Removal) => {
            Phase::Removal
        }
        Activity::Working { .. } if name.contains(STATE_NEW) => Phase::Compaction,
        Activity::Working { .. }
            if call.kind == CallKind::SyncDir && before.is_some_and(|(before, _)| before.name.contains(STATE_NEW)) =>
        {
            Phase::Compaction
        }
        Activity::Opening if is_segment(name) || name == "state.redb" => Phase::CatchingUp,
        Activity::Opening if name.starts_with("log") => Phase::Copying,
        Activity::Opening => Phase::Opening,
        Activity::Working { checkpoint } => match before {
            Some((before, _)) if before.kind == CallKind::Sync && is_segment(&before.name) => Phase::Synced,
            _ if is_segment(name) => Phase::Append,
            _ if name.starts_with("log") => Phase::Rollover,
            _ if checkpoint => Phase::Checkpoint,
            _ => Phase::Fold,
        },
    }
}

/// A state file that is being written.
const STATE_NEW: &str = "state.redb.new";

/// A segment under its final name.
fn is_segment(name: &str) -> bool {
    name.starts_with("log/") && name.ends_with(".seg") && !name.contains(" -> ")
}
