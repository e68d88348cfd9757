//! The number of every variant, as written down and as encoded.

use std::collections::BTreeSet;

use crate::base::encoding::encode;
use crate::base::receipt::Outcome;
use crate::log::record::*;

/// Name and number of each variant. The matches have no wildcard: a new variant has to be written down here, in
/// `shapes` and in `docs/format.md`.
const fn body_number(body: &Body) -> (&'static str, u8) {
    match body {
        Body::Operation(_) => ("Operation", 0),
        Body::Write(_) => ("Write", 1),
        Body::TableDeclared(_) => ("TableDeclared", 2),
        Body::ClockAccepted(_) => ("ClockAccepted", 3),
        Body::Sweep(_) => ("Sweep", 4),
        Body::Erase(_) => ("Erase", 5),
        Body::Restore(_) => ("Restore", 6),
        Body::Claim(_) => ("Claim", 7),
        Body::Effect(_) => ("Effect", 8),
        Body::Callback(_) => ("Callback", 9),
        Body::Resolve(_) => ("Resolve", 10),
        Body::Follower(_) => ("Follower", 11),
        Body::Activity(_) => ("Activity", 12),
    }
}

const fn outcome_number(outcome: Outcome) -> (&'static str, u8) {
    match outcome {
        Outcome::Completed => ("Completed", 0),
        Outcome::Rejected => ("Rejected", 1),
        Outcome::Accepted => ("Accepted", 2),
    }
}

const fn target_number(target: &EraseTarget) -> (&'static str, u8) {
    match target {
        EraseTarget::Operation(_) => ("Operation", 0),
        EraseTarget::Actor { .. } => ("Actor", 1),
        EraseTarget::Tenant { .. } => ("Tenant", 2),
    }
}

const fn action_number(action: &ClaimAction) -> (&'static str, u8) {
    match action {
        ClaimAction::Taken { .. } => ("Taken", 0),
        ClaimAction::Extended { .. } => ("Extended", 1),
        ClaimAction::Released => ("Released", 2),
        ClaimAction::Refused { .. } => ("Refused", 3),
    }
}

const fn holder_number(holder: &ClaimHolder) -> (&'static str, u8) {
    match holder {
        ClaimHolder::Run { .. } => ("Run", 0),
        ClaimHolder::External { .. } => ("External", 1),
    }
}

const fn transition_number(transition: &EffectTransition) -> (&'static str, u8) {
    match transition {
        EffectTransition::Sending { .. } => ("Sending", 0),
        EffectTransition::Planned { .. } => ("Planned", 1),
        EffectTransition::Uncertain { .. } => ("Uncertain", 2),
        EffectTransition::Parked => ("Parked", 3),
        EffectTransition::Applied(_) => ("Applied", 4),
        EffectTransition::Refused(_) => ("Refused", 5),
        EffectTransition::Disputed(_) => ("Disputed", 6),
        EffectTransition::Stale(_) => ("Stale", 7),
        EffectTransition::DisputeClosed => ("DisputeClosed", 8),
    }
}

const fn ability_number(ability: LookUpAbility) -> (&'static str, u8) {
    match ability {
        LookUpAbility::None => ("None", 0),
        LookUpAbility::Plain => ("Plain", 1),
        LookUpAbility::Bounded { .. } => ("Bounded", 2),
        LookUpAbility::Bars => ("Bars", 3),
    }
}

const fn reported_number(outcome: Reported) -> (&'static str, u8) {
    match outcome {
        Reported::Applied => ("Applied", 0),
        Reported::Refused => ("Refused", 1),
        Reported::Pending => ("Pending", 2),
        Reported::NotFound => ("NotFound", 3),
    }
}

const fn source_number(source: ReportSource) -> (&'static str, u8) {
    match source {
        ReportSource::Handler => ("Handler", 0),
        ReportSource::LookUp => ("LookUp", 1),
        ReportSource::Callback => ("Callback", 2),
        ReportSource::Person => ("Person", 3),
    }
}

const fn verdict_number(verdict: CallbackVerdict) -> (&'static str, u8) {
    match verdict {
        CallbackVerdict::Parked => ("Parked", 0),
        CallbackVerdict::Seen => ("Seen", 1),
        CallbackVerdict::Applied => ("Applied", 2),
        CallbackVerdict::Stale => ("Stale", 3),
        CallbackVerdict::Disputed => ("Disputed", 4),
    }
}

const fn row_number(row: &RowChange) -> (&'static str, u8) {
    match row {
        RowChange::Put { .. } => ("Put", 0),
        RowChange::Remove { .. } => ("Remove", 1),
    }
}

/// The numbers that occur in the shapes, as lines of the table in `docs/format.md`. Each is compared with what the
/// encoder writes first on the way.
#[derive(Default)]
pub(super) struct Numbers(pub(super) BTreeSet<String>);

impl Numbers {
    fn note<T: serde::Serialize>(&mut self, of: &str, (variant, number): (&str, u8), value: &T) {
        assert_eq!(encode(value).expect("encoded")[0], number, "{of}::{variant}");
        self.0.insert(format!("| `{of}` | {number} | `{variant}` |"));
    }

    pub(super) fn note_body(&mut self, body: &Body) {
        self.note("Body", body_number(body), body);
        match body {
            Body::Operation(operation) => {
                let outcome = operation.completion.outcome;
                self.note("Outcome", outcome_number(outcome), &outcome);
                for intent in &operation.intents {
                    let lookup = intent.abilities.lookup;
                    self.note("LookUpAbility", ability_number(lookup), &lookup);
                }
            }
            Body::Write(write) => {
                for row in write.changes.iter().flat_map(|table| &table.rows) {
                    self.note("RowChange", row_number(row), row);
                }
            }
            Body::Erase(erase) => self.note("EraseTarget", target_number(&erase.target), &erase.target),
            Body::Claim(claim) => {
                self.note("ClaimAction", action_number(&claim.action), &claim.action);
                if let ClaimAction::Taken { holder, .. } = &claim.action {
                    self.note("ClaimHolder", holder_number(holder), holder);
                }
            }
            Body::Effect(effect) => {
                self.note("EffectTransition", transition_number(&effect.transition), &effect.transition);
                if let EffectTransition::Applied(report) = &effect.transition {
                    self.note_report(report);
                }
            }
            Body::Callback(callback) => {
                self.note("CallbackVerdict", verdict_number(callback.verdict), &callback.verdict);
                self.note_report(&callback.report);
            }
            Body::TableDeclared(_)
            | Body::ClockAccepted(_)
            | Body::Sweep(_)
            | Body::Restore(_)
            | Body::Resolve(_)
            | Body::Follower(_)
            | Body::Activity(_) => {}
        }
    }

    fn note_report(&mut self, report: &EffectReport) {
        self.note("Reported", reported_number(report.outcome), &report.outcome);
        self.note("ReportSource", source_number(report.source), &report.source);
    }
}
