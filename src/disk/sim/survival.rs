//! What a loss of power leaves of the operations that no sync had covered.

use std::collections::BTreeMap;

use super::rng::Rng;

/// Which un-synced operations survive a crash. They are counted in the order they were made, over all files and names.
///
/// What was synced always survives, and nothing here is worse than section 9 of the design allows: a sector is written
/// whole or not at all, and its neighbours are unharmed. A file whose name is lost is gone; a name whose directory is
/// lost is gone; a lost operation on a name takes with it the later ones on that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Only what was durable.
    Nothing,
    /// Every operation: the whole cache had been written. (Not what a failed sync dropped: nothing writes that.)
    Everything,
    /// The first `n`, as on a disk that keeps the order.
    Prefix(usize),
    /// The last one and none before it.
    OnlyLast,
    /// All but the one at this place, counted from 0.
    AllButOne(usize),
    /// Each kept or lost by chance, how often by the seed; writes in any order and some torn at sectors.
    ///
    /// Writes to the same bytes change places too, which is more than a page cache would do.
    Random(u64),
    /// All but the sectors that the last write lost.
    Torn(u64),
    /// Everything but changes of length that were asked for: writes reach as far as they did all the same.
    WithoutLengths,
    /// Everything but changes of names: no new entry of a directory, no removal and no renaming.
    WithoutNames,
    /// Names and nothing that is in files.
    OnlyNames,
    /// Names and lengths, also those that writes led to, and no content: new bytes read as zeros.
    OnlyMetadata,
}

/// What an un-synced operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Content,
    Length,
    Name,
}

impl Survival {
    /// A round selection for a crash with so many un-synced operations: every fixed kind once, `seeds` of each random
    /// kind, and every place for a prefix or a hole as long as there are few.
    pub fn selection(unsynced: usize, seeds: u64) -> Vec<Self> {
        Self::with_places(unsynced, seeds, 12)
    }

    /// The same with every place for a prefix or a hole, up to a thousand of each.
    pub fn every_place(unsynced: usize, seeds: u64) -> Vec<Self> {
        Self::with_places(unsynced, seeds, 1000)
    }

    fn with_places(unsynced: usize, seeds: u64, places_max: usize) -> Vec<Self> {
        let step = unsynced.div_ceil(places_max).max(1);
        let mut all = vec![Self::Nothing, Self::Everything];
        if unsynced > 1 {
            all.extend([Self::OnlyLast, Self::WithoutLengths, Self::WithoutNames, Self::OnlyNames, Self::OnlyMetadata]);
            all.extend((1..unsynced).step_by(step).map(Self::Prefix));
            all.extend((0..unsynced).step_by(step).map(Self::AllButOne));
        }
        if unsynced > 0 {
            all.extend((0..seeds).map(Self::Random));
            all.extend((0..seeds).map(Self::Torn));
        }
        all
    }

    /// Decides for each operation, given by its number and what it changes.
    pub(super) fn fates(&self, operations: &[(u64, Change)]) -> Fates {
        let mut fates = Fates { fates: BTreeMap::new(), reordered: false, rng: Rng::new(0) };
        let last = operations.len().checked_sub(1);
        let last_write = operations.iter().rposition(|(_, change)| *change == Change::Content);
        let kept_if = |kept| if kept { Fate::Kept } else { Fate::Lost };
        if let Self::Random(seed) | Self::Torn(seed) = self {
            fates.rng = Rng::new(*seed);
        }
        fates.reordered = matches!(self, Self::Random(_));
        let kept_eighths = 1 + fates.rng.below(7);
        for (place, (number, change)) in operations.iter().enumerate() {
            let fate = match self {
                Self::Nothing => Fate::Lost,
                Self::Everything => Fate::Kept,
                Self::Prefix(count) => kept_if(place < *count),
                Self::OnlyLast => kept_if(Some(place) == last),
                Self::AllButOne(lost) => kept_if(place != *lost),
                Self::Random(_) if !fates.rng.chance(kept_eighths) => Fate::Lost,
                Self::Random(_) if *change == Change::Content && fates.rng.chance(3) => Fate::Torn,
                Self::Random(_) => Fate::Kept,
                Self::Torn(_) if Some(place) == last_write => Fate::Torn,
                Self::Torn(_) => Fate::Kept,
                Self::WithoutLengths => kept_if(*change != Change::Length),
                Self::WithoutNames => kept_if(*change != Change::Name),
                Self::OnlyNames => kept_if(*change == Change::Name),
                Self::OnlyMetadata if *change == Change::Content => Fate::Grown,
                Self::OnlyMetadata => Fate::Kept,
            };
            fates.fates.insert(*number, fate);
        }
        fates
    }
}

/// What becomes of one un-synced operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    Kept,
    /// A write of which each sector is kept or lost.
    Torn,
    /// A write of which only the length that it led to is kept.
    Grown,
}

/// A survival applied to one disk: the fate of each operation, and the chance for the sectors of torn ones.
#[derive(Debug)]
pub(super) struct Fates {
    fates: BTreeMap<u64, Fate>,
    /// Whether writes of one file change places.
    pub(super) reordered: bool,
    pub(super) rng: Rng,
}

impl Fates {
    /// The fate of the operation with this number.
    pub(super) fn of(&self, number: u64) -> Fate {
        self.fates.get(&number).copied().unwrap_or(Fate::Lost)
    }
}
