//! What can go wrong, grouped by what the caller should do about it.

use std::io;

use super::StoreId;
use super::name::TEMPORARY_SUFFIX;

/// The log cannot be read, or not be recovered. Nothing was changed or deleted on the way to such an error, except
/// that a recovery may leave a file under a temporary name or an epoch without operations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LogError {
    /// The operating system refused. Trying again may help.
    #[error("{file}: {source}")]
    Io { file: String, source: io::Error },
    /// A segment for an opening could not be prepared: most often the disk is full. Free space and open again.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// Written by a newer version of this crate. Open it with that one.
    #[error("{file} has a newer format ({what}); this version cannot read it")]
    NewerFormat { file: String, what: String },
    /// The file belongs to another store's log.
    #[error("{file} belongs to another store ({found:?})")]
    ForeignStore { file: String, found: StoreId },
    /// A segment's header is damaged. Headers are durable before the file gets its name, so this is never a torn write.
    #[error("the header of {file} is damaged: {reason}")]
    BadHeader { file: String, reason: &'static str },
    /// A segment that must be there by the names of the others, or by the checkpoint, is not.
    #[error("the segment {file} is missing")]
    MissingSegment { file: String },
    /// The oldest segment begins behind the first operation that is needed.
    #[error("operation {sequence} is missing: the oldest segment, {file}, begins at {oldest}")]
    MissingBefore { file: String, sequence: u64, oldest: u64 },
    /// Something that was durable cannot be read. Restore from a backup, or keep the directory and ask.
    #[error(
        "entry {sequence} is damaged or missing: {file} does not hold it at offset {offset}, where it was expected"
    )]
    Damaged { file: String, offset: u64, sequence: u64 },
    /// The checkpoint contains operations that the log has declared dead: the two are not of one history.
    #[error("the state is at {applied} of epoch {epoch}, but {file} continues after {continues_after}")]
    Diverged { file: String, epoch: u64, applied: u64, continues_after: u64 },
    /// A reader asked for an operation whose segment was removed.
    #[error("operation {sequence} is no longer kept; the oldest one is {oldest}")]
    NotRetained { sequence: u64, oldest: u64 },
    /// There is no epoch left to give: some file name carries one that cannot be real.
    #[error("no epoch follows {epoch}")]
    EpochsExhausted { epoch: u64 },
}

impl LogError {
    /// For `map_err` on calls that concern one file.
    pub(super) fn io(file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { file, source }
    }
}

/// A segment was not prepared. Nothing depends on it yet: the operation that needed it was not executed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareError {
    /// The disk or the quota is full.
    #[error("no space to prepare {file}: {source}")]
    Full { file: String, source: io::Error },
    /// Anything else.
    #[error("cannot prepare {file}: {source}")]
    Io { file: String, source: io::Error },
}

impl PrepareError {
    /// Tells a full disk from other failures.
    pub(super) fn from_io(file: String, source: io::Error) -> Self {
        if is_full(&source) { Self::Full { file, source } } else { Self::Io { file, source } }
    }

    /// Whether it failed when the segment had its final name already, in place of one that had it before.
    pub(crate) fn took_the_name(&self) -> bool {
        let (Self::Full { file, .. } | Self::Io { file, .. }) = self;
        !file.ends_with(TEMPORARY_SUFFIX)
    }

    /// Whether freeing space is the cure.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// A batch was not appended or not synced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppendError {
    /// Nothing was written: roll to another segment first.
    #[error("a batch of {bytes} bytes does not fit in the {room} bytes left in the segment")]
    NoRoom { bytes: u64, room: u64 },
    /// Nothing was written: no segment can take such a frame.
    #[error("a frame's payload of {bytes} bytes is above the limit of {max}")]
    TooLarge { bytes: u64, max: u64 },
    /// Nothing was written: the caller's numbering is broken.
    #[error("the next operation is {expected}, not {found}")]
    OutOfOrder { expected: u64, found: u64 },
    /// Nothing was written: the segment handed over is not the next one, or frames of the active one are not synced.
    #[error("cannot roll to {file}: {reason}")]
    WrongSegment { file: String, reason: &'static str },
    /// A write or sync failed for lack of space. The batch may or may not survive; the log takes no more.
    #[error("no space in {file}: {source}")]
    Full { file: String, source: io::Error },
    /// A write or sync failed. The batch may or may not survive; the log takes no more.
    #[error("cannot write {file}: {source}")]
    Io { file: String, source: io::Error },
    /// An earlier write or sync failed, after which nothing may be written until the log was recovered (L9).
    #[error("an earlier write to {file} failed; reopen the store")]
    Failed { file: String },
}

impl AppendError {
    pub(super) fn from_io(file: String, source: io::Error) -> Self {
        if is_full(&source) { Self::Full { file, source } } else { Self::Io { file, source } }
    }

    /// Whether nothing of the batch can have reached the disk and the log still works.
    pub(crate) fn nothing_written(&self) -> bool {
        match self {
            Self::NoRoom { .. } | Self::TooLarge { .. } | Self::OutOfOrder { .. } | Self::WrongSegment { .. } => true,
            Self::Full { .. } | Self::Io { .. } | Self::Failed { .. } => false,
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
