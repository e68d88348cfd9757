//! Typed tables.
//!
//! A [`Table`] is a constant that says what a table is. [`TableView`] reads one, [`TableMut`] reads and writes one
//! within an operation. [`TxRows`] holds what an operation wrote until it is sealed.

mod codec;
mod declare;
mod key;
mod key_json;
mod key_range;
mod key_types;
mod mutate;
#[cfg(test)]
mod tests;
mod tx;
mod typed;
mod view;

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use codec::Codec;
pub use declare::TableDeclaration;
pub(crate) use declare::{Compat, Declarations};
pub use key::{AsKey, KeyError, KeyReader, KeyWriter, TableKey};
pub(crate) use key_json::{hex, key_from_json, key_to_json, unhex};
pub use key_range::{KeyPrefix, KeyRange};
pub use mutate::TableMut;
pub(crate) use tx::TxRows;
pub use view::{TableRange, TableView};

/// The most old versions that one declaration can read.
const UPGRADES_MAX: usize = 16;

/// What a table is: its name, the types of its keys and values, how values are encoded, and their version.
///
/// A table is a constant, declared when the store is opened and then used by reference:
///
/// ```
/// use counterfoil::Table;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Order {
///     item: String,
///     count: u32,
/// }
///
/// const ORDERS: Table<u64, Order> = Table::new("orders");
/// const BY_CUSTOMER: Table<(String, u64), ()> = Table::new("orders-by-customer");
/// const SESSIONS: Table<[u8; 16], Vec<u8>> = Table::raw("sessions");
/// ```
///
/// # Versions
///
/// Every stored value carries the version under which it was written. When the type changes in a way its codec does
/// not bridge by itself, raise the version and say how old values are read:
///
/// ```
/// # use counterfoil::Table;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct OrderV1 {
///     item: String,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Order {
///     item: String,
///     count: u32,
/// }
///
/// impl From<OrderV1> for Order {
///     fn from(old: OrderV1) -> Self {
///         Self { item: old.item, count: 1 }
///     }
/// }
///
/// const ORDERS: Table<u64, Order> = Table::new("orders").version(2).upgrade_from::<OrderV1>(1);
/// ```
///
/// Rows are upgraded as they are read and keep their old form until they are written again, so an upgrade stays as long
/// as rows of that version may be there. Opening the store checks that: it is an error to declare a table without an
/// upgrade from a version that was ever declared for it (see [`Table::retire`]). A row that does not decode is an error
/// that names it, never skipped.
pub struct Table<K, V> {
    name: &'static str,
    codec: Codec,
    version: u32,
    encode: codec::Encode<V>,
    decode: codec::Decode<V>,
    upgrades: [Option<Upgrade<V>>; UPGRADES_MAX],
    types: PhantomData<fn(K) -> V>,
}

/// How values of an old version are read.
struct Upgrade<V> {
    from: u32,
    /// There are no rows of this version any more, says the declaration.
    retired: bool,
    read: fn(Codec, &[u8]) -> Result<V, String>,
}

impl<K: TableKey, V: Serialize + DeserializeOwned> Table<K, V> {
    /// A table with values in JSON, at version 1.
    ///
    /// Names are 1 to 64 bytes of `a-z A-Z 0-9 _ . -` and do not begin with `_counterfoil`; this is checked when the
    /// store is opened.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            codec: Codec::Json,
            version: 1,
            encode: codec::encode_json::<V>,
            decode: codec::decode_json::<V>,
            upgrades: [None; UPGRADES_MAX],
            types: PhantomData,
        }
    }

    /// Encodes values with bincode instead: compact, and positional. Read [`Codec::Bincode`] first.
    #[must_use]
    pub const fn bincode(mut self) -> Self {
        self.codec = Codec::Bincode;
        self.encode = codec::encode_bincode::<V>;
        self.decode = codec::decode_bincode::<V>;
        self
    }
}

