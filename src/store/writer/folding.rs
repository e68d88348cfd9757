//! What the writer and the folder tell each other.

use crate::base::error::Error;
use crate::base::position::Position;
use crate::base::sync::mpsc::Sender;
use crate::state::{MemoryMap, Meta, View};
use crate::store::folder::{Fold, Folded, Task};
use crate::store::published::Published;

use super::{Control, FolderLink, Writer};

impl Writer {
    pub(super) fn freeze(&mut self, next: &mut Published) -> Option<Fold> {
        if self.fold_failed {
            // Nobody will be answered by a fold.
            self.forced.clear();
            return None;
        }
        let due = next.view.active.bytes() >= self.shared.limits.fold_bytes || !self.forced.is_empty();
        if !due || next.view.frozen.is_some() {
            return None;
        }
        let map = std::mem::take(&mut next.view.active);
        next.view.frozen = Some(map.clone());
        Some(self.fold_of(map, next.position))
    }

    pub(super) fn fold_of(&mut self, map: MemoryMap, applied: Position) -> Fold {
        let time = self.frame_time();
        let meta = Meta {
            store_id: self.shared.store_id.as_u128(),
            epoch: self.shared.epoch,
            applied_epoch: applied.epoch,
            applied_sequence: applied.sequence,
            clock_mark_ms: time.0,
            clock_trusted_ms: self.shared.time.trusted(time).0,
            log_floor: self.shared.history.floor(),
        };
        let forced = std::mem::take(&mut self.forced);
        Fold { map, meta, log_bytes: std::mem::take(&mut self.log_bytes_since_fold), forced }
    }

    pub(super) fn send(&mut self, task: Task) {
        let unsent = match &mut self.folder {
            FolderLink::Thread(sender) => sender.send(task).is_err(),
            FolderLink::Manual { tasks, .. } => {
                tasks.push_back(task);
                false
            }
        };
        if unsent {
            self.take_folded(Folded::Failed("the folder is gone".to_owned()));
        }
    }

    pub(super) fn take_control(&mut self, control: Control) {
        match control {
            Control::Folded(folded) => self.take_folded(folded),
            Control::CheckState(reply) => self.send(Task::Check(reply)),
            Control::Compact(news) => self.send(Task::Compact(news)),
            Control::Roll(reply) => {
                // Whoever asked may have left.
                drop(reply.send(self.roll()));
            }
            Control::Checkpoint(reply) => self.force_checkpoint(reply),
        }
    }

    /// The folder has something to say.
    pub(super) fn take_folded(&mut self, folded: Folded) {
        match folded {
            Folded::Done { snapshot, checkpoint } => {
                self.shared.counters.folds.add(1);
                self.shared.counters.checkpoints.add(u64::from(checkpoint.is_some()));
                if let Some(took) = checkpoint {
                    self.shared.measures.checkpoint(took, self.shared.time.monotonic());
                    self.activity_due = true;
                }
                let before = self.shared.publisher.load();
                let view = View { active: before.view.active.clone(), frozen: None, base: snapshot };
                let position = before.position;
                drop(before);
                let mut next = Published { view, position };
                let fold = self.freeze(&mut next);
                let old = self.shared.publisher.publish(next);
                self.send(Task::Discard(old));
                if let Some(fold) = fold {
                    self.send(Task::Fold(fold));
                }
            }
            Folded::Replaced { snapshot, gate, done } => {
                *self.shared.state_file.write() = gate;
                let before = self.shared.publisher.load();
                let view = View { base: snapshot, ..before.view.clone() };
                let position = before.position;
                drop(before);
                let old = self.shared.publisher.publish(Published { view, position });
                self.send(Task::Discard(old));
                done.say();
            }
            Folded::Failed(cause) => {
                self.fold_failed = true;
                self.shared.stop(format!("the state file: {cause}"), std::mem::take(&mut self.in_flight));
            }
            Folded::Finished => {}
        }
    }

    /// Makes a checkpoint of everything, now or when the fold that is under way has ended.
    fn force_checkpoint(&mut self, reply: Sender<Result<(), Error>>) {
        self.forced.push(reply);
        let before = self.shared.publisher.load();
        let next = Published { view: before.view.clone(), position: before.position };
        drop(before);
        drop(self.publish(next));
    }
}
