//! Table names and their ids.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::error::TableOpenError;
use super::limits::TABLE_NAME_BYTES_MAX;
use super::row_key::TableId;

/// What the names of the store's own tables begin with. The slash cannot be part of a user's name.
pub(crate) const SYSTEM_PREFIX: &str = "_counterfoil/";

/// What no user's name may begin with, so that a near miss of [`SYSTEM_PREFIX`] is refused as what it is.
const RESERVED_PREFIX: &str = "_counterfoil";

/// The names of all tables that this process has met, each with an id that holds until the process ends.
///
/// System tables come first, in the order in which store/ lists them, so their ids can be constants there. Names are
/// only ever added. Reads take a shared lock for the time of one look-up.
#[derive(Debug)]
pub(crate) struct Catalog {
    names: RwLock<Names>,
    system_count: usize,
}

#[derive(Debug, Default)]
struct Names {
    by_id: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, TableId>,
}

impl Catalog {
    /// A catalog of the store's own tables: the n-th of `system` has id n.
    ///
    /// # Panics
    ///
    /// If a name does not begin with [`SYSTEM_PREFIX`] or is listed twice: the list is a constant of this crate.
    pub(crate) fn new(system: &[&'static str]) -> Self {
        let mut names = Names::default();
        for name in system {
            assert!(name.starts_with(SYSTEM_PREFIX), "{name} is not a system table's name");
            assert!(!names.by_name.contains_key(*name), "{name} is listed twice");
            names.add(name).expect("the list of system tables is short");
        }
        Self { system_count: system.len(), names: RwLock::new(names) }
    }

    /// The id of a user's table, given now if the name is new.
    ///
    /// Names are 1 to 64 bytes of `a-z A-Z 0-9 _ . -` and do not begin with `_counterfoil`. They are compared as
    /// bytes: case counts. The alphabet is small so that a name can be a word on a command line, a file name and a
    /// label of a metric without quoting.
    pub(crate) fn intern(&self, name: &str) -> Result<TableId, TableOpenError> {
        if let Some(id) = self.id(name) {
            return if self.is_system(id) { Err(reserved(name)) } else { Ok(id) };
        }
        check_name(name)?;
        self.names.write().add(name)
    }

    /// The id of a table that a file names. Its name was checked when it was written, and may be a system table's.
    pub(crate) fn intern_stored(&self, name: &str) -> Result<TableId, TableOpenError> {
        match self.id(name) {
            Some(id) => Ok(id),
            None => self.names.write().add(name),
        }
    }

    /// The id of a table that is known.
    pub(crate) fn id(&self, name: &str) -> Option<TableId> {
        self.names.read().by_name.get(name).copied()
    }

    /// The name behind an id of this catalog.
    pub(crate) fn name(&self, id: TableId) -> Arc<str> {
        Arc::clone(&self.names.read().by_id[id.index()])
    }

    /// Whether this is one of the store's own tables.
    pub(crate) fn is_system(&self, id: TableId) -> bool {
        id.index() < self.system_count
    }

    /// All tables in the order of their ids.
    pub(crate) fn all(&self) -> Vec<(TableId, Arc<str>)> {
        let names = self.names.read();
        names.by_id.iter().filter_map(|name| Some((*names.by_name.get(name)?, Arc::clone(name)))).collect()
    }
}

impl Names {
    fn add(&mut self, name: &str) -> Result<TableId, TableOpenError> {
        // Asked again under the exclusive lock: another thread may have been first.
        if let Some(id) = self.by_name.get(name) {
            return Ok(*id);
        }
        let id = TableId::from_index(self.by_id.len()).ok_or(TableOpenError::TooManyTables)?;
        let name: Arc<str> = name.into();
        self.by_id.push(Arc::clone(&name));
        self.by_name.insert(name, id);
        Ok(id)
    }
}

/// Whether a user may give this name to a table.
pub(crate) fn check_name(name: &str) -> Result<(), TableOpenError> {
    if name.starts_with(RESERVED_PREFIX) {
        return Err(reserved(name));
    }
    let reason = if name.is_empty() {
        "is empty"
    } else if name.len() > TABLE_NAME_BYTES_MAX {
        "is longer than 64 bytes"
    } else if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')) {
        "has characters other than a-z A-Z 0-9 _ . -"
    } else {
        return Ok(());
    };
    Err(TableOpenError::InvalidName { name: name.to_owned(), reason })
}

fn reserved(name: &str) -> TableOpenError {
    TableOpenError::ReservedName { name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::limits::TABLES_MAX;

    fn catalog() -> Catalog {
        Catalog::new(&["_counterfoil/receipts", "_counterfoil/replies"])
    }

    #[test]
    fn system_tables_have_the_first_ids_in_the_order_of_the_list() {
        let catalog = catalog();
        assert_eq!(catalog.id("_counterfoil/replies"), TableId::from_index(1));
        assert_eq!(catalog.intern("orders").unwrap().index(), 2);
        assert_eq!(catalog.intern("orders").unwrap().index(), 2);
        assert_eq!(&*catalog.name(TableId::from_index(2).unwrap()), "orders");
        assert!(catalog.is_system(TableId::from_index(1).unwrap()));
        assert!(!catalog.is_system(TableId::from_index(2).unwrap()));
        assert_eq!(catalog.all().len(), 3);
    }

    #[test]
    fn names_outside_the_alphabet_are_refused() {
        let catalog = catalog();
        for name in ["", "a/b", "a b", "größe", "a\0", &"x".repeat(65)] {
            assert!(matches!(catalog.intern(name), Err(TableOpenError::InvalidName { .. })), "{name:?}");
        }
        for name in ["a", "A.b-c_9", &"x".repeat(64), "_mine"] {
            catalog.intern(name).unwrap();
        }
    }

    #[test]
    fn the_reserved_prefix_is_refused_even_where_the_table_exists() {
        let catalog = catalog();
        for name in ["_counterfoil/receipts", "_counterfoil/other", "_counterfoil", "_counterfoil-x"] {
            assert!(matches!(catalog.intern(name), Err(TableOpenError::ReservedName { .. })), "{name:?}");
        }
    }

    #[test]
    fn too_many_tables_are_an_error() {
        let catalog = catalog();
        for index in 2..TABLES_MAX {
            catalog.intern(&format!("t{index}")).unwrap();
        }
        assert!(matches!(catalog.intern("one-more"), Err(TableOpenError::TooManyTables)));
        assert!(catalog.intern("t2").is_ok());
    }
}
