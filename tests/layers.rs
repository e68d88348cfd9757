//! Rules of style, as tests. They read the sources and say which line breaks them.

#[path = "support/source.rs"]
mod source;

use source::{Source, files_below, is_word, read, root, sources};

/// What each layer may name, itself aside. `lib.rs` re-exports and may name all.
const LAYERS: [(&str, &[&str]); 11] = [
    ("base", &[]),
    ("protocol", &["base"]),
    // The caller's side runs without a store: of the protocol it knows the backoff only, as the next test says.
    ("call", &["protocol", "base"]),
    ("disk", &["base"]),
    ("log", &["disk", "base"]),
    ("state", &["disk", "base"]),
    ("store", &["log", "state", "disk", "protocol", "base"]),
    ("admin", &["store", "disk", "base"]),
    // The operator's tool is another crate: it names what users see.
    ("bin", &[]),
    ("effect", &["store", "protocol", "base"]),
    ("testing", &["store", "log", "disk", "protocol", "base"]),
];

/// Longer files are read by nobody.
const FILE_LINES_MAX: usize = 500;

/// Files that are longer all the same, with the length they may have. The list only ever gets shorter.
const LONG_FILES: [(&str, usize); 0] = [];

fn assert_none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}\n{}", broken.join("\n"));
}

/// Every line of code, tests included, with where it stands.
fn lines_of(sources: &[Source]) -> impl Iterator<Item = (&Source, usize, &str)> {
    sources
        .iter()
        .flat_map(|source| source.code.lines().enumerate().map(move |(index, line)| (source, index + 1, line)))
}

#[test]
fn imports_run_downwards_only() {
    let sources = sources("src");
    let mut broken = Vec::new();
    for source in sources.iter().filter(|source| source.path != "src/lib.rs" && source.layer() != "bin") {
        let layer = source.layer();
        let allowed = LAYERS.iter().find(|(name, _)| *name == layer).unwrap_or_else(|| panic!("{layer} is no layer")).1;
        for (line, named) in source.named_layers() {
            // Tests of a layer's inside may use what is offered to tests.
            let in_tests = source.path.contains("/tests/") && named == "testing";
            if named != layer && !in_tests && !allowed.contains(&named.as_str()) {
                broken.push(format!("{}:{line}: {layer} names {named}", source.path));
            }
        }
    }
    assert_none("a layer names only those below it, and log and state do not know each other", &broken);
}

#[test]
fn the_callers_side_names_nothing_of_the_protocol_but_the_backoff() {
    let sources = sources("src");
    let broken: Vec<String> = lines_of(&sources)
        .filter(|(source, ..)| source.layer() == "call")
        .filter(|(.., line)| line.contains("crate::protocol") && !line.contains("crate::protocol::backoff"))
        .map(|(source, number, _)| format!("{}:{number}", source.path))
        .collect();
    assert_none("call imports base and protocol::backoff", &broken);
}

#[test]
fn no_path_climbs_out_of_its_layer() {
    let mut broken = Vec::new();
    for source in sources("src") {
        for line in source.lines_that_climb_to_the_root() {
            broken.push(format!("{}:{line}: say crate:: instead", source.path));
        }
    }
    assert_none("layers are named by crate::, never by super::", &broken);
}

#[test]
fn every_folder_and_file_at_the_top_is_a_layer() {
    for source in sources("src") {
        let layer = source.layer();
        assert!(layer == "lib" || LAYERS.iter().any(|(name, _)| *name == layer), "{} is in no layer", source.path);
    }
}

#[test]
fn only_the_clock_reads_a_clock() {
    let sources = sources("src");
    let broken: Vec<String> = lines_of(&sources)
        .filter(|(source, ..)| source.path != "src/base/clock.rs")
        .filter(|(.., line)| line.contains("Instant::now") || line.contains("SystemTime::now"))
        .map(|(source, number, _)| format!("{}:{number}", source.path))
        .collect();
    assert_none("time is read in src/base/clock.rs and handed on", &broken);
}

#[test]
fn redb_is_named_in_state_and_disk_only() {
    let sources = sources("src");
    let broken: Vec<String> = lines_of(&sources)
        .filter(|(source, ..)| !["state", "disk"].contains(&source.layer()))
        .filter(|(.., line)| is_word(line, "redb"))
        .map(|(source, number, _)| format!("{}:{number}", source.path))
        .collect();
    assert_none("redb is an implementation detail of state and disk", &broken);
}

