//! What is kept of a lesson: what people and its author predicted, and what was seen.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::script::Lesson;
use crate::client::send::AttemptReport;
use crate::judge::Report;
use crate::rules::{knobs::Knobs, outcome::OutcomeKind, verdict::Verdict};
use crate::supervisor::ending::Farewell;

/// What every screen and every report says.
pub const TEACHING_MODEL: &str = "a teaching model, not a way to make the store distributed";

/// How often, as somebody thinks before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// So often.
    Times(u64),
    /// It cannot be said.
    Unknown,
}

impl FromStr for Guess {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "unknown" | "u" | "?" => Ok(Self::Unknown),
            "0" => Ok(Self::Times(0)),
            "1" => Ok(Self::Times(1)),
            "2" => Ok(Self::Times(2)),
            other => Err(format!("{other:?} is none of 0, 1, 2 and unknown")),
        }
    }
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => times.fmt(f),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// What somebody wrote down before the broken variant ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    /// How often the operation will be executed.
    pub executed: Guess,
    /// Whether an attempt will find the record of an earlier one.
    pub found: bool,
}

/// The two questions.
pub const HOW_OFTEN: &str = "How often will the operation be executed";
/// The second one.
pub const RECORD_FOUND: &str = "Will a retry find the record of an earlier attempt";

impl Prediction {
    /// Questions and answers, for the history.
    #[must_use]
    pub fn answers(&self) -> [(String, String); 2] {
        [(HOW_OFTEN.to_owned(), self.executed.to_string()), (RECORD_FOUND.to_owned(), yes(self.found).to_owned())]
    }

    /// Whether it was so.
    #[must_use]
    pub fn was_right(&self, seen: &Numbers) -> bool {
        self.executed == Guess::Times(seen.executed) && self.found == seen.found
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "executed {}, record found: {}", self.executed, yes(self.found))
    }
}

/// Yes or no.
#[must_use]
pub const fn yes(so: bool) -> &'static str {
    if so { "yes" } else { "no" }
}

/// What comes out of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// How often the operation was executed, counted in the stores.
    pub executed: u64,
    /// Whether an attempt found the record of an earlier one.
    pub found: bool,
    /// What the client was told of each attempt.
    pub told: Vec<OutcomeKind>,
}

impl Numbers {
    /// "unknown, then done".
    #[must_use]
    pub fn told_in_words(&self) -> String {
        let words: Vec<&str> = self.told.iter().map(|kind| kind.word()).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", then ") }
    }
}

/// One run of one variant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// Which variant.
    pub variant: String,
    /// Its switches.
    pub knobs: Knobs,
    /// Those in which it differs from the broken variant.
    pub switches: Vec<String>,
    /// Where its random choices came from.
    pub seed: u64,
    /// What the lesson says will come out.
    pub predicted_by_its_author: Numbers,
    /// What came out.
    pub seen: Numbers,
    /// How many replicas exist, accept, answer and write, at the last count before everything was mended.
    pub lamps: Vec<u8>,
    /// Each attempt, as the client saw it.
    pub attempts: Vec<AttemptReport>,
    /// What the run is worth.
    pub verdict: Verdict,
    /// What the judge read in the stores.
    pub judged: Report,
    /// How the lab ended.
    pub farewell: Farewell,
}

/// A lesson that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LessonReport {
    /// Its number.
    pub number: u8,
    /// Its name.
    pub name: String,
    /// What somebody predicted for the broken variant; nothing, if nobody was asked.
    pub predicted: Option<Prediction>,
    /// Each variant, in the order in which they were run.
    pub runs: Vec<RunReport>,
    /// Why a variant could not be run at all.
    pub not_run: Option<String>,
}

impl LessonReport {
    /// Of a lesson that begins.
    #[must_use]
    pub fn new(lesson: &Lesson, predicted: Option<Prediction>) -> Self {
        let name = lesson.name.to_owned();
        Self { number: lesson.number, name, predicted, runs: Vec::new(), not_run: None }
    }

    /// What the whole lesson is worth: what its worst variant is.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if let Some(why) = &self.not_run {
            return Verdict::Invalid(vec![why.clone()]);
        }
        let worst = |verdict: &&Verdict| match verdict {
            Verdict::AsExpected => 0,
            Verdict::NotExercised(_) => 1,
            Verdict::Invalid(_) => 2,
            Verdict::Violation(_) => 3,
        };
        let verdicts = self.runs.iter().map(|run| &run.verdict);
        verdicts.max_by_key(worst).cloned().unwrap_or_else(|| Verdict::Invalid(vec!["nothing was run".to_owned()]))
    }
}

/// All lessons that were run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LessonsReport {
    /// What it is.
    pub this_is: String,
    /// Each lesson.
    pub lessons: Vec<LessonReport>,
    /// How many were as expected.
    pub as_expected: usize,
    /// How many were not.
    pub not: usize,
}

impl LessonsReport {
    /// Adds the lessons up.
    #[must_use]
    pub fn new(lessons: Vec<LessonReport>) -> Self {
        let as_expected = lessons.iter().filter(|lesson| lesson.verdict() == Verdict::AsExpected).count();
        let not = lessons.len() - as_expected;
        Self { this_is: TEACHING_MODEL.to_owned(), lessons, as_expected, not }
    }

    /// For scripts: 0 as expected, 1 a violation, 2 not judged.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let codes = self.lessons.iter().map(|lesson| lesson.verdict().exit_code());
        // A violation is known for certain, whatever else could not be judged.
        codes.reduce(|one, other| if one == 1 || other == 1 { 1 } else { one.max(other) }).unwrap_or(2)
    }
}
