//! The checker of a whole store: log, receipts, replies, expiry, rows and the state file. It changes nothing.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};

use crate::base::error::Error;
use crate::base::position::Position;
use crate::base::receipt::Outcome;
use crate::base::reply::Reply;
use crate::log::record::{Body, Record};
use crate::log::{Extent, LogReader, check_all};
use crate::state::{ALL, Codec, EngineError, RowRange, Rows, TableDeclaration, TableId, View, open_sealed};

use super::rows::{
    ExpiryRow, ReceiptRow, SCOPE_BYTES, SYSTEM_TABLES, ScopeRow, SlotRow, System, Tier, UsageRow, expiry_key, open_row,
    sequence_key, slot_key_of,
};
use super::shared::Shared;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// What was being checked: "log", "receipts", "replies", "expiry", "usage", "scopes", "tables" or "state
    /// file".
    pub check: &'static str,
    /// What is wrong, naming the file and place, or the table and row.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.message)
    }
}

/// What [`Store::verify`](crate::Store::verify) read and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "a report may hold problems"]
pub struct VerifyReport {
    /// Log segments read.
    pub segments: u64,
    /// Log entries whose checksums and order were checked.
    pub entries: u64,
    /// Bytes of log read.
    pub log_bytes: u64,
    /// Receipts compared with replies, expiry and, where it is retained, the log.
    pub receipts: u64,
    /// Claims read.
    pub claims: u64,
    /// Rows of business tables that were opened.
    pub rows: u64,
    /// Rows in the part of the state file that its last checkpoint covers.
    pub state_rows: u64,
    /// Everything that is wrong; empty in a sound store. At most 1,000 are listed.
    pub problems: Vec<Problem>,
}

/// More problems than this say nothing new.
const PROBLEMS_MAX: usize = 1000;

impl VerifyReport {
    /// Nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Counts and problems as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let problems = self.problems.iter();
        serde_json::json!({
            "clean": self.is_clean(),
            "segments": self.segments,
            "entries": self.entries,
            "log_bytes": self.log_bytes,
            "receipts": self.receipts,
            "claims": self.claims,
            "rows": self.rows,
            "state_rows": self.state_rows,
            "problems": problems.map(|problem| problem.to_string()).collect::<Vec<_>>(),
        })
    }

    fn note(&mut self, check: &'static str, message: impl fmt::Display) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { check, message: message.to_string() });
        }
    }
}

/// Checks everything but the pages of the state file, which its owner has to check.
pub(super) fn verify(shared: &Arc<Shared>) -> Result<VerifyReport, Error> {
    // No segment goes while it is read.
    let _held = shared.history.hold();
    let published = shared.publisher.load();
    let mut checker = Checker {
        shared,
        view: &published.view,
        durable: published.position,
        report: VerifyReport::default(),
        scopes: HashSet::new(),
        usage: BTreeMap::new(),
    };
    let outcome = checker.run();
    let Checker { report, .. } = checker;
    outcome.map_err(|error| {
        if matches!(error, EngineError::Closed) {
            return Error::Closed;
        }
        Error::Corrupt(format!("the check could not be done: {error}"))
    })?;
    Ok(report)
}

/// Adds what the check of the state file's pages found.
pub(super) fn note_state_check(report: &mut VerifyReport, outcome: Result<(bool, u64), String>) {
    match outcome {
        Ok((clean, rows)) => {
            report.state_rows = rows;
            if !clean {
                report.note("state file", "redb's check found damaged pages; restore from a backup");
            }
        }
        Err(error) => report.note("state file", error),
    }
}

struct Checker<'a> {
    shared: &'a Shared,
    view: &'a View,
    durable: Position,
    report: VerifyReport,
    /// The scopes that have receipts or claims.
    scopes: HashSet<[u8; SCOPE_BYTES]>,
    /// What the receipts of each tenant take, counted anew.
    usage: BTreeMap<String, UsageRow>,
}

