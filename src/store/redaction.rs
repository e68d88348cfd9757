//! Taking out of a reply what must not be stored.

use crate::base::name::Slot;
use crate::base::reply::Reply;

type Redact = Box<dyn Fn(&Slot, &mut Reply) + Send + Sync>;

/// What the builder was given.
#[derive(Default)]
pub(super) struct Redaction(pub(super) Option<Redact>);

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redaction").field("given", &self.0.is_some()).finish()
    }
}

impl Redaction {
    /// The reply to store, if it differs from the one that the closure made.
    pub(super) fn redact(&self, slot: &Slot, reply: &Reply) -> Option<Reply> {
        let redact = self.0.as_ref()?;
        let mut stored = reply.clone();
        redact(slot, &mut stored);
        (stored != *reply).then_some(stored)
    }
}
