//! Opening a store: create or recover, apply what the state lacks, declare tables, start the threads.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::limits::Limits;
use crate::base::mutant::{self, Mutant};
use crate::base::position::{Position, TimestampMs};
use crate::disk::{CopyOnWrite, Disk, OpenMode, RedbBackend, WriteGate};
use crate::log::record::{Body, Record, TableRecord};
use crate::log::{
    CheckpointState, Extent, LOG_DIR, NewEpoch, Recovered, SegmentSizes, StoreId, check_all, finish_renewals, recover,
};
use crate::protocol::identity::HashKeys;
use crate::protocol::retention::is_trusted;
use crate::state::{Compat, Engine, MemoryMap, Meta, Overlay, Snapshot, TableDeclaration, View, check_copy};

use super::Store;
use super::admit::Doorkeeper;
use super::apply::{ApplyError, FrameFacts, apply, get_system};
use super::backup::BACKUP;
use super::builder::StoreBuilder;
use super::claims::left_claims;
use super::effects::left_sending;
use super::folder::{Fold, Folder};
use super::history::{History, Remover};
use super::holder::{self, LOCK_FILES};
use super::identity::{IDENTITY, IDENTITY_NEW, Identity};
use super::open_error::OpenError;
use super::published::{Published, Publisher};
use super::queue::Queue;
use super::rows::{CLOCK_ACCEPTED, ClockRow, System};
use super::run::Engines;
use super::segments::Workshop;
use super::shared::{Readers, Shared, next_number};
use super::time::StoreTime;

pub(super) const STATE: &str = "state.redb";
/// A state file that is being written and takes the other's place. Left over, it is removed.
pub(super) const STATE_NEW: &str = "state.redb.new";

/// What the state says until the opening after the creation has made its first checkpoint: a creation begins with an
/// empty log.
const EPOCH_OF_CREATION: u64 = 1;

/// What a directory holds.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A creation that was not finished: nothing in it was ever answered.
    Unfinished,
    Store,
}

pub(super) fn open(builder: StoreBuilder, disk: Arc<dyn Disk>) -> Result<Store, OpenError> {
    #[cfg(feature = "mutants")]
    mutant::Selection::of(builder.limits.mutant).take_over();
    if builder.must_exist {
        // Looked at before anything is made, so that a mistyped path stays what it was.
        let listed = disk.list("");
        if listed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            || listed.is_ok_and(|names| names.is_empty())
        {
            return Err(OpenError::Absent(disk.location()));
        }
    } else {
        disk.create_dir("").map_err(OpenError::io("make", disk.location()))?;
    }
    look_around(&*disk)?;
    let lock = holder::lock(&*disk, builder.clock.wall())?;
    // A name may exist in the cache only.
    disk.sync_dir("").map_err(OpenError::io("sync", disk.location()))?;
    let gate = WriteGate::new();
    let opened = match look_around(&*disk)? {
        Found::Store => open_existing(&builder, &disk, &gate),
        Found::Nothing | Found::Unfinished if builder.must_exist => Err(OpenError::Absent(disk.location())),
        Found::Nothing | Found::Unfinished => create(&builder, &disk, &gate),
    };
    // Whatever failed, redb was dropped behind a closed gate or before it wrote anything of its own.
    let opened = opened.inspect_err(|_| gate.refuse())?;
    start(builder, disk, gate, lock, opened)
}

/// Says what the directory holds, or why it cannot be a store. Changes nothing.
fn look_around(disk: &dyn Disk) -> Result<Found, OpenError> {
    let names = disk.list("").map_err(OpenError::io("list", disk.location()))?;
    let has = |name: &str| names.iter().any(|found| found == name);
    if has(IDENTITY) {
        for needed in [STATE, LOG_DIR] {
            if !has(needed) {
                return Err(OpenError::Missing { missing: needed.to_owned() });
            }
        }
        return Ok(Found::Store);
    }
    if has(IDENTITY_NEW) {
        return Ok(Found::Unfinished);
    }
    if has(BACKUP) {
        return Err(OpenError::IsBackup { location: disk.location() });
    }
    match names.iter().find(|name| !LOCK_FILES.contains(&name.as_str())) {
        None => Ok(Found::Nothing),
        Some(name) if name == STATE || name == LOG_DIR => Err(OpenError::Missing { missing: IDENTITY.to_owned() }),
        Some(name) => Err(OpenError::NotAStore { location: disk.location(), found: name.clone() }),
    }
}

