//! Every way into the process: what clients, other replicas and the supervisor ask.

use std::sync::Arc;

use serde::Serialize;

use super::disk::Disk;
use super::drive::Inbox;
use super::link::{Link, Lost, about};
use crate::rules::fault::{Direction, Passage};
use crate::rules::ids::{Endpoint, Key, ReplicaId};
use crate::rules::message::{Message, MessageKind, Reply};
use crate::rules::outcome::{Outcome, Refused};
use crate::rules::record::Request;
use crate::wire::replica::{Control, Controlled, Handler, ReplicaStatus};

/// What the gRPC server calls.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) link: Arc<Link>,
    pub(super) inbox: Inbox,
    pub(super) disk: Disk,
}

impl Server {
    /// Work on the disk, on a thread that may wait for it.
    async fn with_disk<T, E, F>(&self, work: F) -> Result<T, String>
    where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
        F: FnOnce(&Disk) -> Result<T, E> + Send + 'static,
    {
        let disk = self.disk.clone();
        let done = tokio::task::spawn_blocking(move || work(&disk)).await;
        done.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

impl Handler for Server {
    async fn execute(&self, to: Option<ReplicaId>, request: Request) -> Result<Outcome, String> {
        let me = self.link.me();
        if to.is_some_and(|to| to != me) {
            return Ok(Outcome::Refused(Refused::NotReady));
        }
        let (key, attempt) = (request.key.clone(), Some(request.attempt));
        let passage = |direction| Passage {
            from: Endpoint::Client,
            to: Endpoint::Replica(me),
            direction,
            kind: MessageKind::Request,
            key: Some(&key),
            attempt,
        };
        if self.link.pass(passage(Direction::Request)).await == Err(Lost) {
            // Nothing comes back. The client goes away, and this future with it.
            return std::future::pending().await;
        }
        self.link.received(&passage(Direction::Request));
        // The request goes on by itself: it does not end when the client goes away.
        let outcome = self.inbox.execute(request).await?;
        self.link.sent(&passage(Direction::Reply));
        if self.link.pass(passage(Direction::Reply)).await == Err(Lost) {
            return std::future::pending().await;
        }
        Ok(outcome)
    }

    async fn peer(&self, from: ReplicaId, to: ReplicaId, message: Message) -> Result<Reply, String> {
        if to != self.link.me() {
            return Ok(Reply::NotMine);
        }
        let (kind, about) = (message.kind(), about(&message));
        let passage = |direction| Passage {
            from: Endpoint::Replica(from),
            to: Endpoint::Replica(to),
            direction,
            kind,
            key: about.key.as_ref(),
            attempt: about.attempt,
        };
        self.link.received(&passage(Direction::Request));
        let reply = self.inbox.peer(from, message).await?;
        self.link.sent(&passage(Direction::Reply));
        Ok(reply)
    }

    fn ping(&self) -> (String, ReplicaId, u64) {
        (self.link.run().to_owned(), self.link.me(), self.link.addresses_version())
    }

    async fn probe(&self) -> Result<String, String> {
        self.with_disk(Disk::probe).await
    }

    async fn status(&self) -> Result<ReplicaStatus, String> {
        let (records, effects) = self.with_disk(Disk::counts).await?;
        Ok(ReplicaStatus {
            replica: self.link.me(),
            pid: std::process::id(),
            disk: self.disk.identity(),
            records,
            effects,
            open_requests: self.inbox.open_requests(),
            sees: self.link.sees(),
        })
    }

    async fn where_is(&self, key: Key) -> Result<String, String> {
        json(&self.with_disk(move |disk| disk.held_for(&key)).await?)
    }

    async fn contents(&self) -> Result<String, String> {
        json(&self.with_disk(Disk::contents).await?)
    }

    async fn control(&self, control: Control) -> Result<Controlled, String> {
        let mut done = Controlled { count: 0, reply: None };
        match control {
            Control::Addresses(addresses) => self.link.learn(addresses),
            Control::ArmFault(id, rule) => self.link.arm(id, rule),
            Control::DisarmFault(id) => done.count = self.link.disarm(id),
            Control::ArmHold(id, hold) => self.inbox.hold(id, hold),
            Control::ReleaseHold(id) => done.count = self.inbox.release(id),
            Control::TakeOver => done.reply = Some(self.inbox.take_over().await?),
            Control::Healed => self.inbox.healed(),
        }
        Ok(done)
    }
}