impl Checker<'_> {
    fn run(&mut self) -> Result<(), EngineError> {
        self.check_frames();
        let logged = self.check_receipts()?;
        self.check_replies(&logged)?;
        self.check_expiry()?;
        self.check_usage()?;
        self.check_scopes()?;
        self.check_entries()?;
        self.check_tables()
    }

    /// Every frame's checksums, and sequences without a gap.
    fn check_frames(&mut self) {
        let extent = Extent::Live { durable: self.durable.sequence };
        let floor = self.shared.history.floor();
        match check_all(&*self.shared.disk, self.shared.store_id, extent, floor) {
            Ok(log) => {
                self.report.segments = log.segments;
                self.report.entries = log.entries;
                self.report.log_bytes = log.bytes;
                for problem in log.problems {
                    self.report.note("log", problem);
                }
                let first = log.first_sequence.unwrap_or(self.durable.sequence + 1);
                if first > floor && floor <= self.durable.sequence {
                    self.note_log(format!("entries {floor} to {} are missing", first - 1));
                }
                if let Some(last) = log.last_sequence
                    && last < self.durable.sequence
                {
                    self.note_log(format!("it ends at {last}, before entry {}", self.durable));
                }
            }
            Err(error) => self.report.note("log", error),
        }
    }

    fn scan(&self, table: System) -> Result<RowRange, EngineError> {
        self.view.range(table.id(), ALL)
    }

    /// Opens a row of the store's own, or notes why not.
    fn open<T: DeserializeOwned>(&mut self, check: &'static str, table: System, key: &[u8], bytes: &[u8]) -> Option<T> {
        open_row(table, key, bytes).map_err(|error| self.report.note(check, error)).ok()
    }

    /// The row under a key, or `None`, noting a row that cannot be read.
    fn find<T: DeserializeOwned>(
        &mut self,
        check: &'static str,
        table: System,
        key: &[u8],
    ) -> Result<Option<T>, EngineError> {
        let Some(bytes) = self.view.get(table.id(), key)? else { return Ok(None) };
        Ok(self.open(check, table, key, &bytes))
    }

    /// Each receipt has its scope, its reply and its one expiry row. Returns the sequences under which receipts stand.
    fn check_receipts(&mut self) -> Result<HashSet<u64>, EngineError> {
        let mut replies = HashSet::new();
        for row in self.scan(System::Slots)? {
            let (key, bytes) = row?;
            let key = key.key();
            let Some(scope) = key.first_chunk::<16>() else {
                self.report.note("receipts", format!("the key {} is too short", key.escape_ascii()));
                continue;
            };
            let names = self.find::<ScopeRow>("receipts", System::Scopes, scope)?;
            if names.is_none() {
                self.report.note("receipts", format!("row {} has no scope", key.escape_ascii()));
            }
            self.scopes.insert(*scope);
            match self.open::<SlotRow>("receipts", System::Slots, key, &bytes) {
                Some(SlotRow::Receipt(receipt)) => {
                    self.report.receipts += 1;
                    replies.insert(receipt.position.sequence);
                    if let Some(names) = names {
                        self.count(names.tenant, key, &receipt)?;
                    }
                    self.check_receipt(key, &receipt)?;
                }
                Some(SlotRow::Claim(_)) => self.report.claims += 1,
                None => {}
            }
        }
        Ok(replies)
    }

    fn check_receipt(&mut self, key: &[u8], receipt: &ReceiptRow) -> Result<(), EngineError> {
        let at = receipt.position;
        if at.sequence > self.durable.sequence {
            self.report
                .note("receipts", format!("the receipt at {at} is ahead of the log, which ends at {}", self.durable));
        }
        // Before it is swept, the expiry row stands under the first deadline and the reply must be there.
        let first = expiry_key(receipt.replay_until_ms, at.sequence);
        let second = expiry_key(receipt.refuse_until_ms, at.sequence);
        let mut expiry = self.find::<ExpiryRow>("receipts", System::Expiry, &first)?;
        if expiry.is_none() {
            expiry = self.find::<ExpiryRow>("receipts", System::Expiry, &second)?;
        }
        let swept = expiry.as_ref().is_none_or(|row| row.tier == Tier::Refuse);
        match expiry {
            Some(row) if row.key == key => {}
            Some(_) => {
                self.report.note("receipts", format!("the expiry row of the receipt at {at} is of another slot"));
            }
            None => self.report.note("receipts", format!("the receipt at {at} has no expiry row")),
        }
        let reply = self.find::<Reply>("receipts", System::Replies, &sequence_key(at.sequence))?;
        if reply.is_none() && !swept && !receipt.reply_erased {
            self.report.note("receipts", format!("the receipt at {at} has lost its reply"));
        }
        Ok(())
    }

    fn count(&mut self, tenant: String, key: &[u8], receipt: &ReceiptRow) -> Result<(), EngineError> {
        let reply = self.view.get(System::Replies.id(), &sequence_key(receipt.position.sequence))?;
        let usage = self.usage.entry(tenant).or_default();
        usage.receipts += 1;
        usage.bytes += key.len() as u64 + reply.map_or(0, |reply| reply.len() as u64);
        Ok(())
    }

    /// What is kept of each tenant's usage is what its receipts take.
    fn check_usage(&mut self) -> Result<(), EngineError> {
        let mut counted = std::mem::take(&mut self.usage);
        for row in self.scan(System::Usage)? {
            let (key, bytes) = row?;
            let Some(kept) = self.open::<UsageRow>("usage", System::Usage, key.key(), &bytes) else { continue };
            let tenant = String::from_utf8_lossy(key.key()).into_owned();
            let found = counted.remove(&tenant).unwrap_or_default();
            if kept != found {
                self.report.note("usage", format!("tenant {tenant} has {found}, and {kept} was counted"));
            }
        }
        for (tenant, found) in counted {
            self.report.note("usage", format!("tenant {tenant} has {found}, and nothing was counted"));
        }
        Ok(())
    }

    /// The names of a scope go with its last receipt.
    fn check_scopes(&mut self) -> Result<(), EngineError> {
        for row in self.scan(System::Scopes)? {
            let (key, _) = row?;
            if key.key().try_into().is_ok_and(|scope: [u8; SCOPE_BYTES]| !self.scopes.contains(&scope)) {
                self.report.note("scopes", format!("scope {} has no receipt", key.key().escape_ascii()));
            }
        }
        Ok(())
    }

    /// Each reply belongs to a receipt.
    fn check_replies(&mut self, receipts: &HashSet<u64>) -> Result<(), EngineError> {
        for row in self.scan(System::Replies)? {
            let (key, bytes) = row?;
            let sequence = key.key().first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
            if sequence.is_none_or(|sequence| !receipts.contains(&sequence)) {
                self.report.note("replies", format!("reply {} belongs to no receipt", key.key().escape_ascii()));
            }
            self.open::<Reply>("replies", System::Replies, key.key(), &bytes);
        }
        Ok(())
    }

    /// Each expiry row is that of one receipt.
    fn check_expiry(&mut self) -> Result<(), EngineError> {
        for row in self.scan(System::Expiry)? {
            let (key, bytes) = row?;
            let Some(expiry) = self.open::<ExpiryRow>("expiry", System::Expiry, key.key(), &bytes) else { continue };
            if expiry.tier == Tier::Callback {
                if self.view.get(System::Deliveries.id(), &expiry.key)?.is_none() {
                    self.report.note("expiry", format!("row {} is of no callback", key.key().escape_ascii()));
                }
                continue;
            }
            let receipt = match self.find::<SlotRow>("expiry", System::Slots, &expiry.key)? {
                Some(SlotRow::Receipt(receipt)) => receipt,
                Some(SlotRow::Claim(_)) | None => {
                    self.report.note("expiry", format!("row {} is of no receipt", key.key().escape_ascii()));
                    continue;
                }
            };
            let deadline_ms = match expiry.tier {
                Tier::Replay => receipt.replay_until_ms,
                Tier::Refuse | Tier::Callback => receipt.refuse_until_ms,
            };
            if key.key() != expiry_key(deadline_ms, receipt.position.sequence)
                || expiry.refuse_until_ms != receipt.refuse_until_ms
            {
                let at = receipt.position;
                self.report.note("expiry", format!("row {} is not that of {at}", key.key().escape_ascii()));
            }
        }
        Ok(())
    }

    /// What reading the log met, unless the check of its frames has named it already.
    fn note_log(&mut self, error: impl fmt::Display) {
        if !self.report.problems.iter().any(|problem| problem.check == "log") {
            self.report.note("log", error);
        }
    }

    /// Each operation in the retained log has its receipt, unless a later one took its place or it is forgotten.
    fn check_entries(&mut self) -> Result<(), EngineError> {
        let disk = Arc::clone(&self.shared.disk);
        let oldest = self.shared.history.floor();
        let mut reader = match LogReader::open(disk, self.shared.store_id, oldest) {
            Ok(reader) => reader,
            Err(error) => {
                self.note_log(error);
                return Ok(());
            }
        };
        loop {
            match reader.next(self.durable.sequence) {
                Ok(Some(frame)) => {
                    let position = Position { epoch: frame.header.epoch, sequence: frame.header.sequence };
                    match Record::from_bytes(&frame.payload) {
                        Ok(record) => self.check_entry(position, &record)?,
                        Err(error) => self.report.note("log", format!("entry {position}: {error}")),
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.note_log(error);
                    return Ok(());
                }
            }
        }
    }

    fn check_entry(&mut self, position: Position, record: &Record) -> Result<(), EngineError> {
        let Body::Operation(operation) = &record.body else { return Ok(()) };
        if operation.completion.refuse_until_ms <= self.shared.time.now().0 {
            return Ok(());
        }
        let key = slot_key_of(&operation.slot.scope, &operation.slot.key);
        match self.find::<SlotRow>("receipts", System::Slots, &key)? {
            Some(SlotRow::Receipt(receipt)) if receipt.position == position => {
                if receipt.digest != operation.digest {
                    self.report.note("receipts", format!("the receipt at {position} differs from its log entry"));
                }
            }
            Some(SlotRow::Receipt(receipt)) if receipt.position > position => {}
            Some(SlotRow::Claim(claim)) if claim.position > position => {}
            // When it is forgotten, its resolution said.
            None if operation.completion.outcome == Outcome::Accepted => {}
            Some(SlotRow::Receipt(_) | SlotRow::Claim(_)) | None => {
                self.report.note("receipts", format!("the operation at {position} is in the log and has no receipt"));
            }
        }
        Ok(())
    }

    /// Every row of every business table opens and is of its table's codec and one of its versions.
    fn check_tables(&mut self) -> Result<(), EngineError> {
        let mut declarations = Vec::new();
        for row in self.scan(System::Tables)? {
            let (key, bytes) = row?;
            declarations.extend(self.open::<TableDeclaration>("tables", System::Tables, key.key(), &bytes));
        }
        for (id, name) in self.shared.catalog.all() {
            if SYSTEM_TABLES.contains(&&*name) {
                continue;
            }
            let declaration = declarations.iter().find(|declaration| declaration.name == *name);
            self.check_table(id, &name, declaration)?;
        }
        Ok(())
    }

    fn check_table(
        &mut self,
        id: TableId,
        name: &str,
        declaration: Option<&TableDeclaration>,
    ) -> Result<(), EngineError> {
        for row in self.view.range(id, ALL)? {
            let (key, bytes) = row?;
            self.report.rows += 1;
            let sealed = match open_sealed(name, key.key(), &bytes) {
                Ok(sealed) => sealed,
                Err(error) => {
                    self.report.note("tables", error);
                    continue;
                }
            };
            let row = || format!("row {} of table {name}", key.key().escape_ascii());
            let Some(declaration) = declaration else {
                self.report.note("tables", format!("{} is of a table that was never declared", row()));
                continue;
            };
            if sealed.codec != declaration.codec || !declaration.rows_of.contains(&sealed.version) {
                let message =
                    format!("{} is {} version {}, which is not its table's", row(), sealed.codec, sealed.version);
                self.report.note("tables", message);
            } else if sealed.codec == Codec::Json
                && let Err(error) = serde_json::from_slice::<IgnoredAny>(sealed.payload)
            {
                self.report.note("tables", format!("{} is not JSON: {error}", row()));
            }
        }
        Ok(())
    }
}
