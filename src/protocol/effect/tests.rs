use super::callback::*;
use super::next::*;
use super::state::*;

const RUN: [u8; 16] = [1; 16];
const OTHER: [u8; 16] = [2; 16];
const NOW: u64 = 10_000;

fn phases() -> [Phase; 6] {
    [
        Phase::Planned { not_before_ms: 0 },
        Phase::Sending { run_id: RUN, lease_until_ms: NOW + 50 },
        Phase::Uncertain { ask_not_before_ms: 0 },
        Phase::Parked,
        Phase::Applied,
        Phase::Refused,
    ]
}

fn events() -> [Event; 6] {
    [
        Event::Sending { run_id: RUN, lease_until_ms: NOW + 50 },
        Event::Planned { not_before_ms: NOW },
        Event::Uncertain { ask_not_before_ms: NOW },
        Event::Parked,
        Event::Applied,
        Event::Refused,
    ]
}

fn state(phase: Phase, doubt: bool) -> EffectState {
    EffectState {
        phase,
        fence: 3,
        attempt: 3,
        tries: 2,
        asks: 0,
        doubt,
        first_sent_ms: Some(9_000),
        last_sent_ms: Some(9_500),
    }
}

/// The fence under which an event is not stale.
fn fence(event: Event) -> u64 {
    if matches!(event, Event::Sending { .. }) { 4 } else { 3 }
}

#[test]
fn every_state_allows_exactly_the_events_of_the_table() {
    // Rows: planned, sending, uncertain, parked, applied, refused. Columns: sending, planned, uncertain, parked, applied,
    // refused. "d": only while no earlier sending is in doubt.
    let table = ["y..yyy", ".dy.yy", "yyyyyy", ".yy.yy", "......", "......"];
    for (phase, row) in phases().into_iter().zip(table) {
        for (event, cell) in events().into_iter().zip(row.chars()) {
            for doubt in [false, true] {
                let allowed = match cell {
                    'y' => true,
                    'd' => !doubt,
                    _ => false,
                };
                let moved = transition(state(phase, doubt), event, fence(event), NOW);
                assert_eq!(moved.is_ok(), allowed, "{phase:?} {event:?} doubt {doubt}: {moved:?}");
            }
        }
    }
}

#[test]
fn a_final_state_stays_whatever_comes_under_whatever_fence() {
    for phase in [Phase::Applied, Phase::Refused] {
        for event in events() {
            for fence in 0..6 {
                assert_eq!(transition(state(phase, false), event, fence, NOW), Err(Refusal::Final));
            }
        }
    }
}

#[test]
fn another_fence_is_stale_in_every_open_state() {
    for phase in phases().into_iter().filter(|phase| !phase.is_final()) {
        for event in events() {
            for wrong in (0..7).filter(|wrong| *wrong != fence(event)) {
                assert_eq!(
                    transition(state(phase, false), event, wrong, NOW),
                    Err(Refusal::Stale),
                    "{phase:?} {event:?}"
                );
            }
        }
    }
}

#[test]
fn sending_raises_the_fence_and_nothing_else_does() {
    for phase in phases() {
        for event in events() {
            let Ok(moved) = transition(state(phase, false), event, fence(event), NOW) else { continue };
            let sent = u64::from(matches!(event, Event::Sending { .. }));
            assert_eq!((moved.fence, u64::from(moved.attempt)), (3 + sent, 3 + sent), "{phase:?} {event:?}");
        }
    }
}

#[test]
fn an_attempt_that_did_nothing_settles_nothing_of_an_earlier_one() {
    let again = transition(state(Phase::Uncertain { ask_not_before_ms: 0 }, true), events()[0], 4, NOW).unwrap();
    assert!(again.doubt);
    let event = after_send(&again, SendResult::NotApplied, NOW + 5);
    assert_eq!(event, Event::Uncertain { ask_not_before_ms: NOW + 5 });
    let first = EffectState { doubt: false, ..again };
    assert_eq!(after_send(&first, SendResult::NotApplied, NOW + 5), Event::Planned { not_before_ms: NOW + 5 });
}

#[test]
fn the_window_counts_from_the_first_sending_that_may_have_been_applied() {
    let first = transition(EffectState::planned(0), events()[0], 1, 100).unwrap();
    let unsure = transition(first, events()[2], 1, 150).unwrap();
    let second = transition(unsure, events()[0], 2, 200).unwrap();
    assert_eq!((second.first_sent_ms, second.last_sent_ms), (Some(100), Some(200)));
    let unsure = transition(second, events()[2], 2, 250).unwrap();
    let settled = transition(unsure, events()[1], 2, 300).unwrap();
    assert_eq!((settled.first_sent_ms, settled.doubt), (None, false));
    assert_eq!(transition(settled, events()[0], 3, 400).unwrap().first_sent_ms, Some(400));
}

fn plan(dedupe_window_ms: Option<u64>, look_up: LookUp) -> Plan {
    Plan { dedupe_window_ms, look_up, attempts_max: 5, not_after_ms: None, call_ms: 100 }
}

fn uncertain(asks: u32, tries: u32) -> EffectState {
    EffectState { asks, tries, ..state(Phase::Uncertain { ask_not_before_ms: NOW }, true) }
}

