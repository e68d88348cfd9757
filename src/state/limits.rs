//! What a table accepts. Every limit has its unit in its name and its reason beside it.

/// Tables of one store, system tables included. Ids are 16 bits wide and must leave room for an exclusive end.
pub(crate) const TABLES_MAX: usize = 4096;

/// Bytes of a table's name.
pub(crate) const TABLE_NAME_BYTES_MAX: usize = 64;

/// How large keys, values and single operations may be.
///
/// Checked before anything changes; what exceeds a limit is refused with an error that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableLimits {
    /// Bytes of an encoded key. 1,024 by default: keys are repeated in the log, in memory and in inner pages of the
    /// tree, so long ones cost more than they look.
    pub(crate) key_bytes_max: usize,
    /// Bytes of an encoded value, without its envelope of nine bytes. 1 MiB by default: a value is copied into the
    /// log, held in memory until it is folded, and read as a whole.
    pub(crate) value_bytes_max: usize,
    /// Rows that one operation may write. 65,536 by default: an operation is one frame, and everyone who waits behind
    /// it waits for all of it.
    pub(crate) operation_rows_max: usize,
    /// Bytes of keys and values that one operation may write. 16 MiB by default, half of a log segment.
    pub(crate) operation_bytes_max: usize,
}

impl Default for TableLimits {
    fn default() -> Self {
        Self {
            key_bytes_max: 1024,
            value_bytes_max: 1024 * 1024,
            operation_rows_max: 65_536,
            operation_bytes_max: 16 * 1024 * 1024,
        }
    }
}
