//! What a run is worth.
//!
//! Four verdicts, and only one of them is green. A fault that was planned and hit nothing has proven nothing, however
//! well everything went; a machine that slept has measured nothing.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::rules::{ids::IntentId, outcome::OutcomeKind};

/// What a run was expected to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// Each intent executed exactly so often: a lesson.
    Exactly(u64),
    /// Each intent at most once, and nobody told otherwise than it is: a load against an honest placement.
    Honest,
    /// At least one intent more than once: a load that is to show the harm.
    Duplicates,
}

/// What is known of one intent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IntentFacts {
    /// How often it was executed, counted in durable stores.
    pub executions: u64,
    /// What the client knew in the end; nothing, if it never came to an end.
    pub told: Option<OutcomeKind>,
}

/// How often something was executed, and how often that was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// How many intents there were.
    pub intents: u64,
    /// How many effects there are.
    pub executions: u64,
    /// Intents that were executed more than once.
    pub duplicates: u64,
    /// Intents that the client was told are done, and that were never executed.
    pub lost: u64,
    /// Intents that the client was told were definitely not executed, and that were.
    pub denied: u64,
    /// Intents of which the client does not know what became of them.
    pub unknown: u64,
}

/// What a run is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// It showed what it was to show.
    AsExpected,
    /// It showed something else.
    Violation(Vec<String>),
    /// What it was to show was never put to the test.
    NotExercised(Vec<String>),
    /// It cannot be judged.
    Invalid(Vec<String>),
}

impl Verdict {
    /// For scripts: 0 as expected, 1 a violation, 2 not judged.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::AsExpected => 0,
            Self::Violation(_) => 1,
            Self::NotExercised(_) | Self::Invalid(_) => 2,
        }
    }

    /// The word on the screen.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::AsExpected => "AS EXPECTED",
            Self::Violation(_) => "VIOLATION",
            Self::NotExercised(_) => "NOT EXERCISED",
            Self::Invalid(_) => "INVALID",
        }
    }

    /// Why, one line each.
    pub fn why(&self) -> &[String] {
        match self {
            Self::AsExpected => &[],
            Self::Violation(why) | Self::NotExercised(why) | Self::Invalid(why) => why,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        self.why().iter().try_for_each(|why| write!(f, "\n  {why}"))
    }
}

/// Adds the intents up.
pub fn totals<'a>(intents: impl IntoIterator<Item = &'a IntentFacts>) -> Totals {
    let mut totals = Totals::default();
    for facts in intents {
        totals.intents += 1;
        totals.executions += facts.executions;
        totals.duplicates += u64::from(facts.executions > 1);
        totals.lost += u64::from(facts.told == Some(OutcomeKind::Done) && facts.executions == 0);
        totals.denied += u64::from(facts.told == Some(OutcomeKind::Refused) && facts.executions > 0);
        totals.unknown += u64::from(matches!(facts.told, None | Some(OutcomeKind::Unknown)));
    }
    totals
}

/// How many faulty intents are named one by one; the rest is a number.
const NAMED_MAX: usize = 5;

/// Judges a run.
///
/// `invalid` says why it cannot be judged, and `missed` which planned faults hit nothing. More executions than expected
/// are a violation in any case: no missed fault excuses them. Fewer, and a missed fault, is not exercised.
pub fn judge(
    expected: Expected,
    intents: &BTreeMap<IntentId, IntentFacts>,
    missed: Vec<String>,
    invalid: Vec<String>,
) -> Verdict {
    if !invalid.is_empty() {
        return Verdict::Invalid(invalid);
    }
    if intents.is_empty() {
        return Verdict::NotExercised(vec!["nobody asked for anything".to_owned()]);
    }
    let (too_many, too_few) = faults(expected, intents);
    match (too_many.is_empty(), too_few.is_empty(), missed.is_empty()) {
        (false, ..) => Verdict::Violation(too_many),
        (true, _, false) => Verdict::NotExercised(missed),
        (true, false, true) if expected == Expected::Duplicates => Verdict::NotExercised(too_few),
        (true, false, true) => Verdict::Violation(too_few),
        (true, true, true) => Verdict::AsExpected,
    }
}

