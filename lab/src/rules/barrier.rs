//! The gaps between two steps, by name.
//!
//! A fault that hits "after about 50 ms" hits something else on every laptop. A script says instead where: *kill the
//! executor when the effect is on its disk and the record is not*. Every gap has a name, every replica stops for a moment
//! at each, and a script may keep it there.

use serde::{Deserialize, Serialize};

use crate::rules::{
    ids::{Attempt, Key},
    word::words,
};

words! {
    /// A gap. What lies before it is done, durably where that is the point; what lies behind it has not begun.
    pub enum Barrier, "barrier" {
        /// The request is in memory. Nothing has been looked at.
        Arrived = "arrived",
        /// The check has passed: nothing was found. Nothing has been done.
        AfterLook = "after-look",
        /// The durable intent to call the provider is on the disk. The call has not left.
        AfterIntent = "after-intent",
        /// The provider has said that it was not called for this. The call has not left.
        AfterLookUp = "after-look-up",
        /// The effect has happened. Its record has not been written.
        AfterEffect = "after-effect",
        /// The record is where its placement wants it. The effect has not begun (order record-first).
        AfterRecord = "after-record",
        /// Everything is done. The answer has not left.
        BeforeAnswer = "before-answer",
    }
}

/// A replica at a barrier with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Where.
    pub barrier: Barrier,
    /// With which key.
    pub key: Key,
    /// With which attempt.
    pub attempt: Attempt,
}

impl Barrier {
    /// What is true in the gap, for help texts.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Arrived => "the request is in memory, nothing has been looked at",
            Self::AfterLook => "nothing was found, nothing has been done",
            Self::AfterIntent => "the intent is durable, the provider has not been called",
            Self::AfterLookUp => "the provider says that it was not called, and has not been since",
            Self::AfterEffect => "the effect has happened, its record has not been written",
            Self::AfterRecord => "the record is written, the effect has not begun",
            Self::BeforeAnswer => "everything is done, the answer has not left",
        }
    }
}
