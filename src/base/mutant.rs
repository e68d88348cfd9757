//! Faults put in on purpose, one at a time, to see whether the test suites notice.
//!
//! Never for use. Without the feature `mutants`, [`is`] is a constant `false` and nothing of a mutant remains.
//! With it, a store is a mutant if its [`Limits`](super::limits::Limits) say so, and behaves as ever if they do not.
//! Which one it is belongs to the thread: the one that opens the store, and those that the store starts.

/// One safety that is off.
#[cfg_attr(not(feature = "mutants"), expect(unreachable_pub, reason = "public with the feature `mutants` only"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// A batch is not synced.
    SyncSkipped,
    /// A batch is answered, and then synced.
    AnsweredBeforeSync,
    /// The name of a new segment is not made durable.
    DirectoryNotSynced,
    /// Recovery rests on names of segments that may be in the cache only.
    SegmentNamesTrusted,
    /// So does an opening on the name of `IDENTITY`.
    IdentityTrusted,
    /// Recovery refuses a hole between segments that are below the floor.
    FloorIgnored,
    /// Recovery does not believe what frames say of those before them.
    DurableBeforeIgnored,
    /// Recovery serves frames that it has read and nobody knows to be durable.
    TailNotCopied,
    /// An opening goes on in the segment of the one before it, behind the last good frame.
    AppendedInPlace,
    /// The checksum of a frame is the same in every epoch.
    EpochNotInChecksum,
    /// Readers see a batch before it is synced.
    PublishedBeforeSync,
    /// A receipt that takes another's place leaves that one's expiry row behind.
    ExpiryRowLeft,
    /// A failed sync is tried again instead of stopping the store.
    PoisonIgnored,
    /// A checkpoint of the state file is in one phase.
    OnePhaseCheckpoint,
    /// The folder publishes what it has folded, and not the writer.
    FolderPublishes,
    /// Old segments are removed before the checkpoint that contains them is durable.
    RemovedBeforeCheckpoint,
    /// An operation whose closure ignored an error of a table is kept.
    TableErrorsForgotten,
}

#[cfg(not(feature = "mutants"))]
mod selection {
    use super::Mutant;

    /// Whether this thread's store is this mutant.
    pub(crate) const fn is(_: Mutant) -> bool {
        false
    }

    /// What a thread hands to those that it starts.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Selection;

    pub(crate) const fn selected() -> Selection {
        Selection
    }

    impl Selection {
        pub(crate) const fn take_over(self) {}
    }
}

#[cfg(feature = "mutants")]
mod selection {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static SELECTED: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Whether this thread's store is this mutant.
    pub(crate) fn is(mutant: Mutant) -> bool {
        SELECTED.get() == Some(mutant)
    }

    /// What a thread hands to those that it starts.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Selection(Option<Mutant>);

    pub(crate) fn selected() -> Selection {
        Selection(SELECTED.get())
    }

    impl Selection {
        pub(crate) const fn of(mutant: Option<Mutant>) -> Self {
            Self(mutant)
        }

        pub(crate) fn take_over(self) {
            SELECTED.set(self.0);
        }
    }
}

pub(crate) use selection::{is, selected};

#[cfg(feature = "mutants")]
pub(crate) use selection::Selection;

#[cfg(feature = "mutants")]
impl Mutant {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::SyncSkipped,
        Self::AnsweredBeforeSync,
        Self::DirectoryNotSynced,
        Self::SegmentNamesTrusted,
        Self::IdentityTrusted,
        Self::FloorIgnored,
        Self::DurableBeforeIgnored,
        Self::TailNotCopied,
        Self::AppendedInPlace,
        Self::EpochNotInChecksum,
        Self::PublishedBeforeSync,
        Self::ExpiryRowLeft,
        Self::PoisonIgnored,
        Self::OnePhaseCheckpoint,
        Self::FolderPublishes,
        Self::RemovedBeforeCheckpoint,
        Self::TableErrorsForgotten,
    ];
}
