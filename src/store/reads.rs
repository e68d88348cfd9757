//! Reads on a snapshot.

use std::fmt;
use std::sync::Arc;

use crate::base::position::Position;
use crate::state::{Table, TableError, TableKey, TableView};

use super::published::Published;
use super::shared::Shared;

/// One durable state of the store. What is committed later does not show.
///
/// A view keeps its state alive: memory, and pages of the state file, which grows while an old view lives. The stats
/// show how many are open and how old the oldest is.
pub struct ReadView {
    shared: Arc<Shared>,
    published: Arc<Published>,
    number: u64,
}

impl ReadView {
    pub(super) fn open(shared: &Arc<Shared>) -> Self {
        let number = shared.readers.enter(shared.time.now());
        Self { shared: Arc::clone(shared), published: shared.publisher.load(), number }
    }

    pub(super) fn published(&self) -> &Published {
        &self.published
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// A handle for a table that was declared when the store was opened.
    ///
    /// # Errors
    ///
    /// [`TableError`] if the table was not declared, or with another key type, codec or version.
    pub fn table<'v, K: TableKey, V>(&'v self, table: &'v Table<K, V>) -> Result<TableView<'v, K, V>, TableError> {
        TableView::open(&self.published.view, &self.shared.tables, table)
    }

    /// The last entry that this state contains; none before the first.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let position = self.published.position;
        (position.sequence > 0).then_some(position)
    }
}

impl fmt::Debug for ReadView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadView").field("position", &self.position()).finish_non_exhaustive()
    }
}

impl Drop for ReadView {
    fn drop(&mut self) {
        self.shared.readers.leave(self.number);
    }
}
