//! The handle of a running lab.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::error::LabError;
use super::faults::Faults;
use super::member::{Life, Member, ready};
use super::recorder::Recorder;
use crate::history::{FORMAT, HistoryEvent, Plan};
use crate::process::clock;
use crate::process::join::join_all;
use crate::process::run_dir::{RunDescription, RunDir, Runs, Swept};
use crate::process::spawn::Child;
use crate::process::sys::{self, ProcessIdentity};
use crate::process::watcher::Watcher;
use crate::rules::ids::{Endpoint, ReplicaId, RunId};
use crate::rules::knobs::Knobs;
use crate::rules::majority::Members;
use crate::rules::record::Standing;
use crate::rules::replica::Patience;
use crate::rules::verdict::Expected;
use crate::wire::provider::ProviderClient;
use crate::wire::replica::{Addresses, Control, ReplicaClient};
use crate::wire::supervisor::Description;

/// How long a replica may take to confirm what it is told.
pub(super) const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

const CONFIRM_PAUSE: Duration = Duration::from_millis(20);

/// How a lab is to be.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// The binary of which every process is made: this one, unless a test says otherwise.
    pub program: PathBuf,
    /// Where runs keep their files.
    pub runs: Runs,
    /// How many replicas.
    pub members: Members,
    /// The switches.
    pub knobs: Knobs,
    /// For loads and scripts.
    pub seed: u64,
    /// Whether the directory stays at the end.
    pub keep: bool,
    /// How long replicas wait for each other.
    pub patience: Patience,
    /// What the run is to show, for the history and the judge.
    pub plan: Plan,
    /// Whether each message stands in the history, for diagrams.
    pub traces: bool,
}

impl LabOptions {
    /// So many replicas with these switches, of this very binary, in the usual place.
    ///
    /// # Errors
    ///
    /// If there cannot be so many, or the system does not know which binary this is.
    pub fn new(replicas: u8, knobs: Knobs) -> Result<Self, LabError> {
        Ok(Self {
            program: std::env::current_exe()?,
            runs: Runs::new(None),
            members: Members::new(replicas)?,
            knobs,
            seed: 1,
            keep: false,
            patience: Patience::default(),
            plan: Plan {
                name: "up".to_owned(),
                expected: Expected::Honest,
                faults: Vec::new(),
                faults_min: 0,
                load_ms_min: 0,
            },
            traces: true,
        })
    }
}

