//! What is asked of whoever commits operations, and the two ways to share something that commits.

use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::{During as _, Failure, Outcome};
use crate::floor::Floor;
use crate::harness::Plan;
use crate::ours::Counterfoil;
use crate::redb_peer::Redb;
use crate::sqlite_peer::Sqlite;
use crate::workload::Op;

/// Most operations in one batch made by hand; this store's own default.
const BATCH_OPERATIONS_MAX: usize = 1024;

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PeerKind {
    /// Append the same bytes to a preallocated file, fdatasync.
    Floor,
    /// This store.
    Counterfoil,
    /// redb, one immediate transaction per operation.
    Redb,
    /// redb, one immediate transaction per batch.
    RedbBatched,
    /// SQLite, WAL, synchronous=FULL, one connection behind a mutex.
    Sqlite,
    /// SQLite, one transaction per batch.
    SqliteBatched,
}

impl PeerKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Counterfoil => "counterfoil",
            Self::Redb => "redb",
            Self::RedbBatched => "redb-batched",
            Self::Sqlite => "sqlite",
            Self::SqliteBatched => "sqlite-batched",
        }
    }

    /// Commits one operation at a time, as a program does that thinks no further.
    pub(crate) const fn is_unbatched_peer(self) -> bool {
        matches!(self, Self::Redb | Self::Sqlite)
    }

    pub(crate) const fn is_batched_peer(self) -> bool {
        matches!(self, Self::RedbBatched | Self::SqliteBatched)
    }

    /// Opens it in a directory of its own.
    pub(crate) fn open(self, plan: &Plan, directory: &Path) -> Outcome<Box<dyn Peer>> {
        std::fs::create_dir_all(directory).during("making a directory for a peer")?;
        Ok(match self {
            Self::Floor => Box::new(OneByOne::new(Floor::open(directory, plan.frame_bytes)?)),
            Self::Counterfoil => Box::new(Counterfoil::open(directory, plan.checkpoint_log_bytes)?),
            Self::Redb => Box::new(OneByOne::new(Redb::open(directory)?)),
            Self::RedbBatched => Box::new(ByBatch::start(Redb::open(directory)?)?),
            Self::Sqlite => Box::new(OneByOne::new(Sqlite::open(directory)?)),
            Self::SqliteBatched => Box::new(ByBatch::start(Sqlite::open(directory)?)?),
        })
    }
}

/// Something that clients commit operations to.
pub(crate) trait Peer: Send + Sync {
    /// One more client.
    fn client(&self) -> Box<dyn Client + '_>;

    /// Checkpoints so far.
    fn checkpoints(&self) -> u64 {
        0
    }

    /// Waits for work in the background, so that it does not run into the next peer's turn.
    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    /// Closes it and says how many orders it holds.
    fn finish(self: Box<Self>) -> Outcome<u64>;
}

/// One client of a peer.
pub(crate) trait Client: Send {
    /// Returns when the operation is durable.
    fn execute(&mut self, op: Op) -> Outcome<()>;
}

/// Something that makes operations durable, all of them or none.
pub(crate) trait Commit: Send + 'static {
    fn commit(&mut self, ops: &[Op]) -> Outcome<()>;

    /// How many orders it holds.
    fn orders(&mut self) -> Outcome<u64>;
}

/// A mutex around it: one commit for each operation.
struct OneByOne<C>(Mutex<C>);

impl<C: Commit> OneByOne<C> {
    fn new(commit: C) -> Self {
        Self(Mutex::new(commit))
    }
}

impl<C: Commit> Peer for OneByOne<C> {
    fn client(&self) -> Box<dyn Client + '_> {
        Box::new(self)
    }

    fn finish(self: Box<Self>) -> Outcome<u64> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner).orders()
    }
}

impl<C: Commit> Client for &OneByOne<C> {
    fn execute(&mut self, op: Op) -> Outcome<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).commit(&[op])
    }
}

/// What a client hands to the writer thread.
struct Request {
    op: Op,
    answer: SyncSender<Outcome<()>>,
}

/// A writer thread that drains a channel: one commit for whatever arrived during the last one.
struct ByBatch<C> {
    requests: Sender<Request>,
    writer: JoinHandle<C>,
}

impl<C: Commit> ByBatch<C> {
    fn start(mut commit: C) -> Outcome<Self> {
        let (requests, inbox) = channel();
        let writer = std::thread::Builder::new()
            .name("by-hand".to_owned())
            .spawn(move || {
                write_batches(&mut commit, &inbox);
                commit
            })
            .during("starting the thread that batches by hand")?;
        Ok(Self { requests, writer })
    }
}

fn write_batches(commit: &mut impl Commit, inbox: &Receiver<Request>) {
    let (mut ops, mut answers) = (Vec::new(), Vec::new());
    while let Ok(first) = inbox.recv() {
        let rest = std::iter::from_fn(|| inbox.try_recv().ok());
        for request in std::iter::once(first).chain(rest).take(BATCH_OPERATIONS_MAX) {
            ops.push(request.op);
            answers.push(request.answer);
        }
        let outcome = commit.commit(&ops);
        ops.clear();
        for answer in answers.drain(..) {
            // A client that has left is not waiting.
            drop(answer.send(outcome.clone()));
        }
    }
}

impl<C: Commit> Peer for ByBatch<C> {
    fn client(&self) -> Box<dyn Client + '_> {
        let (answer, answers) = sync_channel(1);
        Box::new(BatchClient { requests: self.requests.clone(), answer, answers })
    }

    fn finish(self: Box<Self>) -> Outcome<u64> {
        let Self { requests, writer } = *self;
        drop(requests);
        writer.join().map_err(|_| writer_gone())?.orders()
    }
}

struct BatchClient {
    requests: Sender<Request>,
    answer: SyncSender<Outcome<()>>,
    answers: Receiver<Outcome<()>>,
}

impl Client for BatchClient {
    fn execute(&mut self, op: Op) -> Outcome<()> {
        self.requests.send(Request { op, answer: self.answer.clone() }).map_err(|_| writer_gone())?;
        self.answers.recv().map_err(|_| writer_gone())?
    }
}

fn writer_gone() -> Failure {
    Failure::new("the thread that batches by hand has panicked", "its message is above; --peers leaves this peer out")
}
