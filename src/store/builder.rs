//! How a store is put together.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::base::clock::{Clock, SystemClock};
use crate::base::error::Failure;
use crate::base::limits::{Limits, OPERATION_VERSIONS_MAX};
use crate::base::name::{OperationName, Slot};
use crate::base::operation::{KeyForm, OperationType};
use crate::base::receipt::ReceiptMeta;
use crate::base::reply::{Decision, Reply, is_forbidden, is_token};
use crate::disk::{Disk, StdDisk};
use crate::protocol::admission::Access;
use crate::state::{Catalog, Declarations, Table, TableDeclaration, TableKey, TableOpenError};

use super::Store;
use super::admit::Guard;
use super::effects::intent::Provider;
use super::effects::settle::{Continuations, Settled};
use super::open;
use super::open_error::OpenError;
use super::quota::{Quota, Quotas};
use super::redaction::Redaction;
use super::rows::SYSTEM_TABLES;
use super::tx::Tx;

/// Headers that may be stored with a reply without asking: they describe the reply and carry no credentials.
const HEADERS_DEFAULT: [&str; 10] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
];

/// Puts a store together: its operation types and tables, its limits, and where it is.
///
/// Operation types and tables are declared here and nowhere else, so that what is stored can be checked against what
/// the program expects before anything runs.
pub struct StoreBuilder {
    pub(super) operations: Vec<OperationType>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) declared: Declarations,
    pub(super) tables: Vec<TableDeclaration>,
    table_fault: Option<TableOpenError>,
    pub(super) limits: Limits,
    headers: Vec<String>,
    pub(super) guard: Option<Guard>,
    pub(super) quotas: Quotas,
    pub(super) redaction: Redaction,
    pub(super) providers: Vec<Provider>,
    pub(super) continuations: Continuations,
    retry_horizon: Duration,
    pub(super) clock_tolerance: Duration,
    pub(super) clock_leap_max: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) must_exist: bool,
    pub(super) full_check: bool,
    pub(super) manual: bool,
    /// The secret of a new store, whose beginning is its id; made by chance if there is none.
    pub(crate) identity_secret: Option<[u8; 32]>,
}

impl fmt::Debug for StoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBuilder")
            .field("operations", &self.operations)
            .field("tables", &self.tables)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Default for StoreBuilder {
    fn default() -> Self {
        Self {
            operations: Vec::new(),
            catalog: Arc::new(Catalog::new(&SYSTEM_TABLES)),
            declared: Declarations::new(),
            tables: Vec::new(),
            table_fault: None,
            limits: Limits::default(),
            headers: HEADERS_DEFAULT.map(str::to_owned).to_vec(),
            guard: None,
            quotas: Quotas::default(),
            redaction: Redaction::default(),
            providers: Vec::new(),
            continuations: Continuations::default(),
            retry_horizon: Duration::ZERO,
            clock_tolerance: Duration::from_secs(5 * 60),
            clock_leap_max: Duration::from_secs(7 * 24 * 3600),
            clock: Arc::new(SystemClock::default()),
            must_exist: false,
            full_check: false,
            manual: false,
            identity_secret: None,
        }
    }
}

impl StoreBuilder {
    /// Declares an operation type.
    #[must_use]
    pub fn operation(mut self, operation_type: &OperationType) -> Self {
        self.operations.push(*operation_type);
        self
    }

    /// Declares a table. Its key type, codec and value version are compared with what is stored when the store is
    /// opened.
    #[must_use]
    pub fn table<K: TableKey, V>(mut self, table: &Table<K, V>) -> Self {
        let added = self.catalog.intern(table.name()).and_then(|id| self.declared.add(table, id));
        match added {
            Ok(()) => self.tables.push(table.declaration()),
            Err(fault) => self.table_fault = self.table_fault.or(Some(fault)),
        }
        self
    }

    /// Limits; see [`Limits`] for the defaults and their reasons.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a name to the headers that may be stored with a reply. Cookies and credentials are never stored: a store that
    /// would allow them is refused.
    #[must_use]
    pub fn allow_header(mut self, name: impl AsRef<str>) -> Self {
        self.headers.push(name.as_ref().to_ascii_lowercase());
        self
    }