/// A running lab. Clones are handles to the same one. When the last is dropped without [`Lab::stop`], its processes are
/// killed and its directory is removed, quietly.
#[derive(Debug, Clone)]
pub struct Lab {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) options: LabOptions,
    pub(super) run: String,
    pub(super) own: ProcessIdentity,
    pub(super) dir: Mutex<Option<RunDir>>,
    pub(super) swept: Swept,
    pub(super) recorder: Recorder,
    pub(super) state: Mutex<State>,
    /// Moves when somebody reached a hold, a fault hit, or a child ended.
    pub(super) changed: watch::Sender<u64>,
    /// One at a time does something to processes.
    pub(super) acting: tokio::sync::Mutex<()>,
    pub(super) ending: AtomicBool,
    /// Where work goes that a child's report asks for.
    pub(super) runtime: tokio::runtime::Handle,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) watcher: Watcher,
    pub(super) members: BTreeMap<ReplicaId, Member>,
    pub(super) provider: Option<(Child, u16, ProviderClient)>,
    pub(super) addresses_version: u64,
    pub(super) faults: Faults,
    /// Every process that was ever started.
    pub(super) started: Vec<Child>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lab {
    /// Starts all processes and waits until they serve and know each other. If one fails, the others are ended and
    /// nothing is left.
    ///
    /// # Errors
    ///
    /// [`LabError`] with what failed, and the last words of the process that did.
    pub async fn start(options: LabOptions) -> Result<Self, LabError> {
        let lab = Self::prepare(options)?;
        match lab.bring_up().await {
            Ok(()) => Ok(lab),
            Err(error) => {
                lab.stop().await?;
                Err(error)
            }
        }
    }

    /// The directory and the watcher, within a tokio runtime. [`Lab::bring_up`] does the rest, and can be given up at any point: then
    /// [`Lab::stop`] ends what was started.
    ///
    /// # Errors
    ///
    /// [`LabError`], and nothing is left.
    pub fn prepare(options: LabOptions) -> Result<Self, LabError> {
        sys::become_parent()?;
        let own = ProcessIdentity::own()?;
        let run = format!("{:06x}", fastrand::u32(..0x0100_0000));
        let (dir, swept) = options.runs.create(&run, options.keep)?;
        let recorder = Recorder::create(&dir.history())?;
        let watcher = match Watcher::start(options.program.clone(), dir.log("watcher")) {
            Ok(watcher) => watcher,
            Err(error) => {
                dir.remove()?;
                return Err(error.into());
            }
        };
        let state = State {
            started: vec![watcher.child().clone()],
            watcher,
            members: BTreeMap::new(),
            provider: None,
            addresses_version: 0,
            faults: Faults::default(),
        };
        let (changed, _) = watch::channel(0);
        recorder.note(HistoryEvent::RunStarted {
            format: FORMAT,
            run: RunId(run.clone()),
            members: options.members,
            knobs: options.knobs,
            seed: options.seed,
            plan: options.plan.clone(),
        });
        let inner = Inner {
            options,
            run,
            own,
            dir: Mutex::new(Some(dir)),
            swept,
            recorder,
            state: Mutex::new(state),
            changed,
            acting: tokio::sync::Mutex::default(),
            ending: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Starts provider and replicas, all at the same time, and introduces them to each other.
    ///
    /// # Errors
    ///
    /// [`LabError::NotStarted`] with the last words of the first that failed.
    pub async fn bring_up(&self) -> Result<(), LabError> {
        let inner = &self.inner;
        let (provider, coming) = inner.spawn_provider()?;
        let mut replicas = Vec::new();
        for id in inner.options.members.iter() {
            replicas.push((id, inner.spawn_replica(id, Standing::Founding)?));
        }
        let told = ready(&provider, coming).await?;
        let client = ProviderClient::new(told.port, &inner.run);
        let started = HistoryEvent::ProcessStarted { pid: provider.identity().pid, disk: None };
        inner.recorder.tell(clock::now(), Endpoint::Provider, started);
        lock(&inner.state).provider = Some((provider, told.port, client));
        for (id, (child, coming)) in replicas {
            let told = ready(&child, coming).await?;
            inner.admit(id, child, told, Standing::Founding, 0)?;
        }
        self.introduce().await
    }

    /// Tells every running replica where everybody is, and which rules and holds are armed.
    ///
    /// Who does not confirm it in time learns it later, when it is measured.
    pub(super) async fn introduce(&self) -> Result<(), LabError> {
        lock(&self.inner.state).addresses_version += 1;
        let running = self.running();
        let told = running.iter().map(|(id, client)| self.bring_up_to_date(*id, client.clone()));
        for result in join_all(told).await {
            match result {
                // Somebody may have stopped it by hand: that must not keep the others from going on.
                Ok(()) | Err(LabError::Silent { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells one replica everything that it does not know.
    pub(super) async fn bring_up_to_date(&self, id: ReplicaId, client: ReplicaClient) -> Result<(), LabError> {
        let addresses = self.addresses();
        self.confirm(id, &client, Control::Addresses(addresses)).await?;
        self.bring_faults_up_to_date(id, client).await
    }

    /// Tells a replica something that may be told twice, until it confirms it. A connection that broke while it was
    /// paused fails the first call only.
    pub(super) async fn confirm(
        &self,
        id: ReplicaId,
        client: &ReplicaClient,
        control: Control,
    ) -> Result<(), LabError> {
        let began = tokio::time::Instant::now();
        loop {
            let remaining = CONFIRM_WITHIN.saturating_sub(began.elapsed());
            match client.control(control.clone(), remaining).await {
                Ok(_) => return Ok(()),
                Err(error) => {
                    let runs = self.life(id).is_ok_and(|life| life == Life::Running);
                    if !runs || began.elapsed() + CONFIRM_PAUSE >= CONFIRM_WITHIN {
                        return Err(LabError::Silent { replica: id, error });
                    }
                    tokio::time::sleep(CONFIRM_PAUSE).await;
                }
            }
        }
    }

    /// Replicas that are neither dead nor paused.
    pub(super) fn running(&self) -> Vec<(ReplicaId, ReplicaClient)> {
        let state = lock(&self.inner.state);
        let running = state.members.iter().filter(|(_, member)| member.life == Life::Running);
        running.map(|(id, member)| (*id, member.client.clone())).collect()
    }

    /// Where everybody listens who lives. Who is dead is not there: its port may be another's by now.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        let state = lock(&self.inner.state);
        let alive = state.members.iter().filter(|(_, member)| member.life.is_alive());
        let replicas = alive.map(|(id, member)| (Endpoint::Replica(*id), member.port));
        let provider = state.provider.iter().map(|(_, port, _)| (Endpoint::Provider, *port));
        Addresses { version: state.addresses_version, ports: replicas.chain(provider).collect() }
    }

    /// Which run this is, and where everybody is.
    #[must_use]
    pub fn describe(&self) -> Description {
        let LabOptions { members, knobs, seed, .. } = &self.inner.options;
        Description {
            run: self.inner.run.clone(),
            pid: self.inner.own.pid,
            directory: self.directory().map_or_else(String::new, |path| path.display().to_string()),
            seed: *seed,
            knobs: *knobs,
            configured: members.configured(),
            ports: self.addresses().ports,
        }
    }

    /// A client of one replica: dead or alive, it is the port that was its last.
    ///
    /// # Errors
    ///
    /// [`LabError::UnknownReplica`].
    pub fn replica(&self, id: ReplicaId) -> Result<ReplicaClient, LabError> {
        let state = lock(&self.inner.state);
        state.members.get(&id).map(|member| member.client.clone()).ok_or_else(|| self.unknown(id))
    }

    /// The configured members.
    #[must_use]
    pub fn members(&self) -> Members {
        self.inner.options.members
    }

    /// The run's name.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.inner.run
    }

    /// Where the run keeps its files; nothing once it has ended.
    #[must_use]
    pub fn directory(&self) -> Option<PathBuf> {
        lock(&self.inner.dir).as_ref().map(|dir| dir.path().to_owned())
    }

    /// What dead runs had left and this one removed.
    #[must_use]
    pub fn swept(&self) -> Swept {
        self.inner.swept
    }

    /// The history of the run.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Who was started, ever: for a check that all are gone.
    #[must_use]
    pub fn processes(&self) -> Vec<ProcessIdentity> {
        lock(&self.inner.state).started.iter().map(Child::identity).collect()
    }

    /// Tells other terminals where the supervisor listens.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn publish(&self, port: u16) -> Result<(), LabError> {
        let description = RunDescription { run: self.inner.run.clone(), supervisor: self.inner.own, port };
        match &*lock(&self.inner.dir) {
            Some(dir) => Ok(dir.describe(&description)?),
            None => Err(LabError::Ending),
        }
    }

    pub(super) fn unknown(&self, replica: ReplicaId) -> LabError {
        LabError::UnknownReplica { replica, members: self.inner.options.members }
    }
}

impl Drop for Inner {
    /// For whoever forgot to stop it, or panicked.
    fn drop(&mut self) {
        self.end_at_once();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.watcher.child().ask_to_end();
    }
}
