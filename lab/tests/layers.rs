//! Rules of style of the lab, as tests. They read the sources and say which line breaks them.

#[path = "../../tests/support/source.rs"]
mod source;

use source::{Source, is_word, sources};

/// What each layer may name, itself aside, from the bottom up. `main.rs` and `lib.rs` put them together.
const LAYERS: [&str; 11] = [
    "rules",
    "history",
    "screen",
    "process",
    "wire",
    // Replica and provider are side by side, and so are the two above them.
    "provider",
    "replica",
    "supervisor",
    "client",
    "judge",
    "lesson",
];

fn assert_none(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}\n{}", broken.join("\n"));
}

/// Every line of code with where it stands; comments and the insides of strings are gone.
fn lines(sources: &[Source]) -> impl Iterator<Item = (&Source, usize, &str)> {
    sources
        .iter()
        .flat_map(|source| source.code.lines().enumerate().map(move |(index, line)| (source, index + 1, line)))
}

fn broken<'a>(
    sources: &'a [Source],
    concerns: impl Fn(&Source) -> bool + 'a,
    breaks: impl Fn(&str) -> bool + 'a,
) -> Vec<String> {
    let concerned = lines(sources).filter(|(source, ..)| concerns(source));
    concerned.filter(|(.., line)| breaks(line)).map(|(source, line, _)| format!("{}:{line}", source.path)).collect()
}

#[test]
fn imports_run_downwards_only() {
    let height = |layer: &str| LAYERS.iter().position(|known| *known == layer);
    let mut broken = Vec::new();
    for source in sources("src") {
        // The command line and the two roots are above everything.
        if ["main", "lib", "cli"].contains(&source.layer()) {
            continue;
        }
        let own = height(source.layer()).unwrap_or_else(|| panic!("{} is in no layer", source.path));
        for (line, named) in source.named_layers() {
            if height(&named).is_none_or(|named| named > own) {
                broken.push(format!("{}:{line}: {} names {named}", source.path, source.layer()));
            }
        }
    }
    assert_none("a layer names only those below it", &broken);
}

#[test]
fn rules_are_pure() {
    let sources = sources("src");
    let forbidden = [
        "tokio",
        "tonic",
        "std::fs",
        "std::net",
        "std::thread",
        "std::process",
        "std::env",
        "Instant",
        "SystemTime",
        "fastrand",
        "println",
        "eprintln",
        "HashMap",
        "HashSet",
    ];
    let found =
        broken(&sources, |source| source.layer() == "rules", |line| forbidden.iter().any(|word| is_word(line, word)));
    assert_none("rules know no network, disk, clock, chance or order of a hash", &found);
}

#[test]
fn judging_and_drawing_read_no_clock_and_touch_no_files() {
    let sources = sources("src");
    let forbidden = ["tokio", "tonic", "std::fs", "std::net", "Instant", "SystemTime", "fastrand"];
    let layers = ["history", "screen", "judge"];
    let found = broken(
        &sources,
        |source| layers.contains(&source.layer()),
        |line| forbidden.iter().any(|word| is_word(line, word)),
    );
    assert_none("what is judged and drawn is a function of what was recorded", &found);
}

/// The promise behind every number of the judge. `tests/rules` shows the same from outside, by swapping the contents.
#[test]
fn code_of_replicas_and_of_the_provider_cannot_look_into_the_envelope_of_an_intent() {
    let sources = sources("src");
    let concerns = |source: &Source| {
        ["replica", "provider"].contains(&source.layer())
            || source.path.starts_with("src/rules/replica/")
            || source.path == "src/rules/provider.rs"
    };
    let peeks = ["IntentId", "open_as_judge", "to_wire"];
    let found = broken(&sources, concerns, |line| peeks.iter().any(|word| is_word(line, word)));
    assert_none("replica code carries the intent and never reads it", &found);
}

#[test]
fn only_the_judge_opens_the_envelope_and_only_the_wire_sees_it_as_text() {
    let sources = sources("src");
    let opened = broken(
        &sources,
        |source| source.layer() != "judge" && source.path != "src/rules/ids.rs",
        |line| is_word(line, "open_as_judge"),
    );
    assert_none("the envelope is opened in src/judge", &opened);
    let on_the_wire = broken(
        &sources,
        |source| source.layer() != "wire" && source.path != "src/rules/ids.rs",
        |line| is_word(line, "to_wire"),
    );
    assert_none("an intent becomes text in src/wire", &on_the_wire);
}

#[test]
fn everything_that_a_room_reads_says_that_it_is_a_teaching_model() {
    for path in ["src/lib.rs", "src/rules/mod.rs"] {
        let text = source::read(path);
        assert!(text.contains("a teaching model, not a way to make the store distributed"), "{path}");
    }
}

#[test]
fn no_file_is_too_long_to_be_read() {
    let all = ["src", "tests"].into_iter().flat_map(sources);
    let long = all.filter(|source| source.text.lines().count() > 500);
    let long: Vec<String> = long.map(|source| format!("{}: {}", source.path, source.text.lines().count())).collect();
    assert_none("files have at most 500 lines", &long);
}

#[test]
fn nothing_names_the_machine_it_was_written_on() {
    let forbidden = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let mut found = Vec::new();
    for source in ["src", "tests"].into_iter().flat_map(sources) {
        for (index, line) in source.text.lines().enumerate() {
            if forbidden.iter().any(|part| line.contains(part)) {
                found.push(format!("{}:{}", source.path, index + 1));
            }
        }
    }
    assert_none("no text names a path of the machine it was written on", &found);
}
