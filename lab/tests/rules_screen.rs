//! What a room sees, letter by letter, in 80 columns.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_lab::{
    history::{FORMAT, HistoryEvent, Line, Plan, event::Message},
    rules::{
        action::{Note, RequestName, StepMark},
        barrier::{At, Barrier},
        fault::Direction,
        ids::{Attempt, Endpoint, IncarnationId, IntentId, Key, Millis, ReplicaId, RunId},
        knobs::{Knobs, Placement},
        lamps::{Lamp, Measured, ReplicaStatus, summarize},
        majority::Members,
        message::MessageKind,
        outcome::{Outcome, Unknown},
        plan::Step,
        record::{DiskIdentity, Standing},
        verdict::{Expected, Verdict},
    },
    screen::{
        Style, Table,
        diagram::diagram,
        report,
        status::status,
        strips::{Strips, strips},
        style::{columns, wrap},
    },
};

const NOW: Millis = Millis(10_000);

fn replica(text: &str) -> ReplicaId {
    text.parse().expect("a replica")
}

fn golden(lines: &[String], expected: &str) {
    let found = lines.join("\n");
    assert_eq!(found.trim_end(), expected.trim_start_matches('\n').trim_end(), "\n--- found ---\n{found}\n---");
    assert!(lines.iter().all(|line| columns(line) <= 80), "wider than 80 columns:\n{found}");
}

fn status_of_a_pause() -> Vec<ReplicaStatus> {
    let one = |letter: &str, lit: &[Lamp], records: u64, standing: Standing| ReplicaStatus {
        replica: replica(letter),
        lamps: Lamp::ALL
            .iter()
            .map(|lamp| {
                let lit = lit.contains(lamp);
                (*lamp, Measured { lit, by: Endpoint::Supervisor, at: Millis(9_960), took_ms: 3 })
            })
            .collect::<BTreeMap<_, _>>(),
        paused: letter == "c",
        disk: Some(DiskIdentity { incarnation: IncarnationId(format!("7f3a{letter}")), born_at: Millis(0), standing }),
        records: Some(records),
        sees: Some(BTreeSet::from([replica("a"), replica("b")])),
    };
    vec![
        one("a", Lamp::ALL, 7, Standing::Founding),
        one("b", Lamp::ALL, 0, Standing::Behind),
        one("c", &[Lamp::Exists, Lamp::Accepts], 7, Standing::Founding),
    ]
}

#[test]
fn a_status_has_a_word_and_a_shape_for_every_state_and_says_that_it_is_a_count() {
    let replicas = status_of_a_pause();
    let summary = summarize(Members::new(3).unwrap(), NOW, 1_000, &replicas);
    golden(
        &status(&summary, &replicas, NOW, 1_000, &Style::PLAIN),
        "
replica   exists  accepts  answers  writes  disk          records  measured
A         ● yes   ● yes    ● yes    ● yes   7f3aa         7        40 ms ago
B         ● yes   ● yes    ● yes    ● yes   7f3ab behind  0        40 ms ago
C paused  ● yes   ● yes    ○ no     ○ no    7f3ac         7        40 ms ago
Measured by: supervisor.

3 configured; a majority is 2 of them, dead or alive.
  exists   3 of 3: majority
  accepts  3 of 3: majority
  answers  2 of 3: majority
  writes   2 of 3: majority
B: the same name with another disk. It holds 0 of 7 records.
A does not see C.
B does not see C.

This is a count and nothing more. A majority that is up is not a transaction,
not consensus, and not exactly-once execution: ask where the durable record of
your operation is.
",
    );
}

#[test]
fn without_unicode_every_state_still_has_a_word_and_a_shape() {
    let ascii = Style { unicode: false, ..Style::PLAIN };
    let replicas = status_of_a_pause();
    let summary = summarize(Members::new(3).unwrap(), NOW, 1_000, &replicas);
    let text = status(&summary, &replicas, NOW, 1_000, &ascii).join("\n");
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("[x] yes") && text.contains("[ ] no"), "{text}");
}

