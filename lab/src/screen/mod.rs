//! What people see: tables, lamps, strips and the space-time diagram, as text.
//!
//! Words and shapes come before colours: every state has a word, and its shape differs from the others'. Colour only
//! repeats what is there already, in blue and orange, which nearly everybody can tell apart, on light and dark grounds.
//! Everything fits into 80 columns. Nothing here writes to a terminal: functions give text, and somebody else prints it.

pub mod diagram;
pub mod report;
pub mod status;
pub mod strips;
pub mod style;
pub mod table;

pub use style::{Ink, Style};
pub use table::Table;
