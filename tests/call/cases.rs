//! What has gone wrong in libraries that retry, and the tests that show that it does not go wrong here.

#[path = "../support/source.rs"]
mod source;

use std::collections::BTreeSet;

use source::{read, sources};

/// Each case, the rule here, and the tests named after it.
const CASES: &[(&str, &[&str])] = &[
    (
        "Waiting for readiness, for a pool, for a connection is not counted in the timeout. It is.",
        &[
            "readiness_is_waited_for_inside_the_attempt_and_counted",
            "a_place_in_the_pool_is_waited_for_80_ms_at_most_and_the_wait_counts",
            "connect_first_byte_and_idle_have_limits_of_their_own",
        ],
    ),
    (
        "The next backoff outlasts the deadline. It stops at once, with the last real error.",
        &["a_pause_that_would_outlast_the_deadline_ends_the_call_at_once_with_the_last_error"],
    ),
    (
        "The remaining time is read before the sleep and given to the attempt after it. It is read again.",
        &["the_remainder_is_read_again_after_the_pause"],
    ),
    (
        "The deadline passes between the check and the header. Zero is never on the wire.",
        &[
            "what_travels_is_never_zero_though_the_deadline_passes_between_check_and_header",
            "nothing_left_is_never_written",
        ],
    ),
    (
        "The end of the clock, a margin above the remainder, a budget of zero. No panic, and nothing is sent.",
        &[
            "an_operation_without_end_has_no_end_and_does_not_panic",
            "nothing_is_sent_with_a_budget_of_zero_or_a_margin_above_it",
        ],
    ),
    (
        "The wall clock steps an hour back. Nothing changes.",
        &["nothing_changes_when_the_wall_clock_steps_an_hour_back"],
    ),
    (
        "A write is sent again after a read timeout without an identity. One attempt, uncertain.",
        &["a_write_without_identity_that_times_out_is_sent_once_and_uncertain"],
    ),
    ("Each retry mints a new key. It is minted once.", &["the_key_is_minted_once_and_every_attempt_sends_it"]),
    (
        "Attempt 1 committed, attempt 2 sees that it exists, a conflict is reported. A replay if it is ours.",
        &["what_exists_already_is_a_replayed_success_if_it_is_ours_and_else_a_conflict"],
    ),
    (
        "The pool failed before anything was sent, and that is reported as ambiguous. It is definite.",
        &["beyond_the_queue_the_answer_is_immediate_and_definite_also_for_a_mutation"],
    ),
    (
        "Three nested layers retry three times. Three calls, not 27.",
        &["three_nested_layers_of_three_attempts_are_three_calls_at_the_bottom"],
    ),
    (
        "Overload is answered, and retried at once. Not retried, counted.",
        &["an_overload_that_is_answered_is_not_retried", "outcomes_are_counted_with_their_phase_cause_and_reason"],
    ),
    (
        "Attempt 64 overflows the delay; jitter of zero spins. It saturates, the cap holds, a floor is kept.",
        &[
            "the_envelope_doubles_up_to_its_cap",
            "a_draw_of_zero_still_waits_and_the_largest_stays_below_the_cap",
            "delays_are_spread_over_the_whole_envelope",
        ],
    ),
    (
        "Retry-After: -5, 1.5, +3, a date in the past, 100,000,000. Each has its one rule.",
        &[
            "retry_after_is_whole_seconds_or_a_date_and_anything_else_is_ignored",
            "a_date_in_the_past_means_now",
            "a_hint_above_its_ceiling_is_returned_and_not_cut_down",
        ],
    ),
    (
        "A hint of 30 s is clamped to 8 s and retried inside the window. Never earlier than asked.",
        &["a_hint_is_never_undercut_and_one_that_does_not_fit_is_returned_at_once"],
    ),
    (
        "A budget rounds up, is paid into twice, begins full, or is never filled. Exact, once, reserve, refilled.",
        &[
            "a_ratio_of_0_6_lets_six_of_ten_through",
            "only_the_owner_deposits_for_a_logical_call",
            "a_budget_without_reserve_allows_no_retry_at_a_cold_start",
            "retries_stop_when_the_budget_is_spent_and_begin_again_after_its_window",
        ],
    ),
    (
        "A probe hangs, panics or is cancelled and the breaker stays half-open. The lease returns.",
        &[
            "a_probe_that_is_dropped_or_panics_makes_room_for_the_next",
            "a_probe_that_hangs_keeps_its_place_for_its_lease_only",
        ],
    ),
    (
        "Hundreds of callers are admitted as probes. Exactly as many as configured.",
        &["exactly_as_many_probes_as_configured_are_let_through_at_a_time"],
    ),
    (
        "Callers' cancellations, or their deadlines of 5 ms, trip the breaker. They are neutral.",
        &["negative_answers_cancellations_and_short_deadlines_of_callers_do_not_open_it"],
    ),
    (
        "One tenant opens the breaker for all; a map of breakers grows for ever. Keyed and bounded.",
        &["one_tenant_does_not_open_it_for_another", "ten_thousand_tenants_leave_no_more_breakers_than_the_bound"],
    ),
    (
        "A permit leaks with its future, is released twice, or is freed under a body that streams. Held, and once.",
        &[
            "who_waits_in_the_queue_and_is_dropped_leaves_it",
            "a_panic_in_an_attempt_gives_the_place_back",
            "a_body_that_is_still_read_keeps_the_place_by_keeping_the_attempt",
            "permits_are_neither_lost_nor_made_when_threads_come_and_go",
        ],
    ),
    (
        "A queue without a bound. Beyond its bound the answer is immediate.",
        &["beyond_the_queue_the_answer_is_immediate_and_definite_also_for_a_mutation"],
    ),
    (
        "A fallback is recorded as success. Degraded.",
        &["a_fallback_is_degraded_and_no_success_and_does_not_hide_a_refusal"],
    ),
];

#[test]
fn each_case_has_tests_that_exist() {
    let tests: BTreeSet<String> = ["src", "tests"]
        .into_iter()
        .flat_map(sources)
        .flat_map(|source| {
            let code = source.code.split("#[test]").skip(1).map(str::to_owned).collect::<Vec<_>>();
            code.into_iter().filter_map(|after| {
                let name = after.split_once("fn ")?.1;
                Some(name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
            })
        })
        .collect();
    for (case, named) in CASES {
        assert!(!named.is_empty(), "{case}");
        for name in *named {
            assert!(tests.contains(*name), "{case}: there is no test {name}");
        }
    }
}

/// The last case is no test: a hedged write, and an authorisation with a fallback, do not compile.
#[test]
fn what_must_not_compile_is_shown_beside_what_does() {
    let caller = read("src/call/caller.rs");
    for name in ["hedged_write", "may_read"] {
        let example = format!("```compile_fail,E0308\n    /// # use counterfoil::call::*;\n    /// async fn {name}(");
        assert!(caller.contains(&example), "{name}");
    }
}
