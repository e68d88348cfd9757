//! Every damage that is tried.

use std::fmt;

use counterfoil::testing::{SECTOR_BYTES, SimDisk};

use crate::crash::scale::percent;
use crate::specimen::{Specimen, frames};

/// Files up to this size are damaged at every byte in a full run; larger ones around their frames and by sampling, but
/// for those of the tiny store.
const SMALL_BYTES: usize = 64 * 1024;

/// What is done to a file.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip(usize),
    ZeroSector(usize),
    Truncate(usize),
    Delete,
    /// New content for the whole file: frames that changed places or came from elsewhere.
    Content(Vec<u8>),
}

/// One damage of one file.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) specimen: usize,
    pub(crate) file: String,
    pub(crate) kind: &'static str,
    pub(crate) damage: Damage,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.kind)?;
        match &self.damage {
            Damage::Flip(at) | Damage::Truncate(at) => write!(f, " at {at}"),
            Damage::ZeroSector(number) => write!(f, " at {}", number * SECTOR_BYTES),
            Damage::Delete | Damage::Content(_) => Ok(()),
        }
    }
}

/// A pattern for each byte, never zero and not always the same bit.
const fn pattern(at: usize) -> u8 {
    let bit = 1 << (at % 8);
    if at.is_multiple_of(5) { 0xff } else { bit }
}

impl Case {
    /// The file ends exactly behind a mark: such a frame is a header alone.
    pub(crate) fn looks_closed(&self, specimen: &Specimen) -> bool {
        let Damage::Truncate(len) = self.damage else { return false };
        let files = specimen.files();
        frames(&files[&self.file]).iter().any(|frame| frame.end == len && frame.len() == 48)
    }

    pub(crate) fn apply(&self, disk: &SimDisk) {
        let mut content = disk.read_file(&self.file).expect("the file is there");
        match &self.damage {
            Damage::Flip(at) => content[*at] ^= pattern(*at),
            Damage::ZeroSector(number) => {
                let from = number * SECTOR_BYTES;
                let to = content.len().min(from + SECTOR_BYTES);
                content[from..to].fill(0);
            }
            Damage::Truncate(len) => content.truncate(*len),
            Damage::Delete => {
                disk.remove_file(&self.file);
                return;
            }
            Damage::Content(new) => content.clone_from(new),
        }
        disk.write_file(&self.file, content);
    }
}

/// Every damage of every specimen. `others` are stores with the same content and another identity.
pub(crate) fn all(specimens: &[Specimen], others: &[Specimen]) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, (specimen, other)) in specimens.iter().zip(others).enumerate() {
        let files = specimen.files();
        for (file, content) in &files {
            let mut add = |kind, damage| cases.push(Case { specimen: number, file: file.clone(), kind, damage });
            if specimen.name == "tiny" && content.len() > SMALL_BYTES {
                everywhere(content.len()).for_each(|at| add("flip a byte", Damage::Flip(at)));
                everywhere(content.len()).for_each(|len| add("truncate", Damage::Truncate(len)));
            } else {
                places(file, content).for_each(|at| add("flip a byte", Damage::Flip(at)));
                lengths(file, content).for_each(|len| add("truncate", Damage::Truncate(len)));
            }
            for sector in thinned(content.len().div_ceil(SECTOR_BYTES), 1) {
                add("zero a sector", Damage::ZeroSector(sector));
            }
            add("delete", Damage::Delete);
            if file.ends_with(".seg") {
                let foreign = &other.files()[file];
                add("segment of another store", Damage::Content(foreign.clone()));
                for (kind, content) in shuffled(content, foreign) {
                    add(kind, Damage::Content(content));
                }
                for (elsewhere, source) in files.iter().filter(|(name, _)| name.ends_with(".seg") && *name != file) {
                    let kind = if epoch(elsewhere) == epoch(file) {
                        "frame of another segment"
                    } else {
                        "frame of another epoch"
                    };
                    planted(content, source).for_each(|content| add(kind, Damage::Content(content)));
                    add("another segment under its name", Damage::Content(source.clone()));
                }
            }
        }
    }
    cases
}

fn epoch(file: &str) -> &str {
    file.split('-').next().unwrap_or(file)
}

