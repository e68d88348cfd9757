//! The writer: the only one that runs closures, appends to the log and publishes.
//!
//! The order of effects of a batch is fixed: closures run on a map nobody sees, their frames are appended and synced,
//! then the map is published, then the tickets are answered.

mod close;
mod folding;
mod sweep;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::base::error::Error;
use crate::base::mutant::{self, Mutant};
use crate::base::name::Slot;
use crate::base::position::TimestampMs;
use crate::base::sync::mpsc::Sender;
use crate::log::record::Body;
use crate::log::{AppendError, Appender, OutgoingFrame};
use crate::state::View;

use super::answers::{self, Answers, NoRoom};
use super::batch::Batch;
use super::folder::{CompactNews, Folded, Folder, StateCheck, Task};
use super::job::Job;
use super::mutation;
use super::published::Published;
use super::segments::NextSegment;
use super::shared::Shared;
use super::sweep::Sweeper;

/// After this long without work the last batch is proven durable by a mark.
pub(super) const IDLE_MARK_AFTER: Duration = Duration::from_millis(100);

/// What reaches the writer beside submissions.
#[derive(Debug)]
pub(super) enum Control {
    /// From the folder.
    Folded(Folded),
    /// Somebody wants the pages of the state file checked.
    CheckState(Sender<StateCheck>),
    /// Somebody wants the state file rewritten.
    Compact(Sender<CompactNews>),
    /// Somebody wants the active segment sealed: what comes next goes into another.
    Roll(Sender<Result<(), Error>>),
    /// Somebody wants a checkpoint, and no more of the log kept than the next open needs.
    Checkpoint(Sender<Result<(), Error>>),
}

/// Where folds go.
#[derive(Debug)]
pub(super) enum FolderLink {
    /// To a thread of its own.
    Thread(Sender<Task>),
    /// To the caller of `step`, one at a time.
    Manual { folder: Box<Folder>, tasks: VecDeque<Task> },
}

