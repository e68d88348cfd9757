//! The handle of a running lab.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;

use super::error::LabError;
use super::faults::Faults;
use super::member::{Coming, Life, Member, Said, ready};
use super::recorder::Recorder;
use crate::history::{FORMAT, HistoryEvent, Plan};
use crate::process::clock;
use crate::process::report::ReportLine;
use crate::process::run_dir::{RunDescription, RunDir, Runs, Swept};
use crate::process::spawn::{Child, ChildSpec};
use crate::process::sys::{self, ProcessIdentity, Signal};
use crate::process::watcher::Watcher;
use crate::provider::{self, ProviderArguments};
use crate::replica::start::{self, ReplicaArguments};
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
pub(super) const CONFIRM_WITHIN: Duration = Duration::from_secs(2);

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

    /// The directory and the watcher. [`Lab::bring_up`] does the rest, and can be given up at any point: then
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
        for result in crate::process::join::join_all(told).await {
            result?;
        }
        Ok(())
    }

    /// Tells one replica everything that it does not know.
    pub(super) async fn bring_up_to_date(&self, id: ReplicaId, client: ReplicaClient) -> Result<(), LabError> {
        let addresses = self.addresses();
        let silent = |error| LabError::Silent { replica: id, error };
        client.control(Control::Addresses(addresses), CONFIRM_WITHIN).await.map_err(silent)?;
        self.bring_faults_up_to_date(id, client).await
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

type Spawned = (Child, tokio::sync::oneshot::Receiver<super::member::Ready>);

impl Inner {
    /// Starts a replica's process on its disk, or on a new one.
    pub(super) fn spawn_replica(
        self: &Arc<Self>,
        id: ReplicaId,
        standing_if_new: Standing,
    ) -> Result<Spawned, LabError> {
        let name = file_name(id);
        let LabOptions { members, knobs, patience, .. } = &self.options;
        let arguments = ReplicaArguments {
            run: self.run.clone(),
            parent: self.own,
            id,
            members: *members,
            knobs: *knobs,
            patience_ms: (patience.answer_ms, patience.catch_up_ms),
            disk: self.path(|dir| dir.disk(&name))?,
            standing_if_new,
            traces: self.options.traces,
        };
        self.spawn(
            Endpoint::Replica(id),
            &name,
            start::COMMAND,
            &serde_json::to_string(&arguments).map_err(std::io::Error::from)?,
        )
    }

    fn spawn_provider(self: &Arc<Self>) -> Result<Spawned, LabError> {
        let disk = self.path(|dir| dir.disk("provider"))?;
        let arguments = ProviderArguments { run: self.run.clone(), parent: self.own, disk };
        let arguments = serde_json::to_string(&arguments).map_err(std::io::Error::from)?;
        self.spawn(Endpoint::Provider, "provider", provider::COMMAND, &arguments)
    }

    fn spawn(self: &Arc<Self>, who: Endpoint, name: &str, command: &str, arguments: &str) -> Result<Spawned, LabError> {
        if self.ending.load(Ordering::SeqCst) {
            return Err(LabError::Ending);
        }
        let (mut coming, receiver) = Coming::new(&self.run);
        let spec = ChildSpec {
            name: name.to_owned(),
            program: self.options.program.clone(),
            arguments: vec![OsString::from(command), OsString::from(arguments)],
            log: self.path(|dir| dir.log(name))?,
        };
        let listener = Arc::downgrade(self);
        let child = Child::spawn(spec, move |report| {
            if let (Some(said), Some(inner)) = (coming.look(report), Weak::upgrade(&listener)) {
                inner.hear(who, said);
            }
        })?;
        let mut state = lock(&self.state);
        state.started.push(child.clone());
        // It is watched before anything else is done with it. A watcher that is gone is replaced when that is noticed.
        drop(state.watcher.watch(child.identity()));
        drop(state);
        Ok((child, receiver))
    }

    /// A replica is ready.
    pub(super) fn admit(
        &self,
        id: ReplicaId,
        child: Child,
        told: super::member::Ready,
        standing_if_new: Standing,
        wiped: u32,
    ) -> Result<(), LabError> {
        let disk = told.disk.ok_or_else(|| LabError::NotStarted {
            name: child.name().to_owned(),
            why: "it named no disk".to_owned(),
        })?;
        let pid = child.identity().pid;
        self.recorder.note_of(id, HistoryEvent::ProcessStarted { pid, disk: Some(disk.clone()) });
        let client = ReplicaClient::new(told.port, &self.run);
        // It may have died between the word that it is ready and now.
        let life = if child.has_ended() { Life::Crashed } else { Life::Running };
        let member = Member {
            child,
            client,
            port: told.port,
            disk,
            life,
            standing_if_new,
            rules: Default::default(),
            holds: Default::default(),
            wiped,
        };
        lock(&self.state).members.insert(id, member);
        Ok(())
    }

    pub(super) fn path(&self, read: impl FnOnce(&RunDir) -> PathBuf) -> Result<PathBuf, LabError> {
        lock(&self.dir).as_ref().map(read).ok_or(LabError::Ending)
    }

    /// A child said something. This runs on the child's own thread, in the order in which it was said.
    fn hear(&self, who: Endpoint, said: Said) {
        match said {
            Said::Line(ReportLine::Ready { .. }) => {}
            Said::Line(ReportLine::Reached { hold, op: _, at, time }) => {
                self.recorder.tell(time, who, HistoryEvent::Held(at.clone()));
                if let Endpoint::Replica(by) = who {
                    lock(&self.state).faults.reached(hold, by, at);
                }
            }
            Said::Line(ReportLine::Hit { rule, time }) => {
                self.recorder.tell(time, who, HistoryEvent::RuleHit { rule });
                lock(&self.state).faults.hit(rule);
            }
            Said::Line(ReportLine::Event { event, time }) => self.recorder.tell(time, who, event),
            Said::Ended(status) => self.ended(who, &status),
        }
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// A child is gone and was waited for. Who was killed on purpose has not crashed.
    fn ended(&self, who: Endpoint, status: &str) {
        let mut state = lock(&self.state);
        let mut wanted = self.ending.load(Ordering::SeqCst);
        if let Endpoint::Replica(id) = who
            && let Some(member) = state.members.get_mut(&id)
            && member.child.has_ended()
        {
            if member.life.is_alive() {
                member.life = Life::Crashed;
            }
            wanted |= member.life == Life::Killed;
        }
        let gone = state.started.iter().filter(|child| child.has_ended()).map(Child::identity).collect::<Vec<_>>();
        for identity in gone {
            drop(state.watcher.forget(identity));
        }
        drop(state);
        let how = status.to_owned();
        self.recorder.tell(clock::now(), who, HistoryEvent::ProcessEnded { how, wanted });
    }
}

impl Inner {
    /// Kills everybody and removes the directory, without a word and without waiting.
    pub(super) fn end_at_once(&self) {
        self.ending.store(true, Ordering::SeqCst);
        let state = lock(&self.state);
        let watcher = state.watcher.child().identity();
        for child in state.started.iter().filter(|child| child.identity() != watcher) {
            // Who is gone cannot be killed.
            drop(child.signal(Signal::Kill));
        }
        // The watcher is not dismissed: when this process is gone, it looks after who is left.
        drop(state);
        if let Some(dir) = lock(&self.dir).take() {
            drop(dir.remove());
        }
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

/// The name of a replica in file names: lower case, since that is what the command line says.
pub(super) fn file_name(id: ReplicaId) -> String {
    id.letter().to_ascii_lowercase().to_string()
}