    /// May this caller see this result now? Asked at every submission and look-up, with what a stored receipt says
    /// beside its reply, before requests are compared and the reply is read. Default: always.
    ///
    /// It runs on the thread that looked up and must not block: no call of this store, no I/O. One that panics has
    /// said no.
    #[must_use]
    pub fn replay_guard(
        mut self,
        guard: impl Fn(&Slot, Option<&ReceiptMeta>) -> Access + Send + Sync + 'static,
    ) -> Self {
        self.guard = Some(Box::new(guard));
        self
    }

    /// What the receipts of one tenant may take, for every tenant that has no quota of its own. Default: no bound.
    ///
    /// A submission that would go above it is refused, [`Error::QuotaExceeded`](crate::Error::QuotaExceeded); receipts
    /// that are there stay, whatever the quota, since an evicted one would let its operation execute again.
    #[must_use]
    pub const fn quota(mut self, quota: Quota) -> Self {
        self.quotas.default = quota;
        self
    }

    /// The quota of one tenant.
    #[must_use]
    pub fn tenant_quota(mut self, tenant: impl Into<String>, quota: Quota) -> Self {
        self.quotas.of_tenants.insert(tenant.into(), quota);
        self
    }

    /// Takes out of a reply what must not be stored, such as a secret that is shown once. The first caller gets the
    /// reply as the closure made it; the receipt keeps, and every replay gets, what this leaves of it, and says so
    /// ([`ReceiptMeta::redacted`]).
    ///
    /// It runs on the store's own thread, as closures do, and must not block. If it panics the operation does, and
    /// nothing is stored.
    #[must_use]
    pub fn redact(mut self, redact: impl Fn(&Slot, &mut Reply) + Send + Sync + 'static) -> Self {
        self.redaction = Redaction(Some(Box::new(redact)));
        self
    }

    /// Declares a provider: a system outside the store for which operations plan intents.
    #[must_use]
    pub fn provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// How operations of a type that were accepted ([`Decision::Accept`](crate::Decision::Accept)) go on when all their
    /// effects are final. It runs as their closure did, in the entry that brings the last outcome: what it writes, the
    /// effect's final state and the finished receipt are one write. It may accept again, with further intents.
    ///
    /// One that fails or panics is tried again by the dispatcher; the outcome of the effect is kept meanwhile.
    #[must_use]
    pub fn continuation<F, D>(mut self, operation_type: &OperationType, continuation: F) -> Self
    where
        F: Fn(&Tx<'_>, &Settled) -> Result<D, Failure> + Send + Sync + 'static,
        D: Into<Decision>,
    {
        self.continuations.add(operation_type.name, continuation);
        self
    }

    /// How long any client goes on retrying one operation. A store whose receipts are kept for less than this, plus the
    /// tolerance for clocks, is refused. Default zero: nothing was declared.
    #[must_use]
    pub const fn retry_horizon(mut self, horizon: Duration) -> Self {
        self.retry_horizon = horizon;
        self
    }

    /// By how much clocks of clients and of this machine may disagree. Default 5 minutes.
    #[must_use]
    pub const fn clock_tolerance(mut self, tolerance: Duration) -> Self {
        self.clock_tolerance = tolerance;
        self
    }

    /// How far the store's time may leap when it is opened. Default 7 days: a clock that is wrong by a year forgets
    /// nothing, and a store that was closed for a week goes on at once.
    #[must_use]
    pub const fn clock_leap_max(mut self, leap_max: Duration) -> Self {
        self.clock_leap_max = leap_max;
        self
    }

    /// The clock. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Refuses to make a new store: a mistyped path is then an error.
    #[must_use]
    pub const fn must_exist(mut self) -> Self {
        self.must_exist = true;
        self
    }

    /// Reads the whole log and every page of the state file before the store is opened, and refuses one that is damaged
    /// anywhere. It takes time in proportion to what is stored, and changes nothing. Without it opening reads what it
    /// needs: damage in older entries, or in pages that no read has come to, is then found by [`Store::verify`].
    #[must_use]
    pub const fn full_check(mut self) -> Self {
        self.full_check = true;
        self
    }

    /// Runs without threads: batches, folds and preparations happen in [`Store::step`] on the caller's thread. Blocking
    /// calls of the store step by themselves; a ticket is answered by whoever steps.
    #[must_use]
    pub const fn manual(mut self) -> Self {
        self.manual = true;
        self
    }

    /// Opens the store in a directory, which is made if it is absent (its parent must exist).
    ///
    /// # Errors
    ///
    /// [`OpenError`]; none is a fresh start, and none deletes anything.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Store, OpenError> {
        self.open_on(Arc::new(StdDisk::new(directory.as_ref().to_path_buf())))
    }

