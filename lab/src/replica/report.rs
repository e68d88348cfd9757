//! Notes of the decision function, as lines for the history.

use crate::process::clock;
use crate::process::report::ReportLine;
use crate::rules::action::Note;

/// Hands a note to the supervisor, which writes the history.
pub fn tell(note: &Note) {
    let note = serde_json::Value::String(format!("{note:?}"));
    ReportLine::Note { note, time: clock::now() }.tell();
}