#[test]
fn colours_change_no_letter_and_no_color_takes_them_away() {
    let replicas = status_of_a_pause();
    let summary = summarize(Members::new(3).unwrap(), NOW, 1_000, &replicas);
    let colored = status(&summary, &replicas, NOW, 1_000, &Style { color: true, ..Style::PLAIN });
    let plain = status(&summary, &replicas, NOW, 1_000, &Style::PLAIN);
    assert!(colored.join("").contains('\u{1b}') && !plain.join("").contains('\u{1b}'));
    let widths = |lines: &[String]| lines.iter().map(|line| columns(line)).collect::<Vec<_>>();
    assert_eq!(widths(&colored), widths(&plain), "colours take no columns");

    let terminal = |pairs: &'static [(&str, &str)]| {
        let environment = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Style::of(environment, true)
    };
    assert!(terminal(&[]).color);
    assert!(!terminal(&[("NO_COLOR", "1")]).color);
    assert!(terminal(&[("NO_COLOR", "")]).color, "an empty value is no value");
    assert!(!terminal(&[("TERM", "dumb")]).color);
    assert!(!Style::of(|_| None, false).color, "no terminal");
    assert!(!terminal(&[("LANG", "C")]).unicode && terminal(&[("LANG", "de_CH.UTF-8")]).unicode);
    assert_eq!(terminal(&[("COLUMNS", "120")]).width, 120);
    assert_eq!(terminal(&[("COLUMNS", "3")]).width, 80, "what cannot be is not believed");
}

#[test]
fn a_table_that_is_too_wide_gives_way_and_says_so() {
    let mut table = Table::new(["key", "what"]);
    table.row(["k-1".to_owned(), "x".repeat(100)]).row(["k-2"]);
    let lines = table.lines(&Style::PLAIN);
    assert!(lines.iter().all(|line| columns(line) <= 80) && lines[1].ends_with('…'), "{lines:#?}");
    assert_eq!(lines[2], "k-2");
}

#[test]
fn the_counter_and_what_happened_stand_side_by_side() {
    let said = ["3 of 3 up: majority".to_owned(), "the whole time".to_owned()];
    let happened = ["1 thing wanted, 2 executed".to_owned()];
    golden(
        &report::two_columns("what the counter said", &said, "what happened", &happened, &Style::PLAIN),
        "
what the counter said                  │ what happened
3 of 3 up: majority                    │ 1 thing wanted, 2 executed
the whole time                         │
",
    );
}

#[test]
fn two_strips_show_that_one_stays_the_same_while_the_other_goes_to_two() {
    let data = Strips {
        from: Millis(1_000),
        to: Millis(2_000),
        counter: vec![(Millis(1_000), 3, true), (Millis(1_500), 1, false), (Millis(1_600), 2, true)],
        executions: vec![(Millis(1_300), 1), (Millis(1_800), 2)],
    };
    golden(
        &strips(&data, &Style::PLAIN),
        "
counter      ████████████████████████████████_______███████████████████████████
executed     ···················11111111111111111111111111111111122222222222222
             0                                                          1000 ms
             █ a majority writes, _ no majority; digits: executions so far
",
    );
}

#[test]
fn a_verdict_has_a_shape_of_its_own_and_gives_its_reasons() {
    let why = || vec!["kill: planned, and never took place".to_owned()];
    let heads: Vec<String> =
        [Verdict::AsExpected, Verdict::Violation(why()), Verdict::NotExercised(why()), Verdict::Invalid(why())]
            .iter()
            .map(|verdict| report::verdict(verdict, &Style::PLAIN).join(" / "))
            .collect();
    assert_eq!(
        heads,
        [
            "■ AS EXPECTED",
            "▲ VIOLATION /   kill: planned, and never took place",
            "□ NOT EXERCISED /   kill: planned, and never took place",
            "◇ INVALID /   kill: planned, and never took place",
        ]
    );
}

#[test]
fn the_switches_in_which_two_variants_differ_are_a_table() {
    let differences = Knobs::placed(Placement::Local).differences(&Knobs::default());
    golden(
        &report::differences(&differences, &Style::PLAIN),
        "
switch     broken  repaired
placement  local   atomic
",
    );
}

