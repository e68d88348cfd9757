//! What a mutant does instead; see [`crate::base::mutant`].

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::position::Position;
use crate::log::Appender;
use crate::state::{MemoryMap, View};

use super::folder::Folded;
use super::published::{Published, Publisher};
use super::shared::Shared;

/// Shows a batch that is not durable.
pub(super) fn show_early(publisher: &Publisher, active: &MemoryMap, position: Position) {
    let before = publisher.load();
    let view = View { active: active.clone(), frozen: before.view.frozen.clone(), base: before.view.base.clone() };
    drop(publisher.publish(Published { view, position }));
}

/// Makes a batch durable that was answered.
pub(super) fn sync_late(shared: &Shared, log: Option<&mut Appender>) {
    if let Some(Err(error)) = log.map(Appender::sync) {
        shared.stop(format!("the log: {error}"), HashSet::new());
    }
}

/// Publishes a fold over what was published when it began, and leaves nothing of it for the writer to do.
pub(super) fn publish_folded(shared: &Shared, before: &Published, folded: Option<Folded>) -> Option<Folded> {
    let Some(Folded::Done { snapshot, .. }) = &folded else { return folded };
    let view = View { active: before.view.active.clone(), frozen: None, base: Arc::clone(snapshot) };
    drop(shared.publisher.publish(Published { view, position: before.position }));
    None
}