/// One of the files in a directory that a store cannot be made in, if there is one.
pub(super) fn is_empty_or_unfinished(disk: &dyn Disk) -> Result<Option<String>, OpenError> {
    match look_around(disk) {
        Ok(Found::Nothing | Found::Unfinished) => Ok(None),
        Ok(Found::Store) => Ok(Some(IDENTITY.to_owned())),
        Err(OpenError::IsBackup { .. }) => Ok(Some(BACKUP.to_owned())),
        Err(OpenError::Missing { .. }) => Ok(Some(STATE.to_owned())),
        Err(OpenError::NotAStore { found, .. }) => Ok(Some(found)),
        Err(other) => Err(other),
    }
}

/// An engine and a log that belong together.
struct Opened {
    identity: Identity,
    engine: Engine,
    snapshot: Arc<Snapshot>,
    log: Recovered,
}

/// What the state of a store says that is being created.
const NOTHING_YET: CheckpointState = CheckpointState { epoch: 0, applied_sequence: 0, log_floor: 1 };

/// Makes a store. It is one as soon as `IDENTITY` has its name; until then the next open starts over.
fn create(builder: &StoreBuilder, disk: &Arc<dyn Disk>, gate: &WriteGate) -> Result<Opened, OpenError> {
    let wall = builder.clock.wall();
    let (store_id, secret) = new_identity(builder)?;
    let identity = Identity { store_id, secret, created_ms: wall.0 };
    identity.write_new(&**disk).map_err(OpenError::io("write", IDENTITY_NEW))?;
    clear_unfinished(&**disk)?;
    let store_id = StoreId(identity.store_id);
    let file = disk.open(STATE, OpenMode::Create).map_err(OpenError::io("make", STATE))?;
    let backend = RedbBackend::new(file, gate.clone());
    let meta = |epoch, clock_ms| Meta {
        store_id: store_id.as_u128(),
        epoch,
        applied_epoch: 0,
        applied_sequence: 0,
        clock_mark_ms: clock_ms,
        clock_trusted_ms: clock_ms,
        log_floor: 1,
    };
    let engine = Engine::create(backend, Arc::clone(&builder.catalog), meta(0, 0), builder.limits.cache_bytes)?;
    let log = recover(disk, store_id, &NOTHING_YET, new_epoch(builder))?;
    // From here on the state knows that there is a log: an empty one would be a loss.
    engine.fold(&MemoryMap::new(), meta(log.epoch, wall.0), crate::state::FoldDurability::Checkpoint)?;
    Identity::publish(&**disk).map_err(OpenError::io("rename", IDENTITY))?;
    let snapshot = engine.snapshot()?;
    Ok(Opened { identity, engine, snapshot, log })
}

/// Removes what an unfinished creation left. `IDENTITY.new` stands until the end, so that a crash in here is again an
/// unfinished creation.
pub(super) fn clear_unfinished(disk: &dyn Disk) -> Result<(), OpenError> {
    let names = disk.list("").map_err(OpenError::io("list", disk.location()))?;
    if names.iter().any(|name| name == STATE) {
        disk.remove(STATE).map_err(OpenError::io("remove", STATE))?;
    }
    if names.iter().any(|name| name == LOG_DIR) {
        for name in disk.list(LOG_DIR).map_err(OpenError::io("list", LOG_DIR))? {
            let file = format!("{LOG_DIR}/{name}");
            disk.remove(&file).map_err(OpenError::io("remove", file.clone()))?;
        }
        disk.sync_dir(LOG_DIR).map_err(OpenError::io("sync", LOG_DIR))?;
        // The name may have been dropped by a sync that failed, and then no later sync makes it durable: it is made anew.
        disk.remove_dir(LOG_DIR).map_err(OpenError::io("remove", LOG_DIR))?;
    }
    disk.sync_dir("").map_err(OpenError::io("sync", disk.location()))
}

