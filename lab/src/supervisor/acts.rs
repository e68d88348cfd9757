//! What can be done to replicas.

use super::children::file_name;
use super::error::LabError;
use super::lab::{CONFIRM_WITHIN, Lab, lock};
use super::member::{Life, Member, ready};
use crate::history::HistoryEvent;
use crate::process::spawn::Child;
use crate::process::sys::Signal;
use crate::rules::ids::{Endpoint, ReplicaId};
use crate::rules::message::Reply;
use crate::rules::record::Standing;
use crate::wire::replica::Control;

/// How long a process that was sent SIGKILL may take to be gone. The system takes some milliseconds.
const GONE_WITHIN: std::time::Duration = std::time::Duration::from_secs(5);

impl Lab {
    /// `kill -9`. It is gone when this returns.
    ///
    /// # Errors
    ///
    /// [`LabError::DeadAlready`].
    pub async fn kill(&self, id: ReplicaId) -> Result<(), LabError> {
        let _one = self.inner.acting.lock().await;
        let child = self.with_member(id, |member| {
            if !member.life.is_alive() {
                return Err(LabError::DeadAlready(id));
            }
            member.child.signal(Signal::Kill)?;
            // Whoever learns of its end knows that it was wanted.
            member.life = Life::Killed;
            Ok(member.child.clone())
        })?;
        self.gone(&child).await
    }

    /// Waits until a child was waited for.
    async fn gone(&self, child: &Child) -> Result<(), LabError> {
        let mut changed = self.inner.changed.subscribe();
        let gone = async { while !child.has_ended() && changed.changed().await.is_ok() {} };
        if tokio::time::timeout(GONE_WITHIN, gone).await.is_ok() {
            return Ok(());
        }
        Err(std::io::Error::other(format!("{} was killed and is still there", child.identity())).into())
    }

    /// `kill -STOP`: it does nothing any more, and the system goes on accepting connections for it.
    ///
    /// # Errors
    ///
    /// [`LabError::Dead`], [`LabError::Paused`].
    pub async fn pause(&self, id: ReplicaId) -> Result<(), LabError> {
        let _one = self.inner.acting.lock().await;
        self.with_member(id, |member| match member.life {
            Life::Running => {
                member.child.signal(Signal::Pause)?;
                member.life = Life::Paused;
                Ok(())
            }
            Life::Paused => Err(LabError::Paused(id)),
            Life::Killed | Life::Crashed => Err(LabError::Dead(id)),
        })?;
        self.inner.recorder.note_of(id, HistoryEvent::Paused);
        Ok(())
    }

    /// `kill -CONT`: it goes on where it was, and knows nothing of the time between. When this returns, it knows the
    /// addresses and rules that changed meanwhile.
    ///
    /// # Errors
    ///
    /// [`LabError::Dead`], [`LabError::NotPaused`].
    pub async fn resume(&self, id: ReplicaId) -> Result<(), LabError> {
        let _one = self.inner.acting.lock().await;
        let client = self.with_member(id, |member| match member.life {
            Life::Paused => {
                member.child.signal(Signal::Resume)?;
                member.life = Life::Running;
                Ok(member.client.clone())
            }
            Life::Running => Err(LabError::NotPaused(id)),
            Life::Killed | Life::Crashed => Err(LabError::Dead(id)),
        })?;
        self.inner.recorder.note_of(id, HistoryEvent::Resumed);
        self.bring_up_to_date(id, client).await
    }

    /// Starts it again: a new process on the same disk, or on an empty one if it was wiped.
    ///
    /// # Errors
    ///
    /// [`LabError::Alive`], [`LabError::NotStarted`].
    pub async fn restart(&self, id: ReplicaId) -> Result<(), LabError> {
        let _one = self.inner.acting.lock().await;
        let (standing, wiped) = self.with_member(id, |member| {
            if member.life.is_alive() {
                return Err(LabError::Alive(id));
            }
            Ok((member.standing_if_new, member.wiped))
        })?;
        let (child, coming) = self.inner.spawn_replica(id, standing)?;
        let told = match ready(&child, coming).await {
            Ok(told) => told,
            Err(error) => {
                // Half started is not started.
                drop(child.signal(Signal::Kill));
                return Err(error);
            }
        };
        self.inner.admit(id, child, told, standing, wiped)?;
        self.introduce().await
    }

    /// Takes its disk away: it goes to the evidence, which only the judge reads. The next start makes an empty one.
    ///
    /// # Errors
    ///
    /// [`LabError::Alive`].
    pub async fn wipe(&self, id: ReplicaId) -> Result<(), LabError> {
        let _one = self.inner.acting.lock().await;
        let number =
            self.with_member(
                id,
                |member| {
                    if member.life.is_alive() { Err(LabError::Alive(id)) } else { Ok(member.wiped + 1) }
                },
            )?;
        let name = file_name(id);
        let disk = self.inner.path(|dir| dir.disk(&name))?;
        if !disk.exists() {
            return Err(LabError::Disk(format!("replica {id} has been wiped already: there is no disk")));
        }
        std::fs::rename(disk, self.inner.path(|dir| dir.evidence().join(format!("{name}-{number}")))?)?;
        let disk = self.with_member(id, |member| {
            member.wiped = number;
            member.standing_if_new = Standing::Behind;
            Ok(member.disk.clone())
        })?;
        self.inner.recorder.note_of(id, HistoryEvent::Wiped { incarnation: disk.incarnation });
        Ok(())
    }

    /// Has a replica ask the keeper for the right to execute (atomic-fenced). An act of a script, never an election.
    ///
    /// # Errors
    ///
    /// [`LabError::Dead`], [`LabError::Silent`].
    pub async fn take_over(&self, id: ReplicaId) -> Result<Reply, LabError> {
        let client = self.with_member(id, |member| match member.life {
            Life::Running => Ok(member.client.clone()),
            Life::Paused => Err(LabError::Paused(id)),
            Life::Killed | Life::Crashed => Err(LabError::Dead(id)),
        })?;
        let silent = |error| LabError::Silent { replica: id, error };
        let done = client.control(Control::TakeOver, CONFIRM_WITHIN * 2).await.map_err(silent)?;
        Ok(done.reply.unwrap_or(Reply::KeeperSilent))
    }

    /// A planned fault has taken place: for the judge, who asks whether it fell where it was planned.
    pub fn fell(&self, fault: &str, whom: Endpoint) {
        self.inner.recorder.note(HistoryEvent::FaultFell { fault: fault.to_owned(), whom });
    }

    /// What the supervisor did to it last.
    ///
    /// # Errors
    ///
    /// [`LabError::UnknownReplica`].
    pub fn life(&self, id: ReplicaId) -> Result<Life, LabError> {
        self.with_member(id, |member| Ok(member.life))
    }

    pub(super) fn with_member<T>(
        &self,
        id: ReplicaId,
        work: impl FnOnce(&mut Member) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let mut state = lock(&self.inner.state);
        work(state.members.get_mut(&id).ok_or_else(|| self.unknown(id))?)
    }
}
