//! Histories and their verdicts: every line reads back, what does not read is an error, and nothing is green on an error.

use std::fmt::Write as _;

use counterfoil_lab::{
    history::{self, FORMAT, HistoryError, HistoryEvent, LINE_BYTES_MAX, Line, Moment, Plan, PlannedFault, Writer},
    judge::{self, Evidence, Report, StoreEvidence},
    rules::{
        action::{Note, RequestName, StepMark},
        barrier::{At, Barrier},
        ids::{Amount, Attempt, Endpoint, IncarnationId, IntentId, Key, Millis, ReplicaId, RunId, SealedIntent},
        knobs::Knobs,
        lamps::{Counted, Lamp},
        majority::Members,
        outcome::{Outcome, Refused, Unknown},
        plan::Step,
        record::{Charge, DiskIdentity, EffectRow, Receipt, Standing},
        verdict::{Expected, Totals, Verdict},
    },
    screen::{Style, style::columns},
};

const A: ReplicaId = ReplicaId::FIRST;

fn key(text: &str) -> Key {
    text.parse().expect("a key")
}

fn intent(number: u64) -> IntentId {
    IntentId(format!("i{number}"))
}

fn row(number: u64) -> EffectRow {
    EffectRow {
        intent: SealedIntent::seal(&intent(number)),
        key: key("k"),
        amount: Amount(50),
        attempt: Attempt::FIRST,
        by: Endpoint::Replica(A),
    }
}

fn done() -> Outcome {
    let by = Endpoint::Replica(A);
    let receipt = Receipt { key: key("k"), amount: Amount(50), attempt: Attempt::FIRST, by, position: None };
    Outcome::Done { receipt, replayed: false }
}

fn plan(expected: Expected) -> Plan {
    Plan { name: "crash-between".to_owned(), expected, faults: Vec::new(), faults_min: 0, load_ms_min: 0 }
}

fn start(plan: Plan) -> HistoryEvent {
    HistoryEvent::RunStarted {
        format: FORMAT,
        run: RunId("r1".to_owned()),
        members: Members::new(1).expect("one"),
        knobs: Knobs::default(),
        seed: 1,
        plan,
    }
}

fn attempt(number: u64, attempt: u32) -> HistoryEvent {
    let (intent, key, attempt) = (intent(number), key("k"), Attempt(attempt));
    HistoryEvent::AttemptStarted { intent, key, attempt, to: A, amount: Amount(50) }
}

fn answer(number: u64, attempt: u32, outcome: Outcome) -> HistoryEvent {
    HistoryEvent::AttemptEnded { intent: intent(number), key: key("k"), attempt: Attempt(attempt), outcome }
}

fn fell(name: &str) -> HistoryEvent {
    HistoryEvent::FaultFell { fault: name.to_owned(), whom: Endpoint::Replica(A) }
}

/// A history of these events, a millisecond each.
fn written(events: Vec<HistoryEvent>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for (at, event) in (1_000..).zip(events) {
        writer.tell(Millis(at), Endpoint::Supervisor, event).expect("memory takes everything");
    }
    writer.into_inner()
}

fn disk(rows: Vec<EffectRow>) -> Evidence {
    let disk =
        DiskIdentity { incarnation: IncarnationId("d1".to_owned()), born_at: Millis(0), standing: Standing::Founding };
    let store =
        StoreEvidence { replica: A, disk, wiped: false, effects: rows, records: Vec::new(), receipts: Vec::new() };
    Evidence { stores: vec![store], charges: Vec::new() }
}

fn judged(events: Vec<HistoryEvent>, rows: Vec<EffectRow>) -> Report {
    judge::check(written(events).as_slice(), &disk(rows)).expect("it reads")
}

#[test]
fn executions_are_counted_in_the_stores_of_living_dead_and_wiped_replicas_and_at_the_provider() {
    let events = vec![start(plan(Expected::Exactly(3))), attempt(1, 1), answer(1, 1, done()), HistoryEvent::RunEnded];
    let mut evidence = disk(vec![row(1)]);
    let mut wiped = evidence.stores[0].clone();
    (wiped.wiped, wiped.disk.incarnation) = (true, IncarnationId("d0".to_owned()));
    evidence.stores.push(wiped);
    evidence.charges.push(Charge { row: row(1), identity: None });
    let report = judge::check(written(events).as_slice(), &evidence).unwrap();
    assert_eq!((report.totals.executions, report.totals.duplicates), (3, 1));
    assert_eq!(report.verdict, Verdict::AsExpected);
}

