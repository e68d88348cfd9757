//! Every damage of every file, each judged in a process that may be aborted: a stack that overflows, memory without
//! bound or a panic while unwinding would end it, and count as a violation of that damage.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::cases::{self, Case};
use crate::crash::scale::percent;
use crate::judge::{Verdict, judge};
use crate::specimen::{Specimen, closed, killed, tiny};

/// Which part of the cases a child process has: its first case and the step to the next.
const PART: &str = "COUNTERFOIL_CORRUPTION_PART";
const NAME: &str = "sweep::damage_to_any_file_is_named_or_takes_nothing_that_was_answered";
const WORKERS: usize = 2;
/// Kilobytes of address space for a child: a length that was damaged must not become an allocation.
const MEMORY_KB: u64 = 700_000;
/// How a case is told whose process redb aborted.
const ABORTED: &str = "redb aborted the process";
/// How often it may, in a full run and so in every other: each is a flip in redb's records of free pages.
const ABORTS_MAX: usize = 40;
/// A single case takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn damage_to_any_file_is_named_or_takes_nothing_that_was_answered() {
    let specimens = [closed(1), killed(1), tiny(1)];
    let cases = cases::all(&specimens, &[closed(2), killed(2), tiny(2)]);
    if let Ok(part) = std::env::var(PART) {
        return work(&specimens, &cases, &part);
    }
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|first| scope.spawn(move || supervise(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a supervisor")).collect()
    });
    assert_eq!(outcomes.len(), cases.len(), "every case was judged");
    let (table, violations) = report(&specimens, &cases, &outcomes);
    println!("{table}");
    println!("{} damages, {} violations", cases.len(), violations.len());
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    let aborted = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).count();
    println!("redb aborted the process {aborted} times");
    assert!(aborted <= ABORTS_MAX, "more than N4 says");
    assert_met(&specimens, &cases, &outcomes);
}

/// A case and what came of it.
type Outcome = (usize, Result<Verdict, String>);

/// In a child: judges every case of its part, and says so line by line.
fn work(specimens: &[Specimen], cases: &[Case], part: &str) {
    let (first, step) = part.split_once('/').expect("two numbers");
    let (first, step): (usize, usize) = (first.parse().expect("a number"), step.parse().expect("a number"));
    let mut out = std::io::stdout();
    let mut say = |line: String| {
        writeln!(out, "\n{line}").and_then(|()| out.flush()).expect("the parent listens");
    };
    for number in (first..cases.len()).step_by(step) {
        say(format!("case {number}"));
        let case = &cases[number];
        let specimen = &specimens[case.specimen];
        let disk = specimen.disk();
        case.apply(&disk);
        match judge(specimen, &disk, &case.file, case.looks_closed(specimen)) {
            Ok(verdict) => say(format!("verdict {number} {}", verdict.label())),
            Err(violation) => say(format!("violation {number} {}", violation.replace('\n', " "))),
        }
    }
    say("end".to_owned());
}

/// Runs children until every case of a part is judged; one that dies or hangs has met its last case.
fn supervise(first: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut next = first;
    loop {
        let (errors, mut child) = spawn(next);
        let lines = listen(&mut child);
        let mut at = None;
        let ended = loop {
            let Ok(line) = lines.recv_timeout(PATIENCE) else { break false };
            let mut words = line.splitn(3, ' ');
            let (kind, number, rest) = (words.next(), words.next(), words.next());
            let number = number.and_then(|number| number.parse::<usize>().ok());
            match (kind, number, rest) {
                (Some("end"), _, _) => break true,
                (Some("case"), Some(number), _) => at = Some(number),
                (Some("verdict"), Some(number), Some(label)) => {
                    let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.label() == label);
                    outcomes.push((number, Ok(verdict.expect("a verdict"))));
                    at = None;
                }
                (Some("violation"), Some(number), message) => {
                    outcomes.push((number, Err(message.unwrap_or_default().to_owned())));
                    at = None;
                }
                _ => {}
            }
        };
        let killed = child.kill();
        let status = child.wait().expect("the child is waited for");
        if ended {
            return outcomes;
        }
        let number = at.unwrap_or_else(|| panic!("a child ended before its first case: {status}, {killed:?}"));
        let said = std::fs::read_to_string(errors.path()).unwrap_or_default();
        let tail: String = said.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
        // The one end that N4 names: redb panicked while it unwound from a panic of its own.
        let by_redb = said.contains("redb-") && said.contains("panic in a destructor during cleanup");
        let what = if by_redb { ABORTED } else { "the process hung or was aborted" };
        outcomes.push((number, Err(format!("{what} ({status}): {tail}"))));
        next = number + WORKERS;
    }
}

