//! Errors of tables that users see.

use std::sync::Arc;

use super::engine::EngineError;
use super::envelope::RowError;
use super::row_key::KeyText;

/// Why a table could not be read or written.
///
/// Within an operation such an error is **sticky**: the first one that a handle returned fails the operation, whatever
/// its closure returns. So after any of these inside an operation the outcome is *not executed*, and nothing was
/// changed.
///
/// Keys are shown as text where they are printable ASCII and in hex otherwise; values are never shown.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The table was not declared when the store was opened. Operations do not create tables.
    #[error("table {table} was not declared when the store was opened")]
    NotDeclared {
        /// The table.
        table: String,
    },
    /// The table is used with another key type, codec or version than the one it was declared with.
    #[error("table {table} was declared with another {what} than it is used with")]
    DeclaredOtherwise {
        /// The table.
        table: String,
        /// What differs: "key type", "codec" or "version".
        what: &'static str,
    },
    /// An encoded key is longer than [`Limits::row_key_bytes_max`](crate::Limits::row_key_bytes_max).
    #[error("a key of table {table} has {bytes} bytes, above row_key_bytes_max = {bytes_max}: {key}")]
    KeyTooLong {
        /// The table.
        table: String,
        /// The beginning of the key.
        key: String,
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// An encoded value is longer than [`Limits::row_bytes_max`](crate::Limits::row_bytes_max).
    #[error("the value for row {key} of table {table} has {bytes} bytes, above row_bytes_max = {bytes_max}")]
    ValueTooLarge {
        /// The table.
        table: String,
        /// The row.
        key: String,
        /// The length of the encoded value.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The operation writes more rows than
    /// [`Limits::operation_rows_max`](crate::Limits::operation_rows_max).
    #[error("the operation writes more rows than operation_rows_max = {rows_max}")]
    TooManyRows {
        /// The limit.
        rows_max: usize,
    },
    /// The operation writes more bytes than
    /// [`Limits::record_bytes_max`](crate::Limits::record_bytes_max).
    #[error("the operation writes more bytes than record_bytes_max = {bytes_max}")]
    TooManyBytes {
        /// The limit.
        bytes_max: usize,
    },
    /// `insert_new` found the row there.
    #[error("row {key} of table {table} exists already")]
    AlreadyExists {
        /// The table.
        table: String,
        /// The row.
        key: String,
    },
    /// The value cannot be stored: the codec cannot encode it, or (debug builds only) could not read it back.
    #[error("the value for row {key} of table {table} cannot be stored: {reason}")]
    Encode {
        /// The table.
        table: String,
        /// The row.
        key: String,
        /// What the codec said.
        reason: String,
    },
    /// A row is intact but its key or value is not what the declared types read.
    #[error("row {key} of table {table} cannot be decoded: {reason}")]
    Decode {
        /// The table.
        table: String,
        /// The row.
        key: String,
        /// What the codec said.
        reason: String,
    },
    /// A row is not what was written: its checksum does not match its table, key and content.
    #[error("row {key} of table {table} is damaged: {reason}")]
    Damaged {
        /// The table.
        table: String,
        /// The row.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The tree file could not be read.
    #[error("table {table} cannot be read: {source}")]
    Storage {
        /// The table.
        table: String,
        /// What happened.
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl TableError {
    pub(crate) fn storage(table: &str, error: EngineError) -> Self {
        Self::Storage { table: table.to_owned(), source: Arc::new(error) }
    }

    pub(crate) fn decode(table: &str, key: &[u8], reason: String) -> Self {
        Self::Decode { table: table.to_owned(), key: KeyText::new(key).to_string(), reason }
    }
}

impl From<RowError> for TableError {
    fn from(error: RowError) -> Self {
        Self::Damaged { table: error.table, key: error.key.to_string(), reason: error.damage.to_string() }
    }
}

/// Why a table could not be declared when the store was opened. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableOpenError {
    /// Names are 1 to 64 bytes of `a-z A-Z 0-9 _ . -`.
    #[error("the table name {name:?} {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Names that begin with `_counterfoil` belong to the store.
    #[error("the table name {name:?} is reserved: names beginning with _counterfoil belong to the store")]
    ReservedName {
        /// The name.
        name: String,
    },
    /// Two tables of one declaration have the same name.
    #[error("table {name} is declared twice")]
    DeclaredTwice {
        /// The name.
        name: String,
    },
    /// A store has at most 4,096 tables.
    #[error("too many tables")]
    TooManyTables,
    /// The table's keys are of another type. Keys cannot be converted: they are where the rows are.
    #[error("table {name} has keys of type {stored}, not {declared}")]
    KeyType {
        /// The table.
        name: String,
        /// The type that it has.
        stored: String,
        /// The type in the declaration.
        declared: String,
    },
    /// The table's values are in another codec. Copy the rows into a new table instead.
    #[error("table {name} has values in {stored}, not {declared}")]
    Codec {
        /// The table.
        name: String,
        /// The codec that it has.
        stored: String,
        /// The codec in the declaration.
        declared: String,
    },
    /// A later version of the program wrote to this table.
    #[error("table {name} was declared at version {stored}, this program knows up to {declared}")]
    Newer {
        /// The table.
        name: String,
        /// The version that it has.
        stored: u32,
        /// The version in the declaration.
        declared: u32,
    },
    /// The table may have rows of a version that the declaration does not read.
    #[error("table {name} may have rows of version {stored}, and the declaration has no upgrade_from({stored})")]
    NoUpgrade {
        /// The table.
        name: String,
        /// The version without an upgrade.
        stored: u32,
    },
}
