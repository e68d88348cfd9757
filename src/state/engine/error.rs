//! Why state.redb could not do something.

/// A failure of the tree file.
///
/// Nothing is retried: after any of these during a fold the engine is used for reads at most, and reopening replays
/// the log from the last checkpoint.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// The file has no bytes. Beside a log that is damage, never a fresh start.
    #[error("the state file is empty")]
    Empty,
    /// A file to be created has content.
    #[error("the state file to be created has {0} bytes already")]
    NotEmpty(u64),
    /// A tree without the row that says whose it is: a creation that never finished, or another program's file.
    #[error("the state file has no metadata")]
    NoMeta,
    #[error("the metadata of the state file is damaged: {0}")]
    DamagedMeta(String),
    #[error("the state file has format {found}, this version reads {supported}")]
    Format { found: u32, supported: u32 },
    #[error("the state file belongs to store {found:032x}, not to {expected:032x}")]
    OtherStore { found: u128, expected: u128 },
    /// A fold would take the state back in time.
    #[error("a fold at epoch {to_epoch} sequence {to_sequence} behind epoch {epoch} sequence {sequence}")]
    Backwards { epoch: u64, sequence: u64, to_epoch: u64, to_sequence: u64 },
    #[error("too many tables in the state file")]
    TooManyTables,
    /// A snapshot outlived its engine. It must not read on: another opening may be writing to the file by now.
    #[error("the store was closed")]
    Closed,
    /// redb panicked, which a damaged file can make it do. Caught inside the scope that owned the transaction.
    #[error("redb panicked while {during}: {message}")]
    Panicked { during: &'static str, message: String },
    /// The operating system refused.
    #[error("state file, {during}: {source}")]
    Io { during: &'static str, source: std::io::Error },
    #[error("state file, {during}: {source}")]
    Redb { during: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Turns any of redb's error types into an [`EngineError`] that says what was being done.
#[expect(clippy::wildcard_enum_match_arm, reason = "redb's list of errors grows; what is new is passed on")]
pub(super) fn redb<E: Into<redb::Error>>(during: &'static str) -> impl FnOnce(E) -> EngineError {
    move |source| match source.into() {
        redb::Error::DatabaseClosed => EngineError::Closed,
        redb::Error::Io(source) => EngineError::Io { during, source },
        other => EngineError::Redb { during, source: Box::new(other) },
    }
}

/// Runs something of redb's and turns a panic into an error.
///
/// What `work` borrows may be left half changed; callers drop or abort it and do not look at it again.
pub(super) fn catch<T>(during: &'static str, work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Err(EngineError::Panicked { during, message })
    })
}
