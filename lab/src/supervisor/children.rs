//! The processes of a lab: how they are started, and what is done with what they say.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::error::LabError;
use super::lab::{Inner, Lab, LabOptions, lock};
use super::member::{Coming, Life, Member, Ready, Said};
use crate::history::HistoryEvent;
use crate::process::clock;
use crate::process::report::ReportLine;
use crate::process::run_dir::RunDir;
use crate::process::spawn::{Child, ChildSpec};
use crate::process::sys::Signal;
use crate::provider::{self, ProviderArguments};
use crate::replica::start::{self, ReplicaArguments};
use crate::rules::ids::{Endpoint, ReplicaId};
use crate::rules::record::Standing;
use crate::wire::replica::ReplicaClient;

type Spawned = (Child, tokio::sync::oneshot::Receiver<Ready>);

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

    pub(super) fn spawn_provider(self: &Arc<Self>) -> Result<Spawned, LabError> {
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
        told: Ready,
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
    fn hear(self: &Arc<Self>, who: Endpoint, said: Said) {
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
                if lock(&self.state).faults.hit(rule) {
                    let lab = Lab { inner: Arc::clone(self) };
                    // Who does not confirm it in time is told with the next rule.
                    self.runtime.spawn(async move { drop(lab.tell_all().await) });
                }
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

/// The name of a replica in file names: lower case, since that is what the command line says.
pub(super) fn file_name(id: ReplicaId) -> String {
    id.letter().to_ascii_lowercase().to_string()
}
