//! Tables that line up, with and without colours.

use crate::screen::style::{Ink, Style, columns, fit};

/// A table: a heading, and rows with the same number of cells.
#[derive(Debug, Clone, Default)]
pub struct Table {
    heading: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: usize = 2;

impl Table {
    /// A table with these columns.
    pub fn new<T: Into<String>>(heading: impl IntoIterator<Item = T>) -> Self {
        Self { heading: heading.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells that are missing are empty, and those that are too many are left out.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.heading.len(), String::new());
        self.rows.push(row);
        self
    }

    /// The lines of the table. If it is too wide, its widest columns give way.
    pub fn lines(&self, style: &Style) -> Vec<String> {
        let widths = self.widths(style.width);
        let line = |cells: &[String]| -> String {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| pad(cell, *width, style));
            padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
        };
        let heading = style.paint(Ink::Strong, &line(&self.heading));
        std::iter::once(heading).chain(self.rows.iter().map(|row| line(row))).collect()
    }

    fn widths(&self, most: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.heading.len())
            .map(|column| {
                let cells = std::iter::once(&self.heading).chain(&self.rows).map(|row| &row[column]);
                cells.map(|cell| columns(cell)).max().unwrap_or(0)
            })
            .collect();
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > most {
            let Some(widest) = widths.iter_mut().max_by_key(|width| **width).filter(|width| **width > 4) else { break };
            *widest -= 1;
        }
        widths
    }
}

fn pad(cell: &str, width: usize, style: &Style) -> String {
    // A cell with colours that does not fit loses them: a cut in the middle of one would colour the rest of the screen.
    let fitting = match columns(cell) > width {
        true => fit(&plain(cell), width, style),
        false => cell.to_owned(),
    };
    let missing = width.saturating_sub(columns(&fitting));
    format!("{fitting}{}", " ".repeat(missing))
}

fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            let _ = chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            out.push(c);
        }
    }
    out
}
