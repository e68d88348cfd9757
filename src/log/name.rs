//! Segment file names, and what a directory of them says.

use std::fmt;

use super::error::LogError;
use crate::disk::Disk;

/// Where segments are, below the store's directory.
pub(crate) const LOG_DIR: &str = "log";

pub(super) const TEMPORARY_SUFFIX: &str = ".new";

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
            }
        }
        listing.segments.sort_unstable();
        Ok(listing)
    }

    /// The names that must exist between those that do (L3): ordinals of an epoch follow each other, and only the
    /// oldest epoch may have lost its first ones to retention.
    pub(crate) fn missing(&self) -> Option<SegmentName> {
        let mut previous: Option<SegmentName> = None;
        for &name in &self.segments {
            let expected = match previous {
                None => name.ordinal,
                Some(previous) if previous.epoch == name.epoch => previous.ordinal + 1,
                Some(_) => 0,
            };
            if name.ordinal != expected {
                return Some(SegmentName { epoch: name.epoch, ordinal: expected });
            }
            previous = Some(name);
        }
        None
    }

    /// The highest epoch that any name carries, finished or not.
    pub(crate) fn epoch_max(&self) -> u64 {
        self.segments.iter().chain(&self.temporary).map(|name| name.epoch).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(names: &[(u64, u32)]) -> Listing {
        let segments = names.iter().map(|&(epoch, ordinal)| SegmentName { epoch, ordinal }).collect();
        Listing { segments, temporary: Vec::new() }
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
        assert_eq!(listing(&[(1, 4), (1, 5), (3, 0), (3, 1)]).missing(), None);
        assert_eq!(listing(&[]).missing(), None);
        assert_eq!(listing(&[(1, 0), (1, 2)]).missing(), Some(SegmentName { epoch: 1, ordinal: 1 }));
        assert_eq!(listing(&[(1, 0), (2, 1)]).missing(), Some(SegmentName { epoch: 2, ordinal: 0 }));
    }
}