/// Every so manieth number in a full run, fewer in a scaled one, and all at three times the full size. Steps are odd, so
/// that all bits and words are met.
fn thinned(to: usize, full_step: usize) -> impl Iterator<Item = usize> {
    let step = match percent() {
        300.. => 1,
        100.. => full_step,
        percent => full_step * usize::try_from(100 / percent.max(1)).unwrap_or(100) + 1,
    };
    (0..to).step_by(step)
}

/// Every place in a full run, however large the file is, and few in a smaller one.
fn everywhere(to: usize) -> impl Iterator<Item = usize> {
    (0..to).step_by(match percent() {
        100.. => 1,
        percent => 8 * usize::try_from(100 / percent.max(1)).unwrap_or(100) + 1,
    })
}

/// The bytes to flip.
fn places(file: &str, content: &[u8]) -> Box<dyn Iterator<Item = usize>> {
    if file == "HOLDER" {
        // Its text names this process and differs from run to run.
        return Box::new(0..content.len().min(8));
    }
    if content.len() <= SMALL_BYTES {
        return Box::new(thinned(content.len(), 1));
    }
    if file == "state.redb" {
        // Bytes that were ever written, and some of the zeros between.
        let written = content.iter().enumerate().filter(|(at, byte)| **byte != 0 || at.is_multiple_of(9));
        let places: Vec<usize> = written.map(|(at, _)| at).collect();
        return Box::new(thinned(places.len(), 3).map(move |number| places[number]));
    }
    // Every byte of the header, of the frames' headers and of what follows them closely; the rest by sampling.
    let mut all: Vec<usize> = thinned(content.len(), 211).chain(thinned(512, 1)).collect();
    for frame in frames(content) {
        all.extend(thinned(80, 1).map(|at| frame.start + at));
        all.extend([frame.end - 9, frame.end - 1, frame.end, frame.end + 8]);
    }
    all.retain(|at| *at < content.len());
    all.sort_unstable();
    all.dedup();
    Box::new(all.into_iter())
}

/// The lengths to truncate to.
fn lengths(file: &str, content: &[u8]) -> Box<dyn Iterator<Item = usize>> {
    if file == "HOLDER" {
        return Box::new(0..content.len().min(8));
    }
    if content.len() <= SMALL_BYTES {
        return Box::new(thinned(content.len(), 1));
    }
    let mut all: Vec<usize> = thinned(content.len(), 1_021).collect();
    for frame in frames(content).iter().filter(|_| file.ends_with(".seg")) {
        all.extend([frame.start, frame.start + 1, frame.start + 47, frame.start + 48, frame.end - 1]);
    }
    all.sort_unstable();
    all.dedup();
    Box::new(all.into_iter())
}

/// The segment with frames in each other's places, one over another, and those of another store.
fn shuffled(content: &[u8], foreign: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    let places = frames(content);
    for (number, frame) in places.iter().enumerate() {
        let mut copied = content.to_vec();
        if let Some(bytes) = foreign.get(frame.clone()) {
            copied[frame.clone()].copy_from_slice(bytes);
            all.push(("frame of another store", copied));
        }
        for later in &places[number + 1..] {
            if later.start == frame.end {
                let mut swapped = content.to_vec();
                swapped[frame.start..later.end].rotate_left(frame.len());
                all.push(("swap two frames", swapped));
            }
            if later.len() == frame.len() {
                let mut copied = content.to_vec();
                copied.copy_within(frame.clone(), later.start);
                all.push(("frame of another place", copied));
            }
        }
        // Once more behind the last one.
        let end = places.last().map_or(512, |last| last.end);
        let mut repeated = content.to_vec();
        repeated.resize(repeated.len().max(end + frame.len()), 0);
        repeated[end..end + frame.len()].copy_from_slice(&content[frame.clone()]);
        all.push(("frame of another place", repeated));
    }
    all
}

/// Each frame of another segment, over a frame of this one and behind its last.
fn planted(content: &[u8], source: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let places = frames(content);
    let ends = [places.first().map(|frame| frame.start), places.last().map(|frame| frame.end)];
    let targets: Vec<usize> = ends.into_iter().flatten().collect();
    let mut all = Vec::new();
    for frame in frames(source) {
        for target in &targets {
            let mut planted = content.to_vec();
            planted.resize(planted.len().max(target + frame.len()), 0);
            planted[*target..target + frame.len()].copy_from_slice(&source[frame.clone()]);
            all.push(planted);
        }
    }
    all.into_iter()
}
