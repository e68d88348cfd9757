//! What the README shows is what the code says.

#[path = "support/source.rs"]
mod source;

use std::collections::BTreeMap;

use source::read;

/// The text of the block that follows a marker.
fn block(text: &str, marker: &str) -> String {
    let after = text.split_once(marker).unwrap_or_else(|| panic!("{marker} is missing")).1;
    let inside = after.split_once("```").and_then(|(_, block)| block.split_once('\n')).expect("a block follows").1;
    inside.split_once("```").expect("the block ends").0.to_owned()
}

/// Each variant of `Error` with what its documentation says in italics first: what may be assumed.
fn variants() -> BTreeMap<String, String> {
    let text = read("src/base/error.rs");
    let body = text.split_once("pub enum Error {").expect("the enum is there").1;
    let body = body.split_once("\n}\n").expect("the enum ends").0;
    let (mut variants, mut documentation) = (BTreeMap::new(), String::new());
    for line in body.lines() {
        // A variant stands four spaces in; its fields stand deeper.
        let Some(line) = line.strip_prefix("    ").filter(|line| !line.starts_with(' ')) else { continue };
        if let Some(words) = line.strip_prefix("///") {
            documentation.push_str(words);
        } else if line.starts_with(char::is_uppercase) {
            let name: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
            let assumed = documentation.split('*').nth(1).expect("the documentation says what may be assumed");
            variants.insert(name, assumed.trim_end_matches('.').to_lowercase());
            documentation.clear();
        }
    }
    variants
}

/// The rows of the table of answers: what stands first, and what may be assumed.
fn answers() -> BTreeMap<String, String> {
    let readme = read("README.md");
    let table = readme.split_once("| answer |").expect("the table of answers is there").1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "an answer has a name, a meaning, what may be assumed, and what to do: {row}");
        (cells[0].trim_matches('`').trim_start_matches("Error::").to_owned(), cells[2].to_owned())
    })
    .collect()
}

#[test]
fn the_code_of_the_first_ten_minutes_is_the_example() {
    assert_eq!(block(&read("README.md"), "<!-- minimal -->"), read("examples/minimal.rs"));
}

#[test]
fn every_error_is_in_the_table_of_answers_with_what_may_be_assumed() {
    let (variants, answers) = (variants(), answers());
    assert!(variants.len() > 15, "the variants are found: {variants:?}");
    for (name, assumed) in &variants {
        assert_eq!(answers.get(name), Some(assumed), "the row of Error::{name}");
    }
    let receipts = ["executed", "replayed", "rejected"];
    for name in receipts {
        assert!(answers.contains_key(&format!("receipt, {name}")), "a row for a receipt that was {name}");
    }
    assert_eq!(answers.len(), variants.len() + receipts.len(), "no row is of something that does not exist");
}

#[test]
fn the_readme_asks_for_the_version_that_the_manifest_asks_for() {
    let manifest = read("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let version = version.expect("the manifest says which");
    assert!(read("README.md").contains(&format!("Rust {version} or newer")));
}

#[test]
fn the_readme_gives_the_test_command_as_it_is_run() {
    assert!(read("README.md").contains("cargo test --workspace --all-features"));
}

#[test]
fn links_between_the_documents_lead_somewhere() {
    let documents = ["README.md", "ARCHITECTURE.md", "DESIGN.md", "GUARANTEES.md", "CHANGELOG.md"];
    for document in documents.into_iter().chain(["docs/format.md", "docs/testing.md", "docs/workshop.md"]) {
        let text = read(document);
        let folder = source::root().join(document).parent().expect("a folder").to_path_buf();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{document} links to {target}");
            }
        }
    }
}