/// A child with bounded memory, and the file that takes what it says to its standard error.
fn spawn(first: usize) -> (tempfile::NamedTempFile, Child) {
    let errors = tempfile::NamedTempFile::new().expect("a temporary file");
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = if cfg!(unix) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -v {MEMORY_KB}; exec \"$0\" \"$@\"")]).arg(program);
        shell
    } else {
        Command::new(program)
    };
    command.args(["--exact", NAME, "--nocapture", "--test-threads", "1"]).env("RUST_BACKTRACE", "0");
    command.env(PART, format!("{first}/{WORKERS}")).stdout(Stdio::piped()).stdin(Stdio::null());
    command.stderr(errors.reopen().expect("the temporary file"));
    (errors, command.spawn().expect("the child starts"))
}

/// The lines that a child says, from a thread that ends with it.
fn listen(child: &mut Child) -> Receiver<String> {
    let (send, lines) = channel();
    let out = child.stdout.take().expect("it is piped");
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Counts by specimen, file and kind of damage; and every violation in words.
fn report(specimens: &[Specimen], cases: &[Case], outcomes: &[Outcome]) -> (String, Vec<String>) {
    let mut counts: BTreeMap<(&str, String, &str), [u64; Verdict::ALL.len() + 2]> = BTreeMap::new();
    let mut violations = Vec::new();
    for (number, outcome) in outcomes {
        let case = &cases[*number];
        let specimen = specimens[case.specimen].name;
        let row = counts.entry((specimen, short(&case.file), case.kind)).or_default();
        match outcome {
            Ok(verdict) => {
                row[Verdict::ALL.iter().position(|known| known == verdict).expect("one of all")] += 1;
            }
            Err(violation) if case.file == "state.redb" && violation.starts_with(ABORTED) => {
                row[Verdict::ALL.len()] += 1;
            }
            Err(violation) => {
                row[Verdict::ALL.len() + 1] += 1;
                violations.push(format!("case {number}, {specimen}, {case}: {violation}"));
            }
        }
    }
    let mut table = format!("\n{:<8}{:<12}{:<32}{:>8}", "store", "file", "damage", "tried");
    let heads =
        ["refused", "at read", "at verify", "missing*", "torn**", "cut***", "no effect", "aborted+", "violations"];
    heads.iter().for_each(|head| write!(table, "{head:>11}").expect("writing to a string"));
    for ((specimen, file, kind), row) in counts {
        let tried: u64 = row.iter().sum();
        write!(table, "\n{specimen:<8}{file:<12}{kind:<32}{tried:>8}").expect("writing to a string");
        row.iter().for_each(|count| write!(table, "{count:>11}").expect("writing to a string"));
    }
    table += "\n*  under a plain open; named by verify and refused by the full check (N4)";
    table += "\n** the last batch before an unclean stop, which nothing proves durable (N3)";
    table += "\n*** a segment that was not closed, cut exactly behind a mark, as a close would have left it (N3)";
    table += "\n+   redb 4.6 panicked while unwinding: damaged records of free pages (N4); the log is whole";
    (table, violations)
}

/// `log/2-0` for the first segment of the second epoch.
fn short(file: &str) -> String {
    let Some(name) = file.strip_prefix("log/").and_then(|name| name.strip_suffix(".seg")) else {
        return file.to_owned();
    };
    let parts: Vec<_> = name.split('-').map(|part| part.trim_start_matches('0')).collect();
    format!("log/{}-{}", parts[0], if parts[1].is_empty() { "0" } else { parts[1] })
}

/// A sweep that met nothing of a kind has shown nothing about it.
fn assert_met(specimens: &[Specimen], cases: &[Case], outcomes: &[Outcome]) {
    for verdict in
        [Verdict::Refused, Verdict::FoundByRead, Verdict::FoundByVerify, Verdict::TornTail, Verdict::NoEffect]
    {
        let met = outcomes.iter().any(|(_, outcome)| outcome.as_ref() == Ok(&verdict));
        assert!(met, "no damage was {}", verdict.label());
    }
    // Few places show these two, and a small run may pass them by.
    for verdict in [Verdict::CutBehindMark, Verdict::MissingUntilVerified] {
        let met = outcomes.iter().any(|(_, outcome)| outcome.as_ref() == Ok(&verdict));
        assert!(met || percent() < 100, "no damage was {}", verdict.label());
    }
    let torn_when_closed = outcomes.iter().find(|(number, outcome)| {
        specimens[cases[*number].specimen].name != "killed" && outcome.as_ref() == Ok(&Verdict::TornTail)
    });
    assert_eq!(torn_when_closed, None, "a store that was closed has no torn tail");
}
