//! Callbacks: what a provider reports by itself, before, after or instead of its answer.

use crate::base::error::{Error, IntentError};
use crate::base::limits::{INTENT_BYTES_MAX, REFERENCE_BYTES_MAX};
use crate::log::record::{
    Body, CallbackRecord, CallbackVerdict, EffectReport, EffectTransition, ReportSource, Reported,
};
use crate::protocol::effect::{Receipt, receive};
use crate::store::Store;
use crate::store::apply::effects::effect_by_id;
use crate::store::apply::get_system;
use crate::store::batch::Batch;
use crate::store::rows::System;

use super::intent::EffectId;
use super::record_of;
use super::rows::{CallbackRow, EffectRow, news_of, pair_key};

/// What a provider reports by itself. It names its effect by identity, by the provider's reference, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a report is handed in with Store::report"]
pub struct Report {
    provider: String,
    delivery_id: String,
    id: Option<EffectId>,
    reference: Option<String>,
    order: Option<u64>,
    outcome: Reported,
    body: Vec<u8>,
}

impl Report {
    /// One delivery of a declared provider. Redeliveries have the same id.
    pub fn new(provider: impl Into<String>, delivery_id: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            delivery_id: delivery_id.into(),
            id: None,
            reference: None,
            order: None,
            outcome: Reported::Pending,
            body: Vec::new(),
        }
    }

    /// The effect's identity, as the provider was given it.
    pub const fn effect(mut self, id: EffectId) -> Self {
        self.id = Some(id);
        self
    }

    /// The provider's reference.
    pub fn reference(mut self, reference: impl Into<String>) -> Self {
        self.reference = Some(reference.into());
        self
    }

    /// The provider's own number or time of its news: what is not newer than what is known changes nothing.
    pub const fn order(mut self, order: u64) -> Self {
        self.order = Some(order);
        self
    }

    /// It says that the effect happened. Without this or [`Report::refused`] it says that it is under way.
    pub const fn applied(mut self) -> Self {
        self.outcome = Reported::Applied;
        self
    }

    /// It says that the effect did not and will not happen.
    pub const fn refused(mut self) -> Self {
        self.outcome = Reported::Refused;
        self
    }

    /// What else it says, at most 64 KiB.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    fn check(&self) -> Result<(), IntentError> {
        let lengths = [
            ("the delivery id of a report, not", self.delivery_id.len(), REFERENCE_BYTES_MAX),
            ("the reference of a report, not", self.reference.as_ref().map_or(0, String::len), REFERENCE_BYTES_MAX),
            ("the body of a report, not", self.body.len(), INTENT_BYTES_MAX),
        ];
        match lengths.into_iter().find(|(_, bytes, bytes_max)| bytes > bytes_max) {
            Some((what, bytes, bytes_max)) => Err(IntentError::TooLong { what, bytes, bytes_max }),
            None => Ok(()),
        }
    }
}

/// What became of a report. Each of these is durable: the provider may be told that it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportAnswer {
    /// It was applied: its effect is final, or is known to be under way.
    Applied,
    /// No intent names its reference yet. It is kept, and matched in the commit that brings one.
    Parked,
    /// This delivery was received before.
    Duplicate,
    /// It is not newer than what is known.
    Stale,
    /// It contradicts a final state. It is kept for a person and changes nothing.
    Disputed,
    /// It names an identity that this store does not know and no reference: it can belong to nothing.
    Nothing,
}

impl Store {
    /// Takes what a provider reports by itself. It may come before, after or instead of the answer to the request, once or
    /// many times: the first authoritative outcome wins, later ones are compared with it.
    ///
    /// # Errors
    ///
    /// [`Error::Intent`] for a provider that was not declared or a part that is too long, and as [`Store::write`]. After
    /// an error nothing may be confirmed to the provider: let it deliver again.
    pub fn report(&self, report: Report) -> Result<ReportAnswer, Error> {
        report.check()?;
        if !self.knows_provider(&report.provider) {
            return Err(IntentError::UnknownProvider(report.provider).into());
        }
        self.commit_effects(move |batch| batch.report(report))
    }
}

impl Batch<'_> {
    fn report(&mut self, report: Report) -> Result<ReportAnswer, Error> {
        let rows = &self.overlay;
        let delivery = pair_key(&report.provider, &report.delivery_id);
        let known = get_system::<CallbackRow>(rows, System::Deliveries, &delivery).map_err(|error| error.answer())?;
        // Seen and applied are two facts: what was only seen is applied by its redelivery.
        if known.is_some_and(|known| known.record.verdict != CallbackVerdict::Seen) {
            return Ok(ReportAnswer::Duplicate);
        }
        let found = self.find_reported(&report)?;
        if found.is_none() && report.reference.is_none() {
            return Ok(ReportAnswer::Nothing);
        }
        let kept = self.shared.providers.get(&report.provider).map(|provider| provider.callbacks_kept);
        let mut record = CallbackRecord {
            provider: report.provider,
            reference: report.reference.clone(),
            delivery_id: report.delivery_id,
            identity: found.as_ref().map(|(_, row)| row.intent.identity),
            order: report.order,
            verdict: CallbackVerdict::Parked,
            forget_after_ms: self.time.saturating_add(kept.unwrap_or_default()).0,
            report: EffectReport {
                outcome: report.outcome,
                source: ReportSource::Callback,
                provider_reference: report.reference,
                body: report.body,
            },
        };
        let Some((key, row)) = found else {
            self.add_frame(Body::Callback(record))?;
            return Ok(ReportAnswer::Parked);
        };
        let news = news_of(record.report.outcome);
        let answer = match receive(row.state().phase, news, record.order, row.news_order) {
            Receipt::Stale => (CallbackVerdict::Stale, ReportAnswer::Stale),
            Receipt::Disputed => (CallbackVerdict::Disputed, ReportAnswer::Disputed),
            Receipt::Applied => {
                let transition = match record.report.outcome {
                    Reported::Applied => Some(EffectTransition::Applied(record.report.clone())),
                    Reported::Refused => Some(EffectTransition::Refused(record.report.clone())),
                    Reported::Pending | Reported::NotFound => None,
                };
                if let Some(transition) = transition {
                    record.verdict = CallbackVerdict::Seen;
                    self.add_frame(Body::Callback(record))?;
                    let sequence = self.last_sequence;
                    self.settle(&key, record_of(&row, transition), &[sequence])?;
                    return Ok(ReportAnswer::Applied);
                }
                (CallbackVerdict::Applied, ReportAnswer::Applied)
            }
        };
        record.verdict = answer.0;
        self.add_frame(Body::Callback(record))?;
        Ok(answer.1)
    }

    fn find_reported(&self, report: &Report) -> Result<Option<(Vec<u8>, EffectRow)>, Error> {
        let rows = &self.overlay;
        if let Some(id) = report.id {
            let found = effect_by_id(rows, &id.0).map_err(|error| error.answer())?;
            if let Some((key, row)) = found
                && row.intent.provider == report.provider
            {
                return Ok(Some((key, row)));
            }
        }
        let Some(reference) = &report.reference else { return Ok(None) };
        let pair = pair_key(&report.provider, reference);
        let key = get_system::<Vec<u8>>(rows, System::EffectRefs, &pair).map_err(|error| error.answer())?;
        let Some(key) = key else { return Ok(None) };
        let row = get_system::<EffectRow>(rows, System::Effects, &key).map_err(|error| error.answer())?;
        Ok(row.map(|row| (key, row)))
    }
}
