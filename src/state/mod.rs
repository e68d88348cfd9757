//! Rows: a persistent ordered memory map layered over redb, and typed tables on top of it.
//!
//! In reading order: what a row is ([`row_key`], [`envelope`]), where rows are (the [`map`] and the
//! [`engine`]), how the layers are read as one ([`merge`], [`view`]), and what users see of it ([`table`]).
//!
//! This layer knows rows as bytes with a table's name. It knows neither the log nor receipts; `store/` above it does.
//! What it is never asked to do is decide when something is durable: it holds what it was given.

mod catalog;
mod engine;
mod envelope;
mod error;
mod limits;
mod map;
mod merge;
mod row_key;
mod table;
mod view;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod testing;

pub use error::{TableError, TableOpenError};
pub use table::{
    AsKey, Codec, KeyError, KeyPrefix, KeyRange, KeyReader, KeyWriter, Table, TableDeclaration, TableKey, TableMut,
    TableRange, TableView,
};

pub(crate) use crate::base::bytes::Bytes;
pub(crate) use catalog::Catalog;
pub(crate) use engine::{CopyCursor, Engine, EngineError, FoldDurability, Meta, Snapshot, check_copy};
pub(crate) use envelope::{begin as begin_seal, finish as finish_seal, open_sealed};
pub(crate) use limits::TableLimits;
pub(crate) use map::MemoryMap;
pub(crate) use merge::RowRange;
pub(crate) use row_key::{RowKey, TableId};
pub(crate) use table::{Compat, Declarations, TxRows, hex, key_from_json, key_to_json, unhex};
#[cfg(test)]
pub(crate) use view::KeyBounds;
pub(crate) use view::{ALL, Overlay, Rows, View};