#[test]
fn a_new_key_for_each_attempt_hides_nothing() {
    let mut second = row(1);
    second.key = key("k2");
    let events = vec![start(plan(Expected::Honest)), attempt(1, 1), HistoryEvent::RunEnded];
    assert_eq!(judged(events, vec![row(1), second]).verdict.word(), "VIOLATION");
}

#[test]
fn a_fault_counts_only_between_the_moments_that_it_was_planned_for() {
    let held = Moment::Held { barrier: Barrier::AfterEffect, attempt: Attempt::FIRST };
    let fault = PlannedFault { name: "kill".to_owned(), after: held, before: Moment::AttemptStarted(Attempt(2)) };
    let planned = || start(Plan { faults: vec![fault.clone()], ..plan(Expected::Exactly(1)) });
    let at = At { barrier: Barrier::AfterEffect, key: key("k"), attempt: Attempt::FIRST };
    let gap = || HistoryEvent::Held(at.clone());
    let run = |middle: Vec<HistoryEvent>| {
        let events = [vec![planned()], middle, vec![answer(1, 2, done()), HistoryEvent::RunEnded]].concat();
        judged(events, vec![row(1)]).verdict
    };
    let (first, second) = (|| attempt(1, 1), || attempt(1, 2));
    assert_eq!(run(vec![first(), gap(), fell("kill"), second()]), Verdict::AsExpected);
    for (story, why) in [
        (vec![first(), fell("kill"), gap(), second()], "before the moment"),
        (vec![first(), gap(), second(), fell("kill")], "after the moment"),
        (vec![first(), gap(), second()], "never took place"),
        (vec![first(), gap(), fell("another"), second()], "never took place"),
    ] {
        let verdict = run(story);
        assert_eq!(verdict.word(), "NOT EXERCISED");
        assert!(verdict.why()[0].contains(why), "{verdict}");
    }
}

#[test]
fn faults_count_for_a_load_only_while_somebody_waits_for_an_answer() {
    let busy = Plan { faults_min: 1, ..plan(Expected::Honest) };
    let idle = vec![start(busy.clone()), attempt(1, 1), answer(1, 1, done()), fell("kill"), HistoryEvent::RunEnded];
    assert_eq!(judged(idle, vec![row(1)]).verdict.word(), "NOT EXERCISED");
    let open = vec![start(busy), attempt(1, 1), fell("kill"), answer(1, 1, done()), HistoryEvent::RunEnded];
    assert_eq!(judged(open, vec![row(1)]).verdict, Verdict::AsExpected);
    let long = Plan { load_ms_min: 60_000, ..plan(Expected::Honest) };
    let short = vec![start(long), attempt(1, 1), answer(1, 1, done()), HistoryEvent::RunEnded];
    assert_eq!(judged(short, vec![row(1)]).verdict.word(), "NOT EXERCISED");
}

#[test]
fn what_cannot_be_trusted_is_invalid_and_never_green() {
    let fine = || vec![start(plan(Expected::Exactly(1))), attempt(1, 1), answer(1, 1, done()), HistoryEvent::RunEnded];
    assert_eq!(judged(fine(), vec![row(1)]).verdict, Verdict::AsExpected);
    let with = |event: HistoryEvent| {
        let mut events = fine();
        events.insert(1, event);
        judged(events, vec![row(1)]).verdict
    };
    let crashed = HistoryEvent::ProcessEnded { how: "exit code 101".to_owned(), wanted: false };
    let wiped = HistoryEvent::Wiped { incarnation: IncarnationId("gone".to_owned()) };
    for event in [HistoryEvent::Starved { gap_ms: 9_000 }, crashed, wiped] {
        assert_eq!(with(event.clone()).word(), "INVALID", "{event:?}");
    }
    let no_end = judged(fine()[..3].to_vec(), vec![row(1)]);
    assert_eq!((no_end.verdict.word(), no_end.verdict.exit_code()), ("INVALID", 2));
    let strangers = judged(fine(), vec![row(1), row(7)]);
    assert_eq!(strangers.verdict.word(), "INVALID", "evidence of another run");
    let none = judge::check(written(fine()).as_slice(), &Evidence::default()).unwrap();
    assert_eq!(none.verdict.word(), "INVALID", "no disk was read");
}

