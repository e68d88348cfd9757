//! log (record only)
pub(crate) mod record;
