//! The history of a run: one JSON object a line, in the order in which the supervisor learned of it.
//!
//! Text, so that a room can read it with what is at hand, and one line an event, so that what was written before a crash
//! can be read after it. The verdict does not come from here alone: how often something was executed is counted in the
//! durable stores, and the history says what was asked, what was answered, and where the faults fell.

pub mod event;
pub mod reader;
pub mod writer;

pub use event::{FORMAT, HistoryEvent, Line, Moment, Plan, PlannedFault};
pub use reader::{HistoryError, LINE_BYTES_MAX, read};
pub use writer::Writer;
