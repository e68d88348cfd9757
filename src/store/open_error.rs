//! Why a store was not opened. None of these is a fresh start, and none deletes anything.

use std::io;

use crate::log::LogError;
use crate::state::{EngineError, TableOpenError};

/// Why a store was not opened. Nothing that was committed was changed or deleted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The builder was told something that cannot be.
    #[error("the store cannot be built like this: {0}")]
    Config(String),
    /// Another process has the store open. Stop it, or use it there.
    #[error("the store is held by {holder}; one process owns a store: stop that one, or use the store from there")]
    Held {
        /// Who holds it.
        holder: String,
    },
    /// There is no store, and none was to be made.
    #[error("there is no store at {0}; open it without must_exist to make one")]
    Absent(String),
    /// The directory holds other files. Choose another, or an empty one.
    #[error("{location} is not a store: it holds {found:?} but no IDENTITY; choose an empty or new directory")]
    NotAStore {
        /// The directory.
        location: String,
        /// One of the files in it.
        found: String,
    },
    /// Part of the store is missing. Restore it from a backup.
    #[error("{missing} is missing beside the rest of the store; restore it from a backup, nothing was changed")]
    Missing {
        /// Which file or folder.
        missing: String,
    },
    /// A file is damaged. Restore it from a backup.
    #[error("{file} is damaged: {reason}; restore it from a backup, nothing was changed")]
    Damaged {
        /// Which file.
        file: String,
        /// How one can tell.
        reason: String,
    },
    /// A file belongs to another store. Somebody mixed two directories.
    #[error("{file} belongs to another store than IDENTITY; two directories were mixed, nothing was changed")]
    Mixed {
        /// Which file.
        file: String,
    },
    /// The store was written by a newer version of this crate in a newer format.
    #[error(
        "the store has format {found}, as IDENTITY says; this version reads up to {supported}: use a newer version of the crate"
    )]
    NewerFormat {
        /// The store's format.
        found: u16,
        /// The newest that this version reads.
        supported: u16,
    },
    /// The store uses features that this version does not know.
    #[error(
        "IDENTITY names features that this version does not know (bits {unknown:#x}): use a newer version of the crate"
    )]
    NewerFeatures {
        /// The unknown feature bits.
        unknown: u64,
    },
    /// Part of the store was written by a newer version of this crate.
    #[error("{0}: use a newer version of the crate")]
    Newer(String),
    /// A table is stored otherwise than it is declared.
    #[error(transparent)]
    Table(#[from] TableOpenError),
    /// The log cannot be recovered: something that was durable is missing or damaged. The message names the place.
    #[error("the log cannot be recovered: {0}; restore from a backup, nothing was changed")]
    Log(String),
    /// The state file cannot be opened. The message names the reason.
    #[error("the state file cannot be opened: {0}; restore from a backup, nothing was changed")]
    State(String),
    /// There is no room for what opening writes: free some space and open again.
    #[error("the disk is full: {0}; free some space and open again, nothing was lost")]
    DiskFull(String),
    /// The operating system refused.
    #[error("cannot {action} {file}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    /// For `map_err`.
    pub(super) fn io(action: &'static str, file: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| {
            if matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
                Self::DiskFull(format!("cannot {action} {file}: {source}"))
            } else {
                Self::Io { action, file, source }
            }
        }
    }
}

impl From<LogError> for OpenError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Prepare(fault) if fault.is_full() => Self::DiskFull(fault.to_string()),
            LogError::Io { file, source } => Self::io("use", file)(source),
            LogError::ForeignStore { file, .. } => Self::Mixed { file },
            LogError::NewerFormat { file, what } => Self::Newer(format!("{file} has a newer format ({what})")),
            LogError::MissingSegment { file } => Self::Missing { missing: file },
            other @ (LogError::Prepare(_)
            | LogError::BadHeader { .. }
            | LogError::MissingBefore { .. }
            | LogError::Damaged { .. }
            | LogError::Diverged { .. }
            | LogError::NotRetained { .. }
            | LogError::EpochsExhausted { .. }) => Self::Log(other.to_string()),
        }
    }
}

impl From<EngineError> for OpenError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::OtherStore { .. } => Self::Mixed { file: super::open::STATE.to_owned() },
            // Cut short or not to be made sense of: damage, not the operating system.
            EngineError::Io { ref source, .. }
                if matches!(source.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) =>
            {
                Self::State(error.to_string())
            }
            EngineError::Io { source, .. } => Self::io("use", super::open::STATE)(source),
            EngineError::Format { .. } => Self::Newer(error.to_string()),
            other @ (EngineError::Empty
            | EngineError::NotEmpty(_)
            | EngineError::NoMeta
            | EngineError::DamagedMeta(_)
            | EngineError::Backwards { .. }
            | EngineError::TooManyTables
            | EngineError::Closed
            | EngineError::Panicked { .. }
            | EngineError::Redb { .. }) => Self::State(other.to_string()),
        }
    }
}