    pub(crate) fn open_on(self, disk: Arc<dyn Disk>) -> Result<Store, OpenError> {
        self.check()?;
        open::open(self, disk)
    }

    /// Everything that can be said without looking at the disk.
    fn check(&self) -> Result<(), OpenError> {
        if let Some(fault) = &self.table_fault {
            return Err(OpenError::Table(fault.clone()));
        }
        if let Some(fault) = self.limits.fault() {
            return Err(OpenError::Config(fault));
        }
        if let Some(name) = self.headers.iter().find(|name| !is_token(name)) {
            return Err(OpenError::Config(format!("{name:?} is not the name of a header (RFC 9110, section 5.6.2)")));
        }
        if let Some(name) = self.headers.iter().find(|name| is_forbidden(name)) {
            return Err(OpenError::Config(format!("the header {name:?} carries credentials and is never stored")));
        }
        if let Some(fault) = self.providers.iter().find_map(Provider::fault) {
            return Err(OpenError::Config(fault));
        }
        let mut providers = HashSet::new();
        if let Some(twice) = self.providers.iter().find(|provider| !providers.insert(&provider.name)) {
            return Err(OpenError::Config(format!("provider {:?} is declared twice", twice.name)));
        }
        let mut names = HashSet::new();
        for operation in &self.operations {
            self.check_operation(operation)?;
            if !names.insert(operation.name) {
                return Err(OpenError::Config(format!("operation type {:?} is declared twice", operation.name)));
            }
        }
        Ok(())
    }

    fn check_operation(&self, operation: &OperationType) -> Result<(), OpenError> {
        let config = |text: String| OpenError::Config(format!("operation type {:?}: {text}", operation.name));
        OperationName::new(operation.name).map_err(|fault| config(fault.to_string()))?;
        if operation.accepted.len() > OPERATION_VERSIONS_MAX {
            return Err(config(format!("it accepts more than {OPERATION_VERSIONS_MAX} earlier versions")));
        }
        if let Some(version) = operation.accepted.iter().find(|version| **version >= operation.version) {
            let current = operation.version;
            return Err(config(format!("it accepts version {version}, which is not below its own, {current}")));
        }
        let kept = operation.retention.replay.saturating_add(operation.retention.refuse);
        let horizon = match operation.key_form {
            KeyForm::Opaque => self.retry_horizon,
            // Older keys are refused, so nobody has to remember them.
            KeyForm::Uuid7 | KeyForm::Ulid => operation.key_horizon,
        };
        let needed = horizon.saturating_add(self.clock_tolerance);
        if !horizon.is_zero() && kept < needed {
            return Err(config(format!(
                "its receipts are known for {} s, less than the retry horizon and the tolerance for clocks, {} s",
                kept.as_secs(),
                needed.as_secs()
            )));
        }
        Ok(())
    }

    pub(super) fn operations_by_name(&self) -> HashMap<&'static str, OperationType> {
        self.operations.iter().map(|operation| (operation.name, *operation)).collect()
    }

    pub(super) fn header_set(&self) -> HashSet<String> {
        self.headers.iter().cloned().collect()
    }
}
