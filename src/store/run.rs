//! The running parts of a store: three threads, or none in `manual` mode.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::base::error::Error;
use crate::base::mutant::{self, Mutant};
use crate::base::position::TimestampMs;
use crate::base::sync::Mutex;
use crate::base::sync::mpsc::{Receiver, TryRecvError, channel};
use crate::base::sync::thread::{self, JoinHandle, ThreadId};
use crate::disk::DiskLock;
use crate::log::Appender;
use crate::log::record::Body;

use super::folder::{Folder, Task};
use super::mutation;
use super::open::StartError;
use super::reentry;
use super::segments::{NextSegment, Workshop};
use super::shared::Shared;
use super::writer::{Control, FolderLink, Writer};

/// What opening hands to the running parts.
#[derive(Debug)]
pub(super) struct Engines {
    pub(super) log: Appender,
    pub(super) folder: Folder,
    pub(super) workshop: Workshop,
    pub(super) last_time: TimestampMs,
    pub(super) log_bytes: u64,
}

/// The running parts, held by the store's handles together.
#[derive(Debug)]
pub(super) struct Run {
    shared: Arc<Shared>,
    mode: Mode,
    lock: HeldLock,
}

/// The lock on the directory: released when the store is closed and its threads have ended. The writer's thread has a
/// share in it, since the last handle may go while that thread is still at work.
type HeldLock = Arc<Mutex<Option<Box<dyn DiskLock>>>>;

#[derive(Debug)]
enum Mode {
    Threads { writer: Mutex<Option<JoinHandle<Result<(), Error>>>>, writer_thread: ThreadId },
    Manual(Mutex<Option<Box<Writer>>>),
}

impl Run {
    pub(super) fn start(
        shared: Arc<Shared>,
        engines: Engines,
        lock: Box<dyn DiskLock>,
        manual: bool,
        declarations: Vec<Body>,
    ) -> Result<Self, StartError> {
        let Engines { log, folder, workshop, last_time, log_bytes } = engines;
        let lock: HeldLock = Arc::new(Mutex::new(Some(lock)));
        let mode = if manual {
            let link = FolderLink::Manual { folder: Box::new(folder), tasks: std::collections::VecDeque::new() };
            let next = NextSegment::manual(workshop);
            let mut writer = Writer::new(Arc::clone(&shared), log, next, link, last_time, log_bytes);
            writer.commit_own(declarations).map_err(StartError::Declare)?;
            Mode::Manual(Mutex::new(Some(Box::new(writer))))
        } else {
            let next = NextSegment::threaded(workshop).map_err(StartError::Thread)?;
            let (sender, tasks) = channel();
            let folding = spawn_folder(&shared, folder, tasks).map_err(StartError::Thread)?;
            let link = FolderLink::Thread(sender);
            let mut writer = Writer::new(Arc::clone(&shared), log, next, link, last_time, log_bytes);
            writer.commit_own(declarations).map_err(StartError::Declare)?;
            let handle = spawn_writer(&shared, writer, folding, Arc::clone(&lock)).map_err(StartError::Thread)?;
            let writer_thread = handle.thread().id();
            Mode::Threads { writer: Mutex::new(Some(handle)), writer_thread }
        };
        Ok(Self { shared, mode, lock })
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) const fn is_manual(&self) -> bool {
        matches!(self.mode, Mode::Manual(_))
    }

    /// Commits records that no call writes, for tests of what a log may hold.
    #[cfg(test)]
    pub(super) fn commit_own(&self, bodies: Vec<Body>) -> Result<(), Error> {
        let Mode::Manual(writer) = &self.mode else { unreachable!("tests that plant records run in manual mode") };
        writer.lock().as_mut().ok_or(Error::Closed)?.commit_own(bodies)
    }

    /// Does what is due on this thread, in `manual` mode.
    pub(super) fn step(&self) -> Result<bool, Error> {
        if reentry::inside(self.shared.number) {
            return Err(Error::Reentrant);
        }
        let Mode::Manual(writer) = &self.mode else { return Ok(false) };
        let _inside = reentry::enter(self.shared.number);
        let mut writer = writer.lock();
        let Some(running) = writer.as_mut() else { return Err(Error::Closed) };
        let worked = catch_unwind(AssertUnwindSafe(|| running.step()));
        Ok(worked.unwrap_or_else(|_| {
            running.stop_after_panic();
            true
        }))
    }

