//! The lessons, by the real binary with real processes.

#![cfg(unix)]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use counterfoil_lab::lesson::catalogue::lessons;
use counterfoil_lab::lesson::report::{Guess, LessonsReport, Prediction};
use counterfoil_lab::lesson::script::{Act, Turn};
use counterfoil_lab::process::sys::ProcessIdentity;
use counterfoil_lab::rules::verdict::Verdict;
use support::{PATIENCE, PROGRAM, command, wait_until};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn read(report: &Path) -> LessonsReport {
    let text = std::fs::read(report).expect("the report is there");
    serde_json::from_slice(&text).expect("the report reads")
}

/// Answers as somebody at a terminal would type them.
fn typed(data: &Path, arguments: &[&str], answers: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(data).args(arguments).env("NO_COLOR", "1").env("COLUMNS", "80");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let mut input = child.stdin.take().expect("its input is a pipe");
    input.write_all(answers.as_bytes()).expect("it reads");
    drop(input);
    child.wait_with_output().expect("it ends")
}

#[test]
fn every_lesson_shows_what_its_author_predicted_and_the_last_line_says_so() {
    let data = tempfile::tempdir().unwrap();
    let report = data.path().join("report.json");
    let output = command(data.path(), &["lesson", "--all", "--check", "--report", report.to_str().unwrap()]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", words(&output));
    assert_eq!(said.lines().last(), Some("lessons: 10 as expected, 0 not"), "{said}");
    assert!(said.contains("a teaching model, not a way to make the store distributed"), "{said}");
    for lesson in lessons() {
        let row = said.lines().find(|line| line.contains(lesson.name)).unwrap_or_else(|| panic!("{}", lesson.name));
        assert!(row.ends_with("as expected"), "{row}");
    }
    let report = read(&report);
    assert_eq!((report.lessons.len(), report.as_expected, report.not), (10, 10, 0));
    let runs = || report.lessons.iter().flat_map(|lesson| &lesson.runs);
    assert_eq!(runs().count(), lessons().iter().map(|lesson| lesson.variants().len()).sum::<usize>());
    for run in runs() {
        assert!(run.farewell.is_clean(), "{}", run.farewell);
        assert_eq!(run.seen.executed, run.judged.totals.executions, "the number is the judge's");
        assert_eq!(run.seen, run.predicted_by_its_author);
    }
    // Lost, and told "done": the judge sees both.
    let lost = runs().find(|run| run.variant == "3b: record first").unwrap();
    assert_eq!((lost.seen.executed, lost.judged.totals.lost), (0, 1));
    let lamps = report.lessons.iter().find(|lesson| lesson.number == 9).map(|lesson| lesson.runs[0].lamps.clone());
    assert_eq!(lamps, Some(vec![3, 3, 2, 2]));
    assert!(!std::fs::read_dir(data.path()).unwrap().any(|entry| entry.unwrap().path().is_dir()));
}

#[test]
fn a_lesson_whose_fault_is_taken_out_is_not_exercised_in_every_variant() {
    let data = tempfile::tempdir().unwrap();
    let output = command(data.path(), &["--json", "lesson", "--all", "--check", "--without-fault"]);
    assert_eq!(output.status.code(), Some(2), "{}{}", text(&output), words(&output));
    let report: LessonsReport = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report.as_expected, report.not), (0, 10));
    for lesson in &report.lessons {
        let all = lessons().into_iter().find(|known| known.number == lesson.number).unwrap();
        assert_eq!(lesson.runs.len(), all.variants().len(), "{}: {:?}", lesson.name, lesson.not_run);
        for run in &lesson.runs {
            let exercised = !matches!(run.verdict, Verdict::NotExercised(_));
            assert!(!exercised, "{}, {}: {}", lesson.name, run.variant, run.verdict);
        }
    }
}

#[test]
fn a_prediction_is_asked_for_until_it_makes_sense_and_stands_in_the_report() {
    let data = tempfile::tempdir().unwrap();
    let report = data.path().join("mine.json");
    let arguments = ["lesson", "1", "--report", report.to_str().unwrap()];
    let output = typed(data.path(), &arguments, "three\n1\nperhaps\nyes\n\n\n\n\n");
    let said = text(&output);
    // A wrong prediction is no wrong verdict.
    assert_eq!(output.status.code(), Some(0), "{said}{}", words(&output));
    for part in [
        "\"three\" is none of 0, 1, 2 and unknown",
        "\"perhaps\" is neither yes nor no",
        "a teaching model, not a way to make the store distributed",
        "what the counter said",
        "what happened",
        "you predicted  1         yes           not as it was",
        "The question: Which fact would the server need, and where must it live?",
        "placement  none    atomic",
        "lost answer 1",
    ] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    let last = said.lines().last().unwrap();
    assert_eq!(last, format!("report: {}", report.display()));
    let report = read(&report);
    assert_eq!(report.lessons[0].predicted, Some(Prediction { executed: Guess::Times(1), found: true }));
    assert!(report.this_is.contains("a teaching model"));

    // Nobody there is no prediction, and no report either.
    let output = typed(data.path(), &["lesson", "lost-reply"], "2\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("say --yes to run without a prediction"), "{}", words(&output));
    assert!(!left_over(data.path()), "half a session left a report");
}

fn left_over(data: &Path) -> bool {
    let mut entries = std::fs::read_dir(data).expect("the directory is there").filter_map(Result::ok);
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with("lesson-"))
}