#[test]
fn what_is_uncertain_is_asked_then_resent_inside_the_window_and_else_parked() {
    let bounded = LookUp::Bounded { in_flight_ms: 1_000 };
    // First sent at 9,000, now 10,000, a call takes at most 100.
    let rows = [
        ("neither", None, LookUp::None, 0, 2, Step::Park(ParkReason::CannotBeSettled)),
        ("keys, open", Some(1_101), LookUp::None, 0, 2, Step::Send),
        (
            "keys, the call might arrive too late",
            Some(1_100),
            LookUp::None,
            0,
            2,
            Step::Park(ParkReason::CannotBeSettled),
        ),
        ("keys, attempts used up", Some(9_999), LookUp::None, 0, 5, Step::Park(ParkReason::CannotBeSettled)),
        ("look-up", None, bounded, 0, 2, Step::LookUp),
        ("look-up again", None, LookUp::Plain, 31, 2, Step::LookUp),
        ("look-ups used up", None, LookUp::Plain, 32, 2, Step::Park(ParkReason::LookUpsUsedUp)),
        ("both, first asked", Some(9_999), LookUp::Bars, 0, 2, Step::LookUp),
        ("both, then sent", Some(9_999), LookUp::Plain, 1, 2, Step::Send),
        ("both, attempts used up: asked again", Some(9_999), LookUp::Plain, 1, 5, Step::LookUp),
    ];
    for (name, window, look_up, asks, tries, expected) in rows {
        assert_eq!(next_step(&uncertain(asks, tries), &plan(window, look_up), RUN, NOW), expected, "{name}");
    }
}

#[test]
fn without_keys_and_look_up_nothing_uncertain_is_ever_sent_again() {
    for asks in 0..40 {
        for tries in 0..7 {
            for now in [0, NOW, u64::MAX] {
                let step = next_step(&uncertain(asks, tries), &plan(None, LookUp::None), RUN, now);
                assert!(!matches!(step, Step::Send | Step::LookUp), "{step:?}");
            }
        }
    }
}

#[test]
fn what_is_planned_waits_is_sent_or_is_parked() {
    let step = |not_before_ms, tries, not_after_ms| {
        let state = EffectState { tries, ..EffectState::planned(not_before_ms) };
        next_step(&state, &Plan { not_after_ms, ..plan(None, LookUp::None) }, RUN, NOW)
    };
    assert_eq!(step(NOW, 4, Some(NOW + 1)), Step::Send);
    assert_eq!(step(NOW + 1, 0, None), Step::Wait { until_ms: NOW + 1 });
    assert_eq!(step(0, 5, None), Step::Park(ParkReason::AttemptsUsedUp));
    assert_eq!(step(NOW + 1, 0, Some(NOW)), Step::Park(ParkReason::TooLate));
}

#[test]
fn a_sending_of_another_run_is_in_doubt_at_once_and_one_of_this_run_at_the_end_of_its_lease() {
    let plan = plan(None, LookUp::None);
    let sending = |run_id, lease_until_ms| state(Phase::Sending { run_id, lease_until_ms }, false);
    assert_eq!(next_step(&sending(OTHER, u64::MAX), &plan, RUN, NOW), Step::Doubt);
    assert_eq!(next_step(&sending(RUN, NOW), &plan, RUN, NOW), Step::Doubt);
    assert_eq!(next_step(&sending(RUN, NOW + 1), &plan, RUN, NOW), Step::Wait { until_ms: NOW + 1 });
}

#[test]
fn not_found_counts_past_the_bound_or_behind_a_bar_and_else_settles_nothing() {
    let state = uncertain(0, 1);
    let bounded = |in_flight_ms| after_look_up(&state, LookUp::Bounded { in_flight_ms }, NOW, NOW + 7);
    assert_eq!(bounded(500), Event::Planned { not_before_ms: NOW + 7 });
    assert_eq!(bounded(501), Event::Uncertain { ask_not_before_ms: NOW + 7 });
    assert_eq!(bounded(900), Event::Uncertain { ask_not_before_ms: 10_400 });
    assert_eq!(after_look_up(&state, LookUp::Bars, NOW, NOW), Event::Refused);
    for look_up in [LookUp::Plain, LookUp::None] {
        assert_eq!(after_look_up(&state, look_up, NOW, NOW + 7), Event::Uncertain { ask_not_before_ms: NOW + 7 });
    }
}

#[test]
fn the_first_outcome_wins_and_a_contradiction_is_a_dispute() {
    for phase in phases() {
        for news in [News::Applied, News::Refused, News::Open] {
            let expected = match (phase, news) {
                (Phase::Applied, News::Refused) | (Phase::Refused, News::Applied) => Receipt::Disputed,
                (Phase::Applied | Phase::Refused, _) => Receipt::Stale,
                _ => Receipt::Applied,
            };
            assert_eq!(receive(phase, news, None, None), expected, "{phase:?} {news:?}");
            assert_eq!(receive(phase, news, Some(4), Some(5)), Receipt::Stale, "older news");
            assert_eq!(receive(phase, news, Some(5), Some(5)), Receipt::Stale, "the same news");
            assert_eq!(receive(phase, news, Some(6), Some(5)), expected, "newer news");
        }
    }
}

#[test]
fn no_way_leads_from_doubt_to_a_second_blind_call() {
    // Every path of six events from a first sending: a provider without keys and look-up is called once, unless a person
    // or an answer has said that nothing was applied.
    fn walk(state: EffectState, depth: u32, sent: u32) {
        let plan = plan(None, LookUp::None);
        if next_step(&state, &plan, RUN, NOW) == Step::Send {
            assert_eq!(sent, 0, "{state:?}");
        }
        if depth == 0 {
            return;
        }
        for event in events() {
            // Planning anew is that answer; it ends the path.
            if matches!(event, Event::Planned { .. }) {
                continue;
            }
            let fence = state.fence + u64::from(matches!(event, Event::Sending { .. }));
            let sends = matches!(event, Event::Sending { .. });
            if sends && next_step(&state, &plan, RUN, NOW) != Step::Send {
                continue;
            }
            if let Ok(moved) = transition(state, event, fence, NOW) {
                walk(moved, depth - 1, sent + u32::from(sends));
            }
        }
    }
    walk(EffectState::planned(0), 6, 0);
}