fn lesson_3() -> Vec<Line> {
    let a = Endpoint::Replica(ReplicaId::FIRST);
    let key = || -> Key { "k".parse().expect("a key") };
    let message = |direction, attempt| Message {
        from: Endpoint::Client,
        to: a,
        direction,
        kind: MessageKind::Request,
        key: Some(key()),
        attempt: Some(Attempt(attempt)),
    };
    let step = |step, attempt| {
        let of = RequestName { key: key(), attempt: Attempt(attempt) };
        HistoryEvent::Noted(Note::Step { of, step, mark: StepMark::Done })
    };
    let plan = Plan {
        name: "crash-between".to_owned(),
        expected: Expected::Exactly(2),
        faults: Vec::new(),
        faults_min: 0,
        load_ms_min: 0,
    };
    let started = HistoryEvent::RunStarted {
        format: FORMAT,
        run: RunId("r".to_owned()),
        members: Members::new(3).expect("three"),
        knobs: Knobs::placed(Placement::Local),
        seed: 1,
        plan,
    };
    let unknown = HistoryEvent::AttemptEnded {
        intent: IntentId("i".to_owned()),
        key: key(),
        attempt: Attempt(1),
        outcome: Outcome::Unknown(Unknown::ConnectionLost),
    };
    let held = HistoryEvent::Held(At { barrier: Barrier::AfterEffect, key: key(), attempt: Attempt(1) });
    let killed = HistoryEvent::ProcessEnded { how: "kill -9".to_owned(), wanted: true };
    let events = [
        (0, Endpoint::Supervisor, started),
        (10, Endpoint::Client, HistoryEvent::Sent(message(Direction::Request, 1))),
        (11, a, HistoryEvent::Received(message(Direction::Request, 1))),
        (14, a, step(Step::Effect, 1)),
        (14, a, held),
        (20, a, killed),
        (21, Endpoint::Client, unknown),
        (90, a, HistoryEvent::ProcessStarted { pid: 7, disk: None }),
        (101, a, HistoryEvent::Received(message(Direction::Request, 2))),
        (105, a, step(Step::Effect, 2)),
        (108, a, step(Step::RecordOnDisk, 2)),
        (109, a, HistoryEvent::Sent(message(Direction::Reply, 2))),
        (120, Endpoint::Replica(replica("c")), HistoryEvent::Paused),
    ];
    events.into_iter().map(|(at, by, event)| Line { at: Millis(1_000 + at), by, event }).collect()
}

#[test]
fn a_diagram_has_one_lane_for_each_process_and_shows_what_was_lost() {
    golden(
        &diagram(&lesson_3(), &Style::PLAIN),
        "
     ms  client            A                 B                 C
     11  │────request 1───▶│                 │                 │
     14  │                 │ * effect        │                 │
     14  │                 │ held after-effect                 │
     20  │                 ✗ gone: kill -9   │                 │
     21  │ attempt 1: unknown                │                 │
     90  │                 │ starts          │                 │
    101  │────request 2───▶│                 │                 │
    105  │                 │ * effect        │                 │
    108  │                 │ = record        │                 │
    109  │✗─lost answer 2──│                 │                 │
    120  │                 │                 │                 ┊ paused
",
    );
}

#[test]
fn an_answer_that_was_told_of_by_its_receiver_first_is_not_shown_as_lost() {
    let mut lines = lesson_3();
    let sent = lines.iter().position(|line| line.at == Millis(1_109)).unwrap();
    let HistoryEvent::Sent(answer) = lines[sent].event.clone() else { panic!("{:?}", lines[sent]) };
    let received = Line { at: lines[sent].at, by: Endpoint::Client, event: HistoryEvent::Received(answer) };
    lines.insert(sent, received);
    let drawn = diagram(&lines, &Style::PLAIN).join("\n");
    assert!(drawn.contains("◀───answer 2─────") && !drawn.contains("lost answer"), "{drawn}");
}

#[test]
fn a_diagram_of_nine_replicas_still_fits_and_a_long_one_says_what_it_leaves_out() {
    let mut lines = lesson_3();
    if let HistoryEvent::RunStarted { members, .. } = &mut lines[0].event {
        *members = Members::new(9).unwrap();
    }
    let last = lines.last().cloned().unwrap();
    lines.extend(std::iter::repeat_n(last, 500));
    let drawn = diagram(&lines, &Style { unicode: false, ..Style::PLAIN });
    assert!(drawn.iter().all(|line| line.chars().count() <= 80 && line.is_ascii()));
    assert!(drawn.len() <= 125 && drawn.last().unwrap().ends_with("more are in the history"), "{}", drawn.len());
}

#[test]
fn words_are_never_broken() {
    assert_eq!(wrap("where is the durable record", 12), ["where is the", "durable", "record"]);
}
