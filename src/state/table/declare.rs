//! What is known about a table when the store is opened.

use std::any::TypeId;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Codec, Table, TableKey};
use crate::state::TableId;
use crate::state::catalog::check_name;
use crate::state::error::{TableError, TableOpenError};

/// What a table is, as stored beside its rows and compared at every open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableDeclaration {
    /// The table's name.
    pub name: String,
    /// [`TableKey::type_name`] of its keys.
    pub key_type: String,
    /// The codec of its values.
    pub codec: Codec,
    /// The version under which values are written.
    pub version: u32,
    /// The older versions that the program can read.
    pub upgrades_from: Vec<u32>,
    /// The older versions of which, as the program says, no row is left.
    pub retired: Vec<u32>,
    /// The versions under which rows may have been written, ascending. Upgraded rows keep their old form until they
    /// are written again, so this remembers more than the last version.
    pub rows_of: Vec<u32>,
}

/// How a declaration relates to the stored one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Compat {
    /// Nothing to do.
    Same,
    /// The table is usable once this declaration is stored in place of the old one.
    Redeclare(TableDeclaration),
}

impl<K: TableKey, V> Table<K, V> {
    /// What to store about this table.
    #[must_use]
    pub fn declaration(&self) -> TableDeclaration {
        let older = |retired: bool| {
            let upgrades = self.upgrades.iter().flatten().filter(|upgrade| upgrade.retired == retired);
            upgrades.map(|upgrade| upgrade.from).collect()
        };
        TableDeclaration {
            name: self.name.to_owned(),
            key_type: K::type_name().into_owned(),
            codec: self.codec,
            version: self.version,
            upgrades_from: older(false),
            retired: older(true),
            rows_of: vec![self.version],
        }
    }
}

impl TableDeclaration {
    /// Whether a table that was stored as `stored` can be used as `declared`.
    ///
    /// A declaration that differs only in the upgrades it knows is the same: what counts is that it reads every version
    /// of which there may be rows.
    pub(crate) fn check(stored: &Self, declared: &Self) -> Result<Compat, TableOpenError> {
        let name = || declared.name.clone();
        if stored.key_type != declared.key_type {
            let (stored, declared) = (stored.key_type.clone(), declared.key_type.clone());
            return Err(TableOpenError::KeyType { name: name(), stored, declared });
        }
        if stored.codec != declared.codec {
            let (stored, declared) = (stored.codec.to_string(), declared.codec.to_string());
            return Err(TableOpenError::Codec { name: name(), stored, declared });
        }
        if stored.version > declared.version {
            return Err(TableOpenError::Newer { name: name(), stored: stored.version, declared: declared.version });
        }
        let mut rows_of: Vec<u32> =
            stored.rows_of.iter().copied().filter(|version| !declared.retired.contains(version)).collect();
        let unreadable = |version: &&u32| **version != declared.version && !declared.upgrades_from.contains(*version);
        if let Some(version) = rows_of.iter().find(unreadable) {
            return Err(TableOpenError::NoUpgrade { name: name(), stored: *version });
        }
        if !rows_of.contains(&declared.version) {
            rows_of.push(declared.version);
        }
        if rows_of == stored.rows_of {
            return Ok(Compat::Same);
        }
        Ok(Compat::Redeclare(Self { rows_of, ..declared.clone() }))
    }
}

/// The tables that were declared when the store was opened: the ones that handles can be made for.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    by_name: HashMap<&'static str, Declared>,
}

#[derive(Clone, Copy, Debug)]
struct Declared {
    id: TableId,
    key: TypeId,
    codec: Codec,
    version: u32,
}

impl Declarations {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a table whose declaration was checked and whose name has this id.
    pub(crate) fn add<K: TableKey, V>(&mut self, table: &Table<K, V>, id: TableId) -> Result<(), TableOpenError> {
        check_name(table.name)?;
        let declared = Declared { id, key: TypeId::of::<K>(), codec: table.codec, version: table.version };
        match self.by_name.insert(table.name, declared) {
            None => Ok(()),
            Some(_) => Err(TableOpenError::DeclaredTwice { name: table.name.to_owned() }),
        }
    }

    /// The id of a table, if it is used as it was declared.
    ///
    /// The value's Rust type may differ: reading a JSON table into a struct with fewer fields is fine, and what does
    /// not fit is an error at the row.
    pub(crate) fn resolve<K: TableKey, V>(&self, table: &Table<K, V>) -> Result<TableId, TableError> {
        let Some(declared) = self.by_name.get(table.name) else {
            return Err(TableError::NotDeclared { table: table.name.to_owned() });
        };
        let what = if declared.key != TypeId::of::<K>() {
            "key type"
        } else if declared.codec != table.codec {
            "codec"
        } else if declared.version != table.version {
            "version"
        } else {
            return Ok(declared.id);
        };
        Err(TableError::DeclaredOtherwise { table: table.name.to_owned(), what })
    }
}