#[test]
fn bincode_is_named_in_one_file_only() {
    let sources = sources("src");
    let broken: Vec<String> = lines_of(&sources)
        .filter(|(source, ..)| source.path != "src/base/encoding.rs")
        .filter(|(.., line)| is_word(line, "bincode::") || line.trim_start().starts_with("use bincode"))
        .map(|(source, number, _)| format!("{}:{number}", source.path))
        .collect();
    assert_none("the encoding is chosen in src/base/encoding.rs", &broken);
}

#[test]
fn only_disk_touches_the_file_system() {
    let sources = sources("src");
    let broken: Vec<String> = lines_of(&sources)
        .filter(|(source, number, _)| !["disk", "bin"].contains(&source.layer()) && !source.is_test(*number))
        .filter(|(.., line)| is_word(line, "std::fs") || is_word(line, "File::") || is_word(line, "OpenOptions"))
        .map(|(source, number, _)| format!("{}:{number}", source.path))
        .collect();
    assert_none("every file access goes through src/disk", &broken);
}

#[test]
fn every_numbered_invariant_is_cited() {
    let sources = sources("src");
    for (file, letter) in [("src/log/mod.rs", 'L'), ("src/state/engine/mod.rs", 'E')] {
        let defined = |line: &str| -> Option<u32> {
            let number = line.strip_prefix("//! * **")?.strip_prefix(letter)?.split_once("**")?.0;
            number.parse().ok()
        };
        let numbers: Vec<u32> = read(file).lines().filter_map(defined).collect();
        let expected: Vec<u32> = (1..).take(numbers.len()).collect();
        assert!(
            numbers.len() >= 5 && numbers == expected,
            "{file} defines {letter}1, {letter}2 .. in order: {numbers:?}"
        );
        for number in numbers {
            let id = format!("{letter}{number}");
            let mut lines = sources.iter().flat_map(|source| source.text.lines());
            let cited = lines.any(|line| defined(line) != Some(number) && is_word(line, &id));
            assert!(cited, "{id} of {file} is kept and tested somewhere: say where");
        }
    }
}

#[test]
fn no_file_is_too_long_to_be_read() {
    let mut broken = Vec::new();
    for folder in ["src", "tests", "examples", "benches"] {
        for source in sources(folder) {
            let lines = source.text.lines().count();
            let fault = match LONG_FILES.iter().find(|(path, _)| *path == source.path) {
                None if lines > FILE_LINES_MAX => "too many",
                Some((_, max)) if lines > *max => "more than before",
                Some(_) if lines <= FILE_LINES_MAX => "short enough now: take it off the list",
                _ => continue,
            };
            broken.push(format!("{} has {lines} lines: {fault}", source.path));
        }
    }
    assert_none("files have at most 500 lines", &broken);
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    // In pieces, so that this file does not break its own rule.
    let forbidden = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut broken = Vec::new();
    let folders = ["src", "tests", "examples", "benches", "docs", ".ci"];
    let top = std::fs::read_dir(root()).expect("readable").map(|entry| entry.expect("readable").path());
    let top =
        top.filter(|path| path.extension().is_some_and(|end| ["md", "toml", "lock"].iter().any(|known| end == *known)));
    for path in folders.iter().flat_map(|folder| files_below(folder)).chain(top) {
        // What is not text is a fixture.
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for (index, line) in text.lines().enumerate() {
            if forbidden.iter().any(|part| line.contains(part)) {
                broken.push(format!("{}:{}: {line}", path.display(), index + 1));
            }
        }
    }
    assert_none("no text names a path of the machine it was written on", &broken);
}

/// The rules above are worth what the reader of sources sees.
#[test]
fn the_reader_sees_code_and_neither_comments_nor_strings() {
    let text = r##"
//! crate::store in prose
use crate::{base::name, log::{Frame, tail}, Shared};
use crate::disk::Disk; // crate::testing
const S: &str = "crate::store \" crate::store"; /* crate::store */
const R: &str = r#"crate::store " crate::store"#;
const C: char = '"'; fn f<'a>(x: &'a crate::state::View) { super::super::x::y(); super::z(); }
mod tests {
    use super::super::inside;
}
"##;
    let source = Source::new("src/log/frame.rs", text);
    let named = [(3, "base"), (3, "log"), (4, "disk"), (7, "state")].map(|(line, layer)| (line, layer.to_owned()));
    assert_eq!(source.named_layers(), named);
    assert_eq!(source.lines_that_climb_to_the_root(), [7]);
    assert!(!source.is_test(7) && source.is_test(9));
    assert!(is_word("a redb::x", "redb") && !is_word("a redb_x", "redb") && !is_word("RedbBackend", "redb"));
}