#[test]
fn a_history_that_says_another_number_than_the_stores_is_a_violation() {
    let mut events =
        vec![start(plan(Expected::Exactly(1))), attempt(1, 1), answer(1, 1, done()), HistoryEvent::RunEnded];
    let honest = judged(events.clone(), vec![row(1)]);
    events.push(HistoryEvent::Judged { totals: honest.totals });
    assert_eq!(judged(events.clone(), vec![row(1)]), honest, "recomputed, and the same");
    *events.last_mut().unwrap() = HistoryEvent::Judged { totals: Totals { executions: 9, ..honest.totals } };
    let verdict = judged(events, vec![row(1)]).verdict;
    assert_eq!(verdict.word(), "VIOLATION");
    assert!(verdict.why()[0].contains("the history says 9"), "{verdict}");
}

#[test]
fn an_unknown_attempt_keeps_an_intent_unknown_whatever_is_refused_after_it() {
    let events = vec![
        start(plan(Expected::Honest)),
        attempt(1, 1),
        answer(1, 1, Outcome::Unknown(Unknown::NoAnswer)),
        attempt(1, 2),
        answer(1, 2, Outcome::Refused(Refused::NotConnected)),
        HistoryEvent::RunEnded,
    ];
    let report = judged(events, vec![row(1)]);
    assert_eq!((report.totals.unknown, report.totals.denied), (1, 0));
    assert_eq!(report.verdict, Verdict::AsExpected);
}

fn error_of(text: &[u8]) -> HistoryError {
    history::read(text, |_, _| {}).expect_err("it does not read")
}

#[test]
fn every_line_reads_back_as_it_was_written() {
    let events = vec![
        start(plan(Expected::Duplicates)),
        attempt(1, 1),
        answer(1, 1, Outcome::Mismatch { held: Amount(5) }),
        HistoryEvent::RunEnded,
    ];
    let mut back: Vec<Line> = Vec::new();
    let lines = history::read(written(events.clone()).as_slice(), |_, line| back.push(line)).unwrap();
    assert_eq!(lines, 4);
    assert_eq!(back.into_iter().map(|line| line.event).collect::<Vec<_>>(), events);
}

#[test]
fn a_malformed_history_is_an_error_that_names_the_line() {
    let good = written(vec![start(plan(Expected::Honest)), HistoryEvent::RunEnded]);
    let second = |line: &[u8]| {
        let first = good.split_inclusive(|byte| *byte == b'\n').next().expect("a line");
        error_of(&[first, line].concat())
    };
    for garbage in
        [&b"{}\n"[..], b"\n", b"\xff\xfe\n", b"{\"at\":1,\"by\":\"client\",\"event\":\"no-such\"}\n", b"[1,2"]
    {
        let error = second(garbage);
        let named = matches!(error, HistoryError::Malformed { line: 2, .. } | HistoryError::BreaksOff { line: 2 });
        assert!(named, "{error}");
    }
    assert!(matches!(
        second(&good[..good.len() / 2]),
        HistoryError::BreaksOff { line: 2 } | HistoryError::SecondStart { line: 2 }
    ));
    assert!(matches!(error_of(b""), HistoryError::Empty));
    assert!(matches!(
        error_of(&good[good.iter().position(|byte| *byte == b'\n').unwrap() + 1..]),
        HistoryError::NoStart
    ));
    assert!(matches!(error_of(&[good.clone(), good.clone()].concat()), HistoryError::SecondStart { line: 3 }));
    let after = [good.as_slice(), b"{\"at\":1,\"by\":\"A\",\"event\":\"paused\"}\n"].concat();
    assert!(matches!(error_of(&after), HistoryError::AfterEnd { line: 3 }));
}

#[test]
fn every_cut_of_a_history_is_an_error_or_has_no_end() {
    let events = vec![start(plan(Expected::Honest)), attempt(1, 1), answer(1, 1, done()), HistoryEvent::RunEnded];
    let whole = written(events);
    for length in 0..whole.len() {
        if let Ok(report) = judge::check(&whole[..length], &disk(vec![row(1)])) {
            assert_eq!(report.verdict.word(), "INVALID", "cut at {length}");
        }
    }
}

/// Gives bytes for ever, and counts them.
struct Endless(u64);

impl std::io::Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(b'x');
        self.0 += buffer.len() as u64;
        Ok(buffer.len())
    }
}