    /// Ends the running parts: what is queued is still served, then everything is folded. Called by whoever comes
    /// first; others find nothing left to do.
    pub(super) fn close(&self) -> Result<(), Error> {
        if reentry::inside(self.shared.number) {
            return Err(Error::Reentrant);
        }
        self.shared.queue.close();
        let outcome = match &self.mode {
            Mode::Manual(writer) => {
                let _inside = reentry::enter(self.shared.number);
                let mut writer = writer.lock();
                let Some(mut running) = writer.take() else { return Err(Error::Closed) };
                let closed = catch_unwind(AssertUnwindSafe(|| {
                    while running.step() {}
                    running.close(Writer::drain_folder)
                }))
                .unwrap_or_else(|_| {
                    running.stop_after_panic();
                    Err(Error::Poisoned("the writer panicked while closing".to_owned()))
                });
                self.shared.publisher.end();
                reentry::drop_quietly(running);
                self.shared.queue.end();
                closed
            }
            Mode::Threads { writer, .. } => {
                let Some(handle) = writer.lock().take() else { return Err(Error::Closed) };
                handle.join().unwrap_or_else(|_| Err(Error::Poisoned("the writer panicked".to_owned())))
            }
        };
        drop(self.lock.lock().take());
        outcome
    }
}

impl Drop for Run {
    /// The quiet way to close: the last handle is gone. On one of the store's own threads nobody waits for it.
    fn drop(&mut self) {
        if let Mode::Threads { writer_thread, .. } = &self.mode
            && (thread::current().id() == *writer_thread || reentry::inside(self.shared.number))
        {
            self.shared.queue.close();
            return;
        }
        if let Err(error) = self.close()
            && !matches!(error, Error::Closed)
        {
            tracing::warn!(%error, "the store was dropped and could not be closed cleanly; nothing answered is lost");
        }
    }
}

fn spawn_folder(shared: &Arc<Shared>, mut folder: Folder, tasks: Receiver<Task>) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let mutant = mutant::selected();
    thread::Builder::new().name("counterfoil-folder".to_owned()).spawn(move || {
        mutant.take_over();
        let _inside = reentry::enter(shared.number);
        while let Some(task) = next_task(&shared, &mut folder, &tasks) {
            let before = mutant::is(Mutant::FolderPublishes).then(|| shared.publisher.load());
            let mut folded = folder.run(task);
            if let Some(before) = before {
                folded = mutation::publish_folded(&shared, &before, folded);
            }
            if let Some(folded) = folded {
                shared.queue.push_control(Control::Folded(folded));
                // Also when there is always something to fold, so that the log does not outgrow it.
                folder.remove_one();
                compact_one(&shared, &mut folder);
            }
        }
    })
}

/// Does a little of a compaction, if one is under way. Returns whether there may be more to do.
fn compact_one(shared: &Shared, folder: &mut Folder) -> bool {
    let (folded, more) = folder.compact_one();
    if let Some(folded) = folded {
        shared.queue.push_control(Control::Folded(folded));
    }
    more
}

/// The next task of the folder. While there is none, old log segments are removed and the state file is rewritten, if
/// somebody asked for it.
fn next_task(shared: &Shared, folder: &mut Folder, tasks: &Receiver<Task>) -> Option<Task> {
    loop {
        match tasks.try_recv() {
            Ok(task) => return Some(task),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if folder.remove_one() || compact_one(shared, folder) => {}
            Err(TryRecvError::Empty) => return tasks.recv().ok(),
        }
    }
}

fn spawn_writer(
    shared: &Arc<Shared>,
    mut writer: Writer,
    folding: JoinHandle<()>,
    lock: HeldLock,
) -> std::io::Result<JoinHandle<Result<(), Error>>> {
    let shared = Arc::clone(shared);
    let mutant = mutant::selected();
    thread::Builder::new().name("counterfoil-writer".to_owned()).spawn(move || {
        mutant.take_over();
        let _inside = reentry::enter(shared.number);
        // After a panic outside a closure the store is stopped and goes on answering what is certain.
        while catch_unwind(AssertUnwindSafe(|| writer.serve())).is_err() {
            writer.stop_after_panic();
        }
        let closed = catch_unwind(AssertUnwindSafe(|| writer.close(Writer::drain_folder)))
            .unwrap_or_else(|_| Err(Error::Poisoned("the writer panicked while closing".to_owned())));
        drop(writer);
        let folded = folding.join();
        Writer::note_last_words(&shared);
        shared.queue.end();
        drop(lock);
        let stopped = shared.poison.get().map(|stopped| Error::Poisoned(stopped.cause.clone()));
        closed
            .and(stopped.map_or(Ok(()), Err))
            .and(folded.map_err(|_| Error::Poisoned("the folder panicked".to_owned())))
    })
}
