//! How it may look, decided once from the surroundings.

/// What a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether colour may repeat what words and shapes say.
    pub color: bool,
    /// Whether shapes beyond ASCII can be shown.
    pub unicode: bool,
    /// How many columns there are.
    pub width: usize,
}

/// What a colour would say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// As it should be: blue.
    Good,
    /// Worth a look: orange.
    Bad,
    /// Less important.
    Faint,
    /// A heading.
    Strong,
}

/// The width that everything fits into.
pub const COLUMNS: usize = 80;

impl Style {
    /// Plain text: for files, for pipes and for tests.
    pub const PLAIN: Self = Self { color: false, unicode: true, width: COLUMNS };

    /// The style for a terminal, by the customs of the environment: `NO_COLOR` (any value that is not empty) and
    /// `TERM=dumb` take the colour away, `COLUMNS` gives the width, and a locale without UTF-8 takes the shapes.
    pub fn of(environment: impl Fn(&str) -> Option<String>, is_terminal: bool) -> Self {
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| set(name));
        let utf8 = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let width = set("COLUMNS").and_then(|columns| columns.parse().ok()).filter(|width| (40..=400).contains(width));
        Self {
            color: is_terminal && !dumb && set("NO_COLOR").is_none(),
            unicode: utf8 && !dumb,
            width: width.unwrap_or(COLUMNS),
        }
    }

    /// Text in a colour, if there are any.
    pub fn paint(&self, ink: Ink, text: &str) -> String {
        if !self.color {
            return text.to_owned();
        }
        // 256-colour blue and orange keep their contrast on light and on dark grounds.
        let code = match ink {
            Ink::Good => "38;5;33",
            Ink::Bad => "1;38;5;166",
            Ink::Faint => "2",
            Ink::Strong => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// One of two spellings.
    pub const fn shape(&self, shape: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { shape } else { ascii }
    }
}

/// How many columns a text takes: what colours it does not count.
pub fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            let _ = chars.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            count += 1;
        }
    }
    count
}

/// At most so many columns; what does not fit is shown to be missing. For text without colours.
pub fn fit(text: &str, width: usize, style: &Style) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mark = style.shape("…", "~");
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    if width == 0 { String::new() } else { format!("{kept}{mark}") }
}

/// Breaks a text between words into lines of at most so many columns.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width;
        if longer {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}
