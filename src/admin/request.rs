//! Requests and answers, as they travel: one JSON object to a line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Request {
    /// What the store is doing.
    Stat,
    /// Check everything, change nothing.
    Verify,
    /// Entries of the log.
    Log {
        /// Those after this position, `epoch:sequence`; from the oldest that is kept if there is none.
        from: Option<String>,
        /// Go on with new ones as they become durable.
        follow: bool,
        /// At most so many.
        limit: Option<u64>,
    },
    /// Receipts and claims.
    Receipts {
        /// Only this tenant's.
        tenant: Option<String>,
        /// Only this actor's.
        actor: Option<String>,
        /// Only of this operation type.
        operation: Option<String>,
        /// At most so many.
        limit: Option<u64>,
    },
    /// The whole life of a key, in every scope that has it, or in one.
    Explain {
        /// The key: text, or `0x` and hexadecimal digits.
        key: String,
        /// Only this tenant's.
        tenant: Option<String>,
        /// Only this actor's.
        actor: Option<String>,
        /// Only of this operation type.
        operation: Option<String>,
    },
    /// The tables.
    Tables,
    /// One row.
    Get {
        /// Of which table.
        table: String,
        /// Under which key: see [`TableInfo::parse_key`](crate::TableInfo::parse_key).
        key: String,
    },
    /// Rows in the order of their keys.
    Scan {
        /// Of which table.
        table: String,
        /// From this key on.
        from: Option<String>,
        /// At most so many.
        limit: Option<u64>,
    },
    /// What the receipts of each tenant take.
    Usage,
    /// Delete everything that has expired.
    Sweep,
    /// Rewrite the state file.
    Compact,
    /// Take what was erased out of every file.
    Purge,
    /// Erase an operation, an actor or a tenant.
    Erase {
        /// Whose.
        tenant: String,
        /// Only this actor's.
        actor: Option<String>,
        /// Only the operation of this type under the key.
        operation: Option<String>,
        /// The key of the operation.
        key: Option<String>,
        /// Who decided.
        by: Option<String>,
        /// Why.
        reason: String,
    },
    /// The erasures that were decided.
    Erasures,
    /// Everything as JSON lines.
    Export {
        /// `receipts`, `log` or `tables`.
        what: String,
    },
    /// Accept the wall clock.
    AcceptClock {
        /// Who decided.
        by: Option<String>,
        /// Why.
        reason: String,
    },
}

/// One answer of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Answer {
    /// One thing of those that were asked for.
    Line {
        /// It.
        line: Value,
    },
    /// How far it is.
    Progress {
        /// So many are done.
        done: u64,
        /// Of so many, where that is known.
        total: Option<u64>,
    },
    /// It is over.
    Done {
        /// What it came to.
        summary: Value,
    },
    /// It failed, and this is why.
    Failed {
        /// In words.
        message: String,
    },
}
