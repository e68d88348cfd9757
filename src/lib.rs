//! Counterfoil.
#![allow(missing_docs, dead_code, unused, clippy::allow_attributes, clippy::allow_attributes_without_reason)]
mod base;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
<<<<<<< HEAD
mod log;
mod protocol;
pub use base::{error::*, invalid::*, name::*, operation::*, receipt::*, reply::*, position::*, limits::Limits};
pub use protocol::canonical::error::CanonicalError;
=======
mod state;

#[cfg(feature = "store")]
pub use state::{
    AsKey, Codec, KeyError, KeyPrefix, KeyRange, KeyReader, KeyWriter, Table, TableDeclaration, TableError, TableKey,
    TableLimits, TableMut, TableOpenError, TableRange, TableView,
};
>>>>>>> wt-state