fn open_existing(builder: &StoreBuilder, disk: &Arc<dyn Disk>, gate: &WriteGate) -> Result<Opened, OpenError> {
    let identity = Identity::read(&**disk)?;
    let store_id = StoreId(identity.store_id);
    remove_leftover_state(&**disk);
    let meta = look_at_state(builder, &**disk, store_id)?;
    if meta.epoch == 0 {
        return Err(OpenError::Damaged { file: STATE.to_owned(), reason: "its creation was not finished".to_owned() });
    }
    if builder.full_check {
        check_everything(builder, &**disk, store_id, &meta)?;
    }
    let Meta { epoch, applied_sequence, log_floor, .. } = meta;
    let checkpoint = CheckpointState { epoch, applied_sequence, log_floor };
    let log = recover(disk, store_id, &checkpoint, new_epoch(builder))?;
    if epoch == EPOCH_OF_CREATION && !mutant::is(Mutant::IdentityTrusted) {
        // Its name may exist in the cache only. Whoever finds a later epoch finds one that did this.
        identity.renew(&**disk).map_err(OpenError::io("rename", IDENTITY))?;
    }
    let file = disk.open(STATE, OpenMode::ReadWrite).map_err(OpenError::io("open", STATE))?;
    let backend = RedbBackend::new(file, gate.clone());
    let (engine, snapshot) =
        Engine::open(backend, Arc::clone(&builder.catalog), store_id.as_u128(), builder.limits.cache_bytes)?;
    Ok(Opened { identity, engine, snapshot, log })
}

/// What a compaction left that was not finished.
fn remove_leftover_state(disk: &dyn Disk) {
    if !disk.list("").is_ok_and(|names| names.iter().any(|name| name == STATE_NEW)) {
        return;
    }
    match disk.remove(STATE_NEW) {
        Ok(()) => tracing::debug!("an unfinished state file was removed"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, "an unfinished state file cannot be removed; it is in nobody's way"),
    }
}

fn new_epoch(builder: &StoreBuilder) -> NewEpoch {
    let Limits { segment_bytes_first: first, segment_bytes_max: max, .. } = builder.limits;
    NewEpoch { created_ms: builder.clock.wall().0, segments: SegmentSizes { first, max } }
}

/// What the state file says of itself, read from a copy that keeps every write in memory: redb marks and repairs a file
/// as soon as it opens it, and one that is another store's, or whose log is damaged, must stay as it is.
fn look_at_state(builder: &StoreBuilder, disk: &dyn Disk, store_id: StoreId) -> Result<Meta, OpenError> {
    let file = disk.open(STATE, OpenMode::Read).map_err(OpenError::io("open", STATE))?;
    let copy = CopyOnWrite::new(file).map_err(OpenError::io("read", STATE))?;
    let catalog = Arc::clone(&builder.catalog);
    let (engine, snapshot) = Engine::open(copy, catalog, store_id.as_u128(), builder.limits.cache_bytes)?;
    let meta = snapshot.meta();
    drop(snapshot);
    // redb commits as it closes. Damaged records of free pages make that panic: here it is an error, where the next
    // commit to the file itself might abort the process.
    engine.close()?;
    Ok(meta)
}

/// Reads everything that opening alone would trust. Changes nothing but names that an opening was interrupted with: redb's own check, which repairs, has a copy.
fn check_everything(builder: &StoreBuilder, disk: &dyn Disk, store_id: StoreId, meta: &Meta) -> Result<(), OpenError> {
    let file = disk.open(STATE, OpenMode::Read).map_err(OpenError::io("open", STATE))?;
    let copy = CopyOnWrite::new(file).map_err(OpenError::io("read", STATE))?;
    if !check_copy(copy, builder.limits.cache_bytes)?.clean {
        let reason = "redb's check found damaged pages".to_owned();
        return Err(OpenError::Damaged { file: STATE.to_owned(), reason });
    }
    finish_renewals(disk)?;
    let log = check_all(disk, store_id, Extent::Closed { applied: meta.applied_sequence }, meta.log_floor)?;
    if let Some(problem) = log.problems.into_iter().next() {
        return Err(problem.into());
    }
    let first = log.first_sequence.unwrap_or(meta.applied_sequence.saturating_add(1));
    if first > meta.log_floor {
        let floor = meta.log_floor;
        return Err(OpenError::Log(format!("log: entries {floor} to {} are missing", first - 1)));
    }
    Ok(())
}

/// The id and the secret of a new store.
fn new_identity(builder: &StoreBuilder) -> Result<([u8; 16], [u8; 32]), OpenError> {
    match builder.identity_secret {
        Some(secret) => Ok((*secret.first_chunk().expect("16 of 32 bytes"), secret)),
        None => Ok((random()?, random()?)),
    }
}

pub(super) fn random<const N: usize>() -> Result<[u8; N], OpenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| OpenError::Config(format!("the system gives no random numbers: {error}")))?;
    Ok(bytes)
}

