//! Reads the crate's own sources for tests of style.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::path::{Path, PathBuf};

/// The crate's directory.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A text file of the crate.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files below a folder, sorted. A folder that is not there, as in a package, is empty.
pub(crate) fn files_below(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(&root().join(folder), &mut files);
    files.sort();
    files
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("readable").path()) {
        match path.is_dir() {
            true if path.ends_with("target") => {}
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}

/// One file of Rust.
pub(crate) struct Source {
    /// From the crate's directory, with `/` between parts.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The same lines without comments, and with strings empty.
    pub(crate) code: String,
}

/// All Rust files below a folder.
pub(crate) fn sources(folder: &str) -> Vec<Source> {
    let rust = files_below(folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.map(|path| {
        let text = std::fs::read_to_string(&path).expect("Rust is text");
        let path = path.strip_prefix(root()).expect("below the root").to_string_lossy().replace('\\', "/");
        Source::new(&path, &text)
    })
    .collect()
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), code: strip(text) }
    }

    /// The folder below `src`, or the name of a file there.
    pub(crate) fn layer(&self) -> &str {
        self.path.split('/').nth(1).unwrap_or_default().trim_end_matches(".rs")
    }

    /// Whether a line is part of a test: files are tests as a whole, and tests come last in others.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let whole = self.path.split('/').any(|part| part == "tests" || part.ends_with("_tests"))
            || ["tests.rs", "testing.rs", "testdisk.rs"].contains(&name)
            || name.ends_with("_tests.rs");
        whole || self.inline_tests_from().is_some_and(|from| line >= from)
    }

    fn inline_tests_from(&self) -> Option<usize> {
        self.code.lines().position(|line| line.starts_with("mod tests {")).map(|index| index + 1)
    }

    /// What follows `crate::`, with its line: the layers that this file names.
    pub(crate) fn named_layers(&self) -> Vec<(usize, String)> {
        let mut named = Vec::new();
        for (at, _) in self.code.match_indices("crate::") {
            let line = self.code[..at].matches('\n').count() + 1;
            let rest = &self.code[at + "crate::".len()..];
            match rest.strip_prefix('{') {
                Some(group) => named.extend(group_heads(group).into_iter().map(|head| (line, head))),
                None => named.push((line, identifier(rest))),
            }
        }
        // Names without a folder or file are re-exports or macros of the crate itself.
        named.retain(|(_, head)| head.chars().next().is_some_and(|first| first.is_ascii_lowercase()));
        named
    }

    /// Lines with so many `super::` that they leave the layer.
    pub(crate) fn lines_that_climb_to_the_root(&self) -> Vec<usize> {
        let depth = self.path.split('/').filter(|part| !["src", "mod.rs", "lib.rs"].contains(part)).count();
        let inline = self.inline_tests_from();
        let climbs = |(index, line): (usize, &str)| {
            let inside = usize::from(inline.is_some_and(|from| index + 1 > from));
            let most = line.split(|c: char| !(c.is_alphanumeric() || c == ':' || c == '_'));
            let most = most.map(|path| path.split("::").take_while(|part| *part == "super").count()).max();
            most.is_some_and(|most| most >= depth + inside && most > 0).then_some(index + 1)
        };
        self.code.lines().enumerate().filter_map(climbs).collect()
    }
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first parts of the paths in `{a::b, c::{d, e}}`, behind its brace.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut heads, mut at_start) = (1, Vec::new(), true);
    for (index, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => at_start = true,
            c if at_start && (c.is_alphanumeric() || c == '_') => {
                heads.push(identifier(&group[index..]));
                at_start = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

/// Whether `word` stands in the line and is not a part of a longer word.
pub(crate) fn is_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(inside);
        let after = word.ends_with(inside) && line[at + word.len()..].chars().next().is_some_and(inside);
        !before && !after
    })
}

/// Takes comments out and empties strings; lines stay where they are.
fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            string_len(rest)
        } else if let Some(len) = raw_string_len(rest, out.chars().next_back()) {
            len
        } else if c == '\'' {
            char_len(rest)
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.extend(rest[..skipped].matches('\n'));
        rest = &rest[skipped..];
    }
    out
}

fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

fn raw_string_len(text: &str, before: Option<char>) -> Option<usize> {
    if before.is_some_and(|c| c.is_alphanumeric() && c != 'b' || c == '_') {
        return None;
    }
    let hashes = text.strip_prefix('r')?.chars().take_while(|c| *c == '#').count();
    let open = 1 + hashes;
    text[open..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(text[open + 1..].find(&close).map_or(text.len(), |end| open + 1 + end + close.len()))
}

/// A character; a lifetime is only its quote.
fn char_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(1, |end| end + 4),
        Some(_) => match chars.next() {
            Some((end, '\'')) => end + 1,
            _ => 1,
        },
        None => 1,
    }
}
