//! Figures under one another.

use std::fmt;

/// Text on the left, numbers on the right, in columns that are as wide as they must be.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug)]
enum Row {
    Cells(Vec<String>),
    Note(Vec<String>, String),
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&cell| cell.to_owned()).collect(), rows: Vec::new() }
    }

    /// One line of words and then counts.
    pub(crate) fn row(&mut self, words: &[&str], counts: &[u64]) {
        let words = words.iter().map(|&cell| cell.to_owned());
        let cells: Vec<_> = words.chain(counts.iter().map(u64::to_string)).collect();
        assert_eq!(cells.len(), self.head.len(), "a cell for each column");
        self.rows.push(Row::Cells(cells));
    }

    /// A line that says why there are no figures.
    pub(crate) fn note(&mut self, words: &[&str], reason: &str) {
        self.rows.push(Row::Note(words.iter().map(|&cell| cell.to_owned()).collect(), reason.to_owned()));
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.head.iter().map(String::len).collect();
        for row in &self.rows {
            let (Row::Cells(cells) | Row::Note(cells, _)) = row;
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = cell.len().max(*width);
            }
        }
        widths
    }
}

/// Numbers end under one another.
fn line(cells: &[String], widths: &[usize]) -> String {
    let cell = |(cell, width): (&String, &usize)| {
        let is_number = cell.bytes().all(|byte| byte.is_ascii_digit());
        if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
    };
    cells.iter().zip(widths).map(cell).collect::<Vec<_>>().join("  ")
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        writeln!(f, "{}", line(&self.head, &widths))?;
        let rule: Vec<_> = widths.iter().map(|&width| "-".repeat(width)).collect();
        writeln!(f, "{}", rule.join("  "))?;
        for row in &self.rows {
            match row {
                Row::Cells(cells) => writeln!(f, "{}", line(cells, &widths).trim_end())?,
                Row::Note(cells, reason) => writeln!(f, "{}  not applicable: {reason}", line(cells, &widths))?,
            }
        }
        Ok(())
    }
}

#[test]
fn numbers_end_and_words_begin_under_one_another() {
    let mut table = Table::new(&["call", "tried"]);
    table.row(&["Write"], &[7]);
    table.row(&["Sync"], &[123_456]);
    table.note(&["Lock"], "there is none");
    let text = "call   tried \n-----  ------\nWrite       7\nSync   123456\nLock   not applicable: there is none\n";
    assert_eq!(table.to_string(), text);
}
