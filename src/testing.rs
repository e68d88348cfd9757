//! For your own tests: a disk in memory that can lose power, a clock that moves when told to, and a store on both.
//!
//! ```
//! use counterfoil::testing::{Survival, TestBed};
//! use counterfoil::{OperationType, Reply, Store, Table, Tx};
//!
//! const ADD: OperationType = OperationType::new("add");
//! const TOTALS: Table<String, u64> = Table::new("totals");
//!
//! let mut bed = TestBed::new(|| Store::builder().operation(&ADD).table(&TOTALS))?;
//! let add = |tx: &Tx<'_>| {
//!     let totals = tx.table(&TOTALS)?;
//!     let total = totals.get("all")?.unwrap_or(0) + 1;
//!     totals.put("all", &total)?;
//!     Ok(Reply::ok().json(&total)?)
//! };
//! let receipt = bed.store().execute(ADD.request("t", "a", "k")?.json(&1)?, add)?;
//!
//! // The power fails, and of what was not synced nothing survives. What was answered is there.
//! bed.crash_and_reopen(&Survival::Nothing)?;
//! let again = bed.store().execute(ADD.request("t", "a", "k")?.json(&1)?, add)?;
//! assert!(again.is_replayed());
//! assert_eq!(again.reply(), receipt.reply());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod fuzz;

use std::fmt;
use std::sync::Arc;

pub use crate::base::clock::VirtualClock;
#[cfg(feature = "mutants")]
#[doc(hidden)]
pub use crate::base::mutant::Mutant;
use crate::base::position::TimestampMs;
pub use crate::disk::sim::{CallKind, Fault, FaultError, SECTOR_BYTES, SimDisk, Survival, SyncGate, TracedCall};
use crate::store::{OpenError, Store, StoreBuilder};

/// The wall clock of a new [`TestBed`]: 2026-01-01T00:00:00Z.
pub const WALL_AT_START: TimestampMs = TimestampMs(1_767_225_600_000);

impl StoreBuilder {
    /// Makes the id and the secret of a new store from a seed instead of by chance, so that a run on a simulated disk
    /// repeats to the byte: the secret decides in which order receipts stand in the state file. Stores with the same
    /// seed have the same identity.
    #[must_use]
    pub fn identity_seed(mut self, seed: u64) -> Self {
        self.identity_secret = Some(*blake3::hash(&seed.to_le_bytes()).as_bytes());
        self
    }

    /// Opens the store on a simulated disk.
    ///
    /// # Errors
    ///
    /// As [`StoreBuilder::open`].
    pub fn open_in(self, disk: &SimDisk) -> Result<Store, OpenError> {
        self.open_on(Arc::new(disk.clone()))
    }
}

impl Store {
    /// [`Store::backup`] onto a simulated disk.
    ///
    /// # Errors
    ///
    /// As [`Store::backup`].
    pub fn backup_in(&self, disk: &SimDisk) -> Result<crate::store::Backup, crate::store::BackupError> {
        self.backup_on(disk, |_, _| ())
    }

    /// [`Store::restore`] from one simulated disk onto another.
    ///
    /// # Errors
    ///
    /// As [`Store::restore`].
    pub fn restore_in(
        backup: &SimDisk,
        target: &SimDisk,
        options: &crate::store::RestoreOptions,
    ) -> Result<crate::store::Restored, crate::store::BackupError> {
        let target: Arc<dyn crate::disk::Disk> = Arc::new(target.clone());
        Self::restore_on(backup, &target, options)
    }

    /// Checks the store as a whole: [`Store::verify`] is clean, and the log, applied to an empty state, gives the state
    /// that is being read. The second is left out once segments of the log were removed.
    ///
    /// # Panics
    ///
    /// With what is wrong.
    pub fn assert_sound(&self) {
        let report = self.verify().expect("the check can be done");
        assert!(report.is_clean(), "verify found: {:#?}", report.problems);
        self.assert_log_gives_state();
    }
}

/// A store in `manual` mode on a simulated disk and a virtual clock.
pub struct TestBed {
    disk: SimDisk,
    clock: VirtualClock,
    store: Option<Store>,
    build: Box<dyn Fn() -> StoreBuilder>,
}

impl fmt::Debug for TestBed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestBed").field("store", &self.store).finish_non_exhaustive()
    }
}

impl TestBed {
    /// Opens a new store. `build` says how, and is asked again at every reopening.
    ///
    /// # Errors
    ///
    /// As [`StoreBuilder::open`].
    pub fn new(build: impl Fn() -> StoreBuilder + 'static) -> Result<Self, OpenError> {
        let build = Box::new(build);
        let mut bed = Self { disk: SimDisk::new(), clock: VirtualClock::new(WALL_AT_START), store: None, build };
        bed.open()?;
        Ok(bed)
    }

    /// The open store.
    ///
    /// # Panics
    ///
    /// If the last attempt to reopen it failed.
    #[must_use]
    pub fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    /// The disk of this generation.
    #[must_use]
    pub const fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Loses power and opens what is left.
    ///
    /// # Errors
    ///
    /// As [`StoreBuilder::open`].
    pub fn crash_and_reopen(&mut self, survival: &Survival) -> Result<(), OpenError> {
        let disk = self.disk.crash(survival);
        self.reopen_on(disk)
    }

    /// Ends the process, keeping what the operating system had cached, and opens the store again.
    ///
    /// # Errors
    ///
    /// As [`StoreBuilder::open`].
    pub fn kill_and_reopen(&mut self) -> Result<(), OpenError> {
        let disk = self.disk.kill();
        self.reopen_on(disk)
    }

    /// Closes the store in good order and opens it again.
    ///
    /// # Errors
    ///
    /// As [`StoreBuilder::open`].
    ///
    /// # Panics
    ///
    /// If it cannot be closed.
    pub fn close_and_reopen(&mut self) -> Result<(), OpenError> {
        if let Some(store) = self.store.take() {
            store.close().expect("the store closes");
        }
        self.open()
    }

    fn reopen_on(&mut self, disk: SimDisk) -> Result<(), OpenError> {
        // The old generation's calls fail from here on, so dropping the old store reaches nothing.
        let old = std::mem::replace(&mut self.disk, disk);
        old.power_cut_at(old.operations());
        drop(self.store.take());
        self.open()
    }

    fn open(&mut self) -> Result<(), OpenError> {
        self.store = Some((self.build)().manual().clock(self.clock.clone()).open_in(&self.disk)?);
        Ok(())
    }
}