#[test]
fn no_line_of_the_widest_lesson_is_wider_than_a_terminal_and_without_colours_there_are_none() {
    let data = tempfile::tempdir().unwrap();
    let report = data.path().join("r.json");
    let arguments = ["lesson", "two-majorities", "--yes", "--report", report.to_str().unwrap()];
    let output = typed(data.path(), &arguments, "");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains('\u{1b}'));
    let wide: Vec<&str> = said.lines().filter(|line| !line.starts_with("report: ")).collect();
    let wide: Vec<&&str> = wide.iter().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
    // Both looks were counted by majorities, and both are on the screen.
    assert!(said.contains("A asked: 3/5 know nothing, majority"), "{said}");
    assert!(said.contains("E asked: 3/5 know nothing, majority"), "{said}");
}

#[test]
fn ctrl_c_in_a_lesson_ends_everything_and_leaves_no_half_report() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("--data").arg(data.path()).args(["lesson", "6", "--yes"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let run = || std::fs::read_dir(data.path()).unwrap().filter_map(Result::ok).find(|entry| entry.path().is_dir());
    let history = || run().map(|run| std::fs::read_to_string(run.path().join("history.jsonl")).unwrap_or_default());
    wait_until("the executor stands in the gap", PATIENCE, || history().is_some_and(|text| text.contains("held")));
    let pid = ProcessIdentity::of(child.id()).unwrap().pid.to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", words(&output));
    assert!(words(&output).contains("interrupted; 5 processes started, 5 gone"), "{}", words(&output));
    assert!(run().is_none(), "the directory is left");
    assert!(!left_over(data.path()), "half a lesson is no report");
}

#[test]
fn what_is_no_lesson_is_one_clear_line_with_the_names() {
    let data = tempfile::tempdir().unwrap();
    let output = command(data.path(), &["lesson", "lost-replies", "--yes"]);
    assert_eq!(output.status.code(), Some(2));
    let line = words(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    for lesson in lessons() {
        assert!(line.contains(lesson.name), "{line}");
    }
    let output = command(data.path(), &["lesson", "1", "--yes", "--report", data.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(words(&output).contains("cannot be written"), "{}", words(&output));

    let list = command(data.path(), &["lesson", "list"]);
    assert!(list.status.success() && text(&list).contains("the-sleeper"), "{}", text(&list));
    assert!(text(&list).contains("a teaching model, not a way to make the store distributed"));
}

#[test]
fn broken_and_repaired_are_the_same_script_with_other_switches() {
    for lesson in lessons() {
        let name = lesson.name;
        assert_eq!(lesson.broken.script, lesson.repaired.script, "{name}");
        assert!(!lesson.broken.knobs.differences(&lesson.repaired.knobs).is_empty(), "{name}");
        assert_ne!(lesson.broken.executed, 1, "{name}: a broken variant shows harm");
        assert_eq!(lesson.repaired.executed, 1, "{name}");
        assert_eq!((lesson.broken.turn, lesson.repaired.turn), (Turn::Harm, Turn::Repair), "{name}");
        assert_eq!(lesson.set_up.matches(['.', '!', '?']).count(), 3, "{name}: three sentences");
        assert_eq!(lesson.question.matches('?').count(), 1, "{name}: one question");
        for variant in lesson.variants() {
            assert!(variant.script.iter().any(|line| line.fault), "{name}: a fault that can be taken out");
            // What falls was planned, and what was planned can fall.
            for fall in &lesson.falls {
                let falls = |act: Act| matches!(act, Act::Fell(one, _) | Act::Hit(one) if one == fall.name);
                assert!(variant.script.iter().any(|line| falls(line.act)), "{name}, {}: {}", variant.name, fall.name);
            }
        }
    }
}

#[test]
fn the_workshop_has_every_lesson_and_says_what_was_not_run() {
    let text = std::fs::read_to_string("../docs/workshop.md").expect("the workshop is written");
    for lesson in lessons() {
        let row = format!("| {} {} |", lesson.number, lesson.name);
        assert!(text.contains(&row) && text.contains(&format!("**{} {}.**", lesson.number, lesson.name)), "{row}");
    }
    for part in [
        "a teaching model, not a way to make the store distributed",
        "Windows and macOS were not run",
        "kill -9 keeps the page cache",
        "lessons: 10 as expected, 0 not",
    ] {
        assert!(text.contains(part), "{part}");
    }
}
