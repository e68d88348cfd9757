//! Each promise names the tests that prove it, and they exist.

#[path = "support/source.rs"]
mod source;

use std::collections::BTreeSet;

use source::{read, sources};

/// A numbered section of the document.
struct Section {
    letter: char,
    number: usize,
    text: String,
}

fn sections() -> Vec<Section> {
    let document = read("GUARANTEES.md");
    let parts = document.split("\n### ").skip(1).map(|part| part.split("\n## ").next().unwrap_or_default());
    parts
        .map(|part| {
            let id = part.split_whitespace().next().expect("a section has an id");
            let (letter, number) = id.split_at(1);
            let number = number.trim_end_matches('.').parse().unwrap_or_else(|_| panic!("{id} is no number"));
            Section { letter: letter.chars().next().expect("one letter"), number, text: part.to_owned() }
        })
        .collect()
}

/// The names between backticks in the paragraph that begins with "Proven by", or, for what is not promised, "Shown by".
fn cited(section: &Section) -> Vec<&str> {
    let proof = section.text.split_once("\nProven by").or_else(|| section.text.split_once("\nShown by"));
    let Some((_, proof)) = proof else { return Vec::new() };
    let paragraph = proof.split("\n\n").next().unwrap_or_default();
    paragraph.split('`').skip(1).step_by(2).collect()
}

/// The functions that the test command runs.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for source in ["src", "tests"].into_iter().flat_map(sources) {
        let mut is_test = false;
        for line in source.code.lines() {
            let line = line.trim();
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            if let Some((_, rest)) = line.split_once("fn ").filter(|_| !line.starts_with("#[")) {
                let name = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if std::mem::take(&mut is_test) {
                    names.insert(name);
                }
            }
        }
    }
    names
}

#[test]
fn every_promise_cites_tests_that_exist() {
    let tests = tests();
    let mut wrong = Vec::new();
    for section in &sections() {
        let id = format!("{}{}", section.letter, section.number);
        let cited = cited(section);
        if section.letter == 'G' && cited.is_empty() {
            wrong.push(format!("{id} cites no test"));
        }
        let absent = cited.into_iter().filter(|name| !tests.contains(*name));
        wrong.extend(absent.map(|name| format!("{id} cites {name}, which is no test")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn promises_non_promises_and_assumptions_are_numbered_in_order() {
    let sections = sections();
    for letter in ['G', 'N', 'A'] {
        let numbers: Vec<usize> = sections.iter().filter(|s| s.letter == letter).map(|s| s.number).collect();
        assert_eq!(numbers, (1..=numbers.len()).collect::<Vec<_>>(), "{letter}");
        assert!(numbers.len() >= 3, "{letter} has entries");
    }
}
