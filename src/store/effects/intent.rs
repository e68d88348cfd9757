//! Intents: what an operation wants done outside the store, and by whom.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::base::error::IntentError;
use crate::base::limits::{CONTENT_TYPE_BYTES_MAX, INTENT_BYTES_MAX, INTENTS_MAX, REFERENCE_BYTES_MAX};
use crate::base::position::{TimestampMs, millis};
use crate::log::record::{IntentRecord, LookUpAbility, ProviderAbilities};
use crate::store::shared::Shared;

/// The identity of an effect: the same for every attempt, in every process, also after a restore. Give it to the provider
/// as its idempotency key.
///
/// It is a keyed hash of the store, the slot, the request and the place of the intent in its operation, shown as 64
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub(in crate::store) [u8; 32]);

impl EffectId {
    /// The identity that was shown as these digits; none if they are not 64 hexadecimal ones.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EffectId({self})")
    }
}

/// What "not found" means when a provider is asked for an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookUpMeaning {
    /// Nothing: a request may still be travelling for any time.
    Nothing,
    /// It was not applied, if this long has passed since the last request: no request travels for longer.
    NotAppliedAfter(Duration),
    /// It was not applied and never will be: asking bars the identity.
    Barred,
}

/// A system outside the store, and what it can do. Declared with
/// [`StoreBuilder::provider`](crate::StoreBuilder::provider).
///
/// What is declared stands with each intent in the log, so that it is treated by what was true when it was planned.
/// **A provider with neither [`Provider::deduplicates`] nor [`Provider::look_up`] is never called twice** for one effect
/// of which it is not certain that it was not applied: a person decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Provider {
    pub(in crate::store) name: String,
    pub(in crate::store) abilities: ProviderAbilities,
    pub(in crate::store) attempts_max: u32,
    pub(in crate::store) callbacks_kept: Duration,
}

impl Provider {
    /// A provider that can do nothing special. Its name has 1 to 64 bytes of `a-z A-Z 0-9 _ . -`.
    pub fn new(name: impl Into<String>) -> Self {
        let abilities = ProviderAbilities { dedupe_window_ms: None, lookup: LookUpAbility::None, callbacks: false };
        Self { name: name.into(), abilities, attempts_max: 64, callbacks_kept: Duration::from_secs(7 * 24 * 3600) }
    }

    /// It answers a second request with the same identity from the first one, for this long after that came. An uncertain
    /// effect is sent again inside this window and never past it. Operations that plan intents for it are known at least
    /// as long.
    pub fn deduplicates(mut self, window: Duration) -> Self {
        self.abilities.dedupe_window_ms = Some(millis(window));
        self
    }

    /// It can be asked what became of an identity.
    pub fn look_up(mut self, not_found: LookUpMeaning) -> Self {
        self.abilities.lookup = match not_found {
            LookUpMeaning::Nothing => LookUpAbility::Plain,
            LookUpMeaning::NotAppliedAfter(bound) => LookUpAbility::Bounded { in_flight_ms: millis(bound) },
            LookUpMeaning::Barred => LookUpAbility::Bars,
        };
        self
    }

    /// It reports by itself: see [`Store::report`](crate::Store::report).
    pub fn calls_back(mut self) -> Self {
        self.abilities.callbacks = true;
        self
    }

    /// Most attempts for one effect, after which a person is asked. Default 64: with the usual backoff
    /// half an hour, so that an outage of a provider does not turn everything into work for people.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// How long a callback is remembered, for its redelivery and, if it came early, for its intent. Default 7 days.
    pub fn callbacks_kept(mut self, time: Duration) -> Self {
        self.callbacks_kept = time;
        self
    }

    /// What makes it unfit, in words.
    pub(in crate::store) fn fault(&self) -> Option<String> {
        let name = &self.name;
        let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || name.len() > 64 || !name.bytes().all(valid) {
            return Some(format!("provider {name:?}: its name must have 1 to 64 bytes of a-z A-Z 0-9 _ . -"));
        }
        let zero = [
            ("attempts_max", self.attempts_max == 0),
            ("the deduplication window", self.abilities.dedupe_window_ms == Some(0)),
            ("callbacks_kept", self.callbacks_kept < Duration::from_millis(1)),
        ];
        zero.iter().find(|(_, zero)| *zero).map(|(what, _)| format!("provider {name:?}: {what} is 0"))
    }
}

/// The providers that were declared, by name.
pub(in crate::store) type Providers = BTreeMap<String, Provider>;

/// Something to be done outside the store, planned by an operation with [`Tx::intend`](crate::Tx::intend).
#[derive(Clone, PartialEq, Eq)]
#[must_use = "an intent is planned by Tx::intend"]
pub struct Intent {
    provider: String,
    payload: Vec<u8>,
    content_type: Option<String>,
    order_key: Option<String>,
    delay: Duration,
    within: Option<Duration>,
    reference: Option<String>,
}

