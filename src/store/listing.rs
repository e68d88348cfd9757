//! What is stored, for a tool that knows none of the program's types: receipts, tables and rows.

use std::collections::HashMap;
use std::ops::Bound;

use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::name::Slot;
use crate::base::position::TimestampMs;
use crate::base::receipt::ReceiptMeta;
use crate::state::{
    ALL, Codec, RowRange, Rows, TableDeclaration, TableId, hex, key_from_json, key_to_json, open_sealed, unhex,
};

use super::apply::ApplyError;
use super::explain::{NextAnswer, next_answer};
use super::reads::ReadView;
use super::rows::{SCOPE_BYTES, ScopeRow, SlotRow, System, UsageRow, open_row};

/// Which receipts to list. Empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiptFilter {
    /// Only this tenant's.
    pub tenant: Option<String>,
    /// Only this actor's.
    pub actor: Option<String>,
    /// Only of this operation type.
    pub operation: Option<String>,
}

/// A receipt or a claim, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedReceipt {
    /// Whose.
    pub slot: Slot,
    /// What a retry of the same request is answered now.
    pub now: NextAnswer,
    /// What the receipt says beside the reply; none of a claim that is not finished.
    pub receipt: Option<ReceiptMeta>,
    /// Bytes of the stored reply, as long as it is kept.
    pub reply_bytes: u64,
    /// The reply was erased.
    pub erased: bool,
}

/// A table as it is stored, whether or not this program declared it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableInfo {
    /// Its declaration.
    pub declaration: TableDeclaration,
    /// Its rows.
    pub rows: u64,
}

/// What one tenant's receipts take. See [`StoreBuilder::quota`](crate::StoreBuilder::quota).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantUsage {
    /// Who.
    pub tenant: String,
    /// Receipts, tombstones included.
    pub receipts: u64,
    /// Bytes of keys and replies.
    pub bytes: u64,
}

/// A row of a business table, undecoded.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawRow {
    /// The encoded key.
    pub key: Vec<u8>,
    /// How the value is encoded.
    pub codec: Codec,
    /// The version under which the value was written.
    pub version: u32,
    /// The encoded value.
    pub value: Vec<u8>,
}

impl std::fmt::Debug for RawRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawRow")
            .field("key", &self.key.escape_ascii().to_string())
            .field("version", &self.version)
            .field("value_bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

impl RawRow {
    /// The value as JSON: itself if its codec is JSON, and `{"hex": ".."}` of its bytes if not.
    #[must_use]
    pub fn value_json(&self) -> Value {
        let parsed = if self.codec == Codec::Json { serde_json::from_slice(&self.value).ok() } else { None };
        parsed.unwrap_or_else(|| json!({ "hex": hex(&self.value) }))
    }
}

impl TableInfo {
    /// A key of this table as JSON; what cannot be read by its type, as `{"hex": ".."}`.
    #[must_use]
    pub fn key_json(&self, key: &[u8]) -> Value {
        key_to_json(&self.declaration.key_type, key)
    }

    /// The encoded key that a person means: JSON, or plain text where the key is a string, a number or a UUID; `0x..` is
    /// the encoded key itself in hexadecimal digits.
    ///
    /// # Errors
    ///
    /// [`Error::Table`], saying what is wrong with the text.
    pub fn parse_key(&self, text: &str) -> Result<Vec<u8>, Error> {
        let key_type = &self.declaration.key_type;
        if let Some(key) = text.strip_prefix("0x").and_then(unhex) {
            return Ok(key);
        }
        let plain = Value::String(text.to_owned());
        let value = match serde_json::from_str(text) {
            // A number that is the text of a string key stays text.
            Ok(value) if key_type != "string" || matches!(value, Value::String(_)) => value,
            Ok(_) | Err(_) => plain,
        };
        key_from_json(key_type, &value).map_err(Error::Table)
    }
}

impl ReadView {
    /// All receipts and claims that fit a filter, scope by scope, in each in the order of keys.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the table cannot be read; each item is an error if its own row cannot.
    pub fn receipts(&self, filter: ReceiptFilter) -> Result<Receipts<'_>, Error> {
        let rows = self.published().view.range(System::Slots.id(), ALL).map_err(ApplyError::from);
        let rows = rows.map_err(|error| error.answer())?;
        Ok(Receipts { view: self, rows, filter, scopes: HashMap::new(), now: self.shared().time.now() })
    }

    /// Every table that was ever declared, in the order of names.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a declaration cannot be read.
    pub fn tables(&self) -> Result<Vec<TableInfo>, Error> {
        self.read_tables().map_err(|error| error.answer())
    }

    fn read_tables(&self) -> Result<Vec<TableInfo>, ApplyError> {
        let view = &self.published().view;
        let mut tables = Vec::new();
        for row in view.range(System::Tables.id(), ALL)? {
            let (key, bytes) = row?;
            let declaration = open_row::<TableDeclaration>(System::Tables, key.key(), &bytes)?;
            let rows = match self.shared().catalog.id(&declaration.name) {
                Some(id) => view.len(id)?,
                None => 0,
            };
            tables.push(TableInfo { declaration, rows });
        }
        Ok(tables)
    }

    /// What the receipts of each tenant take, in the order of names.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if a row cannot be read.
    pub fn usage(&self) -> Result<Vec<TenantUsage>, Error> {
        let read = || -> Result<Vec<TenantUsage>, ApplyError> {
            let mut usage = Vec::new();
            for row in self.published().view.range(System::Usage.id(), ALL)? {
                let (key, bytes) = row?;
                let UsageRow { receipts, bytes } = open_row(System::Usage, key.key(), &bytes)?;
                usage.push(TenantUsage { tenant: String::from_utf8_lossy(key.key()).into_owned(), receipts, bytes });
            }
            Ok(usage)
        };
        read().map_err(|error| error.answer())
    }

    /// One row of a table, undecoded.
    ///
    /// # Errors
    ///
    /// [`Error::Undeclared`] if there never was such a table, [`Error::Corrupt`] if the row cannot be read.
    pub fn raw_get(&self, table: &str, key: &[u8]) -> Result<Option<RawRow>, Error> {
        let id = self.table_id(table)?;
        let found = self.published().view.get(id, key).map_err(|error| ApplyError::from(error).answer())?;
        found.map(|bytes| raw_row(table, key, &bytes)).transpose()
    }

    /// Rows of a table in the order of their keys, undecoded, within bounds on the encoded keys.
    ///
    /// # Errors
    ///
    /// As [`ReadView::raw_get`]; each item is an error if its own row cannot be read.
    pub fn raw_scan(&self, table: &str, bounds: (Bound<&[u8]>, Bound<&[u8]>)) -> Result<RawRows, Error> {
        let id = self.table_id(table)?;
        let rows = self.published().view.range(id, bounds).map_err(|error| ApplyError::from(error).answer())?;
        Ok(RawRows { table: table.to_owned(), rows })
    }

    fn table_id(&self, table: &str) -> Result<TableId, Error> {
        let catalog = &self.shared().catalog;
        let undeclared = || Error::Undeclared { what: "table", name: table.to_owned() };
        catalog.id(table).filter(|id| !catalog.is_system(*id)).ok_or_else(undeclared)
    }
}