/// The writer's own state.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// None once it is closed.
    log: Option<Appender>,
    next_segment: Option<NextSegment>,
    folder: FolderLink,
    /// Taken off the queue and not run yet, since a batch was full.
    backlog: VecDeque<Job>,
    /// The time of the last frame, below which no frame may be.
    last_time: TimestampMs,
    log_bytes_since_fold: u64,
    /// The slots of the batch that is with the disk.
    in_flight: HashSet<Slot>,
    last_work: Duration,
    /// A mark could prove the last batch.
    unproven: bool,
    fold_failed: bool,
    sweeper: Sweeper,
    /// A checkpoint was made since replays and conflicts were written down.
    activity_due: bool,
    /// Asked for a checkpoint, which the next fold will be.
    forced: Vec<Sender<Result<(), Error>>>,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        log: Appender,
        next_segment: NextSegment,
        folder: FolderLink,
        last_time: TimestampMs,
        log_bytes_since_fold: u64,
    ) -> Self {
        let last_work = shared.time.monotonic();
        Self {
            shared,
            log: Some(log),
            next_segment: Some(next_segment),
            folder,
            backlog: VecDeque::new(),
            last_time,
            log_bytes_since_fold,
            in_flight: HashSet::new(),
            last_work,
            unproven: false,
            fold_failed: false,
            sweeper: Sweeper::default(),
            activity_due: false,
            forced: Vec::new(),
        }
    }

    /// Commits records of the store's own, such as declarations, while the store is being opened.
    pub(super) fn commit_own(&mut self, bodies: Vec<Body>) -> Result<(), Error> {
        if bodies.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let mut batch = Batch::begin(&shared, shared.epoch, self.frame_time());
        for body in bodies {
            batch.add_frame(body)?;
        }
        self.commit(batch)
    }

    /// Serves the queue until it is closed and drained. Runs on the writer's thread.
    pub(super) fn serve(&mut self) {
        loop {
            let wait = if !self.backlog.is_empty() {
                Some(Duration::ZERO)
            } else if self.unproven && self.shared.poison.get().is_none() {
                Some(IDLE_MARK_AFTER)
            } else {
                self.until_sweep()
            };
            let wait = if self.sweep_is_due() { Some(Duration::ZERO) } else { wait };
            if self.turn(wait) {
                return;
            }
        }
    }

    /// One turn: control messages, then one batch, or a mark if there was nothing to do. Returns whether the queue is
    /// closed and drained.
    fn turn(&mut self, wait: Option<Duration>) -> bool {
        let items_max = self.shared.limits.batch_operations_max.saturating_sub(self.backlog.len());
        let taken = self.shared.queue.take(items_max, wait);
        let idle = taken.control.is_empty() && taken.items.is_empty() && self.backlog.is_empty();
        taken.control.into_iter().for_each(|control| self.take_control(control));
        self.backlog.extend(taken.items);
        if !self.backlog.is_empty() {
            self.wait_for_folder();
            self.run_batch();
        } else if idle && !taken.drained && !self.sweep_alone() {
            self.prove_last_batch();
        }
        taken.drained && self.backlog.is_empty()
    }

    /// Does what is due on the caller's thread. Returns whether there was anything.
    pub(super) fn step(&mut self) -> bool {
        let taken = self.shared.queue.take(self.shared.limits.batch_operations_max, Some(Duration::ZERO));
        let mut worked = !taken.control.is_empty() || !taken.items.is_empty() || !self.backlog.is_empty();
        taken.control.into_iter().for_each(|control| self.take_control(control));
        self.backlog.extend(taken.items);
        if !self.backlog.is_empty() {
            self.run_batch();
        }
        worked |= self.run_manual_task();
        worked |= self.next_segment.as_mut().is_some_and(NextSegment::prepare_due);
        worked = worked || self.sweep_alone();
        let idle_for = self.shared.time.monotonic().saturating_sub(self.last_work);
        let may_prove = self.unproven && self.shared.poison.get().is_none();
        if !worked && may_prove && idle_for >= IDLE_MARK_AFTER {
            self.prove_last_batch();
            worked = true;
        }
        worked
    }

    /// Runs one fold on the caller's thread, or removes one old log segment, if either is due.
    fn run_manual_task(&mut self) -> bool {
        let FolderLink::Manual { folder, tasks } = &mut self.folder else { return false };
        let Some(task) = tasks.pop_front() else {
            if folder.remove_one() {
                return true;
            }
            let (folded, more) = folder.compact_one();
            let worked = more || folded.is_some();
            if let Some(folded) = folded {
                self.take_folded(folded);
            }
            return worked;
        };
        if let Some(folded) = folder.run(task) {
            self.take_folded(folded);
        }
        true
    }

    /// The folder fell behind: no closure runs until it has caught up. It waits for nobody, so this ends.
    fn wait_for_folder(&mut self) {
        let mut waited = false;
        while self.shared.poison.get().is_none() && self.folder_lags() {
            if !waited {
                self.shared.counters.folder_waits.add(1);
                waited = true;
            }
            let messages = self.shared.queue.take_control(IDLE_MARK_AFTER);
            messages.into_iter().for_each(|control| self.take_control(control));
        }
    }

    fn folder_lags(&self) -> bool {
        let view = &self.shared.publisher.load().view;
        view.frozen.is_some()
            && view.active.bytes() >= self.shared.limits.map_bytes_max
            && matches!(self.folder, FolderLink::Thread(_))
    }

    /// Runs what waits, as one batch, and commits it.
    fn run_batch(&mut self) {
        let shared = Arc::clone(&self.shared);
        self.stop_if_state_failed();
        if let Some(stopped) = shared.poison.get() {
            for job in std::mem::take(&mut self.backlog) {
                answers::to_late_comer(&shared, stopped, job);
            }
            return;
        }
        let mut batch = Batch::begin(&shared, shared.epoch, self.frame_time());
        while !batch.is_full()
            && let Some(job) = self.backlog.pop_front()
        {
            batch.run(job);
        }
        self.note_activity(&mut batch);
        self.sweep_with(&mut batch);
        if let Err(error) = self.commit(batch) {
            tracing::debug!(%error, "a batch was not committed; its members were told");
        }
        self.stop_if_state_failed();
        self.last_work = shared.time.monotonic();
    }

    /// After one call of the state file that failed, redb answers no more, reads included: no closure could be sure of
    /// a row. What is with the log is not touched by it.
    ///
    /// Looked at before and behind a batch, and not between its members: a member that needs a row of the file after the
    /// failure is told that it cannot be read and is not executed, and one that finds all its rows in the map, or among
    /// pages that were read before, rests on nothing that is in doubt.
    fn stop_if_state_failed(&self) {
        let failure = self.shared.state_file.read().failure().map(str::to_owned);
        if let Some(cause) = failure
            && self.shared.poison.get().is_none()
        {
            self.shared.stop(format!("the state file: {cause}"), HashSet::new());
        }
    }

    /// The store's time, never below the last frame's.
    fn frame_time(&self) -> TimestampMs {
        self.shared.time.now().max(self.last_time)
    }

    /// Makes a batch durable, shows it, and answers its members; or refuses it, or stops the store. The error is for
    /// whoever has no ticket in it.
    fn commit(&mut self, mut batch: Batch<'_>) -> Result<(), Error> {
        if batch.frames.is_empty() {
            drop(Answers::of(&self.shared, std::mem::take(&mut batch.members)));
            return Ok(());
        }
        if let Err(reason) = self.make_room(batch.frame_bytes) {
            self.refuse(batch, &reason);
            return Err(reason.error());
        }
        for member in &mut batch.members {
            member.hand_to_disk(&batch.slots);
        }
        self.in_flight = std::mem::take(&mut batch.slots);
        let durable = self.append_and_sync(&batch);
        batch.slots = std::mem::take(&mut self.in_flight);
        match durable {
            Ok(()) => {
                self.finish(batch);
                if mutant::is(Mutant::AnsweredBeforeSync) {
                    mutation::sync_late(&self.shared, self.log.as_mut());
                }
                Ok(())
            }
            Err(error) if error.nothing_written() => {
                let reason = NoRoom::Other(error.to_string());
                self.refuse(batch, &reason);
                Err(reason.error())
            }
            Err(error) => {
                self.stop(batch, &error);
                Err(Error::Unknown(error.to_string()))
            }
        }
    }

    fn append_and_sync(&mut self, batch: &Batch<'_>) -> Result<(), AppendError> {
        let frames: Vec<OutgoingFrame<'_>> = batch
            .frames
            .iter()
            .map(|frame| OutgoingFrame { sequence: frame.sequence, time_ms: frame.time_ms, payload: &frame.payload })
            .collect();
        let log = self.log.as_mut().expect("the log is open until the writer closes it");
        log.append(&frames)?;
        if mutant::is(Mutant::AnsweredBeforeSync) {
            return Ok(());
        }
        if mutant::is(Mutant::PublishedBeforeSync) {
            mutation::show_early(&self.shared.publisher, batch.map(), batch.last_position());
        }
        let started = self.shared.time.monotonic();
        log.sync()?;
        let took = self.shared.time.monotonic().saturating_sub(started);
        self.shared.measures.batch(batch.members.len(), took);
        Ok(())
    }

    /// The batch is durable: show it, then say so.
    fn finish(&mut self, mut batch: Batch<'_>) {
        self.sweeper.committed(batch.due_first);
        self.shared.counters.swept.add(batch.swept);
        // Answers are owed from here on, whatever happens to the rest.
        let answers = Answers::of(&self.shared, std::mem::take(&mut batch.members));
        self.shared.counters.batches.add(1);
        self.log_bytes_since_fold += batch.frame_bytes;
        self.unproven = true;
        self.last_time = batch.frames.last().map_or(self.last_time, |frame| TimestampMs(frame.time_ms));
        let position = batch.last_position();
        let before = self.shared.publisher.load();
        let view =
            View { active: batch.into_map(), frozen: before.view.frozen.clone(), base: before.view.base.clone() };
        drop(before);
        let previous = self.publish(Published { view, position });
        drop(answers);
        // Last, since nobody waits for it: it frees every node of the map that the batch replaced.
        drop(previous);
    }

    /// Publishes, and freezes the map if it is large and the folder is free. Gives back the state before it.
    fn publish(&mut self, mut next: Published) -> Arc<Published> {
        let fold = self.freeze(&mut next);
        let previous = self.shared.publisher.publish(next);
        if let Some(fold) = fold {
            self.send(Task::Fold(fold));
        }
        previous
    }

    /// Goes on in a new segment.
    fn roll(&mut self) -> Result<(), Error> {
        if let Some(stopped) = self.shared.poison.get() {
            return Err(Error::Poisoned(stopped.cause.clone()));
        }
        self.next_segment(0).map_err(|reason| reason.error())
    }

    /// Sees to it that the batch fits into the active segment.
    fn make_room(&mut self, batch_bytes: u64) -> Result<(), NoRoom> {
        if self.log.as_ref().is_some_and(|log| !log.has_room(batch_bytes)) {
            self.next_segment(batch_bytes)?;
        }
        let created_ms = self.frame_time().0;
        match (&mut self.log, &mut self.next_segment) {
            (Some(log), Some(next)) => {
                next.order(log, created_ms);
                Ok(())
            }
            (Some(_) | None, _) => Err(NoRoom::Other("the log is closed".to_owned())),
        }
    }

    /// Goes on in the next segment, which has room for a batch of this many bytes.
    fn next_segment(&mut self, batch_bytes: u64) -> Result<(), NoRoom> {
        let created_ms = self.frame_time().0;
        let (Some(log), Some(next)) = (&mut self.log, &mut self.next_segment) else {
            return Err(NoRoom::Other("the log is closed".to_owned()));
        };
        let prepared = next.take(log, batch_bytes, created_ms).map_err(NoRoom::from)?;
        self.shared.history.grew(prepared.bytes);
        log.roll_to(prepared).map_err(|error| NoRoom::Other(error.to_string()))?;
        self.shared.counters.segments.add(1);
        Ok(())
    }

    /// Nothing was written. The members' own answers are dropped, refusals as well: a closure may have read rows of a
    /// neighbour that is not kept. They are answered from the published view, or told that there was no room.
    fn refuse(&mut self, batch: Batch<'_>, reason: &NoRoom) {
        self.in_flight.clear();
        self.sweeper.not_committed(self.shared.time.monotonic());
        tracing::warn!(?reason, "a batch was refused before anything was written");
        answers::refused(&self.shared, batch.members, reason);
    }

    /// The disk failed with the batch in its hands: stop, and tell everybody what is certain.
    fn stop(&mut self, batch: Batch<'_>, error: &AppendError) {
        self.in_flight.clear();
        self.shared.stop(format!("the log: {error}"), batch.slots);
        if let Some(stopped) = self.shared.poison.get() {
            answers::stopped(&self.shared, stopped, batch.members);
        }
    }

    /// The writer's code failed outside a closure.
    pub(super) fn stop_after_panic(&mut self) {
        let in_flight = std::mem::take(&mut self.in_flight);
        self.shared.stop("the writer panicked", in_flight);
    }

    /// Writes and syncs a mark behind the last batch.
    fn prove_last_batch(&mut self) {
        if !self.unproven || self.shared.poison.get().is_some() {
            return;
        }
        self.unproven = false;
        let time = self.frame_time();
        let Some(log) = &mut self.log else { return };
        let proven = log.append_mark(time.0).and_then(|appended| if appended { log.sync() } else { Ok(()) });
        if let Err(error) = proven {
            self.shared.stop(format!("the log: {error}"), HashSet::new());
        }
    }
}