/// The state after everything in the log was applied.
struct CaughtUp {
    view: View,
    position: Position,
    last_time: TimestampMs,
    clock_trusted: TimestampMs,
    history: Arc<History>,
    /// Bytes of payload in the map that is not folded.
    log_bytes: u64,
}

/// Applies the frames that the checkpoint lacks, folding as in normal running.
fn catch_up(
    builder: &StoreBuilder,
    opened: Opened,
    disk: &Arc<dyn Disk>,
    gate: &WriteGate,
) -> Result<(Identity, Recovered, Folder, CaughtUp), OpenError> {
    let Opened { identity, engine, snapshot, mut log } = opened;
    let meta = snapshot.meta();
    let history = Arc::new(History::new(meta.log_floor, log.bytes));
    let store_id = StoreId(identity.store_id);
    let remover = Remover::new(Arc::clone(disk), store_id, &builder.limits, Arc::clone(&history));
    let clock = Arc::clone(&builder.clock);
    let mut folder = Folder::new(engine, gate.clone(), Arc::clone(disk), clock, &builder.limits, remover, meta);
    let mut overlay = Overlay::new(&View::new(snapshot));
    let mut position = Position { epoch: meta.applied_epoch, sequence: meta.applied_sequence };
    let mut last_time = TimestampMs(meta.clock_mark_ms);
    let mut clock_trusted = TimestampMs(meta.clock_trusted_ms);
    let mut log_bytes = 0;
    let total = log.durable.saturating_sub(meta.applied_sequence);
    while let Some(frame) = log.reader.next(log.durable)? {
        let header = frame.header;
        position = Position { epoch: header.epoch, sequence: header.sequence };
        let at = |reason: &dyn std::fmt::Display| format!("entry {position} cannot be applied: {reason}");
        let record = Record::from_bytes(&frame.payload).map_err(|error| OpenError::Newer(at(&error)))?;
        let facts = FrameFacts { position, time_ms: header.time_ms };
        apply(&mut overlay, &builder.catalog, facts, &record).map_err(|error| match error {
            ApplyError::Newer(_) => OpenError::Newer(at(&error)),
            ApplyError::State(error) => error.into(),
            // A row of the state that the entry builds on is damaged: the log is whole.
            ApplyError::Row(_) | ApplyError::ScopeMissing | ApplyError::Sweep { .. } | ApplyError::NotAccepted(_) => {
                OpenError::State(at(&error))
            }
            ApplyError::Table { .. } | ApplyError::ScopeCollision => OpenError::Log(at(&error)),
        })?;
        last_time = last_time.max(TimestampMs(header.time_ms));
        if is_trusted(TimestampMs(header.time_ms), TimestampMs(record.wall_ms)) {
            clock_trusted = clock_trusted.max(TimestampMs(header.time_ms));
        }
        log_bytes += frame.payload.len() as u64;
        if overlay.view().active.bytes() >= builder.limits.fold_bytes {
            let map = overlay.into_map();
            let meta = Meta {
                epoch: log.epoch,
                applied_epoch: position.epoch,
                applied_sequence: position.sequence,
                clock_mark_ms: last_time.0,
                clock_trusted_ms: clock_trusted.0,
                ..meta
            };
            let snapshot = folder.fold_at_open(&Fold {
                map,
                meta,
                log_bytes: std::mem::take(&mut log_bytes),
                forced: Vec::new(),
            })?;
            let done = position.sequence.saturating_sub(total_start(log.durable, total));
            tracing::info!(done, total, "applying the log");
            overlay = Overlay::new(&View::new(snapshot));
        }
    }
    let view = overlay.view().clone();
    Ok((identity, log, folder, CaughtUp { view, position, last_time, clock_trusted, history, log_bytes }))
}

const fn total_start(durable: u64, total: u64) -> u64 {
    durable.saturating_sub(total)
}