fn raw_row(table: &str, key: &[u8], bytes: &[u8]) -> Result<RawRow, Error> {
    let sealed = open_sealed(table, key, bytes).map_err(|error| Error::Corrupt(error.to_string()))?;
    Ok(RawRow { key: key.to_vec(), codec: sealed.codec, version: sealed.version, value: sealed.payload.to_vec() })
}

/// Rows of a table, undecoded; see [`ReadView::raw_scan`].
#[derive(Debug)]
pub struct RawRows {
    table: String,
    rows: RowRange,
}

impl Iterator for RawRows {
    type Item = Result<RawRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(match self.rows.next()? {
            Ok((key, bytes)) => raw_row(&self.table, key.key(), &bytes),
            Err(error) => Err(ApplyError::from(error).answer()),
        })
    }
}

/// Receipts and claims; see [`ReadView::receipts`].
#[derive(Debug)]
pub struct Receipts<'v> {
    view: &'v ReadView,
    rows: RowRange,
    filter: ReceiptFilter,
    /// Names of the scopes that were met; none for one that is not listed.
    scopes: HashMap<[u8; SCOPE_BYTES], Option<ScopeRow>>,
    now: TimestampMs,
}

impl Receipts<'_> {
    fn names(&mut self, scope: [u8; SCOPE_BYTES]) -> Result<Option<ScopeRow>, ApplyError> {
        if let Some(known) = self.scopes.get(&scope) {
            return Ok(known.clone());
        }
        let bytes = self.view.published().view.get(System::Scopes.id(), &scope)?.ok_or(ApplyError::ScopeMissing)?;
        let names = open_row::<ScopeRow>(System::Scopes, &scope, &bytes)?;
        let fits = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let listed = fits(&self.filter.tenant, &names.tenant)
            && fits(&self.filter.actor, &names.actor)
            && fits(&self.filter.operation, &names.operation);
        let names = listed.then_some(names);
        self.scopes.insert(scope, names.clone());
        Ok(names)
    }

    fn list(&mut self, key: &[u8], bytes: &[u8]) -> Result<Option<ListedReceipt>, ApplyError> {
        let Some((scope, rest)) = key.split_first_chunk::<SCOPE_BYTES>() else { return Err(ApplyError::ScopeMissing) };
        let Some(names) = self.names(*scope)? else { return Ok(None) };
        let Ok(slot) = Slot::new(&names.tenant, &names.actor, &names.operation, rest) else {
            return Err(ApplyError::ScopeMissing);
        };
        let row = open_row::<SlotRow>(System::Slots, key, bytes)?;
        let (receipt, reply_bytes, erased) = match &row {
            SlotRow::Receipt(receipt) => {
                let erased = receipt.is_erased(names.erased_through);
                let kept = !erased && self.now.0 < receipt.replay_until_ms;
                (Some(receipt.shown(erased)), if kept { receipt.reply_bytes } else { 0 }, erased)
            }
            SlotRow::Claim(_) => (None, 0, false),
        };
        Ok(Some(ListedReceipt { slot, now: next_answer(Some(&row), erased, self.now), receipt, reply_bytes, erased }))
    }
}

impl Iterator for Receipts<'_> {
    type Item = Result<ListedReceipt, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let listed = match self.rows.next()? {
                Ok((key, bytes)) => self.list(key.key(), &bytes),
                Err(error) => Err(error.into()),
            };
            match listed {
                Ok(Some(listed)) => return Some(Ok(listed)),
                Ok(None) => {}
                Err(error) => return Some(Err(error.answer())),
            }
        }
    }
}