/// What speaks against a run: what can never be excused, and what can by a fault that hit nothing.
fn faults(expected: Expected, intents: &BTreeMap<IntentId, IntentFacts>) -> (Vec<String>, Vec<String>) {
    let named = |wrong: &dyn Fn(&IntentFacts) -> bool, what: &str| -> Vec<String> {
        let mut lines = Vec::new();
        let mut more = 0_u64;
        for (intent, facts) in intents.iter().filter(|(_, facts)| wrong(facts)) {
            match lines.len() < NAMED_MAX {
                true => lines.push(format!("{intent}: executed {} times, {what}", facts.executions)),
                false => more += 1,
            }
        }
        if more > 0 {
            lines.push(format!("and {more} more: {what}"));
        }
        lines
    };
    let lies = || {
        let lost = |facts: &IntentFacts| facts.told == Some(OutcomeKind::Done) && facts.executions == 0;
        let denied = |facts: &IntentFacts| facts.told == Some(OutcomeKind::Refused) && facts.executions > 0;
        [
            named(&lost, "and the client was told that it is done"),
            named(&denied, "and the client was told that it is not"),
        ]
        .concat()
    };
    match expected {
        // One execution is what everybody wants, so a missed fault may be the reason for it; more never.
        Expected::Exactly(times) => {
            let most = times.max(1);
            (
                named(&|facts| facts.executions > most, &format!("expected were {times}")),
                named(
                    &|facts| facts.executions <= most && facts.executions != times,
                    &format!("expected were {times}"),
                ),
            )
        }
        Expected::Honest => {
            ([named(&|facts| facts.executions > 1, "at most once was promised"), lies()].concat(), Vec::new())
        }
        Expected::Duplicates if intents.values().any(|facts| facts.executions > 1) => (Vec::new(), Vec::new()),
        Expected::Duplicates => (Vec::new(), vec!["no intent was executed twice: the harm was not shown".to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Expected, IntentFacts, Verdict, judge, totals};
    use crate::rules::{ids::IntentId, outcome::OutcomeKind};

    fn intents(facts: &[(u64, Option<OutcomeKind>)]) -> BTreeMap<IntentId, IntentFacts> {
        let one = |(index, (executions, told)): (usize, &(u64, Option<OutcomeKind>))| {
            (IntentId(format!("i{index:03}")), IntentFacts { executions: *executions, told: *told })
        };
        facts.iter().enumerate().map(one).collect()
    }

    const DONE: Option<OutcomeKind> = Some(OutcomeKind::Done);

    fn verdict(expected: Expected, facts: &[(u64, Option<OutcomeKind>)], missed: &[&str]) -> Verdict {
        judge(expected, &intents(facts), missed.iter().map(|one| (*one).to_owned()).collect(), Vec::new())
    }

    #[test]
    fn a_lesson_is_as_expected_only_with_its_very_number() {
        assert_eq!(verdict(Expected::Exactly(2), &[(2, DONE)], &[]).exit_code(), 0);
        for wrong in [0, 1, 3] {
            assert_eq!(verdict(Expected::Exactly(2), &[(wrong, DONE)], &[]).exit_code(), 1, "{wrong}");
        }
    }

    #[test]
    fn a_fault_that_hit_nothing_is_never_green_and_never_hides_a_second_execution() {
        let missed = ["the reply was not lost"];
        assert_eq!(verdict(Expected::Exactly(2), &[(1, DONE)], &missed).word(), "NOT EXERCISED");
        assert_eq!(verdict(Expected::Exactly(1), &[(1, DONE)], &missed).word(), "NOT EXERCISED");
        assert_eq!(verdict(Expected::Exactly(1), &[(2, DONE)], &missed).word(), "VIOLATION");
        // Expected to be lost, and executed once because nothing was killed: nothing was shown, and no harm was done.
        assert_eq!(verdict(Expected::Exactly(0), &[(1, DONE)], &missed).word(), "NOT EXERCISED");
        assert_eq!(verdict(Expected::Exactly(0), &[(2, DONE)], &missed).word(), "VIOLATION");
        assert_eq!(verdict(Expected::Exactly(0), &[(1, DONE)], &[]).word(), "VIOLATION");
        assert_eq!(verdict(Expected::Honest, &[(2, DONE)], &missed).word(), "VIOLATION");
        assert_eq!(verdict(Expected::Honest, &[(1, DONE)], &missed).word(), "NOT EXERCISED");
    }

    #[test]
    fn a_load_is_honest_if_nobody_was_told_otherwise_than_it_is() {
        let refused = Some(OutcomeKind::Refused);
        let unknown = Some(OutcomeKind::Unknown);
        let fine = [(1, DONE), (0, refused), (1, unknown), (0, unknown), (0, None)];
        assert_eq!(verdict(Expected::Honest, &fine, &[]), Verdict::AsExpected);
        for lie in [(0, DONE), (1, refused), (2, unknown)] {
            assert_eq!(verdict(Expected::Honest, &[(1, DONE), lie], &[]).exit_code(), 1, "{lie:?}");
        }
    }

    #[test]
    fn harm_that_did_not_show_is_not_exercised() {
        assert_eq!(verdict(Expected::Duplicates, &[(1, DONE), (2, DONE)], &[]), Verdict::AsExpected);
        assert_eq!(verdict(Expected::Duplicates, &[(1, DONE)], &[]).exit_code(), 2);
    }

    #[test]
    fn what_cannot_be_judged_is_not_judged_and_an_empty_run_proves_nothing() {
        let invalid = judge(Expected::Honest, &intents(&[(2, DONE)]), Vec::new(), vec!["it slept".to_owned()]);
        assert_eq!((invalid.word(), invalid.exit_code()), ("INVALID", 2));
        assert_eq!(verdict(Expected::Honest, &[], &[]).exit_code(), 2);
    }

    #[test]
    fn only_a_few_faulty_intents_are_named_and_the_rest_is_a_number() {
        let many = vec![(2, DONE); 1_000];
        let verdict = verdict(Expected::Honest, &many, &[]);
        assert_eq!(verdict.why().len(), 6);
        assert_eq!(verdict.why()[5], "and 995 more: at most once was promised");
    }

    #[test]
    fn totals_count_each_kind_of_harm() {
        let unknown = Some(OutcomeKind::Unknown);
        let facts = intents(&[(2, DONE), (0, DONE), (1, Some(OutcomeKind::Refused)), (1, unknown), (0, None)]);
        let totals = totals(facts.values());
        assert_eq!((totals.intents, totals.executions, totals.duplicates), (5, 4, 1));
        assert_eq!((totals.lost, totals.denied, totals.unknown), (1, 1, 2));
    }
}
