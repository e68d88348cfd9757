//! What the receipts of one tenant may take.

use std::collections::HashMap;

use crate::base::error::Error;
use crate::base::name::Tenant;
use crate::state::Rows;

use super::apply::{ApplyError, get_system};
use super::rows::{System, UsageRow};

/// How much of the store the receipts of one tenant may take. Receipts count until they are swept, tombstones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Most receipts. Default: no bound.
    pub receipts: u64,
    /// Most bytes of keys and replies. Default: no bound. Rows of tables do not count: they are the application's own.
    pub bytes: u64,
}

impl Quota {
    /// No bound.
    pub const UNBOUNDED: Self = Self { receipts: u64::MAX, bytes: u64::MAX };
}

impl Default for Quota {
    fn default() -> Self {
        Self::UNBOUNDED
    }
}

/// The quotas of all tenants.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    pub(super) default: Quota,
    pub(super) of_tenants: HashMap<String, Quota>,
}

impl Quotas {
    fn of(&self, tenant: &Tenant) -> Quota {
        self.of_tenants.get(tenant.as_str()).copied().unwrap_or(self.default)
    }

    /// Whether a tenant may have one more receipt of this many bytes.
    pub(super) fn check(&self, rows: &impl Rows, tenant: &Tenant, more_bytes: u64) -> Result<(), Error> {
        let quota = self.of(tenant);
        if quota == Quota::UNBOUNDED {
            return Ok(());
        }
        let used = usage(rows, tenant).map_err(|error| error.answer())?;
        within("receipts", used.receipts.saturating_add(1), quota.receipts)?;
        within("bytes", used.bytes.saturating_add(more_bytes), quota.bytes)
    }
}

/// What a tenant's receipts take now.
pub(super) fn usage(rows: &impl Rows, tenant: &Tenant) -> Result<UsageRow, ApplyError> {
    Ok(get_system::<UsageRow>(rows, System::Usage, tenant.as_str().as_bytes())?.unwrap_or_default())
}

const fn within(what: &'static str, actual: u64, limit: u64) -> Result<(), Error> {
    if actual > limit { Err(Error::QuotaExceeded { what, actual, limit }) } else { Ok(()) }
}
