//! Segment file names, and what a directory of them says.

use std::fmt;

use super::error::LogError;
use crate::disk::Disk;

/// Where segments are, below the store's directory.
pub(crate) const LOG_DIR: &str = "log";

pub(super) const TEMPORARY_SUFFIX: &str = ".new";

/// A segment on the way to its own name, which is being made anew (see `renew`).
const MOVED_SUFFIX: &str = ".moved";

/// Which segment: the opening that wrote it and its number within that opening. Ordered as they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub(crate) epoch: u64,
    pub(crate) ordinal: u32,
}

impl SegmentName {
    /// The path below the store's directory.
    pub(crate) fn file(self) -> String {
        format!("{LOG_DIR}/{self}")
    }

    /// The path while the segment is being prepared.
    pub(crate) fn temporary(self) -> String {
        format!("{LOG_DIR}/{self}{TEMPORARY_SUFFIX}")
    }

    /// The path while its name is being made anew.
    pub(super) fn moved(self) -> String {
        format!("{LOG_DIR}/{self}{MOVED_SUFFIX}")
    }

    /// Reads exactly what [`fmt::Display`] writes; anything else is not a segment.
    fn parse(text: &str) -> Option<Self> {
        let (epoch, ordinal) = text.strip_suffix(".seg")?.split_once('-')?;
        let name =
            Self { epoch: u64::from_str_radix(epoch, 16).ok()?, ordinal: u32::from_str_radix(ordinal, 16).ok()? };
        (name.epoch > 0 && name.to_string() == text).then_some(name)
    }
}

impl fmt::Display for SegmentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:08x}.seg", self.epoch, self.ordinal)
    }
}

/// The segments in the directory, by name only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Oldest first.
    pub(crate) segments: Vec<SegmentName>,
    /// What interrupted preparations left behind.
    pub(crate) temporary: Vec<SegmentName>,
    /// Segments whose own names an opening was making anew when it ended.
    pub(crate) moved: Vec<SegmentName>,
}

/// A name that must exist between two that do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    /// The first one that is missing.
    pub(crate) missing: SegmentName,
    /// Where the segments go on behind it.
    pub(crate) next: usize,
}

impl Listing {
    /// Lists the log's directory. Names that are neither are somebody else's and ignored.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Self, LogError> {
        let mut listing = Self::default();
        for text in disk.list(LOG_DIR).map_err(LogError::io(LOG_DIR))? {
            if let Some(name) = SegmentName::parse(&text) {
                listing.segments.push(name);
            } else if let Some(name) = text.strip_suffix(TEMPORARY_SUFFIX).and_then(SegmentName::parse) {
                listing.temporary.push(name);
            } else if let Some(name) = text.strip_suffix(MOVED_SUFFIX).and_then(SegmentName::parse) {
                listing.moved.push(name);
            }
        }
        listing.segments.sort_unstable();
        Ok(listing)
    }

    /// The last place where a name must exist between those that do (L3): ordinals of an epoch follow each other, and
    /// only the oldest epoch may have lost its first ones to retention.
    pub(crate) fn hole(&self) -> Option<Hole> {
        let mut hole = None;
        let mut previous: Option<SegmentName> = None;
        for (next, &name) in self.segments.iter().enumerate() {
            let expected = match previous {
                None => name.ordinal,
                Some(previous) if previous.epoch == name.epoch => previous.ordinal + 1,
                Some(_) => 0,
            };
            if name.ordinal != expected {
                hole = Some(Hole { missing: SegmentName { epoch: name.epoch, ordinal: expected }, next });
            }
            previous = Some(name);
        }
        hole
    }

    /// The highest epoch that any name carries, finished or not.
    pub(crate) fn epoch_max(&self) -> u64 {
        self.segments.iter().chain(&self.temporary).chain(&self.moved).map(|name| name.epoch).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[(u64, u32)]) -> Listing {
        let segments = names.iter().map(|&(epoch, ordinal)| SegmentName { epoch, ordinal }).collect();
        Listing { segments, ..Listing::default() }
    }

    #[test]
    fn a_name_is_read_back_and_nothing_else_is() {
        let name = SegmentName { epoch: 0x1f, ordinal: 3 };
        assert_eq!(name.to_string(), "000000000000001f-00000003.seg");
        assert_eq!(SegmentName::parse(&name.to_string()), Some(name));
        for other in [
            "000000000000001F-00000003.seg",
            "1f-3.seg",
            "000000000000001f-00000003.seg.new",
            "0000000000000000-00000000.seg",
            "+00000000000001f-00000003.seg",
            "x",
            "",
        ] {
            assert_eq!(SegmentName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_hole_in_the_names_is_found() {
        let hole = |names| listing(names).hole().map(|Hole { missing, next }| ((missing.epoch, missing.ordinal), next));
        assert_eq!(hole(&[(1, 4), (1, 5), (3, 0), (3, 1)]), None);
        assert_eq!(hole(&[]), None);
        assert_eq!(hole(&[(1, 0), (1, 2)]), Some(((1, 1), 1)));
        assert_eq!(hole(&[(1, 0), (2, 1)]), Some(((2, 0), 1)));
        assert_eq!(hole(&[(1, 0), (1, 3), (1, 4), (2, 0), (2, 2)]), Some(((2, 1), 4)), "the last one");
    }
}