impl<K: TableKey> Table<K, Vec<u8>> {
    /// A table whose values are the bytes themselves.
    #[must_use]
    pub const fn raw(name: &'static str) -> Self {
        let mut table = Self::new(name);
        table.codec = Codec::Raw;
        table.encode = codec::encode_raw;
        table.decode = codec::decode_raw;
        table
    }
}

impl<K, V> Table<K, V> {
    /// Sets the version of values. Call it before [`Table::upgrade_from`].
    ///
    /// # Panics
    ///
    /// At compile time in a constant: if the version is 0 or an upgrade was added already.
    #[must_use]
    pub const fn version(mut self, version: u32) -> Self {
        assert!(version > 0, "versions begin at 1");
        assert!(self.upgrades[0].is_none(), "call version() before upgrade_from()");
        self.version = version;
        self
    }

    /// Reads values of an older version: as `Old` in this table's codec, then converted.
    ///
    /// Each version is converted to the present one directly; to go through the versions in between, do so in the
    /// `From` implementation. If a value's meaning changed but not its shape, wrap the old one in a newtype with
    /// `#[serde(transparent)]`.
    ///
    /// # Panics
    ///
    /// At compile time in a constant: if `from` is not below the table's version, is there twice or is one of more
    /// than 16, or if the table is raw.
    #[must_use]
    pub const fn upgrade_from<Old: DeserializeOwned>(self, from: u32) -> Self
    where
        V: From<Old>,
    {
        assert!(!matches!(self.codec, Codec::Raw), "raw bytes cannot be upgraded");
        self.with_upgrade(Upgrade { from, retired: false, read: read_old::<Old, V> })
    }

    /// Declares that no row of an old version is left, so that its upgrade can go. Once a store was opened with this it
    /// forgets the version, and later declarations need not mention it. Should a row be found after all, reading it is
    /// an error.
    ///
    /// # Panics
    ///
    /// At compile time in a constant: like [`Table::upgrade_from`].
    #[must_use]
    pub const fn retire(self, from: u32) -> Self {
        self.with_upgrade(Upgrade { from, retired: true, read: read_retired })
    }

    const fn with_upgrade(mut self, upgrade: Upgrade<V>) -> Self {
        assert!(upgrade.from < self.version, "an upgrade is from an older version; call version() first");
        let mut index = 0;
        while let Some(other) = &self.upgrades[index] {
            assert!(other.from != upgrade.from, "there are two upgrades from the same version");
            index += 1;
            assert!(index < UPGRADES_MAX, "too many upgrades");
        }
        self.upgrades[index] = Some(upgrade);
        self
    }

    /// The table's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How this table reads a value: by the version under which it was written.
    fn read(&self, version: u32, payload: &[u8]) -> Result<V, String> {
        if version == self.version {
            return (self.decode)(payload);
        }
        match self.upgrades.iter().flatten().find(|upgrade| upgrade.from == version) {
            Some(upgrade) => {
                (upgrade.read)(self.codec, payload).map_err(|reason| format!("at version {version}: {reason}"))
            }
            None => Err(format!("it has version {version}, the table {} without an upgrade from it", self.version)),
        }
    }
}

fn read_old<Old: DeserializeOwned, V: From<Old>>(codec: Codec, payload: &[u8]) -> Result<V, String> {
    match codec {
        Codec::Json => codec::decode_json::<Old>(payload),
        Codec::Bincode => codec::decode_bincode::<Old>(payload),
        Codec::Raw => Err("raw bytes have no older version".to_owned()),
    }
    .map(V::from)
}

fn read_retired<V>(_: Codec, _: &[u8]) -> Result<V, String> {
    Err("this version was declared as retired".to_owned())
}

// Written by hand because derived ones would ask the same of `K` and `V`, of which a table holds none.
impl<V> Clone for Upgrade<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Upgrade<V> {}

impl<K, V> Clone for Table<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Table<K, V> {}

impl<K, V> fmt::Debug for Table<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, codec, version, .. } = self;
        write!(f, "Table({name}, {codec}, version {version})")
    }
}