/// Puts the running parts together and makes the builder's declarations durable.
fn start(
    builder: StoreBuilder,
    disk: Arc<dyn Disk>,
    gate: WriteGate,
    lock: Box<dyn crate::disk::DiskLock>,
    opened: Opened,
) -> Result<Store, OpenError> {
    let (identity, log, folder, state) = catch_up(&builder, opened, &disk, &gate).inspect_err(|_| gate.refuse())?;
    let floor = state.history.floor();
    if log.oldest > floor {
        tracing::warn!(from = floor, to = log.oldest - 1, "entries of the log are missing; run verify");
    }
    tracing::debug!(epoch = log.epoch, position = %state.position, report = ?log.report, "the log is recovered");
    let mut declarations = declare(&state.view, &builder.tables)?;
    let sending = left_sending(&state.view).map_err(|error| OpenError::State(error.to_string()))?;
    declarations.extend(sending);
    let number = next_number();
    let store_id = StoreId(identity.store_id);
    let operations = builder.operations_by_name();
    let headers = builder.header_set();
    let accepted = get_system::<ClockRow>(&state.view, System::Clock, CLOCK_ACCEPTED)
        .map_err(|error| OpenError::State(error.to_string()))?;
    let time = Arc::new(StoreTime::start(
        Arc::clone(&builder.clock),
        state.last_time,
        state.clock_trusted,
        builder.clock_leap_max,
        Duration::from_millis(accepted.map_or(0, |row| row.ahead_ms)),
    ));
    let claims = left_claims(&state.view, state.last_time, time.now());
    declarations.extend(claims.map_err(|error| OpenError::State(error.to_string()))?);
    let shared = Arc::new(Shared {
        number,
        store_id,
        epoch: log.epoch,
        disk: Arc::clone(&disk),
        hash_keys: HashKeys::derive(&identity.secret),
        time: Arc::clone(&time),
        queue: Queue::new(&builder.limits),
        limits: builder.limits,
        catalog: builder.catalog,
        tables: Arc::new(builder.declared),
        operations,
        headers,
        doorkeeper: Doorkeeper { store: number, guard: builder.guard, time, clock_tolerance: builder.clock_tolerance },
        quotas: builder.quotas,
        redaction: builder.redaction,
        providers: builder.providers.into_iter().map(|provider| (provider.name.clone(), provider)).collect(),
        continuations: builder.continuations,
        run_id: run_id(&identity.secret, log.epoch),
        publisher: Publisher::new(Published { view: state.view, position: state.position }),
        poison: super::poison::Poison::default(),
        state_file: parking_lot::RwLock::new(gate),
        counters: super::counters::Counters::default(),
        measures: super::measures::Measures::default(),
        activity: super::activity::Activity::default(),
        readers: Readers::default(),
        recovery: log.report,
        history: state.history,
    });
    let workshop = Workshop { disk, store_id };
    let engines =
        Engines { log: log.appender, folder, workshop, last_time: state.last_time, log_bytes: state.log_bytes };
    let store = Store::start(shared, engines, lock, builder.manual, declarations);
    store.map_err(|error| match error {
        StartError::Thread(source) => {
            OpenError::Io { action: "start", file: "a thread of the store".to_owned(), source }
        }
        StartError::Declare(Error::DiskFull(reason)) => OpenError::DiskFull(reason),
        StartError::Declare(error) => OpenError::State(format!("tables could not be declared: {error}")),
    })
}

/// Every opening has an epoch of its own, so its keyed hash tells runs apart and repeats with the seed of a test.
fn run_id(secret: &[u8; 32], epoch: u64) -> [u8; 16] {
    let mut run_id = [0; 16];
    let key = blake3::derive_key("counterfoil 2026 run of a store v1", secret);
    run_id.copy_from_slice(&blake3::keyed_hash(&key, &epoch.to_le_bytes()).as_bytes()[..16]);
    run_id
}

/// Why the running parts could not be started.
pub(super) enum StartError {
    Thread(io::Error),
    Declare(Error),
}

/// Compares the declared tables with the stored ones. What is new or has a higher version is declared by a frame.
fn declare(view: &View, tables: &[TableDeclaration]) -> Result<Vec<Body>, OpenError> {
    let mut bodies = Vec::new();
    for declared in tables {
        let stored = get_system::<TableDeclaration>(view, System::Tables, declared.name.as_bytes())
            .map_err(|error| OpenError::State(error.to_string()))?;
        let declaration = match stored {
            None => declared.clone(),
            Some(stored) => match TableDeclaration::check(&stored, declared)? {
                Compat::Same => continue,
                Compat::Redeclare(declaration) => declaration,
            },
        };
        bodies.push(Body::TableDeclared(TableRecord {
            name: declaration.name,
            key_type: declaration.key_type,
            codec: declaration.codec.id(),
            version: declaration.version,
            upgrades_from: declaration.upgrades_from,
            retired: declaration.retired,
            rows_of: declaration.rows_of,
        }));
    }
    Ok(bodies)
}