#[test]
fn a_file_without_line_ends_is_given_up_after_one_line() {
    let mut endless = std::io::BufReader::new(Endless(0));
    let error = history::read(&mut endless, |_, _| {}).unwrap_err();
    assert!(matches!(error, HistoryError::TooLong { line: 1 }), "{error}");
    let read = usize::try_from(endless.into_inner().0).unwrap();
    assert!(read <= LINE_BYTES_MAX + 64 * 1024, "{read} bytes were read");
}

#[test]
fn a_later_format_is_refused_by_its_number() {
    let text = String::from_utf8(written(vec![start(plan(Expected::Honest))])).unwrap();
    let later = text.replace("\"format\":1", "\"format\":2");
    assert!(matches!(error_of(later.as_bytes()), HistoryError::Format { found: 2 }));
}

/// A hundred thousand operations. The bound is on work, not on time: each line is looked at once and what is kept is as
/// large as the number of intents, whatever the machine does meanwhile.
#[test]
fn a_hundred_thousand_operations_are_judged_in_one_pass() {
    const OPERATIONS: u64 = 100_000;
    let mut text = Vec::new();
    let mut writer = Writer::new(&mut text);
    let mut tell = |at: u64, event| writer.tell(Millis(at), Endpoint::Client, event).expect("memory");
    tell(1, start(plan(Expected::Honest)));
    for number in 0..OPERATIONS {
        tell(number + 2, attempt(number, 1));
        tell(number + 2, answer(number, 1, done()));
    }
    tell(OPERATIONS + 2, HistoryEvent::RunEnded);
    let mut counting = Counting { inner: text.as_slice(), read: 0 };
    let evidence = disk((0..OPERATIONS).map(row).collect());
    let start = std::env::var_os("JUDGE_TIME").map(|_| std::time::Instant::now());
    let report = judge::check(&mut counting, &evidence).unwrap();
    if let Some(start) = start {
        println!("judged {} operations in {:?}", report.totals.intents, start.elapsed());
    }
    assert_eq!(report.verdict, Verdict::AsExpected);
    assert_eq!((report.totals.intents, report.totals.executions), (OPERATIONS, OPERATIONS));
    assert_eq!(counting.read, text.len(), "each byte is read once");
    assert!(report.intents.len() <= 50 && report.strips.executions.len() <= 10_000);
}

/// Counts what is consumed.
struct Counting<'a> {
    inner: &'a [u8],
    read: usize,
}

impl std::io::Read for Counting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read += read;
        Ok(read)
    }
}

impl std::io::BufRead for Counting<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
        self.inner.consume(amount);
    }
}

#[test]
fn a_verdict_is_read_out_with_its_reasons() {
    let mut text = String::new();
    write!(text, "{}", Verdict::NotExercised(vec!["kill: planned, and never took place".to_owned()])).unwrap();
    assert_eq!(text, "NOT EXERCISED\n  kill: planned, and never took place");
}

#[test]
fn a_judged_run_is_shown_as_what_the_counter_said_beside_what_happened() {
    let counted = |majority, count| HistoryEvent::Sampled {
        counts: Lamp::ALL.iter().map(|lamp| Counted { lamp: *lamp, count, majority }).collect(),
    };
    let executed = HistoryEvent::Noted(Note::Step {
        of: RequestName { key: key("k"), attempt: Attempt::FIRST },
        step: Step::Execute,
        mark: StepMark::Done,
    });
    let events = vec![
        start(plan(Expected::Exactly(2))),
        counted(true, 1),
        attempt(1, 1),
        executed.clone(),
        answer(1, 1, Outcome::Unknown(Unknown::NoAnswer)),
        counted(true, 1),
        attempt(1, 2),
        executed,
        answer(1, 2, done()),
        HistoryEvent::RunEnded,
    ];
    let report = judged(events, vec![row(1), row(1)]);
    let lines = judge::print::report(&report, &Style::PLAIN);
    let expected = "\
what the counter said                  │ what happened
from 1 ms: 1 complete a durable write, │ 1 operation wanted, executed 2 times
majority                               │ in all
a majority at every sample             │ 1 executed more than once

counter      ·······███████████████████████████████████████████████████████████
executed     ·····················111111111111111111111111111111222222222222222
             0                                                             9 ms
             █ a majority writes, _ no majority; digits: executions so far

where     disk        effects  records
A         d1          2        0
provider  its ledger  0

■ AS EXPECTED
";
    assert_eq!(lines.join("\n").trim_end(), expected.trim_end(), "\n{}\n", lines.join("\n"));
    assert!(lines.iter().all(|line| columns(line) <= 80));
}
