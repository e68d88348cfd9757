//! Counterfoil.
#[cfg(feature = "store")]
mod base;
#[cfg(feature = "store")]
mod disk;
#[cfg(feature = "store")]
mod state;

#[cfg(feature = "store")]
pub use state::{
    AsKey, Codec, KeyError, KeyPrefix, KeyRange, KeyReader, KeyWriter, Table, TableDeclaration, TableError, TableKey,
    TableLimits, TableMut, TableOpenError, TableRange, TableView,
};