impl Intent {
    /// An intent for a declared provider. The payload, at most 64 KiB, is what its handler gets.
    pub fn new(provider: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            provider: provider.into(),
            payload: payload.into(),
            content_type: None,
            order_key: None,
            delay: Duration::ZERO,
            within: None,
            reference: None,
        }
    }

    /// The content type of the payload.
    pub fn content_type(mut self, content_type: impl Into<String>) -> Self {
        self.content_type = Some(content_type.into());
        self
    }

    /// Effects of one provider with the same order key leave one after another, in the order of their operations. One that
    /// is parked holds back those behind it, and no others.
    pub fn order_key(mut self, key: impl Into<String>) -> Self {
        self.order_key = Some(key.into());
        self
    }

    /// It is not sent before this time has passed.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// It is not sent for the first time after this: then a person is asked.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// The reference under which the provider may call back before it has answered.
    pub fn reference(mut self, reference: impl Into<String>) -> Self {
        self.reference = Some(reference.into());
        self
    }

    fn check(&self) -> Result<(), IntentError> {
        let lengths = [
            ("the payload", self.payload.len(), INTENT_BYTES_MAX),
            ("the content type", self.content_type.as_ref().map_or(0, String::len), CONTENT_TYPE_BYTES_MAX),
            ("the order key", self.order_key.as_ref().map_or(0, String::len), REFERENCE_BYTES_MAX),
            ("the reference", self.reference.as_ref().map_or(0, String::len), REFERENCE_BYTES_MAX),
        ];
        match lengths.into_iter().find(|(_, bytes, bytes_max)| bytes > bytes_max) {
            Some((what, bytes, bytes_max)) => Err(IntentError::TooLong { what, bytes, bytes_max }),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intent")
            .field("provider", &self.provider)
            .field("payload_bytes", &self.payload.len())
            .field("order_key", &self.order_key)
            .finish_non_exhaustive()
    }
}

/// What the identities of an operation's effects are made of.
#[derive(Clone, Debug)]
pub(in crate::store) struct IntentBase {
    pub(in crate::store) scope: [u8; 16],
    pub(in crate::store) key: Vec<u8>,
    pub(in crate::store) digest: [u8; 32],
    /// Ordinals below are taken.
    pub(in crate::store) first_ordinal: u32,
}

/// The intents of one closure.
#[derive(Debug)]
pub(in crate::store) struct Intents<'a> {
    shared: &'a Shared,
    base: Option<IntentBase>,
    planned: RefCell<Vec<IntentRecord>>,
    fault: RefCell<Option<IntentError>>,
}

impl<'a> Intents<'a> {
    pub(in crate::store) const fn new(shared: &'a Shared, base: Option<IntentBase>) -> Self {
        Self { shared, base, planned: RefCell::new(Vec::new()), fault: RefCell::new(None) }
    }

    pub(in crate::store) fn add(&self, intent: Intent, now: TimestampMs) -> Result<EffectId, IntentError> {
        let planned = self.try_add(intent, now);
        if let Err(error) = &planned {
            self.fault.borrow_mut().get_or_insert_with(|| error.clone());
        }
        planned
    }

    fn try_add(&self, intent: Intent, now: TimestampMs) -> Result<EffectId, IntentError> {
        let base = self.base.as_ref().ok_or(IntentError::OutsideOperation)?;
        intent.check()?;
        let provider = self.shared.providers.get(&intent.provider);
        let provider = provider.ok_or_else(|| IntentError::UnknownProvider(intent.provider.clone()))?;
        let mut planned = self.planned.borrow_mut();
        if planned.len() >= INTENTS_MAX {
            return Err(IntentError::TooMany(INTENTS_MAX));
        }
        let ordinal = u32::try_from(planned.len()).unwrap_or(u32::MAX).saturating_add(base.first_ordinal);
        let store_id = &self.shared.store_id.0;
        let identity = self.shared.hash_keys.effect(store_id, &base.scope, &base.key, &base.digest, ordinal);
        planned.push(IntentRecord {
            ordinal,
            identity,
            provider: intent.provider,
            payload: intent.payload,
            content_type: intent.content_type,
            abilities: provider.abilities.clone(),
            order_key: intent.order_key,
            attempts_max: provider.attempts_max,
            not_before_ms: now.saturating_add(intent.delay).0,
            not_after_ms: intent.within.map(|time| now.saturating_add(time).0),
            provider_reference: intent.reference,
        });
        Ok(EffectId(identity))
    }

    pub(in crate::store) fn finish(self) -> Result<Vec<IntentRecord>, IntentError> {
        match self.fault.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.planned.into_inner()),
        }
    }
}
